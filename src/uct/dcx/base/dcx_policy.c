/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The policies of choosing a DC initiator; see dcx_policy.h. Their names
 * are those of UCX's dc_mlx5.
 *
 * "dcs": an endpoint takes the initiator that it used last, unless another one
 * has used it since: the device connects an initiator again for each new
 * target. Otherwise it takes that one of the idle initiators which has been
 * assigned to its last endpoint for the longest time. An endpoint keeps its
 * initiator while it has operations outstanding on it, which keeps them in
 * order. An endpoint that never pauses then never releases its initiator.
 * "dcs_quota" takes it away from an endpoint that has used its quota while
 * others wait.
 *
 * "rand": an endpoint is bound to a shared initiator, chosen at random.
 * "hw_dcs": there is one shared initiator, and an endpoint is bound to a stream
 * of it; the device then schedules streams as "dcs" schedules initiators.
 */
#include "dcx_policy.h"

#include <assert.h>
#include <limits.h>
#include <ucs/sys/math.h>


/* Limits of a pool that grows: a multiple of NUM_DCI, and the limit of that
 * option */
#define UCT_DCX_POOL_GROWTH 16u
#define UCT_DCX_POOL_MAX    1024u


static const uct_dcx_policy_t uct_dcx_policies[] = {
    {.name = "dcs"},
    {.name = "dcs_quota", .has_quota = 1},
    {.name = "rand", .is_shared = 1},
    {.name = "hw_dcs", .is_shared = 1, .has_streams = 1},
};


const char *uct_dcx_policy_names[] = {"dcs", "dcs_quota", "rand", "hw_dcs",
                                      NULL};

static_assert(sizeof(uct_dcx_policy_names) / sizeof(uct_dcx_policy_names[0]) ==
                  sizeof(uct_dcx_policies) / sizeof(uct_dcx_policies[0]) + 1,
              "one name for each policy");


const uct_dcx_policy_t *uct_dcx_policy_get(unsigned index)
{
    return &uct_dcx_policies[index];
}


void uct_dcx_pool_init(uct_dcx_pool_t *pool,
                       const uct_dcx_pool_params_t *params)
{
    const uct_dcx_policy_t *policy = &uct_dcx_policies[params->policy];
    unsigned num_dci = uct_dcx_policy_num_dci(policy, params->num_dci);
    unsigned most    = ucs_min(num_dci * UCT_DCX_POOL_GROWTH, UCT_DCX_POOL_MAX);

    pool->policy      = policy;
    pool->share       = policy->has_quota ? params->quota : UINT_MAX;
    pool->num_streams = policy->has_streams ? params->num_streams : 1;
    pool->next_stream = 0;
    pool->random      = params->seed;
    pool->num_idle    = policy->is_shared ? 0 : num_dci;
    pool->num_dci     = num_dci;
    pool->max_dci     = policy->is_shared ? num_dci : most;
}


void uct_dcx_pool_truncate(uct_dcx_pool_t *pool, unsigned num_dci)
{
    assert(pool->num_idle >= pool->num_dci - num_dci);
    pool->num_idle -= pool->num_dci - num_dci;
    pool->num_dci = num_dci;
}


void uct_dcx_pool_grow(uct_dcx_pool_t *pool)
{
    unsigned num = ucs_min(pool->num_dci, pool->max_dci - pool->num_dci);

    pool->num_idle += num;
    pool->num_dci += num;
}


/* Returns a random number: splitmix64 (S. Vigna, public domain); any seed will
 * do. */
static uint64_t uct_dcx_pool_random(uct_dcx_pool_t *pool)
{
    uint64_t z = pool->random += 0x9e3779b97f4a7c15ull;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}


uct_dcx_binding_t uct_dcx_pool_bind(uct_dcx_pool_t *pool)
{
    if (!pool->policy->is_shared) {
        return (uct_dcx_binding_t){.dci = UCT_DCX_NO_DCI};
    }

    return (uct_dcx_binding_t){
        .dci    = uct_dcx_pool_random(pool) % pool->num_dci,
        .stream = pool->next_stream++ % pool->num_streams,
    };
}
