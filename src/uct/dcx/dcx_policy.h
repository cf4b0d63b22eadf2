/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Which DC initiator serves which endpoint: a pool of numbers, and policies of
 * how much an endpoint may do with its own while others wait.
 * Pure code: no device, no endpoint, no UCX. The interface owns the pool and
 * calls it from its own thread (dcx_tx.h).
 */
#ifndef UCT_DCX_POLICY_H
#define UCT_DCX_POLICY_H

#include <assert.h>
#include <stdint.h>

#define UCT_DCX_NO_DCI  UINT16_MAX

typedef struct uct_dcx_pool   uct_dcx_pool_t;
typedef struct uct_dcx_policy uct_dcx_policy_t;


struct uct_dcx_policy {
    const char *name; /* value of UCX_DCX_TX_POLICY */

    /* How many building blocks an endpoint may have outstanding while others
     * wait for an initiator. One that wants more has to part with its own
     * before it goes on. UINT_MAX: it may keep it. */
    unsigned (*share)(const uct_dcx_pool_t *pool);
};


struct uct_dcx_pool {
    const uct_dcx_policy_t *policy;
    uint16_t               *idle;     /* stack of initiators free to take */
    unsigned               num_idle;
    unsigned               num_dci;
    unsigned               quota;     /* of the policies that have one */
};


/* NULL-terminated names, in the order of the configuration's enum. */
extern const char *uct_dcx_policy_names[];


/* Fills 'pool' with the initiators 0..num_dci-1, all idle; number 0 is taken
 * first. 'policy' indexes uct_dcx_policy_names, 'quota' counts building
 * blocks. Returns 0, or -1 when memory is short. */
int uct_dcx_pool_init(uct_dcx_pool_t *pool, unsigned policy, unsigned num_dci,
                      unsigned quota);

void uct_dcx_pool_cleanup(uct_dcx_pool_t *pool);

static inline int uct_dcx_pool_has_idle(const uct_dcx_pool_t *pool)
{
    return pool->num_idle > 0;
}


/* Takes an initiator for an endpoint that has none. Returns its number, or
 * UCT_DCX_NO_DCI when the endpoint has to wait. */
static inline uint16_t uct_dcx_pool_take(uct_dcx_pool_t *pool)
{
    if (pool->num_idle == 0) {
        return UCT_DCX_NO_DCI;
    }

    return pool->idle[--pool->num_idle];
}


/* An initiator is left with 'outstanding' building blocks, the endpoint that
 * holds it posts none at the moment. Returns nonzero if the endpoint has to
 * part with it, and then the initiator is back in the pool. */
static inline int
uct_dcx_pool_settle(uct_dcx_pool_t *pool, uint16_t dci, unsigned outstanding)
{
    if (outstanding > 0) {
        return 0;
    }

    assert(pool->num_idle < pool->num_dci);
    pool->idle[pool->num_idle++] = dci;
    return 1;
}

#endif
