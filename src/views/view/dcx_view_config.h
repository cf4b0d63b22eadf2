/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The options of views: those of the component "dcx_view". They are read before
 * there is a domain of it, by dcx_view_ops.c, and again by UCT for the domain.
 */
#ifndef UCT_DCX_VIEW_CONFIG_H
#define UCT_DCX_VIEW_CONFIG_H

#include <ucs/config/parser.h>
#include <uct/base/uct_md.h>


enum {
    /* UCP copies what is short inline, from any address: its limits are those
     * of the transports, 8 KiB at most (tag_send.c of UCX 1.13, is_inline) */
    UCT_DCX_VIEW_MIN_LENGTH = 16384
};


typedef struct uct_dcx_view_config {
    uct_md_config_t super;
    int             types;            /* ucs_ternary_auto_value_t */
    size_t          min_length;       /* of a message, or UCS_MEMUNITS_AUTO */
    size_t          min_block;        /* of an average block of dense data, or
                                       * UCS_MEMUNITS_AUTO */
    size_t          min_sparse_block; /* of an average block of other data */
    size_t          max_span;         /* bytes registered for any message */
    unsigned        max_views;
    int             report;
} uct_dcx_view_config_t;


extern ucs_config_field_t uct_dcx_view_config_table[];

/* Returns UCS_ERR_INVALID_PARAM, logged, if one is out of its range. */
ucs_status_t uct_dcx_view_config_check(const uct_dcx_view_config_t *config);

#endif
