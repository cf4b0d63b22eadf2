/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Checks the range of each option, and options that depend on each other; see
 * dcx_config.h.
 */
#include "dcx_config.h"

#include <limits.h>
#include <ucs/debug/log.h>
#include <ucs/sys/math.h>
#include <ucs/sys/string.h>


/* Limit of UCX_DCX_RX_QUEUE_LEN, and so of an endpoint's credits */
#define UCT_DCX_MAX_RX_QUEUE_LEN 16384


/* Two WQEBBs for each tagged buffer; the queue of list operations has 32768. */
#define UCT_DCX_MAX_TM_LIST_SIZE 8192


/* A value with a range */
typedef struct uct_dcx_config_range {
    const char *name;
    unsigned long value;
    unsigned long min;
    unsigned long max;
    int or_auto; /* UCS_ULUNITS_AUTO is valid, too */
} uct_dcx_config_range_t;


static ucs_status_t
uct_dcx_config_check_range(const uct_dcx_config_range_t *range)
{
    char value[32];

    if (((range->value >= range->min) && (range->value <= range->max)) ||
        (range->or_auto && (range->value == UCS_ULUNITS_AUTO))) {
        return UCS_OK;
    }

    ucs_config_sprintf_ulunits(value, sizeof(value), &range->value, NULL);
    ucs_error("%s=%s is out of range: set it to %lu-%lu%s",
              uct_dcx_config_variable(range->name), value, range->min,
              range->max, range->or_auto ? " or auto" : "");
    return UCS_ERR_INVALID_PARAM;
}


static ucs_status_t
uct_dcx_config_check_numbers(const uct_dcx_iface_config_t *config)
{
    const uct_dcx_config_range_t ranges[] = {
        {"SEG_SIZE", config->seg_size, UCT_DCX_MIN_SEG_SIZE,
         UCT_DCX_MAX_SEG_SIZE, 0},
        {"NUM_DCI", config->tx.num_dci, 1, 1024, 0},
        {"QUOTA", config->tx.quota, 1, 32768, 0},
        {"NUM_DCI_STREAMS", config->tx.num_streams, 1, 32768, 0},
        {"TX_QUEUE_LEN", config->tx.queue_len, 4, 8192, 0},
        {"TX_MIN_INLINE", config->tx.min_inline, 0, 512, 0},
        {"DM_SIZE", config->dm.size, 0, 65536, 0},
        {"DM_COUNT", config->dm.count, 0, 1024, 0},
        {"TX_MAX_POLL", config->tx.max_poll, 1, 65536, 0},
        {"TX_CQ_MODERATION", config->tx.cq_moderation, 1, 32768, 0},
        {"RX_QUEUE_LEN", config->rx.queue_len, UCT_DCX_MIN_RX_QUEUE_LEN,
         UCT_DCX_MAX_RX_QUEUE_LEN, 0},
        {"RX_INLINE", config->rx.inl, 0, 64, 0},
        {"RX_MAX_POLL", config->rx.max_poll, 1, 65536, 0},
        {"RETRY_COUNT", config->tx.retry_count, 0, INT_MAX, 0},
        {"RNR_RETRY_COUNT", config->tx.rnr_retry_count, 0, INT_MAX, 0},
        {"MAX_RD_ATOMIC", config->tx.max_rd_atomic, 1, 128, 1},
        {"SL", config->path.sl, 0, 15, 1},
        {"REVERSE_SL", config->path.reverse_sl, 0, 15, 1},
        {"HOP_LIMIT", config->path.hop_limit, 0, 255, 0},
        {"FC_WINDOW", config->fc.window, 1, UCT_DCX_MAX_RX_QUEUE_LEN, 1},
        {"FC_INITIAL", config->fc.initial, 0, UCT_DCX_MAX_RX_QUEUE_LEN, 1},
        {"TRAFFIC_CLASS", config->path.traffic_class, 0, 255, 1},
        {"GID_INDEX", config->path.gid_index, 0, 255, 1},
        {"TM_LIST_SIZE", config->tm.list_size, 1, UCT_DCX_MAX_TM_LIST_SIZE, 1},
        {"TM_SEG_SIZE", config->tm.seg_size, UCT_DCX_MIN_SEG_SIZE,
         UCT_DCX_MAX_SEG_SIZE, 1},
        {"TM_MIN_RECV", config->tm.min_recv, UCT_DCX_MAX_TM_REQUEST,
         UCT_DCX_MAX_SEG_SIZE, 1},
        {"STRIDED_MAX_PLAIN", config->strided.max_plain, 1, 64, 0},
        {"STRIDED_COPY", config->strided.copy, 0, UCT_DCX_MAX_SEG_SIZE, 1},
        {"STRIDED_COPY_PIECE", config->strided.copy_piece, 0,
         UCT_DCX_MAX_SEG_SIZE, 1},
        {"NUM_PATHS", config->path.num_paths, 1, 128, 1},
        {"ROCE_PATH_FACTOR", config->path.roce_path_factor, 0, 16383, 0},
        /* "inf" is the longest prefix */
        {"ROCE_SUBNET_PREFIX_LEN",
         (config->path.roce_prefix_len == UCS_ULUNITS_INF) ?
             128 :
             config->path.roce_prefix_len,
         0, 128, 1},
    };
    ucs_status_t status = UCS_OK;
    unsigned i;

    for (i = 0; (i < ucs_static_array_size(ranges)) && (status == UCS_OK);
         ++i) {
        status = uct_dcx_config_check_range(&ranges[i]);
    }
    return status;
}


/* Checks options that are not integers. Allows 0.1 % for decimal fractions. */
static ucs_status_t
uct_dcx_config_check_doubles(const uct_dcx_iface_config_t *config)
{
    const struct {
        const char *name;
        double seconds;
        double max;
    } * time, times[] = {
                  {"TIMEOUT", config->tx.timeout, 4.096e-6 * UCS_BIT(31)},
                  {"RNR_TIMEOUT", config->rx.rnr_timeout, 655.36e-3},
                  {"FC_RESEND_TIMEOUT", config->fc.resend_timeout, 3600},
              };

    for (time = times; time < times + ucs_static_array_size(times); ++time) {
        if (!((time->seconds > 0) && (time->seconds <= time->max * 1.001))) {
            ucs_error("%s=%gs is out of range: set it to a time above 0, %gs "
                      "at most",
                      uct_dcx_config_variable(time->name), time->seconds,
                      time->max);
            return UCS_ERR_INVALID_PARAM;
        }
    }

    if (!((config->fc.thresh >= 0) && (config->fc.thresh <= 0.9))) {
        ucs_error("UCX_DCX_FC_THRESH=%g is out of range: set it to 0-0.9",
                  config->fc.thresh);
        return UCS_ERR_INVALID_PARAM;
    }
    return UCS_OK;
}


/* Returns non-zero if a short message fits in a receive buffer with its
 * headers: 2 bytes of dcx, 8 of uct_ep_am_short(). */
static int uct_dcx_config_fits_inline(const uct_dcx_iface_config_t *config,
                                      const char *name, size_t seg_size)
{
    size_t max = seg_size - 2 - sizeof(uint64_t);

    if (config->tx.min_inline > max) {
        ucs_error("UCX_DCX_TX_MIN_INLINE=%zu is too large: with "
                  "UCX_DCX_%s=%zu a short message has at most %zu bytes",
                  config->tx.min_inline, name, seg_size, max);
        return 0;
    }
    return 1;
}


/* Checks values that are not in a simple range. */
static ucs_status_t
uct_dcx_config_check_others(const uct_dcx_iface_config_t *config)
{
    uint16_t pkey;

    if (!uct_dcx_config_fits_inline(config, "SEG_SIZE", config->seg_size) ||
        !uct_dcx_config_fits_inline(config, "TM_SEG_SIZE",
                                    config->tm.seg_size)) {
        return UCS_ERR_INVALID_PARAM;
    }

    if (!ucs_is_pow2(config->tx.num_streams)) {
        ucs_error("UCX_DCX_NUM_DCI_STREAMS=%u is not a power of two: set it "
                  "to 1, 2, 4, ...",
                  config->tx.num_streams);
        return UCS_ERR_INVALID_PARAM;
    }

    if (!uct_dcx_config_pkey(config->path.pkey, &pkey)) {
        ucs_error("%s=%s is out of range: set it to 0x1-0x7fff, without the "
                  "membership bit, or auto",
                  uct_dcx_config_variable("PKEY"), config->path.pkey);
        return UCS_ERR_INVALID_PARAM;
    }
    return UCS_OK;
}


ucs_status_t uct_dcx_config_check(const uct_dcx_iface_config_t *config)
{
    ucs_status_t status;

    status = uct_dcx_config_check_numbers(config);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_dcx_config_check_doubles(config);
    if (status != UCS_OK) {
        return status;
    }

    return uct_dcx_config_check_others(config);
}
