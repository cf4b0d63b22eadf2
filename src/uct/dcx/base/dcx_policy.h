/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The choice of a DC initiator for an endpoint. There are two kinds of
 * initiators: an exclusive one serves one endpoint for as long as that has
 * operations outstanding; a shared one serves many at a time, and may have
 * streams, which do not wait for each other in the device. A policy says which
 * kinds there are, and how much an endpoint may do with its own while others
 * wait. Pure code: no device, no endpoint, no UCX. The interface owns the pool
 * and calls it from its own thread (dcx_tx.h, dcx_ep.c).
 */
#ifndef UCT_DCX_POLICY_H
#define UCT_DCX_POLICY_H

#include <assert.h>
#include <stdint.h>

#define UCT_DCX_NO_DCI  UINT16_MAX


/* Where an endpoint posts: the number of an initiator, and of a stream if it
 * has any, else 0. */
typedef struct uct_dcx_binding {
    uint16_t dci;    /* or UCT_DCX_NO_DCI */
    uint16_t stream;
} uct_dcx_binding_t;


typedef struct uct_dcx_pool_params {
    unsigned policy;      /* index in uct_dcx_policy_names */
    unsigned num_dci;     /* as many as the user allows */
    unsigned quota;       /* WQEBBs */
    unsigned num_streams; /* of a shared initiator that has some */
    uint64_t seed;        /* of what is left to chance */
} uct_dcx_pool_params_t;


typedef struct uct_dcx_policy {
    const char *name;       /* value of UCX_DCX_TX_POLICY */
    uint8_t    is_shared;   /* all of its initiators are, or none */
    uint8_t    has_streams; /* it has one, with streams */
    uint8_t    has_quota;
} uct_dcx_policy_t;


typedef struct uct_dcx_pool {
    const uct_dcx_policy_t *policy;
    uint16_t               *idle;     /* stack of exclusive ones to be had */
    unsigned               num_idle;
    unsigned               num_dci;   /* at most */

    /* How many WQEBBs an endpoint may post on an exclusive initiator
     * while others wait for one, those outstanding by then included. One that
     * wants more has to part with its own before it goes on. UINT_MAX: it may
     * keep it. */
    unsigned               share;
    unsigned               num_streams;
    unsigned               next_stream;
    uint64_t               random;    /* state of the generator */
} uct_dcx_pool_t;


/* NULL-terminated names, in the order of the configuration's enum. */
extern const char *uct_dcx_policy_names[];

const uct_dcx_policy_t *uct_dcx_policy_get(unsigned index);

/* How many initiators there are where the user allows 'num_dci' */
static inline unsigned
uct_dcx_policy_num_dci(const uct_dcx_policy_t *policy, unsigned num_dci)
{
    return policy->has_streams ? 1 : num_dci;
}


/* All exclusive initiators are idle, number 0 is taken first. Returns 0, or -1
 * when memory is short. */
int
uct_dcx_pool_init(uct_dcx_pool_t *pool, const uct_dcx_pool_params_t *params);

void uct_dcx_pool_cleanup(uct_dcx_pool_t *pool);

/* Where a new endpoint posts for its life. UCT_DCX_NO_DCI if it takes an
 * initiator when it has something to send. */
uct_dcx_binding_t uct_dcx_pool_bind(uct_dcx_pool_t *pool);

/* Number 'dci', just taken, cannot be had, nor can those behind it. */
void uct_dcx_pool_truncate(uct_dcx_pool_t *pool, uint16_t dci);


static inline int uct_dcx_pool_has_idle(const uct_dcx_pool_t *pool)
{
    return pool->num_idle > 0;
}


/* Takes an exclusive initiator for an endpoint that has none. Returns its
 * number, or UCT_DCX_NO_DCI if there is none idle. */
static inline uint16_t uct_dcx_pool_take(uct_dcx_pool_t *pool)
{
    if (pool->num_idle == 0) {
        return UCT_DCX_NO_DCI;
    }

    return pool->idle[--pool->num_idle];
}


/* Gives one back. */
static inline void uct_dcx_pool_put(uct_dcx_pool_t *pool, uint16_t dci)
{
    assert(pool->num_idle < pool->num_dci);
    pool->idle[pool->num_idle++] = dci;
}

#endif
