/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * What a completion with error told: which operation failed, whose, and why,
 * as users are told of it. Kept while those are told whom it concerns. Used by
 * the thread that progresses the interface.
 */
#ifndef UCT_DCX_FAILURE_H
#define UCT_DCX_FAILURE_H

#include "dcx_peer.h"


typedef struct uct_dcx_failure {
    ucs_status_t status;     /* UCS_OK: there was none */
    const char   *reason;    /* what the device says */
    const char   *cause;     /* ... and what to look at */
    unsigned     syndrome;
    unsigned     vendor_syndrome;
    uint16_t     index;      /* block of the WQE */
    uint8_t      may_follow; /* WQEs behind it may have begun; while they are
                                sorted (dcx_dci_sort.c) */
    uint32_t     qpn;
    char         peer[UCT_DCX_PEER_NAME_MAX];
} uct_dcx_failure_t;


/* From a completion of 'dci'. One that is about nobody any more is logged. */
void uct_dcx_failure_parse(uct_dcx_failure_t *failure,
                           const uct_dcx_iface_t *iface,
                           const uct_dcx_dci_t *dci,
                           const struct mlx5_cqe64 *cqe);

/* Tells the user that the peer of 'ep' is lost; NULL: he does not want to hear
 * it. A failure that nobody handles is fatal: data of his is gone. */
void uct_dcx_failure_report(const uct_dcx_failure_t *failure,
                            uct_dcx_iface_t *iface, uct_dcx_ep_t *ep);


/* The WQE did not fail itself, but came to an end with those that did. */
static inline int uct_dcx_failure_is_flush(const uct_dcx_failure_t *failure)
{
    return failure->syndrome == MLX5_CQE_SYNDROME_WR_FLUSH_ERR;
}


/* The target answered that it did not execute the WQE. */
static inline int uct_dcx_failure_is_refusal(const uct_dcx_failure_t *failure)
{
    return (failure->syndrome == MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR) ||
           (failure->syndrome == MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR) ||
           (failure->syndrome == MLX5_CQE_SYNDROME_REMOTE_OP_ERR) ||
           (failure->syndrome == MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR);
}


/* We refused to execute it, before anything was sent if it takes data to the
 * target; that of a get or an atomic may be about what came back. */
static inline int uct_dcx_failure_is_local(const uct_dcx_failure_t *failure)
{
    return (failure->syndrome == MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR) ||
           (failure->syndrome == MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR) ||
           (failure->syndrome == MLX5_CQE_SYNDROME_LOCAL_PROT_ERR);
}

#endif
