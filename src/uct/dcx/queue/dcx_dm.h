/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Device memory (ibv_alloc_dm()): segments of the NIC's own memory, mapped
 * write-combining. The processor copies the data of an operation there, and the
 * device does not need a DMA read to fetch it. Segments are few, so a segment
 * is used if it is free, and a buffer (dcx_desc.h) otherwise. Owned by the
 * interface's thread.
 */
#ifndef UCT_DCX_DM_H
#define UCT_DCX_DM_H

#include "dcx_desc.h"

typedef struct uct_dcx_dm {
    size_t max;         /* maximum bytes of an operation; 0: no device memory */
    size_t size;        /* bytes of a segment */
    ucs_mpool_t mp;     /* segments: uct_dcx_desc_t, with the address in @arg */
    uint8_t *next;      /* address of the next segment to initialize */
    const void *copied; /* data that was copied last, for the log */
    struct ibv_dm *dm;
    struct ibv_mr *mr; /* zero-based: the device's addresses are offsets */
    uint8_t *start;
} uct_dcx_dm_t;


/* Allocates @count segments of @size bytes. There are none if one is 0, or the
 * device has no memory left; the latter is logged. */
void uct_dcx_dm_init(uct_dcx_dm_t *dm, const uct_dcx_device_t *dev, size_t size,
                     unsigned count);

/* All operations have ended. */
void uct_dcx_dm_cleanup(uct_dcx_dm_t *dm);

/* Returns non-zero if uct_dcx_dm_get() returns a segment. */
static UCS_F_ALWAYS_INLINE int uct_dcx_dm_is_free(const uct_dcx_dm_t *dm)
{
    return dm->mp.freelist != NULL;
}

/* Returns a segment, which uct_dcx_desc_done() frees; NULL if none is free. */
static UCS_F_ALWAYS_INLINE uct_dcx_desc_t *uct_dcx_dm_get(uct_dcx_dm_t *dm)
{
    return uct_dcx_dm_is_free(dm) ? ucs_mpool_get_inline(&dm->mp) : NULL;
}

/* Returns non-zero if @lkey is that of the segments. */
static inline int uct_dcx_dm_has(const uct_dcx_dm_t *dm, uint32_t lkey)
{
    return (dm->max > 0) && (lkey == dm->mr->lkey);
}

/* Copies @data to a segment, in whole cache lines: up to 15 bytes before, and
 * up to 63 bytes behind @data are read, too. Returns the address for a data
 * segment with the lkey of @seg. */
const void *uct_dcx_dm_copy(uct_dcx_dm_t *dm, uct_dcx_desc_t *seg,
                            const void *data, size_t length);

#endif
