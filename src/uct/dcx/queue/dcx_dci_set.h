/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The DC initiators of an interface, and their common resources. An initiator
 * is created when it is first needed. Initiators are in groups; a group has a
 * completion queue with an entry for each WQEBB of each of its send queues, and
 * memory for the results of atomics. Owned by the thread that progresses the
 * interface.
 */
#ifndef UCT_DCX_DCI_SET_H
#define UCT_DCX_DCI_SET_H

#include "uct/dcx/base/dcx_config.h"
#include "uct/dcx/dev/dcx_cq.h"
#include "uct/dcx/base/dcx_policy.h"
#include "uct/dcx/net/dcx_port.h"
#include "uct/dcx/dev/dcx_sq.h"
#include "uct/dcx/dev/dcx_td.h"
#include "dcx_op.h"

#include <ucs/datastruct/arbiter.h>
#include <ucs/datastruct/list.h>
#include <ucs/datastruct/mpool.h>
#include <ucs/time/time_def.h>

typedef struct uct_dcx_dci uct_dcx_dci_t;
typedef struct uct_dcx_ep uct_dcx_ep_t;
typedef struct uct_dcx_lost uct_dcx_lost_t;         /* recover/ */
typedef struct uct_dcx_fc_table uct_dcx_fc_table_t; /* sched/ */


/* Deferred work that progress does without a completion; in most calls there is
 * none. */
enum {
    /* serve wait queues: uct_dcx_pending_serve() */
    UCT_DCX_TODO_PENDING = UCS_BIT(0),

    /* post receive buffers: memory for them was short */
    UCT_DCX_TODO_REFILL = UCS_BIT(1),

    /* poll more than one send completion queue, from now on */
    UCT_DCX_TODO_GROUPS = UCS_BIT(2),

    /* remind receivers: an endpoint is blocked, and waits for credits */
    UCT_DCX_TODO_FC = UCS_BIT(3),

    /* request completions of unsignaled WQEs: see uct_dcx_dci_set_t */
    UCT_DCX_TODO_UNSIGNALED = UCS_BIT(4),

    /* ask receivers: rendezvous wait for a FIN */
    UCT_DCX_TODO_RNDV = UCS_BIT(5)
};


typedef struct uct_dcx_dci_group {
    uct_dcx_cq_t cq;
    uint64_t *results;
    struct ibv_mr *results_mr;
} uct_dcx_dci_group_t;


/* Parameters of a new initiator */
typedef struct uct_dcx_dci_params {
    unsigned max_send_wr; /* for libmlx5 */
    unsigned num_bb;      /* WQEBBs of the send queue, a power of two */
    uint16_t moderation;  /* see uct_dcx_txq_params_t */
    uint8_t timeout;      /* code of the ACK timeout: 4.096 us << code */
    uint8_t retry_count;
    uint8_t rnr_retry_count;
    uint8_t max_rd_atomic;
    uint8_t log_streams; /* log2 of the streams of an initiator, if the
                          * policy has streams */
    uint8_t log_errored; /* log2 of the streams that may be in error before
                          * the whole initiator is */
    uint8_t fence;       /* see uct_dcx_dci_t */
} uct_dcx_dci_params_t;


/* The initiators, and the parameters of new ones. Most callers need nothing
 * else of an interface. */
typedef struct uct_dcx_dci_set {
    union {
        struct {
            uint8_t todo;  /* UCT_DCX_TODO_*, also of the receiving side */
            uint8_t fatal; /* something has failed; set by the thread of
                            * events: iface/dcx_fatal.c */
        };
        uint16_t has_todo; /* of the two, for progress: one test */
    };
    uct_dcx_dci_t *dci;  /* indexed by the pool's numbers; txq.qp
                         * tells if it exists */
    uct_dcx_dci_t *hand; /* exclusive: the one that changes its endpoint
                          * next, if it is idle, or is created next */
    uct_dcx_pool_t pool;
    ucs_arbiter_t waitq;            /* endpoints that wait for an initiator */
    ucs_time_t stuck;               /* when none of these got one for the first
                                     * time since any did; 0: not yet */
    ucs_list_link_t ready;          /* initiators whose wait queue can be
                                     * served */
    ucs_list_link_t unsignaled;     /* initiators with unsignaled WQEs after
                                     * the last requested completion, see
                                     * dcx_signal.h */
    ucs_list_link_t unsignaled_due; /* initiators that had such WQEs in the
                                     * last call of progress */
    int throttled;                  /* endpoints are limited to their quota */
    int traced;                     /* changes of states are logged */
    uint8_t open;                   /* state of initiators that the fast path
                                     * takes: IDLE; LAST, which none has, while
                                     * endpoints wait, and if changes of states
                                     * are logged */

    uct_dcx_dci_t **by_qpn; /* hash table by QP number */
    uint32_t qpn_mask;      /* its length - 1 */

    uct_dcx_dci_group_t *group; /* the first @num_groups exist */
    unsigned num_groups;
    unsigned per_group; /* initiators in each */

    uint16_t *created; /* initiators that exist, the oldest first;
                        * @per_group in each group */
    unsigned num_created;
    int is_short; /* no more can be created */
    uct_dcx_dci_params_t params;

    uct_dcx_op_set_t ops;
    uct_dcx_lost_t *lost;         /* recover/ */
    unsigned num_lost;            /* initiators that are LOST */
    int is_closing;               /* all are LOST, and each endpoint is about
                                   * to fail: uct_dcx_fatal_close() */
    uct_dcx_fc_table_t *fc_table; /* endpoints that requested credits */
    const uct_dcx_port_t *port;
    uct_dcx_td_t td; /* has the common doorbell register */
    struct ibv_comp_channel *channel;
    unsigned max_bb;   /* maximum WQEBBs of a WQE */
    unsigned max_poll; /* completions of each queue in one call of progress */
    void *memory;      /* dci, before alignment */
} uct_dcx_dci_set_t;


/* Sets up the pool and creates the first initiator, for WQEs of at most @max_bb
 * WQEBBs. Logs errors, except UCS_ERR_NO_MEMORY. */
ucs_status_t uct_dcx_dci_set_init(uct_dcx_dci_set_t *set,
                                  const uct_dcx_port_t *port,
                                  struct ibv_comp_channel *channel,
                                  unsigned max_bb,
                                  const uct_dcx_iface_config_t *config);

/* Destroys all initiators; ends their operations with UCS_ERR_CANCELED. */
void uct_dcx_dci_set_cleanup(uct_dcx_dci_set_t *set);

/* Sets how WQEs reach the device: @mode is UCT_DCX_MMIO_MODE_*.
 * @threads_take_turns: in mode AUTO, flush each pushed WQE. The first initiator
 * exists, so the register is known. Logs errors. */
ucs_status_t uct_dcx_dci_set_init_mmio(uct_dcx_dci_set_t *set, unsigned mode,
                                       int threads_take_turns);

/* Returns initiator @index; creates it if it does not exist. Returns NULL if
 * that fails, which was logged: the interface continues with the existing
 * ones. */
uct_dcx_dci_t *uct_dcx_dci_set_create(uct_dcx_dci_set_t *set, uint16_t index);

/* Closes the ring of exclusive initiators: after the last one that exists comes
 * the one that is created next, or the first one. */
void uct_dcx_dci_set_close_ring(uct_dcx_dci_set_t *set);

/* Updates @open. */
void uct_dcx_dci_set_open(uct_dcx_dci_set_t *set);

/* Returns the initiator and stream of a new endpoint. A shared initiator exists
 * then, and is LOST only if all are. UCT_DCX_NO_DCI if initiators are
 * exclusive. */
uct_dcx_binding_t uct_dcx_dci_set_bind(uct_dcx_dci_set_t *set);

/* Searches the whole table for uct_dcx_dci_find(). Returns NULL if no initiator
 * has this QP number. */
uct_dcx_dci_t *uct_dcx_dci_set_search(const uct_dcx_dci_set_t *set,
                                      uint32_t qpn);

#endif
