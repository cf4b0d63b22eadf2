/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Probes of tag matching by the device: receives into memory and into keys with
 * a layout.
 */
#include "perf_say.h"
#include "selftest.h"

#include <string.h>

enum {
    SELFTEST_APPENDS   = 100000,
    SELFTEST_BATCH     = 50,
    SELFTEST_TAG_ROWS  = 400,
    SELFTEST_TAG_BLOCK = 100,
    SELFTEST_TAG_STEP  = 160
};

/* A receive; the context is its first member */
struct selftest_recv {
    uct_tag_context_t     ctx;
    struct selftest_loop *loop;
    int                   has_ended;
    size_t                length;
    ucs_status_t          status;
    uint8_t               data[256]; /* that came within the completion */
    size_t                num_data;
};

/* --- callbacks ------------------------------------------------------------ */
static ucs_status_t
selftest_unexpected(void *arg, void *data, size_t length, unsigned flags,
                    uct_tag_t tag, uint64_t imm, void **context)
{
    (void)arg, (void)data, (void)length, (void)flags, (void)imm, (void)context;
    perf_fail("a message of tag %lu did not find the buffer that was posted "
              "for it", (unsigned long)tag);
}

static ucs_status_t
selftest_unexpected_rndv(void *arg, unsigned flags, uint64_t tag,
                         const void *header, unsigned header_length,
                         uint64_t remote, size_t length, const void *rkey)
{
    (void)arg, (void)flags, (void)header, (void)header_length, (void)remote;
    (void)length, (void)rkey;
    perf_fail("a rendezvous of tag %lu did not find the buffer that was posted "
              "for it", (unsigned long)tag);
}

static void selftest_consumed(uct_tag_context_t *ctx)
{
    (void)ctx;
}

static void selftest_completed(uct_tag_context_t *ctx, uct_tag_t tag,
                               uint64_t imm, size_t length, void *data,
                               ucs_status_t status)
{
    struct selftest_recv *recv = (struct selftest_recv*)ctx;

    (void)tag, (void)imm;
    recv->has_ended = 1;
    recv->length    = length;
    recv->status    = status;
    recv->num_data  = (data == NULL) ? 0 : length;
    if (recv->num_data > sizeof(recv->data)) {
        perf_fail("a completion has %zu bytes in it", length);
    }
    memcpy(recv->data, (data == NULL) ? recv->data : data, recv->num_data);
}

static void selftest_by_software(uct_tag_context_t *ctx, uct_tag_t tag,
                                 const void *header, unsigned header_length,
                                 ucs_status_t status, unsigned flags)
{
    (void)ctx, (void)tag, (void)header, (void)header_length, (void)flags;
    perf_fail("the device left a rendezvous to software: %s",
              ucs_status_string(status));
}

static void selftest_tags_open(struct selftest_loop *loop)
{
    const uct_iface_params_t more = {
        .field_mask = UCT_IFACE_PARAM_FIELD_HW_TM_EAGER_CB |
                      UCT_IFACE_PARAM_FIELD_HW_TM_RNDV_CB,
        .eager_cb   = selftest_unexpected,
        .rndv_cb    = selftest_unexpected_rndv
    };

    selftest_loop_open(loop, &more);
    if (!(loop->uct.attr.cap.flags & UCT_IFACE_FLAG_TAG_EAGER_BCOPY)) {
        selftest_refused("the device has no tag matching that dcx can use; "
                         "dcx_info says why");
    }
}

/* --- receives, and what is sent to them ----------------------------------- */
static void selftest_recv_post(struct selftest_loop *loop,
                               struct selftest_recv *recv, uct_tag_t tag,
                               const uct_iov_t *iov)
{
    ucs_status_t status;

    *recv = (struct selftest_recv){
        .ctx  = {.tag_consumed_cb = selftest_consumed,
                 .completed_cb    = selftest_completed,
                 .rndv_cb         = selftest_by_software},
        .loop = loop
    };
    while ((status = uct_iface_tag_recv_zcopy(loop->uct.iface, tag, ~0ull, iov,
                                              1, &recv->ctx)) ==
           UCS_ERR_NO_RESOURCE) {
        perf_uct_progress(&loop->uct);
    }
    perf_uct_check(status, "posting a tagged buffer");
}

static void selftest_recv_wait(struct selftest_recv *recv, size_t length)
{
    while (!recv->has_ended && !recv->loop->uct.has_failed) {
        perf_uct_progress(&recv->loop->uct);
    }
    if (!recv->has_ended) {
        perf_fail("the sender of a tagged message has failed");
    }
    perf_uct_check(recv->status, "a tagged message");
    if (recv->length != length) {
        perf_fail("a tagged message has %zu bytes, not %zu", recv->length,
                  length);
    }
}

struct selftest_packed {
    const uint8_t *bytes;
    size_t         length;
};

static size_t selftest_pack(void *to, void *arg)
{
    const struct selftest_packed *packed = arg;

    memcpy(to, packed->bytes, packed->length);
    return packed->length;
}

static void selftest_eager(struct selftest_loop *loop, uct_tag_t tag,
                           const uint8_t *bytes, size_t length)
{
    struct selftest_packed packed = {bytes, length};
    ssize_t size;

    while ((size = uct_ep_tag_eager_bcopy(loop->uct.ep, tag, 0, selftest_pack,
                                          &packed, 0)) == UCS_ERR_NO_RESOURCE) {
        perf_uct_progress(&loop->uct);
    }
    if (size < 0) {
        perf_uct_check((ucs_status_t)size, "a tagged message");
    }
}

static void selftest_rndv_end(uct_completion_t *comp)
{
    (void)comp;
}

/* Returns when the device has fetched the data, and its sender knows. */
static void selftest_rndv(struct selftest_loop *loop, uct_tag_t tag,
                          struct selftest_recv *recv, size_t length)
{
    uct_completion_t comp = {.func = selftest_rndv_end, .count = 1};
    uct_iov_t iov = {
        .buffer = loop->near.bytes,
        .length = length,
        .memh   = loop->near.memh,
        .count  = 1
    };
    ucs_status_ptr_t op;

    while (UCS_PTR_STATUS(op = uct_ep_tag_rndv_zcopy(loop->uct.ep, tag, "", 0,
                                                     &iov, 1, 0, &comp)) ==
           UCS_ERR_NO_RESOURCE) {
        perf_uct_progress(&loop->uct);
    }
    if (UCS_PTR_IS_ERR(op)) {
        perf_uct_check(UCS_PTR_STATUS(op), "a rendezvous");
    }
    selftest_recv_wait(recv, length);
    while ((comp.count > 0) && !loop->uct.has_failed) {
        perf_uct_progress(&loop->uct);
    }
    perf_uct_check(comp.status, "a rendezvous");
}

static uct_iov_t selftest_into(const struct selftest_mem *mem,
                                     size_t length)
{
    return (uct_iov_t){.buffer = mem->bytes, .length = length,
                       .memh = mem->memh, .count = 1};
}

/* --- probes --------------------------------------------------------------- */
static const size_t selftest_eager_sizes[] = {0, 1, 32, 33, 64, 65, 1024, 8000};

void selftest_tm_eager(struct selftest_loop *loop)
{
    struct selftest_recv recv;
    uct_iov_t iov;

    selftest_tags_open(loop);
    iov = selftest_into(&loop->far, 65536);
    for (unsigned i = 0; i < sizeof(selftest_eager_sizes) / sizeof(size_t);
         i++) {
        size_t length = selftest_eager_sizes[i];

        if (length > loop->uct.attr.cap.tag.eager.max_bcopy) {
            break;
        }
        selftest_recv_post(loop, &recv, i, &iov);
        selftest_fill(loop->near.bytes, length, i);
        memset(loop->far.bytes, 0, length);
        selftest_eager(loop, i, loop->near.bytes, length);
        selftest_recv_wait(&recv, length);
        selftest_compare("a tagged message", (recv.num_data > 0) ? recv.data :
                         loop->far.bytes, loop->near.bytes, length);
    }
}

void selftest_tm_rndv(struct selftest_loop *loop)
{
    static const size_t sizes[] = {1, 4096, 65536, SELFTEST_SIZE};
    struct selftest_recv recv;
    uct_iov_t iov;

    selftest_tags_open(loop);
    iov = selftest_into(&loop->far, SELFTEST_SIZE);
    for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        selftest_recv_post(loop, &recv, i, &iov);
        selftest_fill(loop->near.bytes, sizes[i], i);
        memset(loop->far.bytes, 0, sizes[i]);
        selftest_rndv(loop, i, &recv, sizes[i]);
        selftest_compare("a rendezvous", loop->far.bytes, loop->near.bytes,
                         sizes[i]);
    }
}

/* Blocks of far, first to last or the other way round, as one run of blocks or
 * as a list */
static void selftest_tag_layout(struct selftest_loop *loop,
                                struct selftest_mem *layout,
                                struct selftest_shape *shape, int is_list)
{
    uct_dcx_block_t blocks[SELFTEST_TAG_ROWS];
    uct_dcx_layout_params_t params = {
        .access = UCT_MD_MEM_ACCESS_RMA,
        .repeat = is_list ? 1 : SELFTEST_TAG_ROWS,
        .num    = is_list ? SELFTEST_TAG_ROWS : 1,
        .blocks = blocks
    };
    ucs_status_t status;

    memset(shape, 0, sizeof(*shape));
    memset(layout, 0, sizeof(*layout));
    for (unsigned i = 0; i < SELFTEST_TAG_ROWS; i++) {
        size_t offset = SELFTEST_TAG_STEP * (is_list ?
                                             SELFTEST_TAG_ROWS - i : i);

        blocks[i] = (uct_dcx_block_t){
            .address = (uintptr_t)loop->far.bytes + offset,
            .length  = SELFTEST_TAG_BLOCK,
            .skip    = SELFTEST_TAG_STEP - SELFTEST_TAG_BLOCK,
            .memh    = loop->far.memh
        };
        selftest_shape_add(shape, offset, SELFTEST_TAG_BLOCK);
    }
    selftest_need(uct_dcx_layout_create(loop->uct.iface, SELFTEST_TAG_ROWS,
                                        &layout->memh), "a key for a layout");
    perf_uct_check(uct_dcx_layout_set(layout->memh, &params), "a layout");
    while ((status = uct_dcx_layout_test(layout->memh)) == UCS_INPROGRESS) {
    }
    perf_uct_check(status, "a layout");
}

/* The first @length bytes of the layout are those of near, the rest of far is
 * what it was. */
static void selftest_tag_expect(struct selftest_loop *loop,
                                const struct selftest_shape *shape,
                                const struct selftest_recv *recv, size_t length)
{
    static uint8_t data[SELFTEST_SIZE];

    selftest_fill(loop->image, SELFTEST_SIZE, 1);
    selftest_shape_gather(shape, loop->image, data);
    memcpy(data, loop->near.bytes, length);
    if (recv->num_data > 0) { /* it is the receiver's to place */
        selftest_compare("a tagged message", recv->data, loop->near.bytes,
                         length);
        return;
    }
    selftest_shape_scatter(shape, loop->image, data);
    selftest_compare("a receive into a layout", loop->far.bytes, loop->image,
                     SELFTEST_SIZE);
}

static void selftest_tag_into(struct selftest_loop *loop, int is_list)
{
    static struct selftest_shape shape;
    struct selftest_mem layout;
    struct selftest_recv recv;
    uct_iov_t iov;

    selftest_tag_layout(loop, &layout, &shape, is_list);
    iov = selftest_into(&layout, shape.size);
    for (unsigned i = 0; i < 4; i++) {
        size_t length = (i < 2) ? 1000 + i * 3000 : shape.size - 5 * (i - 2);

        selftest_fill(loop->far.bytes, SELFTEST_SIZE, 1);
        selftest_fill(loop->near.bytes, length, 7 + i);
        selftest_recv_post(loop, &recv, i, &iov);
        if (i < 2) {
            selftest_eager(loop, i, loop->near.bytes, length);
            selftest_recv_wait(&recv, length);
        } else {
            selftest_rndv(loop, i, &recv, length);
        }
        selftest_tag_expect(loop, &shape, &recv, length);
    }
}

void selftest_tm_keys(struct selftest_loop *loop)
{
    selftest_tags_open(loop);
    selftest_tag_into(loop, 1);
    selftest_tag_into(loop, 0);
}

void selftest_tm_appends(struct selftest_loop *loop)
{
    static struct selftest_recv recvs[SELFTEST_BATCH];
    uct_iov_t iov;

    selftest_tags_open(loop);
    for (unsigned i = 0; i < SELFTEST_APPENDS; i += SELFTEST_BATCH) {
        for (unsigned j = 0; j < SELFTEST_BATCH; j++) {
            iov        = selftest_into(&loop->far, 16384);
            iov.buffer = loop->far.bytes + j * 16384;
            selftest_recv_post(loop, &recvs[j], i + j, &iov);
        }
        for (unsigned j = 0; j < SELFTEST_BATCH; j++) {
            uint64_t value = i + j;

            selftest_eager(loop, i + j, (uint8_t*)&value, sizeof(value));
        }
        for (unsigned j = 0; j < SELFTEST_BATCH; j++) {
            uint64_t value = i + j;

            selftest_recv_wait(&recvs[j], sizeof(value));
            selftest_compare("a tagged message", (recvs[j].num_data > 0) ?
                             recvs[j].data : loop->far.bytes + j * 16384,
                             (uint8_t*)&value, sizeof(value));
        }
    }
}
