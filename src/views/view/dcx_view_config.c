/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The options of views; see dcx_view_config.h.
 */
#include "dcx_view_config.h"
#include "dcx_view_ops.h"

#include <ucs/debug/log.h>


ucs_config_field_t uct_dcx_view_config_table[] = {
    {"", "", NULL, ucs_offsetof(uct_dcx_view_config_t, super),
     UCS_CONFIG_TYPE_TABLE(uct_md_config_table)},

    {"TYPES", "try",
     "Messages of MPI's derived data types, and of other types that are not\n"
     "contiguous, by keys that have their layout, instead of packing them.\n"
     "\"try\" does so in programs of an MPI that it knows, \"y\" in all\n"
     "programs of UCP; either needs the library that dcx-run preloads.",
     ucs_offsetof(uct_dcx_view_config_t, types), UCS_CONFIG_TYPE_TERNARY},

    {"TYPES_MIN_LENGTH", "auto",
     "Bytes from which on such a message goes that way, 16k or more; shorter\n"
     "ones are packed. \"inf\" is never. \"auto\" is 96k, or as many as the\n"
     "processor copies while the device is given a layout of 52 blocks, if\n"
     "dcx_selftest measured more than that; 1536k at most.",
     ucs_offsetof(uct_dcx_view_config_t, min_length), UCS_CONFIG_TYPE_MEMUNITS},

    {"TYPES_MIN_BLOCK", "auto",
     "Bytes that its blocks have on average at least to go that way, 1 or\n"
     "more, where they are dense: in less than 2.25 times their length.\n"
     "\"auto\" is 256, or as many as the processor copies while the device\n"
     "reads one entry of a layout, if dcx_selftest measured more than that;\n"
     "4k at most.",
     ucs_offsetof(uct_dcx_view_config_t, min_block), UCS_CONFIG_TYPE_MEMUNITS},

    {"TYPES_MIN_SPARSE_BLOCK", "2k", "... and where they are not, 1 or more.",
     ucs_offsetof(uct_dcx_view_config_t, min_sparse_block),
     UCS_CONFIG_TYPE_MEMUNITS},

    {"TYPES_MAX_SPAN", "64m",
     "Bytes of memory, the gaps between blocks included, that may be\n"
     "registered for one such message even if they are more than 64 times the\n"
     "data. \"inf\": as many as there are.",
     ucs_offsetof(uct_dcx_view_config_t, max_span), UCS_CONFIG_TYPE_MEMUNITS},

    {"TYPES_MAX", "64",
     "Messages that go that way at a time, 1-4096, and layouts of data types\n"
     "that the device keeps for when they come again. Keys for them are made\n"
     "when they are first needed.",
     ucs_offsetof(uct_dcx_view_config_t, max_views), UCS_CONFIG_TYPE_UINT},

    {"TYPES_REPORT", "n",
     "Tell at the end of the program how many messages went that way, and\n"
     "why others did not.",
     ucs_offsetof(uct_dcx_view_config_t, report), UCS_CONFIG_TYPE_BOOL},

    {.name = NULL},
};


static ucs_status_t uct_dcx_view_config_refuse(const char *name, size_t value,
                                               const char *range)
{
    ucs_error("UCX_DCX_%s=%zu is out of range: set it to %s", name, value,
              range);
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

    if (config->min_sparse_block < 1) {
        return uct_dcx_view_config_refuse(
            "TYPES_MIN_SPARSE_BLOCK", config->min_sparse_block, "1 or more");
    }

    if ((config->max_views < 1) || (config->max_views > UCT_DCX_VIEW_OPS_MAX)) {
        return uct_dcx_view_config_refuse("TYPES_MAX", config->max_views,
                                          "1-4096");
    }
    return UCS_OK;
}
