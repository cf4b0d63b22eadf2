/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Objects created by commands of the device (DEVX), and rings for them in
 * memory that dcx allocates; libmlx5 allocates those of verbs. The caller
 * builds the command (common/prm_cmd.h). Called when an interface opens and
 * closes, and for strided mkeys at any time, by any thread.
 */
#ifndef UCT_DCX_DEVX_H
#define UCT_DCX_DEVX_H

#include "dcx_device.h"


/* A ring on its own pages, with its doorbell record on the last of them */
typedef struct uct_dcx_devx_ring {
    void *start;
    size_t size;   /* bytes of all pages */
    size_t offset; /* offset of the doorbell record in bytes */
    struct mlx5dv_devx_umem *umem;
} uct_dcx_devx_ring_t;


/* Makes a ring of @length bytes, all zero, that the device reads. Logs
 * errors. */
ucs_status_t uct_dcx_devx_ring_init(uct_dcx_devx_ring_t *ring,
                                    const uct_dcx_device_t *dev, size_t length);

void uct_dcx_devx_ring_cleanup(uct_dcx_devx_ring_t *ring);

/* Returns the doorbell record's two counters: MLX5_RCV_DBR, MLX5_SND_DBR. */
static inline volatile __be32 *
uct_dcx_devx_ring_dbrec(const uct_dcx_devx_ring_t *ring)
{
    return (volatile __be32 *)((char *)ring->start + ring->offset);
}


/* An object of the device */
typedef struct uct_dcx_devx_obj {
    struct mlx5dv_devx_obj *obj;
    const char *name; /* kind of object: "XRQ"; not copied */
    uint32_t number;
} uct_dcx_devx_obj_t;


/* Run the command @in of @size bytes, which creates an object of the kind
 * @name, or changes @obj; @what names the change. Log errors, with the device's
 * syndrome: uct_dcx_devx_try_create() at @level. */
ucs_status_t uct_dcx_devx_create(uct_dcx_devx_obj_t *obj,
                                 const uct_dcx_device_t *dev, const char *name,
                                 const void *in, size_t size);
ucs_status_t uct_dcx_devx_try_create(uct_dcx_devx_obj_t *obj,
                                     const uct_dcx_device_t *dev,
                                     const char *name, const void *in,
                                     size_t size, ucs_log_level_t level);
ucs_status_t uct_dcx_devx_modify(const uct_dcx_devx_obj_t *obj,
                                 const char *what, const void *in, size_t size);

/* Destroys @obj; does nothing if that was done, or it was not created. */
void uct_dcx_devx_destroy(uct_dcx_devx_obj_t *obj);


/* Returns @value at the position of @mask, in big endian. */
static inline __be32 uct_dcx_devx_bits(uint32_t mask, uint32_t value)
{
    return htobe32((value << __builtin_ctz(mask)) & mask);
}

#endif
