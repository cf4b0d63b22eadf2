/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The options that an administrator sets for a whole site, and has set for UCX's
 * own transports already: UCX_IB_*, UCX_RC_*, UCX_DC_* and UCX_DC_MLX5_*. Each has
 * one row here, in the table that is named after UCX's prefix; UCX's parser then
 * reads UCX_DCX_X, and without that the variable of the site, in UCX's own order:
 * UCX_DC_MLX5_X before UCX_DC_X, UCX_RC_X and UCX_IB_X. A row belongs here if UCX
 * gives the option the same meaning and the same values.
 *
 * Read when a domain or an interface opens. The fields of an interface are those of
 * uct_dcx_iface_config_t (dcx_config.h).
 */
#ifndef UCT_DCX_SITE_H
#define UCT_DCX_SITE_H

#include <ucs/config/parser.h>


/* Of a memory domain */
typedef struct uct_dcx_site_md_config {
    int  fork_init;      /* ucs_ternary_auto_value_t */
    int  devx;           /* the same */
    int  async_events;
    char *subnet_prefix; /* "fe80:0:0:0", "": any */
} uct_dcx_site_md_config_t;


/* The variable that sets an option, and its value */
typedef struct uct_dcx_site_source {
    char variable[64];
    char value[128];
} uct_dcx_site_source_t;


extern ucs_config_field_t uct_dcx_site_md_table[];      /* UCX_IB_* */
extern ucs_config_field_t uct_dcx_site_md_mlx5_table[]; /* UCX_IB_MLX5_* */
extern ucs_config_field_t uct_dcx_site_port_table[];    /* UCX_IB_*, of a port */
extern ucs_config_field_t uct_dcx_site_dc_mlx5_table[]; /* UCX_DC_MLX5_* ... */

/* Finds the variable that sets @option, a row of @table or of a table in it: in the
 * environment or in a file of UCX's. Returns 0 if none does; the variable is that
 * of dcx then. Not for the data path. */
int uct_dcx_site_find(const ucs_config_field_t *table, const char *option,
                      uct_dcx_site_source_t *source);

/* Returns the name of that variable, good until the thread calls this again. */
const char *
uct_dcx_site_variable(const ucs_config_field_t *table, const char *option);

/* Parses subnet_prefix to the first half of a GID, in network order; 0: any. What is
 * no prefix is logged, with its variable. @table is the domain's. */
ucs_status_t uct_dcx_site_subnet(const uct_dcx_site_md_config_t *config,
                                 const ucs_config_field_t *table,
                                 uint64_t *prefix);

#endif
