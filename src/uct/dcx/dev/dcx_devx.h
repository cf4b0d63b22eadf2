/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Objects that are made by commands of the device itself (DEVX), and rings for
 * them in memory of our own, which libmlx5 allocates for those of verbs. What
 * goes into a command (common/prm_cmd.h) is with who gives it. Called when an
 * interface opens and closes.
 */
#ifndef UCT_DCX_DEVX_H
#define UCT_DCX_DEVX_H

#include "dcx_device.h"


/* A ring on pages of its own, with its doorbell record on the last of them */
typedef struct uct_dcx_devx_ring {
    void                    *start;
    size_t                  size;   /* of all pages */
    size_t                  offset; /* of the doorbell record */
    struct mlx5dv_devx_umem *umem;
} uct_dcx_devx_ring_t;


/* Makes one of 'length' bytes, all zero, that the device reads. Errors are
 * logged. */
ucs_status_t
uct_dcx_devx_ring_init(uct_dcx_devx_ring_t *ring, const uct_dcx_device_t *dev,
                       size_t length);

void uct_dcx_devx_ring_cleanup(uct_dcx_devx_ring_t *ring);

/* Two counters: MLX5_RCV_DBR, MLX5_SND_DBR */
static inline volatile __be32 *
uct_dcx_devx_ring_dbrec(const uct_dcx_devx_ring_t *ring)
{
    return (volatile __be32*)((char*)ring->start + ring->offset);
}


/* An object of the device */
typedef struct uct_dcx_devx_obj {
    struct mlx5dv_devx_obj *obj;
    const char             *name;  /* of its kind: "XRQ" */
    uint32_t               number;
} uct_dcx_devx_obj_t;


/* Gives a command that creates an object of the kind 'name', or one that
 * changes it; 'what' is that one's name. Errors are logged, with what the
 * device says of them. */
ucs_status_t
uct_dcx_devx_create(uct_dcx_devx_obj_t *obj, const uct_dcx_device_t *dev,
                    const char *name, const void *in, size_t size);
ucs_status_t
uct_dcx_devx_modify(const uct_dcx_devx_obj_t *obj, const char *what,
                    const void *in, size_t size);

/* Once more does nothing. */
void uct_dcx_devx_destroy(uct_dcx_devx_obj_t *obj);


/* 'value' at the place of 'mask', as the device has it */
static inline __be32 uct_dcx_devx_bits(uint32_t mask, uint32_t value)
{
    return htobe32((value << __builtin_ctz(mask)) & mask);
}

#endif
