/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The options of views (src/views). They stand among those of a memory
 * domain, so that they are listed and checked with these; who stands before UCP
 * reads them before there is a domain.
 */
#ifndef UCT_DCX_VIEW_CONFIG_H
#define UCT_DCX_VIEW_CONFIG_H

#include <ucs/config/parser.h>


enum {
    UCT_DCX_VIEW_MAX        = 4096,  /* as many have addresses */

    /* UCP copies what is short inline, from any address: its limits are those of
     * the transports, 8 KiB at most (tag_send.c of UCX 1.13, is_inline) */
    UCT_DCX_VIEW_MIN_LENGTH = 16384
};


typedef struct uct_dcx_view_config {
    int      types;            /* ucs_ternary_auto_value_t */
    size_t   min_length;       /* of a message, or UCS_MEMUNITS_AUTO */
    size_t   min_block;        /* of its average block, where it is dense, or
                                * UCS_MEMUNITS_AUTO */
    size_t   min_sparse_block; /* ... where it is not */
    size_t   max_span;         /* bytes registered for any message */
    unsigned max_views;
    int      report;
} uct_dcx_view_config_t;


extern ucs_config_field_t uct_dcx_view_config_table[];

/* Whether they are in range; what is not is logged. */
ucs_status_t uct_dcx_view_config_check(const uct_dcx_view_config_t *config);

#endif
