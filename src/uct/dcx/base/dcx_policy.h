/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The choice of a DC initiator for an endpoint. An exclusive initiator serves
 * one endpoint as long as that has operations outstanding. A shared one serves
 * many at a time, and may have streams, which do not wait for each other in the
 * device. A policy selects the kind of initiators, and may limit an endpoint's
 * use of an exclusive one while others wait. Pure code: no device, no endpoint,
 * no UCX. The set of initiators (dcx_dci_set.h) owns the pool; the thread that
 * progresses the interface calls it (dcx_tx.h).
 */
#ifndef UCT_DCX_POLICY_H
#define UCT_DCX_POLICY_H

#include <stdint.h>

#define UCT_DCX_NO_DCI UINT16_MAX


/* The initiator and stream that an endpoint posts on; stream 0 if the initiator
 * has none */
typedef struct uct_dcx_binding {
    uint16_t dci; /* or UCT_DCX_NO_DCI */
    uint16_t stream;
} uct_dcx_binding_t;


typedef struct uct_dcx_pool_params {
    unsigned policy;      /* index in uct_dcx_policy_names */
    unsigned num_dci;     /* as configured */
    unsigned quota;       /* WQEBBs */
    unsigned num_streams; /* of a shared initiator that has streams */
    uint64_t seed;        /* for random DCI selection */
} uct_dcx_pool_params_t;


typedef struct uct_dcx_policy {
    const char *name;    /* value of UCX_DCX_TX_POLICY */
    uint8_t is_shared;   /* all of its initiators are shared */
    uint8_t has_streams; /* one initiator, with streams */
    uint8_t has_quota;
} uct_dcx_policy_t;


typedef struct uct_dcx_pool {
    const uct_dcx_policy_t *policy;
    unsigned num_idle; /* exclusive initiators without an endpoint */
    unsigned num_dci;  /* maximum, at present */
    unsigned max_dci;  /* maximum of @num_dci */

    /* Maximum of WQEBBs that an endpoint may have on an exclusive initiator
     * while others wait for one, including those outstanding at that time.
     * Beyond it the endpoint has to release its initiator first. UINT_MAX: no
     * limit. */
    unsigned share;
    unsigned num_streams;
    unsigned next_stream;
    uint64_t random; /* state of the generator */
} uct_dcx_pool_t;


/* Values of UCX_DCX_TX_POLICY, then NULL */
extern const char *uct_dcx_policy_names[];

/* Returns the policy of an index in uct_dcx_policy_names. */
const uct_dcx_policy_t *uct_dcx_policy_get(unsigned index);

/* Returns the number of initiators if the configuration allows @num_dci. */
static inline unsigned uct_dcx_policy_num_dci(const uct_dcx_policy_t *policy,
                                              unsigned num_dci)
{
    return policy->has_streams ? 1 : num_dci;
}


/* Makes NUM_DCI exclusive initiators idle. */
void uct_dcx_pool_init(uct_dcx_pool_t *pool,
                       const uct_dcx_pool_params_t *params);

/* Returns the initiator and stream of a new endpoint, for its life; initiator
 * UCT_DCX_NO_DCI if the endpoint takes one when it sends. */
uct_dcx_binding_t uct_dcx_pool_bind(uct_dcx_pool_t *pool);

/* Removes all but the first @num_dci initiators; the others are idle. */
void uct_dcx_pool_truncate(uct_dcx_pool_t *pool, unsigned num_dci);

/* Doubles the number of initiators, up to the maximum. The new ones are
 * idle. */
void uct_dcx_pool_grow(uct_dcx_pool_t *pool);


static inline int uct_dcx_pool_has_idle(const uct_dcx_pool_t *pool)
{
    return pool->num_idle > 0;
}


/* Removes all idle initiators: no endpoint gets one any longer. */
static inline void uct_dcx_pool_close(uct_dcx_pool_t *pool)
{
    pool->num_idle = 0;
}

#endif
