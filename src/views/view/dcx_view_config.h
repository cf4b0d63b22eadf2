/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The options of views, those of the component "dcx_view". dcx_view_ops.c reads
 * them before the component has a memory domain; UCT reads them again for the
 * domain.
 */
#ifndef UCT_DCX_VIEW_CONFIG_H
#define UCT_DCX_VIEW_CONFIG_H

#include <ucs/config/parser.h>
#include <uct/base/uct_md.h>


enum {
    /* Bytes that @min_length must have. UCP copies short messages inline, from
     * any address, even a view's. The limits for that are those of the
     * transports, 8 KiB at most (ucp_proto_is_inline() of UCX 1.13). */
    UCT_DCX_VIEW_MIN_LENGTH = 16384
};


typedef struct uct_dcx_view_config {
    uct_md_config_t super;
    int types;               /* ucs_ternary_auto_value_t */
    size_t min_length;       /* bytes of a message, or
                              * UCS_MEMUNITS_AUTO */
    size_t min_block;        /* bytes of an average block, or
                              * UCS_MEMUNITS_AUTO */
    size_t min_sparse_block; /* bytes of an average block of sparse
                              * data */
    size_t max_span;         /* bytes that any message may register */
    unsigned max_views;      /* 1 to UCT_DCX_VIEW_OPS_MAX */
    int report;              /* at the end of the program */
} uct_dcx_view_config_t;


extern ucs_config_field_t uct_dcx_view_config_table[];

/* Logs the first option that is out of its range, and returns
 * UCS_ERR_INVALID_PARAM. */
ucs_status_t uct_dcx_view_config_check(const uct_dcx_view_config_t *config);

#endif
