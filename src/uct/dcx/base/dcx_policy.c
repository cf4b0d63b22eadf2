/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The policies of choosing a DC initiator; see dcx_policy.h. They are those of
 * UCX's dc_mlx5.
 *
 * "dcs": idle initiators form a stack, so that few of them stay warm in the
 * device's cache, and those never used need not exist. An endpoint keeps its
 * initiator for as long as it has operations outstanding on it, which keeps
 * them in order. An endpoint that never pauses then never lets go. "dcs_quota"
 * takes it away from one that has used its quota while others wait.
 *
 * "rand": an endpoint is bound to a shared initiator, chosen by lot. "hw_dcs":
 * there is one shared initiator, and an endpoint is bound to a stream of it;
 * the device does what "dcs" does with initiators.
 */
#include "dcx_policy.h"

#include <limits.h>
#include <stdlib.h>


static uct_dcx_pool_size_t uct_dcx_exclusive_size(unsigned num_dci)
{
    return (uct_dcx_pool_size_t){.num_exclusive = num_dci};
}


static uct_dcx_pool_size_t uct_dcx_shared_size(unsigned num_dci)
{
    return (uct_dcx_pool_size_t){.num_shared = num_dci};
}


static uct_dcx_pool_size_t uct_dcx_one_shared_size(unsigned num_dci)
{
    (void)num_dci;
    return (uct_dcx_pool_size_t){.num_shared = 1};
}


static unsigned uct_dcx_no_share(const uct_dcx_pool_t *pool)
{
    (void)pool;
    return UINT_MAX;
}


static unsigned uct_dcx_quota_share(const uct_dcx_pool_t *pool)
{
    return pool->quota;
}


static const uct_dcx_policy_t uct_dcx_policies[] = {
    {.name  = "dcs",
     .size  = uct_dcx_exclusive_size,
     .share = uct_dcx_no_share},
    {.name  = "dcs_quota",
     .size  = uct_dcx_exclusive_size,
     .share = uct_dcx_quota_share},
    {.name  = "rand",
     .size  = uct_dcx_shared_size,
     .share = uct_dcx_no_share},
    {.name        = "hw_dcs",
     .size        = uct_dcx_one_shared_size,
     .has_streams = 1,
     .share       = uct_dcx_no_share},
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


int
uct_dcx_pool_init(uct_dcx_pool_t *pool, const uct_dcx_pool_params_t *params)
{
    unsigned num_idle, i;

    pool->policy      = &uct_dcx_policies[params->policy];
    pool->size        = pool->policy->size(params->num_dci);
    pool->quota       = params->quota;
    pool->num_streams = params->num_streams;
    pool->next_stream = 0;
    pool->random      = params->seed;
    pool->num_idle    = pool->size.num_exclusive;

    num_idle   = pool->num_idle;
    pool->idle = malloc((num_idle + 1) * sizeof(*pool->idle));
    if (pool->idle == NULL) {
        return -1;
    }

    for (i = 0; i < num_idle; ++i) {
        pool->idle[i] = num_idle - 1 - i;
    }
    return 0;
}


void uct_dcx_pool_cleanup(uct_dcx_pool_t *pool)
{
    free(pool->idle);
    pool->idle = NULL;
}


/* splitmix64 (S. Vigna, public domain): any seed will do */
static uint64_t uct_dcx_pool_random(uct_dcx_pool_t *pool)
{
    uint64_t z = pool->random += 0x9e3779b97f4a7c15ull;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}


static uct_dcx_place_t uct_dcx_pool_shared_place(uct_dcx_pool_t *pool)
{
    uint64_t number       = uct_dcx_pool_random(pool) % pool->size.num_shared;
    uct_dcx_place_t place = {.dci = pool->size.num_exclusive + number};

    if (pool->policy->has_streams) {
        place.stream = pool->next_stream++ % pool->num_streams;
    }
    return place;
}


uct_dcx_place_t uct_dcx_pool_bind(uct_dcx_pool_t *pool)
{
    if (pool->size.num_exclusive > 0) {
        return (uct_dcx_place_t){.dci = UCT_DCX_NO_DCI};
    }

    return uct_dcx_pool_shared_place(pool);
}


void uct_dcx_pool_truncate(uct_dcx_pool_t *pool, uint16_t dci)
{
    /* those given back lie on top of those never used, and there was none; some
     * may never come back */
    assert(pool->num_idle + dci + 1 <= pool->size.num_exclusive);
    (void)dci;
    pool->num_idle = 0;
}
