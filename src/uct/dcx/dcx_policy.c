/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The policies of choosing a DC initiator; see dcx_policy.h. They are those of
 * UCX's dc_mlx5. "dcs": idle initiators form a stack, so that few of them stay
 * warm in the device's cache, and an endpoint keeps its initiator for as long
 * as it has operations outstanding on it, which keeps them in order. An
 * endpoint that never pauses then never lets go. "dcs_quota" takes it away
 * from one that has used its quota while others wait.
 */
#include "dcx_policy.h"

#include <limits.h>
#include <stdlib.h>


static unsigned uct_dcx_dcs_share(const uct_dcx_pool_t *pool)
{
    (void)pool;
    return UINT_MAX;
}


static unsigned uct_dcx_dcs_quota_share(const uct_dcx_pool_t *pool)
{
    return pool->quota;
}


static const uct_dcx_policy_t uct_dcx_policies[] = {
    {.name = "dcs", .share = uct_dcx_dcs_share},
    {.name = "dcs_quota", .share = uct_dcx_dcs_quota_share},
};


const char *uct_dcx_policy_names[] = {"dcs", "dcs_quota", NULL};

static_assert(sizeof(uct_dcx_policy_names) / sizeof(uct_dcx_policy_names[0]) ==
              sizeof(uct_dcx_policies) / sizeof(uct_dcx_policies[0]) + 1,
              "one name for each policy");


int uct_dcx_pool_init(uct_dcx_pool_t *pool, unsigned policy, unsigned num_dci,
                      unsigned quota)
{
    unsigned i;

    pool->idle = malloc(num_dci * sizeof(*pool->idle));
    if (pool->idle == NULL) {
        return -1;
    }

    for (i = 0; i < num_dci; ++i) {
        pool->idle[i] = num_dci - 1 - i;
    }

    pool->policy   = &uct_dcx_policies[policy];
    pool->num_idle = num_dci;
    pool->num_dci  = num_dci;
    pool->quota    = quota;
    return 0;
}


void uct_dcx_pool_cleanup(uct_dcx_pool_t *pool)
{
    free(pool->idle);
    pool->idle = NULL;
}
