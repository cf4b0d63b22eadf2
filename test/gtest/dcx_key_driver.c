/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * See dcx_key_driver.h. Compiled as the transport is.
 */
#include "dcx_key_driver.h"
#include "../times.h"

#include "uct/dcx/mem/dcx_mem.h"
#include "uct/dcx/net/dcx_port_addr.h"
#include "uct/dcx/queue/dcx_queues.h"
#include "uct/dcx/ucx/dcx_ucx.h"


static uct_dcx_key_t *dcx_key_wait(uct_dcx_keys_t *keys,
                                   const uct_dcx_sgl_t *layout)
{
    const uint64_t end = time_now_us() + time_slow(TIME_WAIT) * 1000ull;
    uct_dcx_key_t *key;
    ucs_status_t status;

    do {
        status = uct_dcx_keys_get(keys, layout, 0, &key);
    } while ((status == UCS_ERR_NO_RESOURCE) && (time_now_us() < end));
    return (status == UCS_OK) ? key : NULL;
}


uint32_t dcx_key_set(uct_iface_h iface, uct_mem_h memh, void *address,
                     uint32_t bytes)
{
    uct_md_h md           = ucs_derived_of(iface, uct_base_iface_t)->md;
    uct_dcx_keys_t *keys  = ucs_derived_of(md, uct_dcx_md_t)->keys;
    uct_dcx_sgl_t *layout = ucs_alloca(uct_dcx_sgl_size(2));
    uct_dcx_sgl_run_t run = {
        .addr   = (uintptr_t)address,
        .bytes  = bytes,
        .stride = 2 * bytes,
        .count  = 2,
        .lkey   = uct_dcx_mem_lkey(memh),
    };
    uct_dcx_key_t *key = NULL;

    uct_dcx_sgl_begin(layout, 2,
                      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                          IBV_ACCESS_REMOTE_READ);
    if (uct_dcx_sgl_add(layout, &run) != NULL) {
        return 0;
    }

    uct_dcx_sgl_end(layout);
    if (uct_dcx_queues_open_keys(ucs_derived_of(iface, uct_dcx_queues_t)) ==
        UCS_OK) {
        key = dcx_key_wait(keys, layout);
    }
    if (key == NULL) {
        return 0;
    }

    uct_dcx_keys_put(keys, key, 0);
    return key->rkey;
}


void *dcx_key_keys(uct_md_h md)
{
    return ucs_derived_of(md, uct_dcx_md_t)->keys;
}


void dcx_key_count(uct_md_h md, unsigned *num_set, unsigned *invalidated)
{
    uct_dcx_keys_stats_t stats;

    uct_dcx_keys_query(ucs_derived_of(md, uct_dcx_md_t)->keys, &stats);
    *num_set     = stats.num_set;
    *invalidated = stats.invalidated;
}
