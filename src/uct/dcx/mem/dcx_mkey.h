/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Indirect keys: a KSM key over the key of a registered region, which lets a
 * peer in as the region's own key does, and can be destroyed without the
 * region. That is how memory is taken back from a peer (UCT_MD_FLAG_INVALIDATE)
 * while the region stays in the cache. Used by dcx_mem.c, from any thread.
 *
 * A peer that is cut off may still have requests in the air, and a process that
 * was only stopped may send more of them after any length of time. So a number
 * that was given up must not come back soon as the number of another key. The
 * device chooses the upper 24 bits (the index), and may well choose the one
 * given back last; we choose the lower 8 (the variant). Both the last 4096
 * numbers given up are remembered and the variant is another one each time. If
 * the device and the rotation still make a remembered number, that key goes at
 * once, before it is handed out, and its index is kept busy by a key
 * without rights, so that the device has to move on to other indices. Up to 16
 * are kept so: 16 indices of 256 variants are the 4096 numbers, after which the
 * oldest may be used again. What is left is a request with a number that was
 * given up more than 256 exports ago and that meets, in the microseconds
 * between two commands, the region that is being exported at that moment.
 *
 * Only keys of one protection domain matter here. A request reaches memory by a
 * DC target of this process, and the device refuses it keys of other domains.
 */
#ifndef UCT_DCX_MKEY_H
#define UCT_DCX_MKEY_H

#include "uct/dcx/base/dcx_stale.h"
#include "uct/dcx/dev/dcx_device.h"

#include <ucs/type/spinlock.h>


enum {
    UCT_DCX_MKEY_HELD = 16 /* indices kept busy */
};


typedef struct uct_dcx_mkey {
    struct uct_dcx_mkey    *next; /* of the idle ones of a region */
    struct mlx5dv_devx_obj *obj;
    uint32_t               rkey;
} uct_dcx_mkey_t;


/* The indirect keys of a memory domain */
typedef struct uct_dcx_mkeys {
    const uct_dcx_device_t *dev;
    ucs_spinlock_t         lock; /* of what follows, and of regions' lists */
    uint8_t                variant;
    unsigned               next_held;
    struct mlx5dv_devx_obj *held[UCT_DCX_MKEY_HELD];
    uct_dcx_stale_t        stale;
} uct_dcx_mkeys_t;


ucs_status_t
uct_dcx_mkeys_init(uct_dcx_mkeys_t *mkeys, const uct_dcx_device_t *dev);

/* All keys of regions have been destroyed. */
void uct_dcx_mkeys_cleanup(uct_dcx_mkeys_t *mkeys);

/* Makes a key for what 'mr' spans, with the rights IBV_ACCESS_* that it was
 * registered with. Errors are logged. */
ucs_status_t uct_dcx_mkey_create(uct_dcx_mkeys_t *mkeys,
                                 const struct ibv_mr *mr, uint32_t access,
                                 uct_dcx_mkey_t **mkey_p);

/* When it returns UCS_OK, the device refuses that key. 'mkey' is freed in any
 * case. */
ucs_status_t
uct_dcx_mkey_destroy(uct_dcx_mkeys_t *mkeys, uct_dcx_mkey_t *mkey);

/* Whether a key had this number, and a peer may still have it. */
int uct_dcx_mkey_is_stale(uct_dcx_mkeys_t *mkeys, uint32_t number);

/* A key had it, and is gone. */
void uct_dcx_mkey_add_stale(uct_dcx_mkeys_t *mkeys, uint32_t number);

#endif
