/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A thread domain: QPs created in it share a doorbell register that no others
 * use. Without one libmlx5 may assign them a register that is shared with other
 * QPs, to which nothing may be pushed. Called when an interface opens and
 * closes.
 */
#ifndef UCT_DCX_TD_H
#define UCT_DCX_TD_H

#include "dcx_bf.h"
#include "dcx_device.h"


typedef struct uct_dcx_td {
    struct ibv_td *td; /* NULL: not available */
    struct ibv_pd *pd; /* for QPs */
    uct_dcx_bf_t bf;   /* the QPs' register, once there is a QP */
} uct_dcx_td_t;


/* Initialises @td; uses the device's protection domain if there are no such
 * registers: on a platform without write-combining. */
void uct_dcx_td_init(uct_dcx_td_t *td, const uct_dcx_device_t *dev);

void uct_dcx_td_cleanup(uct_dcx_td_t *td);

#endif
