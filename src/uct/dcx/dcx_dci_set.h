/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The DC initiators of an interface: those that exist, and what they share. An
 * initiator is created when it is first needed. They come in groups; a group
 * has a completion queue that holds a completion for each block of each of its
 * send queues, and the memory that results of atomics land in. Owned by the
 * thread that progresses the interface.
 */
#ifndef UCT_DCX_DCI_SET_H
#define UCT_DCX_DCI_SET_H

#include "dcx_config.h"
#include "dcx_cq.h"
#include "dcx_policy.h"
#include "dcx_port.h"
#include "dcx_sq.h"

#include <ucs/datastruct/arbiter.h>
#include <ucs/datastruct/list.h>
#include <ucs/datastruct/mpool.h>

typedef struct uct_dcx_dci     uct_dcx_dci_t;
typedef struct uct_dcx_ep      uct_dcx_ep_t;
typedef struct uct_dcx_iface   uct_dcx_iface_t;
typedef struct uct_dcx_lost    uct_dcx_lost_t;


typedef struct uct_dcx_dci_group {
    uct_dcx_cq_t  cq;
    uint64_t      *results;
    struct ibv_mr *results_mr;
} uct_dcx_dci_group_t;


/* What a new initiator is created with. */
typedef struct uct_dcx_dci_params {
    unsigned max_send_wr;     /* as libmlx5 counts */
    unsigned num_bb;          /* blocks of the send queue, a power of two */
    uint16_t moderation;      /* see uct_dcx_sq_moderate() */
    uint8_t  timeout;         /* code of the ACK timeout */
    uint8_t  retry_count;
    uint8_t  rnr_retry_count;
    uint8_t  max_rd_atomic;
    uint8_t  log_streams;     /* of a shared one, if the policy has them */
    uint8_t  log_errored;     /* ... that may be in error before it is */
} uct_dcx_dci_params_t;


/* The part iface->dci */
typedef struct uct_dcx_dci_set {
    uct_dcx_dci_t        *dci;       /* of the pool's numbers; see 'qp' there */
    uct_dcx_pool_t       pool;
    ucs_arbiter_t        wait_dci;   /* endpoints that wait for an initiator */
    ucs_list_link_t      ready;      /* those whose waiters can be served */
    ucs_list_link_t      tails;      /* initiators with WQEs that no completion
                                        was asked for, see dcx_tx_poll.c */
    ucs_list_link_t      tails_due;  /* ... since the last call of progress */
    int                  throttled;  /* shares are in force */

    uct_dcx_dci_t        **by_qpn;   /* hash table by QP number */
    uint32_t             qpn_mask;   /* its length - 1 */

    uct_dcx_dci_group_t  *group;     /* 'num_groups' of them exist */
    unsigned             num_groups;
    unsigned             per_group;  /* initiators in each */

    uint16_t             *created;   /* initiators that exist, the oldest first,
                                        'per_group' of them to a group */
    unsigned             num_created;
    int                  is_short;   /* no more can be had */
    uct_dcx_dci_params_t params;

    ucs_mpool_t          flush_mp;
    uct_dcx_lost_t       *failing;   /* users are still to be told */
    void                 *memory;    /* dci, before alignment */
} uct_dcx_dci_set_t;


/* dcx_dci_group.c: the next group. Needs iface->channel. Errors are logged at
 * 'level'. */
ucs_status_t
uct_dcx_dci_group_init(uct_dcx_iface_t *iface, uct_dcx_dci_group_t *group,
                       ucs_log_level_t level);

void uct_dcx_dci_group_cleanup(uct_dcx_dci_group_t *group);

/* Places for results of one initiator, in whole cache lines: one for each
 * block, and one for those that nobody wants. */
size_t uct_dcx_dci_set_num_results(const uct_dcx_dci_set_t *set);

/* Sets up the pool and creates the first initiator. Needs iface->port and
 * iface->channel. Errors are logged. */
ucs_status_t uct_dcx_dci_set_init(uct_dcx_iface_t *iface,
                                  const uct_dcx_iface_config_t *config);

void uct_dcx_dci_set_cleanup(uct_dcx_iface_t *iface);

/* Initiator 'index', created if it does not exist. NULL if it cannot be had:
 * others have to do. */
uct_dcx_dci_t *uct_dcx_dci_set_create(uct_dcx_iface_t *iface, uint16_t index);

/* The place of a new endpoint; its initiator exists. */
uct_dcx_place_t uct_dcx_dci_set_bind(uct_dcx_iface_t *iface);

/* A place on a shared initiator, which exists, for an endpoint that finds none
 * idle. UCT_DCX_NO_DCI: it has to wait. */
uct_dcx_place_t uct_dcx_dci_set_spill(uct_dcx_iface_t *iface);

/* See uct_dcx_dci_find(): the whole table. */
uct_dcx_dci_t *uct_dcx_dci_set_search(uct_dcx_iface_t *iface, uint32_t qpn);

#endif
