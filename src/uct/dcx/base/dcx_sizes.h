/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The lengths of queues that follow from the options alone: what an interface
 * asks the device for. dcx_info says them where there is no interface. Pure
 * code: no device.
 */
#ifndef UCT_DCX_SIZES_H
#define UCT_DCX_SIZES_H

#include "dcx_config.h"


typedef struct uct_dcx_sizes {
    unsigned max_bb;      /* WQEBBs of a WQE, at most */
    unsigned max_send_wr; /* of a send queue, as libmlx5 wants it said */
    unsigned num_bb;      /* WQEBBs that it then has */
    unsigned tx_max_poll; /* completions taken at a time */
    unsigned tx_cqes;     /* of a completion queue with one send queue */
    unsigned rx_length;   /* entries of the receive queue, one is never used */
    unsigned rx_max_poll;
    unsigned rx_cqes;
} uct_dcx_sizes_t;


/* The options have been checked. */
void uct_dcx_sizes_init(uct_dcx_sizes_t *sizes,
                        const uct_dcx_iface_config_t *config);

/* Adds the completions of @num_tags tagged buffers that the device matches;
 * nothing for 0. */
void uct_dcx_sizes_add_tags(uct_dcx_sizes_t *sizes, unsigned num_tags);

/* The most that could be added, where the device has 'max_tags' of them, and
 * 'max_cqes' in a completion queue */
unsigned uct_dcx_sizes_max_tags(const uct_dcx_sizes_t *sizes,
                                unsigned max_tags, unsigned max_cqes);

/* How many the options want */
unsigned uct_dcx_sizes_num_tags(const uct_dcx_iface_config_t *config);

/* Of a receive buffer, with so many tagged buffers */
size_t uct_dcx_sizes_seg(const uct_dcx_iface_config_t *config,
                         unsigned num_tags);

#endif
