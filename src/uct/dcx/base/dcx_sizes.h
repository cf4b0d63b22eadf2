/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The queue lengths that follow from options alone, which an interface requests
 * from the device. dcx_info shows them without an interface. Pure code: no
 * device.
 */
#ifndef UCT_DCX_SIZES_H
#define UCT_DCX_SIZES_H

#include "dcx_config.h"


typedef struct uct_dcx_sizes {
    unsigned max_bb;      /* maximum WQEBBs of a WQE */
    unsigned max_send_wr; /* send queue length for libmlx5 */
    unsigned num_bb;      /* resulting WQEBBs of the send queue */
    unsigned tx_max_poll; /* send completions taken at a time */
    unsigned tx_cqes;     /* of a completion queue with one send queue */
    size_t seg_size;      /* bytes of a receive buffer */
    size_t am_size;       /* bytes of an active message, with its header */
    unsigned rx_length;   /* entries of the receive queue, one is never used */
    unsigned rx_first;    /* entries in use at first */
    unsigned rx_max_poll; /* receive completions taken at a time */
    unsigned rx_cqes;     /* of the receive completion queue */
} uct_dcx_sizes_t;


/* Fills @sizes from options that have been checked. @num_tags: tagged buffers;
 * 0: the device matches no tags */
void uct_dcx_sizes_init(uct_dcx_sizes_t *sizes,
                        const uct_dcx_iface_config_t *config,
                        unsigned num_tags);

/* Returns the maximum of tagged buffers on a device that supports @max_tags of
 * them, and @max_cqes entries in a completion queue. */
unsigned uct_dcx_sizes_max_tags(const uct_dcx_iface_config_t *config,
                                unsigned max_tags, unsigned max_cqes);

/* Returns the number of tagged buffers that TM_LIST_SIZE asks for; ignores
 * TM_ENABLE. */
unsigned uct_dcx_sizes_num_tags(const uct_dcx_iface_config_t *config);

#endif
