/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Opens dcx with an endpoint to the target, and has the operations that probes
 * share; see selftest_loop.h.
 */
#include "perf_say.h"
#include "selftest.h"
#include "selftest_peer.h"
#include "uct/dcx/ucx/dcx_ucx.h"

#include <stdlib.h>
#include <string.h>
#include <uct/api/v2/uct_v2.h>

/* --- memory --------------------------------------------------------------- */
void selftest_mem_pack(struct selftest_loop *loop, struct selftest_mem *mem,
                       int can_invalidate)
{
    uct_md_mkey_pack_params_t params = {
        .field_mask = UCT_MD_MKEY_PACK_FIELD_FLAGS,
        .flags      = can_invalidate ? UCT_DCX_UCX_PACK_INVALIDATE : 0,
    };

    selftest_need(
        uct_md_mkey_pack_v2(loop->uct.md, mem->memh,
                            UCT_DCX_UCX_MKEY_PACK_RANGE(mem->bytes, mem->size) &
                                params,
                            mem->key),
        "a remote key");
    selftest_mem_unpack(loop, mem, mem->key);
}

void selftest_mem_unpack(struct selftest_loop *loop, struct selftest_mem *mem,
                         const uint8_t *key)
{
    perf_uct_check(uct_rkey_unpack(loop->uct.component, key, &mem->rkey),
                   "a remote key");
}

void selftest_push(struct selftest_loop *loop, const struct selftest_mem *mem,
                   size_t offset, size_t length)
{
    struct selftest_call call = {.op     = SELFTEST_WRITE,
                                 .a      = offset,
                                 .mem    = (mem == &loop->taken),
                                 .length = length};

    if (loop->is_remote) {
        selftest_call(loop, &call, mem->bytes + offset, NULL);
    }
}

void selftest_pull(struct selftest_loop *loop, const struct selftest_mem *mem,
                   size_t offset, size_t length)
{
    struct selftest_call call = {.op  = SELFTEST_READ,
                                 .a   = offset,
                                 .b   = length,
                                 .mem = (mem == &loop->taken)};

    if (loop->is_remote) {
        selftest_call(loop, &call, NULL, mem->bytes + offset);
    }
}

ucs_status_t selftest_mem_reg(struct selftest_loop *loop,
                              struct selftest_mem *mem, void *bytes,
                              size_t size, unsigned access)
{
    if (bytes == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    mem->bytes   = bytes;
    mem->address = (uintptr_t)bytes;
    mem->size    = size;
    return uct_md_mem_reg(loop->uct.md, bytes, size, access, &mem->memh);
}

static void selftest_mem_open(struct selftest_loop *loop,
                              struct selftest_mem *mem)
{
    selftest_need_memory(selftest_mem_reg(loop, mem, calloc(1, SELFTEST_SIZE),
                                          SELFTEST_SIZE, UCT_MD_MEM_ACCESS_ALL),
                         "registering memory");
    selftest_mem_pack(loop, mem, 0);
}

/* --- open ----------------------------------------------------------------- */
static ucs_status_t selftest_message(void *arg, void *data, size_t length,
                                     unsigned flags)
{
    struct selftest_loop *loop = arg;

    (void)flags;
    memcpy(loop->message, data, length);
    loop->length = length;
    loop->count++;
    return UCS_OK;
}

void selftest_message_wait(struct selftest_loop *loop, unsigned count)
{
    struct selftest_call call;

    while ((loop->count != count) && !loop->uct.has_failed) {
        perf_uct_progress(&loop->uct);
        if (loop->is_remote) {
            call = (struct selftest_call){.op = SELFTEST_MESSAGE};
            selftest_call(loop, &call, NULL, loop->message);
            loop->count  = call.a;
            loop->length = call.length;
        }
    }
    if (loop->uct.has_failed) {
        perf_fail("a message has failed");
    }
}

static bool selftest_is_gone(void)
{
    return false;
}

void selftest_loop_start(struct selftest_loop *loop,
                         const uct_iface_params_t *more)
{
    static const struct perf_boot boot = {.is_gone = selftest_is_gone};
    ucs_status_t status;

    selftest_peer_begin(loop);
    status = perf_uct_open_with(&loop->uct, &boot, loop->device, more);
    if (status == UCS_ERR_NO_MEMORY) { /* for its receive buffers */
        selftest_need_memory(status, "opening the interface");
    }
    selftest_need(status, "opening the interface");
    loop->uct.may_end = true; /* the endpoint's failure is a result */
    perf_uct_check(uct_iface_set_am_handler(loop->uct.iface, SELFTEST_AM_ID,
                                            selftest_message, loop, 0),
                   "the interface");
    loop->image = calloc(1, SELFTEST_SIZE);
    selftest_mem_open(loop, &loop->near);
    if (loop->is_remote) {
        loop->far.bytes = calloc(1, SELFTEST_SIZE);
    } else {
        selftest_mem_open(loop, &loop->far);
    }
}

void selftest_loop_meet(struct selftest_loop *loop)
{
    perf_uct_address(&loop->uct, &loop->address);
    selftest_peer_meet(loop);
    if (loop->is_remote) {
        selftest_mem_unpack(loop, &loop->far, loop->far.key);
    }
    perf_uct_connect(&loop->uct, &loop->address);
}

void selftest_loop_open(struct selftest_loop *loop)
{
    selftest_loop_start(loop, NULL);
    selftest_loop_meet(loop);
}

void selftest_loop_reconnect(struct selftest_loop *loop)
{
    uct_ep_destroy(loop->uct.ep);
    loop->uct.has_failed = false;
    perf_uct_connect(&loop->uct, &loop->address);
}

/* --- bytes ---------------------------------------------------------------- */
size_t selftest_pack(void *to, void *arg)
{
    const struct selftest_packed *packed = arg;

    memcpy(to, packed->bytes, packed->length);
    return packed->length;
}

void selftest_fill(uint8_t *bytes, size_t size, unsigned seed)
{
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (seed * 2654435761u + i * 2246822519u) >> 24;
    }
}

void selftest_compare(const char *what, const uint8_t *found,
                      const uint8_t *expected, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (found[i] != expected[i]) {
            perf_fail("%s: byte %zu of %zu is 0x%02x, not 0x%02x", what, i,
                      size, found[i], expected[i]);
        }
    }
}

/* --- operations ----------------------------------------------------------- */
/* Waits for the operation that was posted with @status. Ends the process if the
 * endpoint fails. */
static void selftest_wait(struct selftest_loop *loop, ucs_status_t status,
                          const char *what)
{
    perf_uct_check(status, what);
    perf_uct_flush(&loop->uct);
    if (loop->uct.has_failed) {
        perf_fail("%s has failed", what);
    }
}

void selftest_put(struct selftest_loop *loop, const struct selftest_mem *from,
                  uint64_t from_address, const struct selftest_mem *to,
                  uint64_t to_address, size_t length)
{
    uct_iov_t iov = {
        .buffer = (void *)(uintptr_t)from_address,
        .length = length,
        .memh   = from->memh,
        .count  = 1,
    };
    ucs_status_t status;

    while ((status = uct_ep_put_zcopy(loop->uct.ep, &iov, 1, to_address,
                                      to->rkey.rkey, NULL)) ==
           UCS_ERR_NO_RESOURCE) {
        perf_uct_progress(&loop->uct);
    }
    selftest_wait(loop, status, "a put");
}

void selftest_get(struct selftest_loop *loop, const struct selftest_mem *to,
                  uint64_t to_address, const struct selftest_mem *from,
                  uint64_t from_address, size_t length)
{
    uct_iov_t iov = {
        .buffer = (void *)(uintptr_t)to_address,
        .length = length,
        .memh   = to->memh,
        .count  = 1,
    };
    ucs_status_t status;

    while ((status = uct_ep_get_zcopy(loop->uct.ep, &iov, 1, from_address,
                                      from->rkey.rkey, NULL)) ==
           UCS_ERR_NO_RESOURCE) {
        perf_uct_progress(&loop->uct);
    }
    selftest_wait(loop, status, "a get");
}

void selftest_put_fails(struct selftest_loop *loop, uct_rkey_t rkey,
                        uint64_t address, const char *what)
{
    uint64_t value = ~0ull;
    ucs_status_t status;

    status = uct_ep_put_short(loop->uct.ep, &value, sizeof(value), address,
                              rkey);
    perf_uct_check(status, what);
    perf_uct_flush(&loop->uct);
    if (!loop->uct.has_failed) {
        perf_fail("%s: the device did not reject it", what);
    }
    selftest_loop_reconnect(loop);
}

/* --- shapes --------------------------------------------------------------- */
void selftest_shape_add(struct selftest_shape *shape, size_t offset,
                        size_t length)
{
    if ((shape->num == SELFTEST_PIECES) || (offset + length > SELFTEST_SIZE)) {
        perf_fail("a shape is too large");
    }
    shape->pieces[shape->num].offset = offset;
    shape->pieces[shape->num].length = length;
    shape->size += length;
    shape->num++;
}

void selftest_shape_scatter(const struct selftest_shape *shape, uint8_t *to,
                            const uint8_t *from)
{
    for (size_t i = 0; i < shape->num; i++) {
        memcpy(to + shape->pieces[i].offset, from, shape->pieces[i].length);
        from += shape->pieces[i].length;
    }
}

void selftest_shape_gather(const struct selftest_shape *shape,
                           const uint8_t *from, uint8_t *to)
{
    for (size_t i = 0; i < shape->num; i++) {
        memcpy(to, from + shape->pieces[i].offset, shape->pieces[i].length);
        to += shape->pieces[i].length;
    }
}
