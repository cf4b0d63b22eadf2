/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Buffers of copied operations. Used by the operations and by their
 * completions, in the interface's thread.
 */
#ifndef UCT_DCX_DESC_H
#define UCT_DCX_DESC_H

#include "dcx_dci.h"

#include <uct/base/uct_iface.h>


/* A buffer of registered memory for a copied operation. The payload follows at
 * UCT_DCX_DESC_PAYLOAD. Right before it is the header of an active message, and
 * before that the byte count of an inline segment. */
typedef struct uct_dcx_desc {
    uint32_t lkey;
    uint32_t length;                 /* of a get */
    uct_unpack_callback_t unpack_cb; /* of a get */
    void *arg;                       /* of @unpack_cb */
} uct_dcx_desc_t;

enum { UCT_DCX_DESC_PAYLOAD = 64 };


static UCS_F_ALWAYS_INLINE void *uct_dcx_desc_payload(uct_dcx_desc_t *desc)
{
    return UCS_PTR_BYTE_OFFSET(desc, UCT_DCX_DESC_PAYLOAD);
}


/* Returns the next buffer of a pool, or NULL if memory is short. If @is_kept,
 * the buffer stays in the pool: its content is copied before another buffer is
 * taken. So a pack callback must not post on its own interface. */
static UCS_F_ALWAYS_INLINE uct_dcx_desc_t *uct_dcx_desc_get(ucs_mpool_t *mp,
                                                            int is_kept)
{
    void *desc;

    if (!is_kept) {
        return ucs_mpool_get_inline(mp);
    }

    if (ucs_unlikely(mp->freelist == NULL)) {
        desc = ucs_mpool_get(mp);
        if (desc == NULL) {
            return NULL;
        }
        ucs_mpool_put_inline(desc);
    }
    return (uct_dcx_desc_t *)(mp->freelist + 1);
}


/* Creates a pool of buffers with a payload of up to @length bytes. */
ucs_status_t uct_dcx_desc_init_mpool(uct_base_iface_t *iface, ucs_mpool_t *mp,
                                     size_t length);

/* Ends an operation without a completion of the user: frees its buffer. */
void uct_dcx_desc_done(uct_dcx_txq_t *txq, uct_dcx_slot_t *slot,
                       ucs_status_t status);

/* Stores the lkey of @memh at the beginning of @obj, a buffer of a registered
 * pool. */
void uct_dcx_desc_init(uct_iface_h iface, void *obj, uct_mem_h memh);

#endif
