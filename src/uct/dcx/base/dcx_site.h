/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The options that an administrator sets for a whole site, often already for
 * UCX's own transports: UCX_IB_*, UCX_IB_MLX5_*, UCX_RC_*, UCX_DC_* and
 * UCX_DC_MLX5_*. Each has one row in dcx_site.c, in the table of its prefix.
 * UCX's parser then reads UCX_DCX_X, and if that is not set, the variables of
 * the site in UCX's own order: UCX_DC_MLX5_X before UCX_DC_X, UCX_RC_X and
 * UCX_IB_X. A row belongs here if UCX gives the option the same meaning and the
 * same values.
 *
 * Read when a domain or an interface opens. The fields of an interface are in
 * uct_dcx_iface_config_t (dcx_config.h).
 */
#ifndef UCT_DCX_SITE_H
#define UCT_DCX_SITE_H

#include <string.h>
#include <ucs/config/parser.h>


/* Options of a memory domain */
typedef struct uct_dcx_site_md_config {
    int fork_init; /* ucs_ternary_auto_value_t, no "auto" */
    int devx;      /* ucs_ternary_auto_value_t, no "auto" */
    int async_events;
    int relaxed;    /* ucs_ternary_auto_value_t */
    int gpu_direct; /* ucs_ternary_auto_value_t, no "auto" */
    unsigned long reg_retries;
    char *subnet_prefix; /* "fe80:0:0:0", "": any */
} uct_dcx_site_md_config_t;


/* The variable that sets an option: the one that takes precedence, or the first
 * that UCX's parser refuses */
typedef struct uct_dcx_site_source {
    char variable[64];
    char value[128];
    int is_set; /* 0: none is set, and @variable is dcx's own */
    int is_bad; /* the parser refuses @value */
} uct_dcx_site_source_t;


/* Options of a domain: UCX_IB_*, UCX_IB_MLX5_* */
extern ucs_config_field_t uct_dcx_site_md_table[];
extern ucs_config_field_t uct_dcx_site_md_mlx5_table[];

/* Options of an interface: UCX_IB_* only; UCX_DC_MLX5_* and the prefixes below
 * it */
extern ucs_config_field_t uct_dcx_site_port_table[];
extern ucs_config_field_t uct_dcx_site_dc_mlx5_table[];

/* Finds the variable that sets @option, a row of @table or of a table in it: in
 * the environment or in UCX's configuration file. Not for the data path. */
void uct_dcx_site_find(const ucs_config_field_t *table, const char *option,
                       uct_dcx_site_source_t *source);

/* Returns 1 if @variable is dcx's own, 0 if it is one of UCX. */
static inline int uct_dcx_site_is_own(const char *variable)
{
    static const char prefix[] = "UCX_DCX_";

    return strncmp(variable, prefix, sizeof(prefix) - 1) == 0;
}

/* Warns of each option of the site with a value that the parser refuses: the
 * parser's own message names no variable. Logs each variable of UCX that is
 * used, at level "info". */
void uct_dcx_site_warn(const ucs_config_field_t *table);

/* Logs each option of the site that dcx has no counterpart of, at level
 * "info". */
void uct_dcx_site_log_ignored(void);

/* Returns the name of the variable that sets @option, valid until the thread
 * calls this again. */
const char *uct_dcx_site_variable(const ucs_config_field_t *table,
                                  const char *option);

/* Stores subnet_prefix, four hexadecimal groups, in @prefix: the first half of
 * a GID in network order, or 0 if the option is empty. Logs other values with
 * the name of their variable, and returns UCS_ERR_INVALID_PARAM. @table is the
 * domain's. */
ucs_status_t uct_dcx_site_subnet(const uct_dcx_site_md_config_t *config,
                                 const ucs_config_field_t *table,
                                 uint64_t *prefix);

#endif
