/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A thread domain: what QPs are created with that share a doorbell register
 * which nobody else has. Without one libmlx5 may give them a register that it
 * gives to others, too: nothing may be pushed to that. Called when an interface
 * opens and closes.
 */
#ifndef UCT_DCX_TD_H
#define UCT_DCX_TD_H

#include "dcx_bf.h"
#include "dcx_device.h"


typedef struct uct_dcx_td {
    struct ibv_td *td; /* NULL: none could be had */
    struct ibv_pd *pd; /* for QPs */
    uct_dcx_bf_t  bf;  /* what they have in common then, once there is one */
} uct_dcx_td_t;


/* Takes the device's own domain if there are no such registers: where the
 * platform has no write-combining. */
void uct_dcx_td_init(uct_dcx_td_t *td, const uct_dcx_device_t *dev);

void uct_dcx_td_cleanup(uct_dcx_td_t *td);

#endif
