/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The options of views; see dcx_view_config.h.
 */
#include "dcx_view_config.h"
#include "dcx_view_ops.h"

#include <ucs/debug/log.h>
#include <ucs/sys/string.h>


ucs_config_field_t uct_dcx_view_config_table[] = {
    {"", "", NULL, ucs_offsetof(uct_dcx_view_config_t, super),
     UCS_CONFIG_TYPE_TABLE(uct_md_config_table)},

    {"TYPES", "try",
     "Send and receive messages of derived data types (and of other types\n"
     "that are not contiguous) without packing: the device gathers and\n"
     "scatters them by mkeys with their layouts. \"try\" does so in programs\n"
     "of Open MPI and MPICH, \"y\" in all programs that use UCP, \"n\" packs\n"
     "all messages. Has no effect unless dcx-run started the program.",
     ucs_offsetof(uct_dcx_view_config_t, types), UCS_CONFIG_TYPE_TERNARY},

    {"TYPES_MIN_LENGTH", "auto",
     "Minimum size in bytes of a message that is not packed, 16k or more.\n"
     "\"inf\" packs all messages. \"auto\" is 256k, or the bytes that the\n"
     "processor copies in the time of a UMR of 52 blocks if dcx_selftest\n"
     "measured more than that; at most 4m.",
     ucs_offsetof(uct_dcx_view_config_t, min_length), UCS_CONFIG_TYPE_MEMUNITS},

    {"TYPES_MIN_BLOCK", "auto",
     "Minimum average size in bytes of the blocks of a message, 1 or more;\n"
     "messages with smaller blocks are packed. \"auto\" is 256, or the bytes\n"
     "that the processor copies while the device reads one entry of a layout\n"
     "if dcx_selftest measured more than that; at most 4k.",
     ucs_offsetof(uct_dcx_view_config_t, min_block), UCS_CONFIG_TYPE_MEMUNITS},

    {"TYPES_MIN_SPARSE_BLOCK", "2k",
     "Minimum average size in bytes of the blocks of sparse data, 1 or more,\n"
     "in addition to TYPES_MIN_BLOCK. Data is sparse if its span is more than\n"
     "2.25 times its length.",
     ucs_offsetof(uct_dcx_view_config_t, min_sparse_block),
     UCS_CONFIG_TYPE_MEMUNITS},

    {"TYPES_MAX_SPAN", "64m",
     "Maximum size in bytes of the memory, gaps included, that may be\n"
     "registered for one message. Up to 64 times the data is allowed in any\n"
     "case. \"inf\" means no limit. Raise this if TYPES_REPORT says that\n"
     "memory is too scattered.",
     ucs_offsetof(uct_dcx_view_config_t, max_span), UCS_CONFIG_TYPE_MEMUNITS},

    {"TYPES_MAX", "64",
     "Maximum number of layouts, 1-4096: those of messages in flight that are\n"
     "not packed, and those kept for later messages of the same data types.\n"
     "Their mkeys are created on demand.",
     ucs_offsetof(uct_dcx_view_config_t, max_views), UCS_CONFIG_TYPE_UINT},

    {"TYPES_REPORT", "n",
     "Print at the end of the program how many messages were not packed, and\n"
     "why others were.",
     ucs_offsetof(uct_dcx_view_config_t, report), UCS_CONFIG_TYPE_BOOL},

    {.name = NULL},
};


static ucs_status_t uct_dcx_view_config_refuse(const char *name, size_t value,
                                               const char *range)
{
    char text[32]; /* "auto" is a number */

    ucs_config_sprintf_memunits(text, sizeof(text), &value, NULL);
    ucs_error("UCX_DCX_%s=%s is out of range: set it to %s", name, text, range);
    return UCS_ERR_INVALID_PARAM;
}


ucs_status_t uct_dcx_view_config_check(const uct_dcx_view_config_t *config)
{
    if (config->min_length < UCT_DCX_VIEW_MIN_LENGTH) {
        return uct_dcx_view_config_refuse("TYPES_MIN_LENGTH",
                                          config->min_length, "16k or more");
    }

    if (config->min_block < 1) {
        return uct_dcx_view_config_refuse("TYPES_MIN_BLOCK", config->min_block,
                                          "1 or more");
    }

    if ((config->min_sparse_block < 1) ||
        (config->min_sparse_block == UCS_MEMUNITS_AUTO)) {
        return uct_dcx_view_config_refuse(
            "TYPES_MIN_SPARSE_BLOCK", config->min_sparse_block, "1 or more");
    }

    if (config->max_span == UCS_MEMUNITS_AUTO) {
        return uct_dcx_view_config_refuse("TYPES_MAX_SPAN", config->max_span,
                                          "a size or inf");
    }

    if ((config->max_views < 1) || (config->max_views > UCT_DCX_VIEW_OPS_MAX)) {
        return uct_dcx_view_config_refuse("TYPES_MAX", config->max_views,
                                          "1-4096");
    }
    return UCS_OK;
}
