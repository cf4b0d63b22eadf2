/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Rows of limits; see info_limit.h. If a limit is too low, the report gets a
 * command that sets the option to a value within it.
 */
#include "info_limit.h"
#include "uct/dcx/base/dcx_policy.h"
#include "uct/dcx/base/dcx_sizes.h"

#include <stdlib.h>
#include <ucs/sys/math.h>

/* A limit of the device, and the amount that is needed */
struct info_need {
    const char *what;
    const char *variable;
    unsigned long found, needs;
    unsigned long fits; /* value of the variable for which @found is enough */
};

static void info_limit(struct info_part *part, const struct info_need *need)
{
    struct info_row *row = info_part_add(part, need->what, need->variable);

    info_row_found(row, "%lu", need->found);
    info_row_needs(row, "%lu", need->needs);
    if ((need->found < need->needs) &&
        info_row_bad(part, row,
                     "%s: the device has %lu, dcx needs %lu: "
                     "lower %s",
                     need->what, need->found, need->needs, need->variable)) {
        info_part_fix(part, "export %s=%lu", need->variable,
                      ucs_max(need->fits, 1));
    }
}

static void info_send_limits(struct info_part *part,
                             const struct ibv_device_attr *attr,
                             const uct_dcx_iface_config_t *config,
                             const uct_dcx_sizes_t *sizes)
{
    uct_dcx_iface_config_t fewer = *config;
    struct info_need queue       = {
              .what     = "send queue, WQEBBs",
              .variable = "UCX_DCX_TX_QUEUE_LEN",
              .found    = attr->max_qp_wr,
              .needs    = sizes->num_bb,
    };
    struct info_need cqes = {
        .what     = "send completions",
        .variable = "UCX_DCX_TX_QUEUE_LEN",
        .found    = attr->max_cqe,
        .needs    = sizes->tx_cqes,
    };
    uct_dcx_sizes_t smaller = *sizes;

    while ((fewer.tx.queue_len > 1) &&
           ((smaller.num_bb > queue.found) || (smaller.tx_cqes > cqes.found))) {
        fewer.tx.queue_len /= 2;
        uct_dcx_sizes_init(&smaller, &fewer, 0);
    }
    queue.fits = fewer.tx.queue_len;
    cqes.fits  = fewer.tx.queue_len;
    info_limit(part, &queue);
    info_limit(part, &cqes);
}

static void info_recv_limits(struct info_part *part,
                             const struct ibv_device_attr *attr,
                             const uct_dcx_iface_config_t *config,
                             const uct_dcx_sizes_t *sizes)
{
    unsigned long others   = sizes->rx_cqes - sizes->rx_length + 1;
    unsigned long num_segs = config->rx.queue_len / (sizes->rx_length - 1);
    struct info_need queue = {
        .what     = "shared receive queue",
        .variable = "UCX_DCX_RX_QUEUE_LEN",
        .found    = (attr->max_srq > 0) ? attr->max_srq_wr : 0,
        .needs    = config->rx.queue_len,
    };
    struct info_need cqes = {
        .what     = "receive completions",
        .variable = "UCX_DCX_RX_QUEUE_LEN",
        .found    = attr->max_cqe,
    };

    queue.fits = queue.found;
    cqes.fits  = (cqes.found > others) ? (cqes.found - others) * num_segs : 0;
    cqes.needs = sizes->rx_cqes;
    info_limit(part, &queue);
    info_limit(part, &cqes);
}

/* Appends the number of endpoints that can use all of their credits at a time.
 * UCX_NUM_EPS is the number that UCP expects. With more of them, messages may
 * find the queue empty: the device sends them again. */
static void info_window(struct info_part *part,
                        const uct_dcx_iface_config_t *config, unsigned num_bufs)
{
    const uct_dcx_credit_bank_t bank =
        uct_dcx_credit_bank(num_bufs, config->rx.queue_len,
                            uct_dcx_config_credits(config->fc.window),
                            uct_dcx_config_credits(config->fc.initial));
    const char *text     = getenv("UCX_NUM_EPS");
    unsigned long wanted = (text == NULL) ? 0 : strtoul(text, NULL, 10);
    unsigned window      = ucs_min(bank.window, num_bufs);
    unsigned long num    = num_bufs / (window + 2);
    struct info_row *row;

    if (!config->fc.enable) {
        return;
    }
    row = info_part_add(part, "full windows", "UCX_DCX_FC_WINDOW");
    info_row_found(row, "%lu of %u in %u buffers", num, window, num_bufs);
    if (wanted > num) {
        info_row_needs(row, "%lu (UCX_NUM_EPS): raise UCX_DCX_RX_QUEUE_LEN",
                       wanted);
    } else if (wanted > 0) {
        info_row_needs(row, "%lu (UCX_NUM_EPS)", wanted);
    }
}

unsigned info_max_tags(const uct_dcx_device_t *dev,
                       const uct_dcx_iface_config_t *config)
{
    return uct_dcx_sizes_max_tags(config, dev->tm.max_tags, dev->attr.max_cqe);
}

unsigned info_num_tags(const uct_dcx_device_t *dev,
                       const uct_dcx_iface_config_t *config)
{
    const unsigned least = (config->tm.enable == UCS_YES);

    return (config->tm.enable == UCS_NO) ?
               0 :
               ucs_max(ucs_min(uct_dcx_sizes_num_tags(config),
                               info_max_tags(dev, config)),
                       least);
}

void info_limits(struct info_part *part, const uct_dcx_device_t *dev,
                 const uct_dcx_iface_config_t *config)
{
    const struct ibv_device_attr *attr = &dev->attr;
    const uct_dcx_policy_t *policy     = uct_dcx_policy_get(config->tx.policy);
    unsigned others = uct_dcx_policy_num_dci(policy, config->tx.num_dci) + 1 -
                      config->tx.num_dci;
    struct info_need qps = {
        .what     = "queue pairs",
        .variable = "UCX_DCX_NUM_DCI",
        .found    = attr->max_qp,
        .needs    = config->tx.num_dci + others,
        .fits     = (attr->max_qp > (int)others) ? attr->max_qp - others : 0,
    };
    struct info_need reads = {
        .what     = "reads in flight",
        .variable = "UCX_DCX_MAX_RD_ATOMIC",
        .found    = dev->max_rd_atomic,
        .needs    = config->tx.max_rd_atomic,
        .fits     = dev->max_rd_atomic,
    };
    uct_dcx_sizes_t sizes;
    struct info_row *row;

    uct_dcx_sizes_init(&sizes, config, info_num_tags(dev, config));
    info_limit(part, &qps);
    info_send_limits(part, attr, config, &sizes);
    info_recv_limits(part, attr, config, &sizes);
    info_window(part, config, sizes.rx_length - 1);

    if (config->tx.max_rd_atomic == UCS_ULUNITS_AUTO) {
        row = info_part_add(part, "reads in flight", "UCX_DCX_MAX_RD_ATOMIC");
        info_row_found(row, "%u", dev->max_rd_atomic);
        info_row_needs(row, "%u at most", UCT_DCX_AUTO_RD_ATOMIC);
    } else {
        info_limit(part, &reads);
    }

    row = info_part_add(part, "region, bytes", NULL);
    info_row_found(row, "%lu", attr->max_mr_size);
}
