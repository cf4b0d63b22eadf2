/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Probes of tag matching by the device: receives into memory, and into keys
 * with a layout.
 */
#include "perf_say.h"
#include "selftest.h"
#include "selftest_peer.h"

#include <string.h>

enum {
    SELFTEST_APPENDS  = 100000,
    SELFTEST_BATCH    = 50,
    SELFTEST_TAG_ROWS = 1024, /* at most */
    SELFTEST_TAG_SPAN = 400000
};

/* A receive; the context must be its first member */
struct selftest_recv {
    uct_tag_context_t ctx;
    struct selftest_loop *loop;
    int has_ended;
    size_t length;
    ucs_status_t status;
    uint8_t data[256]; /* message that came in the completion */
    size_t num_data;
};

/* --- callbacks ------------------------------------------------------------ */
static ucs_status_t selftest_unexpected(void *arg, void *data, size_t length,
                                        unsigned flags, uct_tag_t tag,
                                        uint64_t imm, void **context)
{
    (void)arg, (void)data, (void)length, (void)flags, (void)imm, (void)context;
    perf_fail("a message with tag %lu did not match the receive posted for it",
              (unsigned long)tag);
}

static ucs_status_t selftest_unexpected_rndv(void *arg, unsigned flags,
                                             uint64_t tag, const void *header,
                                             unsigned header_length,
                                             uint64_t remote, size_t length,
                                             const void *rkey)
{
    (void)arg, (void)flags, (void)header, (void)header_length, (void)remote;
    (void)length, (void)rkey;
    perf_fail("a rendezvous with tag %lu did not match the receive posted for "
              "it",
              (unsigned long)tag);
}

static void selftest_consumed(uct_tag_context_t *ctx)
{
    (void)ctx;
}

static void selftest_completed(uct_tag_context_t *ctx, uct_tag_t tag,
                               uint64_t imm, size_t length, void *data,
                               ucs_status_t status)
{
    struct selftest_recv *recv = (struct selftest_recv *)ctx;

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
    perf_fail("the device did not fetch a rendezvous: %s",
              ucs_status_string(status));
}

static void selftest_tags_open(struct selftest_loop *loop)
{
    const uct_iface_params_t more = {
        .field_mask = UCT_IFACE_PARAM_FIELD_HW_TM_EAGER_CB |
                      UCT_IFACE_PARAM_FIELD_HW_TM_RNDV_CB,
        .eager_cb = selftest_unexpected,
        .rndv_cb  = selftest_unexpected_rndv,
    };

    selftest_loop_start(loop, &more);
    if (!(loop->uct.attr.cap.flags & UCT_IFACE_FLAG_TAG_EAGER_BCOPY)) {
        selftest_refused("the device has no tag matching that dcx supports; "
                         "dcx_info says why");
    }
    selftest_loop_meet(loop);
}

/* --- receives and messages ------------------------------------------------ */
static void selftest_recv_append(struct selftest_loop *loop,
                                 struct selftest_recv *recv, uct_tag_t tag,
                                 const uct_iov_t *iov)
{
    ucs_status_t status;

    *recv = (struct selftest_recv){
        .ctx  = {.tag_consumed_cb = selftest_consumed,
                 .completed_cb    = selftest_completed,
                 .rndv_cb         = selftest_by_software},
        .loop = loop,
    };
    while ((status = uct_iface_tag_recv_zcopy(loop->uct.iface, tag, ~0ull, iov,
                                              1, &recv->ctx)) ==
           UCS_ERR_NO_RESOURCE) {
        perf_uct_progress(&loop->uct);
    }
    perf_uct_check(status, "posting a tagged receive");
}

/* Waits until the device has all appended buffers. Otherwise a message could
 * come first, into a receive buffer, and software would match it: correct for a
 * program, but no proof here. The device executes operations on the list in
 * order, and the removal of an entry has a completion. */
static void selftest_recv_sync(struct selftest_loop *loop)
{
    const uct_iov_t iov = selftest_iov(&loop->near, SELFTEST_SIZE);
    struct selftest_recv recv;

    selftest_recv_append(loop, &recv, ~0ull, &iov);
    perf_uct_check(uct_iface_tag_recv_cancel(loop->uct.iface, &recv.ctx, 0),
                   "canceling a tagged buffer");
    while (!recv.has_ended) {
        perf_uct_progress(&loop->uct);
    }
    if (recv.status != UCS_ERR_CANCELED) {
        perf_uct_check(recv.status, "canceling a tagged buffer");
        perf_fail("a canceled receive got a message");
    }
}

/* Posts a receive into the first @length bytes of far, at the target. */
static void selftest_recv_far(struct selftest_loop *loop,
                              struct selftest_recv *recv, uct_tag_t tag,
                              size_t length)
{
    struct selftest_call call = {.op = SELFTEST_RECV, .a = tag, .b = length};
    uct_iov_t iov;

    if (loop->is_remote) {
        *recv = (struct selftest_recv){.loop = loop};
        selftest_call(loop, &call, NULL, NULL);
        return;
    }
    memset(loop->far.bytes, 0, length); /* clear the previous message */
    iov = selftest_iov(&loop->far, length);
    selftest_recv_append(loop, recv, tag, &iov);
    selftest_recv_sync(loop);
}

static struct selftest_recv selftest_served; /* of the target, the last one */

void selftest_serve_recv(struct selftest_loop *loop, struct selftest_call *call,
                         uint8_t *data)
{
    (void)data;
    selftest_recv_far(loop, &selftest_served, call->a,
                      ucs_min(call->b, SELFTEST_SIZE));
}

void selftest_serve_recv_test(struct selftest_loop *loop,
                              struct selftest_call *call, uint8_t *data)
{
    (void)loop;
    call->a      = selftest_served.has_ended;
    call->b      = selftest_served.length;
    call->status = selftest_served.status;
    call->length = selftest_served.num_data;
    memcpy(data, selftest_served.data, selftest_served.num_data);
}

static bool selftest_recv_has_ended(struct selftest_recv *recv)
{
    struct selftest_call call = {.op = SELFTEST_RECV_TEST};

    perf_uct_progress(&recv->loop->uct);
    if (recv->loop->is_remote) {
        selftest_call(recv->loop, &call, NULL, recv->loop->message);
        recv->has_ended = call.a;
        recv->length    = call.b;
        recv->status    = call.status;
        recv->num_data  = ucs_min(call.length, sizeof(recv->data));
        memcpy(recv->data, recv->loop->message, recv->num_data);
    }
    return recv->has_ended;
}

static void selftest_recv_wait(struct selftest_recv *recv, size_t length)
{
    while (!recv->has_ended && !recv->loop->uct.has_failed) {
        selftest_recv_has_ended(recv);
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

/* Compares the bytes received in far with near. */
static void selftest_recv_compare(struct selftest_loop *loop,
                                  const struct selftest_recv *recv,
                                  size_t length)
{
    selftest_pull(loop, &loop->far, 0, length);
    selftest_compare("a tagged message",
                     (recv->num_data > 0) ? recv->data : loop->far.bytes,
                     loop->near.bytes, length);
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

static void selftest_rndv_post(struct selftest_loop *loop, uct_tag_t tag,
                               uct_completion_t *comp, size_t length)
{
    uct_iov_t iov = selftest_iov(&loop->near, length);
    ucs_status_ptr_t op;

    *comp = (uct_completion_t){.func = selftest_rndv_end, .count = 1};
    while (UCS_PTR_STATUS(op = uct_ep_tag_rndv_zcopy(loop->uct.ep, tag, "", 0,
                                                     &iov, 1, 0, comp)) ==
           UCS_ERR_NO_RESOURCE) {
        perf_uct_progress(&loop->uct);
    }
    if (UCS_PTR_IS_ERR(op)) {
        perf_uct_check(UCS_PTR_STATUS(op), "a rendezvous");
    }
}

/* Waits until the device has fetched the data, and the sender knows it. */
static void selftest_rndv(struct selftest_loop *loop, uct_tag_t tag,
                          struct selftest_recv *recv, size_t length)
{
    uct_completion_t comp;

    selftest_rndv_post(loop, tag, &comp, length);
    selftest_recv_wait(recv, length);
    while ((comp.count > 0) && !loop->uct.has_failed) {
        perf_uct_progress(&loop->uct);
    }
    perf_uct_check(comp.status, "a rendezvous");
}

/* --- probes --------------------------------------------------------------- */
static const size_t selftest_eager_sizes[] = {0, 1, 32, 33, 64, 65, 1024, 8000};

void selftest_tm_eager(struct selftest_loop *loop)
{
    struct selftest_recv recv;

    selftest_tags_open(loop);
    for (unsigned i = 0; i < sizeof(selftest_eager_sizes) / sizeof(size_t);
         i++) {
        size_t length = selftest_eager_sizes[i];

        if (length > loop->uct.attr.cap.tag.eager.max_bcopy) {
            break;
        }
        selftest_recv_far(loop, &recv, i, 65536);
        selftest_fill(loop->near.bytes, length, i);
        selftest_eager(loop, i, loop->near.bytes, length);
        selftest_recv_wait(&recv, length);
        selftest_recv_compare(loop, &recv, length);
    }
}

void selftest_tm_rndv(struct selftest_loop *loop)
{
    static const size_t sizes[] = {1, 4096, 65536, SELFTEST_SIZE};
    struct selftest_recv recv;

    selftest_tags_open(loop);
    for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        selftest_recv_far(loop, &recv, i, SELFTEST_SIZE);
        selftest_fill(loop->near.bytes, sizes[i], i);
        selftest_rndv(loop, i, &recv, sizes[i]);
        selftest_recv_compare(loop, &recv, sizes[i]);
    }
}

/* Tests a rendezvous between targets of two processes whose keys differ. Both
 * outcomes are results: on success, the device reads by the key of the request;
 * on an error, by that of the list. */
void selftest_tm_own_keys(struct selftest_loop *loop)
{
    const size_t length = 65536;
    const char *key     = (loop->host != NULL) ? "wire_tm_key" : "tm_key";
    uct_completion_t comp;
    struct selftest_recv recv;

    loop->forks = true;
    selftest_tags_open(loop);
    selftest_recv_far(loop, &recv, 1, length);
    selftest_fill(loop->near.bytes, length, 1);
    selftest_rndv_post(loop, 1, &comp, length);
    while (!loop->uct.has_failed && !selftest_recv_has_ended(&recv)) {
    }
    if (loop->uct.has_failed || (recv.status != UCS_OK)) {
        selftest_value(key, "common");
        return;
    }
    selftest_recv_compare(loop, &recv, length);
    selftest_value(key, "own");
}

/* Makes a layout of @num blocks of far: last to first as a list, or first to
 * last as one run. */
static void selftest_tag_layout(struct selftest_loop *loop,
                                struct selftest_mem *layout,
                                struct selftest_shape *shape, unsigned num,
                                bool is_list)
{
    const size_t step = (SELFTEST_TAG_SPAN / num) & ~15ul;
    uct_dcx_block_t blocks[SELFTEST_TAG_ROWS];
    uct_dcx_layout_params_t params = {
        .access = UCT_MD_MEM_ACCESS_RMA,
        .repeat = is_list ? 1 : num,
        .num    = is_list ? num : 1,
        .blocks = blocks,
    };
    ucs_status_t status;

    memset(shape, 0, sizeof(*shape));
    memset(layout, 0, sizeof(*layout));
    for (unsigned i = 0; i < num; i++) {
        size_t offset = step * (is_list ? num - i : i);

        blocks[i] = (uct_dcx_block_t){
            .address = loop->far.address + offset,
            .length  = step - 60,
            .skip    = 60,
            .memh    = loop->far.memh,
        };
        selftest_shape_add(shape, offset, step - 60);
    }
    selftest_need(uct_dcx_layout_create(loop->uct.iface, num, &layout->memh),
                  "a key for a layout");
    perf_uct_check(uct_dcx_layout_set(layout->memh, &params), "a layout");
    while ((status = uct_dcx_layout_test(layout->memh)) == UCS_INPROGRESS) {
    }
    perf_uct_check(status, "a layout");
}

/* Compares the first @length bytes of the layout with near, and the rest of far
 * with its old bytes. */
static void selftest_tag_expect(struct selftest_loop *loop,
                                const struct selftest_shape *shape,
                                const struct selftest_recv *recv, size_t length)
{
    static uint8_t data[SELFTEST_SIZE];

    selftest_fill(loop->image, SELFTEST_SIZE, 1);
    selftest_shape_gather(shape, loop->image, data);
    memcpy(data, loop->near.bytes, length);
    if (recv->num_data > 0) { /* the receiver has to copy it */
        selftest_compare("a tagged message", recv->data, loop->near.bytes,
                         length);
        return;
    }
    selftest_shape_scatter(shape, loop->image, data);
    selftest_compare("a receive into a layout", loop->far.bytes, loop->image,
                     SELFTEST_SIZE);
}

static void selftest_tag_into(struct selftest_loop *loop, unsigned num,
                              bool is_list)
{
    static struct selftest_shape shape;
    struct selftest_mem layout;
    struct selftest_recv recv;
    uct_iov_t iov;

    selftest_tag_layout(loop, &layout, &shape, num, is_list);
    iov = selftest_iov(&layout, shape.size);
    for (unsigned i = 0; i < 4; i++) {
        size_t length = (i < 2) ? 1000 + i * 3000 : shape.size - 5 * (i - 2);

        selftest_fill(loop->far.bytes, SELFTEST_SIZE, 1);
        selftest_fill(loop->near.bytes, length, 7 + i);
        selftest_recv_append(loop, &recv, i, &iov);
        selftest_recv_sync(loop);
        if (i < 2) {
            selftest_eager(loop, i, loop->near.bytes, length);
            selftest_recv_wait(&recv, length);
        } else {
            selftest_rndv(loop, i, &recv, length);
        }
        selftest_tag_expect(loop, &shape, &recv, length);
    }
    perf_uct_check(uct_md_mem_dereg(loop->uct.md, layout.memh), "a layout");
}

void selftest_tm_keys(struct selftest_loop *loop)
{
    static const unsigned nums[] = {4, 20, 52, 53, 400, 1024};

    selftest_tags_open(loop);
    for (unsigned i = 0; i < sizeof(nums) / sizeof(*nums); i++) {
        if (nums[i] <= loop->uct.max_pieces) {
            selftest_tag_into(loop, nums[i], true);
        }
    }
    selftest_tag_into(loop, 400, false);
}

void selftest_tm_appends(struct selftest_loop *loop)
{
    static struct selftest_recv recvs[SELFTEST_BATCH];
    uct_iov_t iov;

    selftest_tags_open(loop);
    for (unsigned i = 0; i < SELFTEST_APPENDS; i += SELFTEST_BATCH) {
        for (unsigned j = 0; j < SELFTEST_BATCH; j++) {
            iov        = selftest_iov(&loop->far, 16384);
            iov.buffer = loop->far.bytes + j * 16384;
            selftest_recv_append(loop, &recvs[j], i + j, &iov);
        }
        selftest_recv_sync(loop);
        for (unsigned j = 0; j < SELFTEST_BATCH; j++) {
            uint64_t value = i + j;

            selftest_eager(loop, i + j, (uint8_t *)&value, sizeof(value));
        }
        for (unsigned j = 0; j < SELFTEST_BATCH; j++) {
            uint64_t value = i + j;

            selftest_recv_wait(&recvs[j], sizeof(value));
            selftest_compare("a tagged message",
                             (recvs[j].num_data > 0) ?
                                 recvs[j].data :
                                 loop->far.bytes + j * 16384,
                             (uint8_t *)&value, sizeof(value));
        }
    }
}
