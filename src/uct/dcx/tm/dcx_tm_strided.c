/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Tagged buffers that are not one piece of memory, see dcx_tm.h: the device's
 * list has a strided mkey of their layout, or that of a user's handle. The key
 * is held until the device has completed the buffer.
 *
 * The list handles such a buffer like any other, with a context of ours, whose
 * callbacks call the user's. A rendezvous request that the device leaves to the
 * user is in the first bytes of the buffer, and is read through the layout.
 */
#include "dcx_tm_cmd.h"
#include "uct/dcx/strided/dcx_iov.h"
#include "uct/dcx/strided/dcx_mem_layout.h"

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>


#define UCT_DCX_TM_STRIDED_NAME "tag_recv_zcopy"


/* State of a strided buffer, for each entry of the list */
struct uct_dcx_tm_strided {
    uct_tag_context_t super; /* context of the entry */
    uct_tag_context_t *ctx;  /* the user's; NULL: no callbacks */
    uct_dcx_tm_t *tm;
    uct_dcx_key_t *key; /* holds @lkey; NULL: it is the user's */
    uint64_t addr;      /* of the buffer, in the space of the key */
    uint32_t lkey;
};


/* A receive to be posted, except its layout */
typedef struct uct_dcx_tm_strided_recv {
    uct_dcx_tm_t *tm;
    uct_tag_context_t *ctx;
    uct_dcx_tm_post_t post;
} uct_dcx_tm_strided_recv_t;


static inline uct_dcx_keys_t *uct_dcx_tm_keys(const uct_dcx_tm_t *tm)
{
    return ucs_derived_of(tm->queues->super.md, uct_dcx_md_t)->keys;
}


/* Returns the state of an entry; NULL if it is one piece of memory. */
static uct_dcx_tm_strided_t *uct_dcx_tm_strided_of(const uct_dcx_tm_t *tm,
                                                   uint16_t index)
{
    uct_dcx_tm_strided_t *strided = &tm->strided[index];

    return ((tm->strided != NULL) &&
            (tm->entries[index].ctx == &strided->super)) ?
               strided :
               NULL;
}


static void uct_dcx_tm_strided_put(uct_dcx_tm_strided_t *strided)
{
    if (strided->key != NULL) {
        uct_dcx_keys_put(uct_dcx_tm_keys(strided->tm), strided->key, 1);
        strided->key = NULL;
    }
}


/* --- callbacks of the list ------------------------------------------------ */

static void uct_dcx_tm_strided_consumed(uct_tag_context_t *self)
{
    uct_tag_context_t *ctx = ucs_derived_of(self, uct_dcx_tm_strided_t)->ctx;

    if (ctx != NULL) {
        ctx->tag_consumed_cb(ctx);
    }
}


/* Releases the key, and returns the user's context. The user may post the entry
 * again, so nothing is read after that. If the queue of the list has failed,
 * the key is not released: the device may still use it. */
static uct_tag_context_t *uct_dcx_tm_strided_end(uct_tag_context_t *self)
{
    uct_dcx_tm_strided_t *strided = ucs_derived_of(self, uct_dcx_tm_strided_t);

    if (strided->tm->cmd.sq.limit > 0) {
        uct_dcx_tm_strided_put(strided);
    }
    return strided->ctx;
}


static void uct_dcx_tm_strided_completed(uct_tag_context_t *self, uct_tag_t tag,
                                         uint64_t imm, size_t length,
                                         void *inline_data, ucs_status_t status)
{
    uct_tag_context_t *ctx = uct_dcx_tm_strided_end(self);

    if (ctx != NULL) {
        ctx->completed_cb(ctx, tag, imm, length, inline_data, status);
    }
}


static ucs_status_t
uct_dcx_tm_strided_gather(const uct_dcx_tm_strided_t *strided, void *dest,
                          size_t length)
{
    return uct_dcx_keys_read(uct_dcx_tm_keys(strided->tm), strided->lkey,
                             strided->addr, length, dest);
}


/* Copies the header of a request that is in the buffer. */
static ucs_status_t uct_dcx_tm_strided_copy(const uct_dcx_tm_strided_t *strided,
                                            unsigned length, void **copy_p)
{
    *copy_p = ucs_malloc(length, "uct_dcx_tm_request");
    if (*copy_p == NULL) {
        ucs_error(UCT_DCX_TM_STRIDED_NAME
                  ": out of memory for a rendezvous request of %u bytes",
                  length);
        return UCS_ERR_NO_MEMORY;
    }

    return uct_dcx_tm_strided_gather(strided, *copy_p, length);
}


/* Does not read the memory of a muted buffer, which may be freed. */
static void uct_dcx_tm_strided_requested(uct_tag_context_t *self, uct_tag_t tag,
                                         const void *header, unsigned length,
                                         ucs_status_t status, unsigned flags)
{
    const uct_dcx_tm_strided_t *strided = ucs_derived_of(self,
                                                         uct_dcx_tm_strided_t);
    void *copy                          = NULL;
    uct_tag_context_t *ctx;

    if ((strided->ctx != NULL) && (length > 0) &&
        !(flags & UCT_TAG_RECV_CB_INLINE_DATA)) {
        status = uct_dcx_tm_strided_copy(strided, length, &copy);
        header = copy;
    }

    ctx = uct_dcx_tm_strided_end(self);
    if (ctx != NULL) {
        ctx->rndv_cb(ctx, tag, header, length, status, flags);
    }
    ucs_free(copy);
}


uct_tag_context_t *uct_dcx_tm_strided_ctx(const uct_dcx_tm_t *tm,
                                          uint16_t index)
{
    const uct_dcx_tm_strided_t *strided = uct_dcx_tm_strided_of(tm, index);

    return (strided != NULL) ? strided->ctx : NULL;
}


/* Mutes a buffer. The list keeps its entry, as the key is held until the device
 * has completed it. The address is replaced by one that no buffer has. */
void uct_dcx_tm_strided_mute(uct_dcx_tm_t *tm, uint16_t index)
{
    uct_dcx_tm_strided_t *strided = &tm->strided[index];

    tm->entries[index].buffer = strided;
    strided->ctx              = NULL;
}


ucs_status_t uct_dcx_tm_strided_read(const uct_dcx_tm_t *tm, uint16_t index,
                                     void *dest, size_t length)
{
    const uct_dcx_tm_strided_t *strided = uct_dcx_tm_strided_of(tm, index);
    const uct_dcx_tm_entry_t *entry     = &tm->entries[index];

    if (((strided != NULL) ? strided->ctx : entry->ctx) == NULL) {
        ucs_diag("%s: lost a rendezvous request: its receive was canceled by "
                 "force",
                 tm->queues->port.name);
        return UCS_ERR_CANCELED;
    }

    if (strided != NULL) {
        return uct_dcx_tm_strided_gather(strided, dest, length);
    }

    memcpy(dest, entry->buffer, length);
    return UCS_OK;
}


/* --- posting -------------------------------------------------------------- */

/* Allocates the state of all entries for the first strided buffer. */
static ucs_status_t uct_dcx_tm_strided_init(uct_dcx_tm_t *tm)
{
    if (tm->strided == NULL) {
        tm->strided = ucs_calloc(tm->num_entries, sizeof(*tm->strided),
                                 "uct_dcx_tm_strided");
    }
    if (tm->strided == NULL) {
        ucs_error(UCT_DCX_TM_STRIDED_NAME ": out of memory for %u buffers",
                  tm->num_entries);
        return UCS_ERR_NO_MEMORY;
    }
    return UCS_OK;
}


/* @key holds @lkey; NULL: the user's own key. */
static ucs_status_t uct_dcx_tm_strided_post(uct_dcx_tm_strided_recv_t *recv,
                                            uint32_t lkey, uint64_t addr,
                                            uct_dcx_key_t *key)
{
    uct_dcx_tm_t *tm    = recv->tm;
    uint16_t index      = tm->next;
    ucs_status_t status = uct_dcx_tm_strided_init(tm);
    uct_dcx_tm_strided_t *strided;

    if (status != UCS_OK) {
        return status;
    }

    strided         = &tm->strided[index];
    recv->post.lkey = lkey;
    recv->post.addr = addr;
    status          = uct_dcx_tm_recv(tm, &recv->post, &strided->super);
    if (status != UCS_OK) {
        return status;
    }

    strided->super.tag_consumed_cb = uct_dcx_tm_strided_consumed;
    strided->super.completed_cb    = uct_dcx_tm_strided_completed;
    strided->super.rndv_cb         = uct_dcx_tm_strided_requested;
    strided->ctx                   = recv->ctx;
    strided->tm                    = tm;
    strided->key                   = key;
    strided->addr                  = addr;
    strided->lkey                  = lkey;
    memcpy(recv->ctx->priv, &index, sizeof(index));
    return UCS_OK;
}


/* Posts a buffer with a strided mkey. If the maximum of keys is held, the user
 * continues without the device. */
static ucs_status_t uct_dcx_tm_strided_keyed(uct_dcx_tm_strided_recv_t *recv,
                                             uct_dcx_keys_t *keys,
                                             const uct_dcx_sgl_t *layout)
{
    uct_dcx_key_t *key;
    ucs_status_t status;

    status = uct_dcx_keys_get(keys, layout, 1, &key);
    if (status != UCS_OK) {
        return (status == UCS_ERR_BUSY) ? UCS_ERR_NO_RESOURCE : status;
    }

    status = uct_dcx_tm_strided_post(recv, key->lkey, 0, key);
    if (status != UCS_OK) {
        uct_dcx_keys_put(keys, key, 1);
    }
    return status;
}


static ucs_status_t uct_dcx_tm_strided_too_much(const uct_dcx_sgl_t *layout)
{
    ucs_error(UCT_DCX_TM_STRIDED_NAME
              ": %lu bytes in %lu pieces: without an mkey for the layout, the "
              "maximum is one piece",
              layout->length, uct_dcx_sgl_num_pieces(layout));
    return UCS_ERR_UNSUPPORTED;
}


/* Finds the first byte of each entry before anything is prepared: there is none
 * outside of a layout, or if that was invalidated with its memory. If all
 * entries are in memory, only the first is needed. */
static ucs_status_t uct_dcx_tm_strided_place(uct_dcx_tm_strided_recv_t *recv,
                                             const uct_dcx_sgl_t *layout,
                                             unsigned depth)
{
    uint32_t num = (depth > 0) ? layout->num : 1;
    const uct_dcx_sgl_entry_t *entry;
    void *place;
    uint32_t i;

    for (i = 0; i < num; ++i) {
        entry = &layout->entries[i];
        if (uct_dcx_keys_place(uct_dcx_tm_keys(recv->tm), entry->lkey,
                               entry->addr, &place) != UCS_OK) {
            ucs_error(UCT_DCX_TM_STRIDED_NAME
                      ": iov: the layout of a memory "
                      "handle is not set, or ends before offset %lu",
                      entry->addr);
            return UCS_ERR_INVALID_PARAM;
        }
        if (i == 0) {
            recv->post.buffer = place;
        }
    }
    return UCS_OK;
}


static ucs_status_t uct_dcx_tm_strided_start(uct_dcx_tm_strided_recv_t *recv,
                                             const uct_dcx_sgl_t *layout,
                                             unsigned depth)
{
    const uct_dcx_sgl_entry_t *first = &layout->entries[0];
    uct_dcx_queues_t *queues         = recv->tm->queues;
    uct_dcx_keys_t *keys             = NULL;
    ucs_status_t status;

    if (!queues->port.dev->tm.has_keys &&
        ((depth > 0) || (uct_dcx_sgl_num_pieces(layout) > 1))) {
        return UCS_ERR_EXCEEDS_LIMIT; /* UCP receives it by itself */
    }

    status = uct_dcx_tm_strided_place(recv, layout, depth);
    if (status != UCS_OK) {
        return status;
    }

    if (uct_dcx_sgl_num_pieces(layout) == 1) {
        return uct_dcx_tm_strided_post(recv, first->lkey, first->addr, NULL);
    }

    if ((depth < queues->port.dev->umr.max_depth) &&
        (uct_dcx_sgl_num_klm(layout) <= queues->limits.strided.max_klm)) {
        keys = uct_dcx_queues_keys(queues);
    }
    return (keys != NULL) ? uct_dcx_tm_strided_keyed(recv, keys, layout) :
                            uct_dcx_tm_strided_too_much(layout);
}


static ucs_status_t uct_dcx_tm_strided_func(void *arg,
                                            const uct_dcx_sgl_t *layout,
                                            const uct_dcx_iov_memory_t *memory)
{
    uct_dcx_tm_strided_recv_t *recv = arg;
    size_t max                      = recv->tm->queues->limits.rma_zcopy;

    if (layout->num == 0) {
        return uct_dcx_tm_recv(recv->tm, &recv->post, recv->ctx);
    }

    if (layout->length > max) {
        ucs_error(UCT_DCX_TM_STRIDED_NAME ": %lu bytes exceed the maximum of "
                                          "%zu",
                  layout->length, max);
        return UCS_ERR_INVALID_PARAM;
    }

    recv->post.length = layout->length;
    return uct_dcx_tm_strided_start(recv, layout, memory->depth);
}


ucs_status_t uct_dcx_tm_strided_recv_zcopy(uct_iface_h tl_iface, uct_tag_t tag,
                                           uct_tag_t tag_mask,
                                           const uct_iov_t *iov, size_t iovcnt,
                                           uct_tag_context_t *ctx)
{
    uct_dcx_tm_strided_recv_t recv = {
        .tm   = ucs_derived_of(tl_iface, uct_dcx_queues_t)->tm,
        .ctx  = ctx,
        .post = {.tag    = tag,
                 .mask   = tag_mask,
                 .buffer = (iovcnt > 0) ? iov->buffer : NULL,
                 .lkey   = MLX5_INVALID_LKEY},
    };
    const uct_dcx_iov_user_t user = {
        .name      = UCT_DCX_TM_STRIDED_NAME,
        .access    = IBV_ACCESS_LOCAL_WRITE,
        .has_nests = recv.tm->queues->port.dev->umr.has_nests,
        .func      = uct_dcx_tm_strided_func,
        .arg       = &recv,
    };

    /* UCP takes no other errors than of a full list: it receives by itself. The
     * device may leave a request in the buffer, which the processor could not
     * read from the memory of a GPU. */
    if ((iovcnt <= UCT_DCX_IOV_MAX) &&
        (uct_dcx_iov_is_device(iov, iovcnt) ||
         (uct_dcx_iov_pin(iov, iovcnt) != UCS_OK))) {
        return UCS_ERR_EXCEEDS_LIMIT;
    }

    return uct_dcx_iov_use(iov, iovcnt, &user);
}


void uct_dcx_tm_strided_cleanup(uct_dcx_tm_t *tm)
{
    uint16_t index;

    for (index = 0; (index < tm->num_entries) && (tm->strided != NULL);
         ++index) {
        uct_dcx_tm_strided_put(&tm->strided[index]);
    }
    ucs_free(tm->strided);
}
