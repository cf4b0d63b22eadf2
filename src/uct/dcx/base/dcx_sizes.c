/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Lengths of queues; see dcx_sizes.h. Called when an interface opens, and by
 * dcx_info.
 */
#include "dcx_sizes.h"
#include "uct/dcx/ucx/dcx_ucx.h" /* ucs_roundup_pow2() */

#include <infiniband/mlx5dv.h>
#include <ucs/sys/string.h>


/* Bytes before the data of short operations, with the long form of the address:
 * a put has the most (dcx_caps.c) */
#define UCT_DCX_SIZES_PUT \
    (sizeof(struct mlx5_wqe_ctrl_seg) + sizeof(struct mlx5_wqe_av) + \
     sizeof(struct mlx5_wqe_raddr_seg) + sizeof(struct mlx5_wqe_inl_data_seg))

/* WQEBBs that libmlx5 assumes for a WQE of a DCI with one scatter entry */
#define UCT_DCX_SIZES_WR_BB 4

/* Completions of a tagged buffer: the message that it matched, the end of the
 * data, and the end of its removal. If the command queue fails, two are flushed
 * for it. Spare ones are for completions of appending, and for commands that
 * belong to no buffer. */
#define UCT_DCX_SIZES_TAG_CQES   5
#define UCT_DCX_SIZES_SPARE_CQES 8

/* Tagged messages are not cut into fragments as active messages are. By default
 * receive buffers for them have this many times SEG_SIZE, and are as many times
 * fewer: they take the same memory. */
#define UCT_DCX_SIZES_TM_SEGS 2

/* A receive queue of at least this number of entries is half in use at first.
 * The device writes to all buffers in turn, and the fewer of them, the more are
 * still in a cache. */
#define UCT_DCX_SIZES_MIN_HALF 256

/* A list has a power of two of entries; one is never used. */
#define UCT_DCX_SIZES_AUTO_TAGS 255


static void uct_dcx_sizes_init_tx(uct_dcx_sizes_t *sizes,
                                  const uct_dcx_iface_config_t *config)
{
    size_t room = UCT_DCX_SIZES_PUT + config->tx.min_inline;
    unsigned num_bb;

    sizes->max_bb      = ucs_max(ucs_div_round_up(room, MLX5_SEND_WQE_BB),
                                 UCT_DCX_MIN_MAX_BB);
    num_bb             = config->tx.queue_len * sizes->max_bb;
    sizes->max_send_wr = ucs_div_round_up(num_bb, UCT_DCX_SIZES_WR_BB);
    sizes->num_bb      = ucs_roundup_pow2(num_bb);

    /* Every WQEBB may complete before the queue is polled, and callbacks post
     * again before the entries of a batch are given back at its end. */
    sizes->tx_max_poll = ucs_min(config->tx.max_poll, sizes->num_bb - 1);
    sizes->tx_cqes     = sizes->num_bb + sizes->tx_max_poll;
}


/* Returns the entries of a receive queue of @length that are in use at first.
 * Flow control adds the others if many peers have credits. */
static unsigned uct_dcx_sizes_rx_first(const uct_dcx_iface_config_t *config,
                                       unsigned length)
{
    return (config->fc.enable && (length >= UCT_DCX_SIZES_MIN_HALF)) ?
               (length / 2) + 1 :
               length;
}


static void uct_dcx_sizes_init_rx(uct_dcx_sizes_t *sizes,
                                  const uct_dcx_iface_config_t *config,
                                  unsigned num_tags)
{
    unsigned max_segs = config->rx.queue_len / UCT_DCX_MIN_RX_QUEUE_LEN;
    unsigned num_segs = 1;

    sizes->seg_size = config->seg_size;
    if ((num_tags > 0) && (config->tm.seg_size != UCS_MEMUNITS_AUTO)) {
        sizes->seg_size = config->tm.seg_size;
    } else if (num_tags > 0) {
        num_segs        = ucs_min(UCT_DCX_SIZES_TM_SEGS, max_segs);
        sizes->seg_size = ucs_min(config->seg_size * num_segs,
                                  UCT_DCX_MAX_SEG_SIZE);
    }

    sizes->am_size     = ucs_min(config->seg_size, sizes->seg_size);
    sizes->rx_length   = (config->rx.queue_len / num_segs) + 1;
    sizes->rx_first    = uct_dcx_sizes_rx_first(config, sizes->rx_length);
    sizes->rx_max_poll = ucs_min(config->rx.max_poll, sizes->rx_length);
    sizes->rx_cqes     = sizes->rx_length + sizes->rx_max_poll;
    if (num_tags > 0) {
        sizes->rx_cqes += (num_tags * UCT_DCX_SIZES_TAG_CQES) +
                          UCT_DCX_SIZES_SPARE_CQES;
    }
}


void uct_dcx_sizes_init(uct_dcx_sizes_t *sizes,
                        const uct_dcx_iface_config_t *config, unsigned num_tags)
{
    uct_dcx_sizes_init_tx(sizes, config);
    uct_dcx_sizes_init_rx(sizes, config, num_tags);
}


unsigned uct_dcx_sizes_max_tags(const uct_dcx_iface_config_t *config,
                                unsigned max_tags, unsigned max_cqes)
{
    uct_dcx_sizes_t sizes;
    unsigned others;

    uct_dcx_sizes_init_rx(&sizes, config, 1);
    others = sizes.rx_cqes - UCT_DCX_SIZES_TAG_CQES;
    return (max_cqes <= others) ?
               0 :
               ucs_min(max_tags, (max_cqes - others) / UCT_DCX_SIZES_TAG_CQES);
}


unsigned uct_dcx_sizes_num_tags(const uct_dcx_iface_config_t *config)
{
    return (config->tm.list_size == UCS_ULUNITS_AUTO) ?
               UCT_DCX_SIZES_AUTO_TAGS :
               config->tm.list_size;
}
