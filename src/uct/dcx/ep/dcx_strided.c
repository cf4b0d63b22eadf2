/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Operations on memory that is not plain; see dcx_strided.h. The memory is
 * converted to a layout, which merges adjacent pieces; the operation is posted
 * in one of the forms of uct_dcx_sgl_pick(). In each form it ends as UCT's
 * operation on plain memory: completions, errors, flush, and the end of the
 * endpoint need no code here.
 */
#include "dcx_strided.h"
#include "uct/dcx/strided/dcx_iov.h"
#include "uct/dcx/strided/dcx_mem_layout.h"
#include "uct/dcx/queue/dcx_desc.h"

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>


enum {
    /* maximum of scatter entries on the stack */
    UCT_DCX_STRIDED_MAX_PLAIN = 64
};


typedef struct uct_dcx_strided uct_dcx_strided_t;

/* UCT's operation on plain memory */
typedef ucs_status_t (*uct_dcx_strided_post_t)(const uct_dcx_strided_t *op,
                                               const uct_iov_t *iov,
                                               size_t iovcnt,
                                               uct_completion_t *comp);

/* An operation, except its memory */
struct uct_dcx_strided {
    const char *name;
    uct_ep_h ep;
    uct_completion_t *comp;
    uct_dcx_strided_post_t post;
    size_t max_plain;  /* maximum of plain entries */
    size_t max_length; /* bytes */
    int is_dest;       /* the memory is written to */
    int is_rma;
    int is_rndv; /* a peer reads the memory by its key */
    union {
        struct {
            const void *header;
            unsigned header_length;
            uint8_t id;
        } am;
        struct {
            uint64_t remote_addr;
            uct_rkey_t rkey;
        } rma;
        struct {
            uct_tag_t tag;
            uint64_t imm;
        } tag;
        struct {
            uct_tag_t tag;
            const void *header;
            unsigned header_length;
            uint32_t rkey;  /* of memory in one piece */
            void **request; /* the result */
        } rndv;
    };
    unsigned flags;
};


/* State of a copied operation, until it ends */
typedef struct uct_dcx_strided_copy {
    uct_completion_t super;
    uct_completion_t *comp; /* the user's, or NULL */
    uct_dcx_desc_t *desc;
    int is_dest;
    uct_dcx_sgl_t layout; /* of a destination, with its entries */
} uct_dcx_strided_copy_t;


/* State of an operation with a strided mkey, until it ends */
typedef struct uct_dcx_strided_keyed {
    uct_completion_t super;
    uct_completion_t *comp; /* the user's, or NULL */
    uct_dcx_keys_t *keys;
    uct_dcx_key_t *key;
    int is_held; /* until the peer has the data */
} uct_dcx_strided_keyed_t;


static inline uct_dcx_queues_t *
uct_dcx_strided_queues(const uct_dcx_strided_t *op)
{
    return ucs_derived_of(op->ep->iface, uct_dcx_queues_t);
}


/* --- plain ---------------------------------------------------------------- */

static ucs_status_t uct_dcx_strided_plain(const uct_dcx_strided_t *op,
                                          const uct_dcx_sgl_t *layout)
{
    unsigned num = uct_dcx_sgl_num_pieces(layout);
    uct_dcx_mem_t memhs[UCT_DCX_STRIDED_MAX_PLAIN];
    uct_iov_t iov[UCT_DCX_STRIDED_MAX_PLAIN];
    uct_dcx_sgl_entry_t piece;
    unsigned i;

    for (i = 0; i < num; ++i) {
        piece    = uct_dcx_sgl_piece(layout, i);
        memhs[i] = (uct_dcx_mem_t){
            .lkey   = piece.lkey,
            .rkey   = op->is_rndv ? op->rndv.rkey : 0,
            .origin = &memhs[i],
        };
        iov[i] = (uct_iov_t){
            .buffer = (void *)(uintptr_t)piece.addr,
            .length = piece.bytes,
            .memh   = &memhs[i],
            .count  = 1,
        };
    }
    return op->post(op, iov, num, op->comp);
}


static ucs_status_t uct_dcx_strided_no_memory(const uct_dcx_strided_t *op)
{
    ucs_error("%s: out of memory", op->name);
    return UCS_ERR_NO_MEMORY;
}


/* --- copied --------------------------------------------------------------- */

static void uct_dcx_strided_copy_free(uct_dcx_strided_copy_t *copy)
{
    ucs_mpool_put(copy->desc);
    ucs_free(copy);
}


static void uct_dcx_strided_copy_done(uct_completion_t *self)
{
    uct_dcx_strided_copy_t *copy = ucs_derived_of(self, uct_dcx_strided_copy_t);
    uct_completion_t *comp       = copy->comp;
    ucs_status_t status          = self->status;

    if (copy->is_dest && (status == UCS_OK)) {
        uct_dcx_sgl_scatter(&copy->layout, uct_dcx_desc_payload(copy->desc));
    }

    uct_dcx_strided_copy_free(copy);
    if (comp != NULL) {
        uct_invoke_completion(comp, status);
    }
}


static uct_dcx_strided_copy_t *
uct_dcx_strided_copy_new(const uct_dcx_strided_t *op,
                         const uct_dcx_sgl_t *layout)
{
    size_t size = uct_dcx_sgl_size(op->is_dest ? layout->num : 0);
    uct_dcx_strided_copy_t *copy;

    copy = ucs_malloc(offsetof(uct_dcx_strided_copy_t, layout) + size,
                      "uct_dcx_strided_copy");
    if (copy == NULL) {
        return NULL;
    }

    copy->desc = ucs_mpool_get(&uct_dcx_strided_queues(op)->desc_mp);
    if (copy->desc == NULL) {
        ucs_free(copy);
        return NULL;
    }

    copy->super.func   = uct_dcx_strided_copy_done;
    copy->super.count  = 1;
    copy->super.status = UCS_OK;
    copy->comp         = op->comp;
    copy->is_dest      = op->is_dest;
    memcpy(&copy->layout, layout, size);
    return copy;
}


/* Posts the operation with a copy of the memory. The buffer serves as its own
 * memory handle, as both begin with a key. */
static ucs_status_t uct_dcx_strided_copied(const uct_dcx_strided_t *op,
                                           const uct_dcx_sgl_t *layout)
{
    uct_dcx_strided_copy_t *copy;
    ucs_status_t status;
    uct_iov_t iov;

    static_assert(offsetof(uct_dcx_desc_t, lkey) == 0, "uct_dcx_mem_lkey()");
    copy = uct_dcx_strided_copy_new(op, layout);
    if (copy == NULL) {
        return uct_dcx_strided_no_memory(op);
    }

    iov = (uct_iov_t){
        .buffer = uct_dcx_desc_payload(copy->desc),
        .length = layout->length,
        .memh   = copy->desc,
        .count  = 1,
    };
    if (!op->is_dest) {
        uct_dcx_sgl_gather(layout, iov.buffer);
    }

    status = op->post(op, &iov, 1, &copy->super);
    if (status != UCS_INPROGRESS) {
        uct_dcx_strided_copy_free(copy);
    }
    return status;
}


/* --- by key --------------------------------------------------------------- */

static void uct_dcx_strided_keyed_free(uct_dcx_strided_keyed_t *keyed)
{
    uct_dcx_keys_put(keyed->keys, keyed->key, keyed->is_held);
    ucs_free(keyed);
}


static void uct_dcx_strided_keyed_done(uct_completion_t *self)
{
    uct_dcx_strided_keyed_t *keyed = ucs_derived_of(self,
                                                    uct_dcx_strided_keyed_t);
    uct_completion_t *comp         = keyed->comp;
    ucs_status_t status            = self->status;

    uct_dcx_strided_keyed_free(keyed);
    if (comp != NULL) {
        uct_invoke_completion(comp, status);
    }
}


void uct_dcx_strided_canceled(uct_completion_t *comp)
{
    if ((comp != NULL) && (comp->func == uct_dcx_strided_keyed_done)) {
        uct_dcx_strided_keyed_free(
            ucs_derived_of(comp, uct_dcx_strided_keyed_t));
    }
}


uct_completion_t **uct_dcx_strided_user(uct_completion_t *comp)
{
    if (comp->func == uct_dcx_strided_copy_done) {
        return &ucs_derived_of(comp, uct_dcx_strided_copy_t)->comp;
    }
    return (comp->func == uct_dcx_strided_keyed_done) ?
               &ucs_derived_of(comp, uct_dcx_strided_keyed_t)->comp :
               NULL;
}


/* Posts the operation with a strided mkey, whose addresses begin at 0. */
static ucs_status_t uct_dcx_strided_post_keyed(const uct_dcx_strided_t *op,
                                               size_t length,
                                               uct_dcx_keys_t *keys,
                                               uct_dcx_key_t *key)
{
    uct_dcx_mem_t memh = {
        .lkey   = key->lkey,
        .rkey   = op->is_rndv ? uct_dcx_keys_give_rkey(keys, key) : 0,
        .origin = &memh,
    };
    const uct_iov_t iov = {.length = length, .memh = &memh, .count = 1};
    uct_dcx_strided_keyed_t *keyed;
    ucs_status_t status;

    keyed = ucs_malloc(sizeof(*keyed), "uct_dcx_strided_keyed");
    if (keyed == NULL) {
        uct_dcx_keys_put(keys, key, op->is_rndv);
        return uct_dcx_strided_no_memory(op);
    }

    keyed->super.func   = uct_dcx_strided_keyed_done;
    keyed->super.count  = 1;
    keyed->super.status = UCS_OK;
    keyed->comp         = op->comp;
    keyed->keys         = keys;
    keyed->key          = key;
    keyed->is_held      = op->is_rndv;

    status = op->post(op, &iov, 1, &keyed->super);
    if (status != UCS_INPROGRESS) {
        uct_dcx_strided_keyed_free(keyed);
        return status;
    }

    ucs_derived_of(op->ep, uct_dcx_ep_t)->flags &= ~UCT_DCX_EP_FLAG_LAYOUT;
    return UCS_INPROGRESS;
}


/* Has the caller retry: the layout is on its way, or waits for a key. */
static ucs_status_t uct_dcx_strided_wait(const uct_dcx_strided_t *op)
{
    uct_dcx_ep_t *ep = ucs_derived_of(op->ep, uct_dcx_ep_t);

    ep->flags |= UCT_DCX_EP_FLAG_LAYOUT;
    UCS_STATS_UPDATE_COUNTER(ep->super.stats, UCT_EP_STAT_NO_RES, 1);
    return UCS_ERR_NO_RESOURCE;
}


/* Posts the operation with a strided mkey. Returns UCS_ERR_UNSUPPORTED if it
 * has to do without one. */
static ucs_status_t uct_dcx_strided_keyed(const uct_dcx_strided_t *op,
                                          const uct_dcx_sgl_t *layout,
                                          size_t max_copy)
{
    uct_dcx_keys_t *keys = uct_dcx_queues_keys(uct_dcx_strided_queues(op));
    uct_dcx_key_t *key;
    ucs_status_t status;

    if (keys == NULL) {
        return UCS_ERR_UNSUPPORTED;
    }

    status = uct_dcx_keys_get(keys, layout, op->is_rndv, &key);
    switch (status) {
    case UCS_OK:
        return uct_dcx_strided_post_keyed(op, layout->length, keys, key);
    case UCS_ERR_NO_RESOURCE: /* other messages would overtake a message */
        return (op->is_rma || (layout->length > max_copy)) ?
                   uct_dcx_strided_wait(op) :
                   UCS_ERR_UNSUPPORTED;
    case UCS_ERR_BUSY: /* keys in use will be released */
        return (layout->length > max_copy) ? uct_dcx_strided_wait(op) :
                                             UCS_ERR_UNSUPPORTED;
    case UCS_ERR_EXCEEDS_LIMIT: /* keys in use may be held until the user
                                 * acts */
        return op->is_rndv ? status : UCS_ERR_UNSUPPORTED;
    case UCS_ERR_NO_MEMORY: /* the cause was logged */
    case UCS_ERR_IO_ERROR:
        return (layout->length > max_copy) ? status : UCS_ERR_UNSUPPORTED;
    default:
        return UCS_ERR_UNSUPPORTED;
    }
}


/* --- choosing a form ------------------------------------------------------ */

static ucs_status_t uct_dcx_strided_too_much(const uct_dcx_strided_t *op,
                                             const uct_dcx_sgl_t *layout,
                                             size_t max_copy)
{
    int has_keys = uct_dcx_queues_keys(uct_dcx_strided_queues(op)) != NULL;

    ucs_error("%s: %zu bytes in %zu pieces: %s; without an mkey for the "
              "layout, the maximum is %zu pieces or %zu bytes%s",
              op->name, (size_t)layout->length,
              (size_t)uct_dcx_sgl_num_pieces(layout),
              has_keys ? "no mkey is large enough, or peers hold all that the "
                         "device makes (UCX_DCX_UMR_MAX_ENTRIES, "
                         "UCX_DCX_UMR_SLOTS)" :
                         "the device makes no mkeys (UMR, DEVX)",
              op->max_plain, max_copy,
              ((max_copy == 0) && !op->is_rndv) ?
                  ", as memory of a GPU or a layout is not copied" :
                  "");
    return UCS_ERR_UNSUPPORTED;
}


/* Returns 1 if the operation can be posted now, so that a copy or an mkey is
 * worth preparing. Returns 0 for a failed endpoint, too. A blocked endpoint can
 * post puts and gets, which need no credits. */
static int uct_dcx_strided_can_post(const uct_dcx_strided_t *op)
{
    uct_dcx_ep_t *ep       = ucs_derived_of(op->ep, uct_dcx_ep_t);
    uct_dcx_dci_set_t *set = uct_dcx_ep_dci_set(ep);

    if ((ep->state == UCT_DCX_EP_FAILED) || uct_dcx_tx_is_lost(set, ep)) {
        return 0;
    }
    return (op->is_rma && (ep->state == UCT_DCX_EP_BLOCKED)) ||
           uct_dcx_tx_can_send(set, ep);
}


/* Memory of a layout or of a GPU is not copied, as the processor cannot read
 * it, and the nesting of mkeys is limited. */
static UCS_F_ALWAYS_INLINE uct_dcx_sgl_limits_t uct_dcx_strided_limits(
    const uct_dcx_strided_t *op, const uct_dcx_iov_memory_t *memory)
{
    const uct_dcx_queues_t *queues = uct_dcx_strided_queues(op);
    const uct_dcx_limits_t *limits = &queues->limits;
    unsigned max_depth             = queues->port.dev->umr.max_depth;
    int is_copied = !op->is_rndv && (memory->depth == 0) && !memory->is_device;

    return (uct_dcx_sgl_limits_t){
        .max_plain  = ucs_min(ucs_min(op->max_plain, limits->strided.max_plain),
                              UCT_DCX_STRIDED_MAX_PLAIN),
        .max_copy   = is_copied ? limits->rma_bcopy : 0,
        .copy       = limits->strided.copy,
        .copy_piece = limits->strided.copy_piece,
        .max_klm    = (memory->depth < max_depth) ? limits->strided.max_klm : 0,
    };
}


static int uct_dcx_strided_needs_key(void *arg, const uct_dcx_sgl_t *layout,
                                     const uct_dcx_iov_memory_t *memory)
{
    const uct_dcx_strided_t *op       = arg;
    const uct_dcx_sgl_limits_t limits = uct_dcx_strided_limits(op, memory);

    return (layout->num > 0) && (layout->length <= op->max_length) &&
           (uct_dcx_sgl_pick(layout, &limits) == UCT_DCX_SGL_FORM_KEY);
}


static ucs_status_t uct_dcx_strided_post(const uct_dcx_strided_t *op,
                                         const uct_dcx_sgl_t *layout,
                                         const uct_dcx_iov_memory_t *memory)
{
    const uct_dcx_sgl_limits_t limits = uct_dcx_strided_limits(op, memory);
    uct_dcx_sgl_form_t form           = uct_dcx_sgl_pick(layout, &limits);
    ucs_status_t status;

    if (form == UCT_DCX_SGL_FORM_PLAIN) {
        return uct_dcx_strided_plain(op, layout);
    }

    if (!uct_dcx_strided_can_post(op)) {
        return uct_dcx_ep_no_resource(ucs_derived_of(op->ep, uct_dcx_ep_t));
    }

    if (form == UCT_DCX_SGL_FORM_KEY) {
        status = uct_dcx_strided_keyed(op, layout, limits.max_copy);
        if (status != UCS_ERR_UNSUPPORTED) {
            return status;
        }
    }
    return (layout->length <= limits.max_copy) ?
               uct_dcx_strided_copied(op, layout) :
               uct_dcx_strided_too_much(op, layout, limits.max_copy);
}


static ucs_status_t uct_dcx_strided_start(void *arg,
                                          const uct_dcx_sgl_t *layout,
                                          const uct_dcx_iov_memory_t *memory)
{
    const uct_dcx_strided_t *op = arg;

    if (layout->length > op->max_length) {
        ucs_error("%s: %zu bytes exceed the maximum of %zu", op->name,
                  (size_t)layout->length, op->max_length);
        return UCS_ERR_INVALID_PARAM;
    }

    return (layout->num > 0) ? uct_dcx_strided_post(op, layout, memory) :
                               op->post(op, NULL, 0, op->comp);
}


static ucs_status_t uct_dcx_strided_run(const uct_dcx_strided_t *op,
                                        const uct_iov_t *iov, size_t iovcnt)
{
    const uct_dcx_iov_user_t user = {
        .name      = op->name,
        .access    = op->is_dest ? IBV_ACCESS_LOCAL_WRITE :
                     op->is_rndv ? IBV_ACCESS_REMOTE_READ :
                                   0,
        .has_nests = uct_dcx_strided_queues(op)->port.dev->umr.has_nests,
        .func      = uct_dcx_strided_start,
        .needs_key = uct_dcx_strided_needs_key,
        .arg       = (void *)op,
    };

    return uct_dcx_iov_use(iov, iovcnt, &user);
}


/* --- operations ----------------------------------------------------------- */

static ucs_status_t uct_dcx_strided_post_am(const uct_dcx_strided_t *op,
                                            const uct_iov_t *iov, size_t iovcnt,
                                            uct_completion_t *comp)
{
    return uct_ep_am_zcopy(op->ep, op->am.id, op->am.header,
                           op->am.header_length, iov, iovcnt, op->flags, comp);
}


ucs_status_t uct_dcx_strided_am_zcopy(uct_ep_h ep, uint8_t id,
                                      const void *header,
                                      unsigned header_length,
                                      const uct_iov_t *iov, size_t iovcnt,
                                      unsigned flags, uct_completion_t *comp)
{
    uct_dcx_limits_t *limits =
        &ucs_derived_of(ep->iface, uct_dcx_queues_t)->limits;
    const uct_dcx_strided_t op = {
        .name       = "am_zcopy",
        .ep         = ep,
        .comp       = comp,
        .post       = uct_dcx_strided_post_am,
        .max_plain  = limits->am_iov,
        .max_length = limits->am_zcopy - header_length,
        .am =
            {
                .id            = id,
                .header        = header,
                .header_length = header_length,
            },
        .flags = flags,
    };

    UCT_CHECK_LENGTH(header_length, 0, limits->am_hdr, "am_zcopy header");
    return uct_dcx_strided_run(&op, iov, iovcnt);
}


static ucs_status_t uct_dcx_strided_post_put(const uct_dcx_strided_t *op,
                                             const uct_iov_t *iov,
                                             size_t iovcnt,
                                             uct_completion_t *comp)
{
    return uct_ep_put_zcopy(op->ep, iov, iovcnt, op->rma.remote_addr,
                            op->rma.rkey, comp);
}


ucs_status_t uct_dcx_strided_put_zcopy(uct_ep_h ep, const uct_iov_t *iov,
                                       size_t iovcnt, uint64_t remote_addr,
                                       uct_rkey_t rkey, uct_completion_t *comp)
{
    uct_dcx_limits_t *limits =
        &ucs_derived_of(ep->iface, uct_dcx_queues_t)->limits;
    const uct_dcx_strided_t op = {
        .name       = "put_zcopy",
        .ep         = ep,
        .comp       = comp,
        .post       = uct_dcx_strided_post_put,
        .max_plain  = limits->rma_iov,
        .max_length = limits->rma_zcopy,
        .is_rma     = 1,
        .rma        = {.remote_addr = remote_addr, .rkey = rkey},
    };

    return uct_dcx_strided_run(&op, iov, iovcnt);
}


static ucs_status_t uct_dcx_strided_post_get(const uct_dcx_strided_t *op,
                                             const uct_iov_t *iov,
                                             size_t iovcnt,
                                             uct_completion_t *comp)
{
    return uct_ep_get_zcopy(op->ep, iov, iovcnt, op->rma.remote_addr,
                            op->rma.rkey, comp);
}


ucs_status_t uct_dcx_strided_get_zcopy(uct_ep_h ep, const uct_iov_t *iov,
                                       size_t iovcnt, uint64_t remote_addr,
                                       uct_rkey_t rkey, uct_completion_t *comp)
{
    uct_dcx_limits_t *limits =
        &ucs_derived_of(ep->iface, uct_dcx_queues_t)->limits;
    const uct_dcx_strided_t op = {
        .name       = "get_zcopy",
        .ep         = ep,
        .comp       = comp,
        .post       = uct_dcx_strided_post_get,
        .max_plain  = limits->get_iov,
        .max_length = limits->rma_zcopy,
        .is_dest    = 1,
        .is_rma     = 1,
        .rma        = {.remote_addr = remote_addr, .rkey = rkey},
    };

    return uct_dcx_strided_run(&op, iov, iovcnt);
}


static ucs_status_t uct_dcx_strided_post_tag(const uct_dcx_strided_t *op,
                                             const uct_iov_t *iov,
                                             size_t iovcnt,
                                             uct_completion_t *comp)
{
    return uct_ep_tag_eager_zcopy(op->ep, op->tag.tag, op->tag.imm, iov, iovcnt,
                                  op->flags, comp);
}


ucs_status_t uct_dcx_strided_tag_eager_zcopy(uct_ep_h ep, uct_tag_t tag,
                                             uint64_t imm, const uct_iov_t *iov,
                                             size_t iovcnt, unsigned flags,
                                             uct_completion_t *comp)
{
    uct_dcx_limits_t *limits =
        &ucs_derived_of(ep->iface, uct_dcx_queues_t)->limits;
    const uct_dcx_strided_t op = {
        .name       = "tag_eager_zcopy",
        .ep         = ep,
        .comp       = comp,
        .post       = uct_dcx_strided_post_tag,
        .max_plain  = limits->tag.iov,
        .max_length = limits->tag.bcopy,
        .tag        = {.tag = tag, .imm = imm},
        .flags      = flags,
    };

    return uct_dcx_strided_run(&op, iov, iovcnt);
}


static ucs_status_t uct_dcx_strided_post_rndv(const uct_dcx_strided_t *op,
                                              const uct_iov_t *iov,
                                              size_t iovcnt,
                                              uct_completion_t *comp)
{
    ucs_status_ptr_t request;

    request = uct_ep_tag_rndv_zcopy(op->ep, op->rndv.tag, op->rndv.header,
                                    op->rndv.header_length, iov, iovcnt,
                                    op->flags, comp);
    if (UCS_PTR_IS_ERR(request)) {
        return UCS_PTR_STATUS(request);
    }

    *op->rndv.request = request;
    return UCS_INPROGRESS;
}


/* Marks the rkeys of all entries as given to a peer. Returns the rkey of the
 * first entry that is not empty. If the memory is one piece, all entries have
 * the same rkey. */
static uint32_t uct_dcx_strided_give_rkeys(const uct_iov_t *iov, size_t iovcnt)
{
    uint32_t first = 0;
    uint32_t rkey;

    for (; iovcnt > 0; ++iov, --iovcnt) {
        if (!uct_dcx_iov_is_empty(iov)) {
            rkey  = uct_dcx_mem_give_rkey(iov->memh);
            first = (first == 0) ? rkey : first;
        }
    }
    return first;
}


/* Sends the request of a rendezvous. The peer's device fetches the data by one
 * key, so the memory has to be a single piece, or a layout. It is never copied:
 * peers get no keys of buffers. */
ucs_status_ptr_t uct_dcx_strided_tag_rndv_zcopy(
    uct_ep_h ep, uct_tag_t tag, const void *header, unsigned header_length,
    const uct_iov_t *iov, size_t iovcnt, unsigned flags, uct_completion_t *comp)
{
    uct_dcx_limits_t *limits =
        &ucs_derived_of(ep->iface, uct_dcx_queues_t)->limits;
    void *request              = NULL;
    const uct_dcx_strided_t op = {
        .name       = "tag_rndv_zcopy",
        .ep         = ep,
        .comp       = comp,
        .post       = uct_dcx_strided_post_rndv,
        .max_plain  = 1,
        .max_length = limits->tag.rndv_zcopy,
        .is_rndv    = 1,
        .rndv =
            {
                .tag           = tag,
                .header        = header,
                .header_length = header_length,
                .rkey          = uct_dcx_strided_give_rkeys(iov, iovcnt),
                .request       = &request,
            },
        .flags = flags,
    };
    ucs_status_t status;

    status = uct_dcx_strided_run(&op, iov, iovcnt);
    return (status == UCS_INPROGRESS) ? request : UCS_STATUS_PTR(status);
}
