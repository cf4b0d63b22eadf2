/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Rings and objects by DEVX; see dcx_devx.h.
 */
#include "dcx_devx.h"
#include "common/prm_cmd.h"
#include "uct/dcx/ucx/dcx_ucx.h"

#include <string.h>
#include <sys/mman.h>
#include <ucs/arch/cpu.h>
#include <ucs/debug/log.h>
#include <ucs/sys/sys.h>


ucs_status_t uct_dcx_devx_ring_init(uct_dcx_devx_ring_t *ring,
                                    const uct_dcx_device_t *dev, size_t length)
{
    /* The record has a cache line of its own. */
    ring->offset = ucs_align_up(length, UCS_SYS_CACHE_LINE_SIZE);
    ring->size   = ucs_align_up(ring->offset + UCS_SYS_CACHE_LINE_SIZE,
                                ucs_get_page_size());
    ring->start  = mmap(NULL, ring->size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (ring->start == MAP_FAILED) {
        ucs_error("%s: failed to allocate a ring of %zu bytes: %m",
                  uct_dcx_device_name(dev), ring->size);
        return UCS_ERR_NO_MEMORY;
    }

    ring->umem = mlx5dv_devx_umem_reg(dev->ctx, ring->start, ring->size, 0);
    if (ring->umem == NULL) {
        ucs_error("%s: failed to register a ring of %zu bytes: %m",
                  uct_dcx_device_name(dev), ring->size);
        munmap(ring->start, ring->size);
        return UCS_ERR_IO_ERROR;
    }
    return UCS_OK;
}


void uct_dcx_devx_ring_cleanup(uct_dcx_devx_ring_t *ring)
{
    if (mlx5dv_devx_umem_dereg(ring->umem) != 0) {
        ucs_warn("failed to deregister a ring of %zu bytes: %m", ring->size);
    }
    munmap(ring->start, ring->size);
}


ucs_status_t uct_dcx_devx_create(uct_dcx_devx_obj_t *obj,
                                 const uct_dcx_device_t *dev, const char *name,
                                 const void *in, size_t size)
{
    return uct_dcx_devx_try_create(obj, dev, name, in, size,
                                   UCS_LOG_LEVEL_ERROR);
}


ucs_status_t uct_dcx_devx_try_create(uct_dcx_devx_obj_t *obj,
                                     const uct_dcx_device_t *dev,
                                     const char *name, const void *in,
                                     size_t size, ucs_log_level_t level)
{
    struct prm_cmd_out out = {};

    obj->obj = mlx5dv_devx_obj_create(dev->ctx, in, size, &out, sizeof(out));
    if (obj->obj == NULL) {
        ucs_log(
            level, "%s: failed to create %s: %m (status 0x%x, syndrome 0x%x)",
            uct_dcx_device_name(dev), name, out.status, be32toh(out.syndrome));
        return UCS_ERR_IO_ERROR;
    }

    obj->name   = name;
    obj->number = be32toh(out.number) & PRM_NUMBER;
    return UCS_OK;
}


ucs_status_t uct_dcx_devx_modify(const uct_dcx_devx_obj_t *obj,
                                 const char *what, const void *in, size_t size)
{
    struct prm_cmd_out out = {};

    if (mlx5dv_devx_obj_modify(obj->obj, in, size, &out, sizeof(out)) != 0) {
        ucs_error("%s 0x%x: %s failed: %m (status 0x%x, syndrome 0x%x)",
                  obj->name, obj->number, what, out.status,
                  be32toh(out.syndrome));
        return UCS_ERR_IO_ERROR;
    }
    return UCS_OK;
}


void uct_dcx_devx_destroy(uct_dcx_devx_obj_t *obj)
{
    if ((obj->obj != NULL) && (mlx5dv_devx_obj_destroy(obj->obj) != 0)) {
        ucs_warn("%s 0x%x: failed to destroy: %m", obj->name, obj->number);
    }
    obj->obj = NULL;
}
