/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The receive queue of an interface whose device matches tags, and the
 * parameters with which the device fetches the data of a rendezvous: an XRQ,
 * made by DEVX, as verbs have none for DC. dcx_srq.h describes the entries of
 * the ring. Called when an interface opens and closes.
 */
#ifndef UCT_DCX_XRQ_H
#define UCT_DCX_XRQ_H

#include "uct/dcx/dev/dcx_devx.h"
#include "uct/dcx/net/dcx_port.h"


typedef struct uct_dcx_xrq {
    uct_dcx_devx_ring_t ring;
    uct_dcx_devx_obj_t obj;
} uct_dcx_xrq_t;


/* Parameters of a new XRQ */
typedef struct uct_dcx_xrq_params {
    const uct_dcx_port_t *port;
    unsigned length;   /* entries, a power of two */
    size_t stride;     /* bytes of an entry */
    unsigned num_tags; /* tagged buffers, at least one */
    uint32_t cqn;      /* of its completion queue */
    uint64_t dc_key;
    uint8_t timeout; /* code of the ACK timeout of the device's
                      * reads */
} uct_dcx_xrq_params_t;


/* Creates an XRQ. Logs errors. */
ucs_status_t uct_dcx_xrq_init(uct_dcx_xrq_t *xrq,
                              const uct_dcx_xrq_params_t *params);

/* Destroys the XRQ and frees its ring. */
void uct_dcx_xrq_cleanup(uct_dcx_xrq_t *xrq);

#endif
