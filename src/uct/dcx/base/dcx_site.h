/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The options that an administrator sets for a whole site, and has set for
 * UCX's own transports already: UCX_IB_*, UCX_RC_*, UCX_DC_* and UCX_DC_MLX5_*.
 * Each has one row here, in the table that is named after UCX's prefix; UCX's
 * parser then reads UCX_DCX_X, and without that the variable of the site, in
 * UCX's own order: UCX_DC_MLX5_X before UCX_DC_X, UCX_RC_X and UCX_IB_X. A row
 * belongs here if UCX gives the option the same meaning and the same values.
 *
 * Read when a domain or an interface opens. The fields of an interface are
 * those of uct_dcx_iface_config_t (dcx_config.h).
 */
#ifndef UCT_DCX_SITE_H
#define UCT_DCX_SITE_H

#include <ucs/config/parser.h>


/* Of a memory domain */
typedef struct uct_dcx_site_md_config {
    int  fork_init;      /* ucs_ternary_auto_value_t */
    int  devx;           /* the same */
    int  async_events;
    int  relaxed;        /* ucs_ternary_auto_value_t */
    char *subnet_prefix; /* "fe80:0:0:0", "": any */
} uct_dcx_site_md_config_t;


/* The variable that sets an option: of several the one that counts, or the
 * first that UCX's parser refuses */
typedef struct uct_dcx_site_source {
    char variable[64];
    char value[128];
    int  is_set;   /* 0: none is, and @variable is that of dcx */
    int  is_bad;   /* the parser refuses the value */
} uct_dcx_site_source_t;


/* Of a domain: UCX_IB_*, UCX_IB_MLX5_* */
extern ucs_config_field_t uct_dcx_site_md_table[];
extern ucs_config_field_t uct_dcx_site_md_mlx5_table[];

/* Of an interface: UCX_IB_* alone; UCX_DC_MLX5_* and those below */
extern ucs_config_field_t uct_dcx_site_port_table[];
extern ucs_config_field_t uct_dcx_site_dc_mlx5_table[];

/* Finds the variable that sets @option, a row of @table or of a table in it: in
 * the environment or in a file of UCX's. Not for the data path. */
void uct_dcx_site_find(const ucs_config_field_t *table, const char *option,
                       uct_dcx_site_source_t *source);

/* Warns of each option of the site that has a value which the parser refuses:
 * its own line names no variable. */
void uct_dcx_site_warn(const ucs_config_field_t *table);

/* Returns the name of that variable, good until the thread calls this again. */
const char *
uct_dcx_site_variable(const ucs_config_field_t *table, const char *option);

/* Parses subnet_prefix to the first half of a GID, in network order; 0: any.
 * Anything else is logged, with its variable. @table is the domain's. */
ucs_status_t uct_dcx_site_subnet(const uct_dcx_site_md_config_t *config,
                                 const ucs_config_field_t *table,
                                 uint64_t *prefix);

#endif
