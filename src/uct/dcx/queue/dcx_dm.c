/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Segments of device memory; see dcx_dm.h.
 */
#include "dcx_dm.h"
#include "uct/dcx/dev/dcx_bf.h"
#include "uct/dcx/ucx/dcx_ucx.h"

#include <ucs/debug/log.h>
#include <ucs/sys/math.h>


/* Alignment of the source of uct_dcx_bf_copy(), in bytes. The copy starts at
 * the last such boundary that is not behind the start of the data, so a segment
 * may start with up to 15 bytes from before it. */
#define UCT_DCX_DM_ALIGN 16


static void uct_dcx_dm_init_seg(ucs_mpool_t *mp, void *obj, void *chunk)
{
    uct_dcx_dm_t *dm    = ucs_container_of(mp, uct_dcx_dm_t, mp);
    uct_dcx_desc_t *seg = obj;

    seg->lkey = dm->mr->lkey;
    seg->arg  = dm->next;
    dm->next += dm->size;
}


static ucs_mpool_ops_t uct_dcx_dm_mpool_ops = {
    .chunk_alloc   = ucs_mpool_chunk_malloc,
    .chunk_release = ucs_mpool_chunk_free,
    .obj_init      = uct_dcx_dm_init_seg,
};


static void uct_dcx_dm_free(uct_dcx_dm_t *dm)
{
    if (((dm->mr != NULL) && (ibv_dereg_mr(dm->mr) != 0)) ||
        (ibv_free_dm(dm->dm) != 0)) {
        ucs_warn("%s: failed to free device memory: %m",
                 ibv_get_device_name(dm->dm->context->device));
    }
}


/* Allocates, registers and maps the memory. Returns 0 if any of it fails. */
static int uct_dcx_dm_alloc(uct_dcx_dm_t *dm, const uct_dcx_device_t *dev,
                            size_t length)
{
    struct ibv_alloc_dm_attr attr = {.length = length};
    struct mlx5dv_dm dv_dm        = {};
    struct mlx5dv_obj obj         = {.dm = {.out = &dv_dm}};

    dm->dm = ibv_alloc_dm(dev->ctx, &attr);
    if (dm->dm == NULL) {
        return 0;
    }

    obj.dm.in = dm->dm;
    dm->mr    = ibv_reg_dm_mr(dev->pd, dm->dm, 0, length,
                              IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE);
    if ((dm->mr == NULL) || (mlx5dv_init_obj(&obj, MLX5DV_OBJ_DM) != 0)) {
        uct_dcx_dm_free(dm);
        return 0;
    }

    dm->start = dv_dm.buf;
    dm->next  = dm->start;
    return 1;
}


void uct_dcx_dm_init(uct_dcx_dm_t *dm, const uct_dcx_device_t *dev, size_t size,
                     unsigned count)
{
    memset(dm, 0, sizeof(*dm));
    dm->size = ucs_align_up_pow2(size, MLX5_SEND_WQE_BB);
    if ((size == 0) || (count == 0)) {
        return;
    }

    if (!uct_dcx_dm_alloc(dm, dev, dm->size * count)) {
        ucs_info("%s: no device memory for %u segments of %zu bytes, "
                 "continuing without: %m",
                 uct_dcx_device_name(dev), count, dm->size);
        return;
    }

    if (uct_dcx_ucx_mpool_init(&dm->mp, sizeof(uct_dcx_desc_t), count, count,
                               &uct_dcx_dm_mpool_ops, "uct_dcx_dm") != UCS_OK) {
        uct_dcx_dm_free(dm);
        return;
    }

    ucs_mpool_grow(&dm->mp, count);
    dm->max = dm->size - UCT_DCX_DM_ALIGN;
}


void uct_dcx_dm_cleanup(uct_dcx_dm_t *dm)
{
    if (dm->max > 0) {
        ucs_mpool_cleanup(&dm->mp, 1);
        uct_dcx_dm_free(dm);
    }
}


const void *uct_dcx_dm_copy(uct_dcx_dm_t *dm, uct_dcx_desc_t *seg,
                            const void *data, size_t length)
{
    size_t skip         = (uintptr_t)data % UCT_DCX_DM_ALIGN;
    const uint8_t *from = (const uint8_t *)data - skip;
    const uint8_t *end  = (const uint8_t *)data + length;
    uintptr_t to        = (uintptr_t)seg->arg;

    dm->copied = data;
    do {
        uct_dcx_bf_copy(to, from);
        to += MLX5_SEND_WQE_BB;
        from += MLX5_SEND_WQE_BB;
    } while (from < end);

    /* The doorbell record of this WQE may be read for an earlier doorbell. So
     * the data has to be there before the record is written, and x86 orders
     * write-combining stores with no other store. */
    uct_dcx_wc_flush();
    return (const void *)(((uintptr_t)seg->arg - (uintptr_t)dm->start) + skip);
}
