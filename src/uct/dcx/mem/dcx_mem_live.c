/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The set of handles; see dcx_mem_live.h.
 */
#include "dcx_mem_live.h"

#include <pthread.h>
#include <ucs/datastruct/khash.h>

KHASH_INIT(uct_dcx_mem_live, uint64_t, char, 0, kh_int64_hash_func,
           kh_int64_hash_equal)


/* All zero is an empty one. */
static khash_t(uct_dcx_mem_live) uct_dcx_mem_live;
static pthread_mutex_t uct_dcx_mem_live_lock = PTHREAD_MUTEX_INITIALIZER;


ucs_status_t uct_dcx_mem_live_add(const uct_dcx_mem_t *mem)
{
    int result;

    pthread_mutex_lock(&uct_dcx_mem_live_lock);
    kh_put(uct_dcx_mem_live, &uct_dcx_mem_live, (uintptr_t)mem, &result);
    pthread_mutex_unlock(&uct_dcx_mem_live_lock);
    return (result < 0) ? UCS_ERR_NO_MEMORY : UCS_OK;
}


void uct_dcx_mem_live_remove(const uct_dcx_mem_t *mem)
{
    khiter_t iter;

    pthread_mutex_lock(&uct_dcx_mem_live_lock);
    iter = kh_get(uct_dcx_mem_live, &uct_dcx_mem_live, (uintptr_t)mem);
    kh_del(uct_dcx_mem_live, &uct_dcx_mem_live, iter);
    pthread_mutex_unlock(&uct_dcx_mem_live_lock);
}


int uct_dcx_mem_live_has(uct_mem_h memh)
{
    khiter_t iter;
    int is_live;

    pthread_mutex_lock(&uct_dcx_mem_live_lock);
    iter    = kh_get(uct_dcx_mem_live, &uct_dcx_mem_live, (uintptr_t)memh);
    is_live = (iter != kh_end(&uct_dcx_mem_live));
    pthread_mutex_unlock(&uct_dcx_mem_live_lock);
    return is_live;
}
