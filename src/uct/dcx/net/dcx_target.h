/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A target (DCT) of a peer: how its number and key become part of the address
 * vector to its port. Called when endpoints are created, and by flow control
 * for its answers.
 */
#ifndef UCT_DCX_TARGET_H
#define UCT_DCX_TARGET_H

#include "dcx_port_addr.h"


/* What names a target, as it travels in a request for credits: a receive
 * completion does not say which peer has sent. */
typedef struct uct_dcx_target {
    __be64             dc_key;
    uint8_t            dctn[3];
    uct_dcx_dev_addr_t dev_addr;
} UCS_S_PACKED uct_dcx_target_t;


static inline void uct_dcx_target_set_dctn(uint8_t bytes[3], uint32_t dctn)
{
    bytes[0] = dctn >> 16;
    bytes[1] = dctn >> 8;
    bytes[2] = dctn;
}


static inline uint32_t uct_dcx_target_dctn(const uint8_t bytes[3])
{
    return ((uint32_t)bytes[0] << 16) | ((uint32_t)bytes[1] << 8) | bytes[2];
}


static inline void
uct_dcx_target_complete_av(uct_dcx_av_t *av, const uct_dcx_target_t *target)
{
    av->key      = target->dc_key;
    av->dqp_dct |= htobe32(uct_dcx_target_dctn(target->dctn));
}


/* The address vector to a target on the first path, as most are: see
 * uct_dcx_port_make_plain_av(). Returns 0 if this is another. */
static UCS_F_ALWAYS_INLINE int
uct_dcx_target_make_plain_av(const uct_dcx_port_t *port,
                             const uct_dcx_target_t *target, uct_dcx_av_t *av)
{
    if (!uct_dcx_port_make_plain_av(port, &target->dev_addr, av)) {
        return 0;
    }

    uct_dcx_target_complete_av(av, target);
    return 1;
}


/* The address vector to a target, on one of the paths to its port. 'own_dctn'
 * is our target: pairs of targets are spread over the links. Errors are
 * logged. */
ucs_status_t
uct_dcx_target_make_av(uct_dcx_port_t *port, uint32_t own_dctn,
                       const uct_dcx_target_t *target, unsigned path_index,
                       uct_dcx_av_t *av, uct_dcx_grh_t *grh);

/* The same to a peer that asked for something, and has no plain one. */
ucs_status_t
uct_dcx_target_make_answer_av(uct_dcx_port_t *port, uint32_t own_dctn,
                              const uct_dcx_target_t *target, uct_dcx_av_t *av,
                              uct_dcx_grh_t *grh);

#endif
