/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Indirect keys: a KSM key over the key of a registered region. It gives a peer
 * the same access as the region's own key, and can be destroyed without the
 * region. This is how a peer's access is revoked (UCT_MD_FLAG_INVALIDATE) while
 * the region stays in the cache. Used by dcx_mem.c, from any thread. strided/
 * shares the record of released numbers.
 *
 * A peer whose access was revoked may still have requests in flight, and a
 * process that was only stopped may send more of them after any length of time.
 * So a released number must not come back soon as the number of another key.
 * The device chooses the upper 24 bits (the index), often the one released
 * last; dcx chooses the lower 8 (the variant). It remembers the last 4096
 * released numbers, and changes the variant each time. If device and variant
 * still produce a remembered number, dcx destroys that key at once, before it
 * is handed out, and keeps its index busy with a key without rights, so that
 * the device has to choose other indices. Up to 16 are kept busy: 16 indices of
 * 256 variants are the 4096 numbers, after which the oldest may be used again.
 * One case remains: a request with a number that was released more than 256
 * exports ago meets, in the microseconds between two commands, the region that
 * is being exported at that moment.
 *
 * Only keys of one protection domain matter here. A request reaches memory
 * through a DC target of this process, and the device refuses it keys of other
 * domains.
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
    struct uct_dcx_mkey *next; /* of a region's idle keys */
    struct mlx5dv_devx_obj *obj;
    uint32_t rkey;
} uct_dcx_mkey_t;


/* The indirect keys of a memory domain */
typedef struct uct_dcx_mkeys {
    const uct_dcx_device_t *dev;
    ucs_spinlock_t lock; /* protects the fields below, and regions'
                          * lists */
    uint8_t variant;     /* of the next key */
    unsigned next_held;  /* entry of @held to replace next */
    struct mlx5dv_devx_obj *held[UCT_DCX_MKEY_HELD];
    uct_dcx_stale_t stale;
} uct_dcx_mkeys_t;


ucs_status_t uct_dcx_mkeys_init(uct_dcx_mkeys_t *mkeys,
                                const uct_dcx_device_t *dev);

/* Frees everything; all keys of regions have been destroyed. */
void uct_dcx_mkeys_cleanup(uct_dcx_mkeys_t *mkeys);

/* Creates a key for the memory of @mr. @access: the IBV_ACCESS_* that it was
 * registered with; atomics only if the device has them on indirect keys. Logs
 * errors, except UCS_ERR_NO_MEMORY. */
ucs_status_t uct_dcx_mkey_create(uct_dcx_mkeys_t *mkeys,
                                 const struct ibv_mr *mr, uint32_t access,
                                 uct_dcx_mkey_t **mkey_p);

/* Destroys a key. The device refuses it if this returns UCS_OK. Frees @mkey in
 * any case. */
ucs_status_t uct_dcx_mkey_destroy(uct_dcx_mkeys_t *mkeys, uct_dcx_mkey_t *mkey);

/* Returns non-zero if a released key had this number, and a peer may still use
 * it. */
int uct_dcx_mkey_is_stale(uct_dcx_mkeys_t *mkeys, uint32_t number);

/* Remembers the number of a released key. */
void uct_dcx_mkey_add_stale(uct_dcx_mkeys_t *mkeys, uint32_t number);

#endif
