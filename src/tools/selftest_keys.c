/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Probes of memory that can be invalidated: its keys are indirect (KSM), with
 * entries of 2 GiB.
 */
#include "perf_say.h"
#include "selftest.h"
#include "selftest_memory.h"
#include "selftest_peer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <uct/api/v2/uct_v2.h>

#define SELFTEST_GIB (1ull << 30)

enum { SELFTEST_TAKEN = 65536 }; /* bytes */

/* Puts and gets a few bytes. Reports the device. */
void selftest_open(struct selftest_loop *loop)
{
    selftest_loop_open(loop);
    selftest_fill(loop->near.bytes, 1000, 2);
    selftest_put(loop, &loop->near, (uintptr_t)loop->near.bytes, &loop->far,
                 loop->far.address, 1000);
    selftest_pull(loop, &loop->far, 0, 1000);
    selftest_compare("a put", loop->far.bytes, loop->near.bytes, 1000);
    selftest_fill(loop->far.bytes, 1000, 3);
    selftest_push(loop, &loop->far, 0, 1000);
    selftest_get(loop, &loop->near, (uintptr_t)loop->near.bytes, &loop->far,
                 loop->far.address, 1000);
    selftest_compare("a get", loop->near.bytes, loop->far.bytes, 1000);
    if (!loop->is_remote) {
        selftest_value("device", "%s", loop->uct.device);
    }
}

/* Puts and gets @length bytes at @offset by the key of @mem. */
static void selftest_reach(struct selftest_loop *loop,
                           const struct selftest_mem *mem, size_t offset,
                           size_t length)
{
    const uintptr_t near = (uintptr_t)loop->near.bytes;

    selftest_fill(loop->near.bytes, length, 4);
    selftest_put(loop, &loop->near, near, mem, mem->address + offset, length);
    selftest_pull(loop, mem, offset, length);
    selftest_compare("a put", mem->bytes + offset, loop->near.bytes, length);
    selftest_fill(mem->bytes + offset, length, 5);
    selftest_push(loop, mem, offset, length);
    selftest_get(loop, &loop->near, near, mem, mem->address + offset, length);
    selftest_compare("a get", loop->near.bytes, mem->bytes + offset, length);
}

/* Maps @size bytes with a multiple of 2 GiB in their middle. */
static uint8_t *selftest_map_crossing(size_t size)
{
    for (uintptr_t at = 64 * SELFTEST_GIB; at < 128 * SELFTEST_GIB;
         at += 2 * SELFTEST_GIB) {
        void *want   = (void *)(at - size / 2);
        void *memory = mmap(want, size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
                            -1, 0);

        if (memory == want) {
            return memory;
        }
    }
    return NULL;
}

/* Maps up to half of the free memory, as registration may pin all of it, and no
 * more than RLIMIT_MEMLOCK allows. */
static void selftest_map_large(struct selftest_loop *loop,
                               struct selftest_mem *mem)
{
    const size_t wanted = 5 * SELFTEST_GIB;
    ucs_status_t status = UCS_ERR_NO_MEMORY;
    size_t size         = selftest_memory_free() / 2;
    void *memory;

    memory = mmap(NULL, wanted, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    size   = (size < wanted) ? (size & ~0xfffffull) : wanted;
    for (; (memory != MAP_FAILED) && (status != UCS_OK) && (size >= 1 << 20);
         size /= 2) {
        status = selftest_mem_reg(loop, mem, memory, size,
                                  UCT_MD_MEM_ACCESS_ALL);
    }
    selftest_need_memory(status, "registering memory");
    if (mem->size < wanted) {
        selftest_note("of %zu MiB: half of the free memory, of the host or its "
                      "cgroup, or 'ulimit -l', is the limit",
                      mem->size >> 20);
    }
}

void selftest_ksm_large(struct selftest_loop *loop)
{
    struct selftest_mem mem;

    selftest_loop_open(loop);
    selftest_map_large(loop, &mem);
    selftest_mem_pack(loop, &mem, 1);
    for (size_t at = 0; at + 8192 <= mem.size; at += SELFTEST_GIB) {
        selftest_reach(loop, &mem, at, 8192);
    }
    selftest_reach(loop, &mem, mem.size - 8192, 8192);
}

static uint8_t *selftest_map(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return (memory == MAP_FAILED) ? NULL : memory;
}

/* Registers @memory, and packs a key that can be invalidated. */
static void selftest_ksm(struct selftest_loop *loop, struct selftest_mem *mem,
                         uint8_t *memory, size_t size, unsigned access)
{
    selftest_need_memory(selftest_mem_reg(loop, mem, memory, size, access),
                         "registering memory");
    selftest_mem_pack(loop, mem, 1);
}

void selftest_ksm_boundary(struct selftest_loop *loop)
{
    const size_t size = 1 << 20;
    struct selftest_mem mem;

    selftest_loop_open(loop);
    selftest_ksm(loop, &mem, selftest_map_crossing(size), size,
                 UCT_MD_MEM_ACCESS_ALL);
    selftest_reach(loop, &mem, size / 2 - 5000, 10000);
}

void selftest_ksm_read_only(struct selftest_loop *loop)
{
    const size_t size = 1 << 16;
    struct selftest_mem mem;
    uint8_t *memory;

    selftest_loop_open(loop);
    memory = selftest_map(size);
    if (memory != NULL) {
        selftest_fill(memory, size, 6);
        mprotect(memory, size, PROT_READ);
    }
    selftest_ksm(loop, &mem, memory, size, UCT_MD_MEM_ACCESS_REMOTE_GET);
    selftest_get(loop, &loop->near, (uintptr_t)loop->near.bytes, &mem,
                 (uintptr_t)memory, size);
    selftest_compare("a get of read-only memory", loop->near.bytes, memory,
                     size);
}

static void selftest_invalidated(uct_completion_t *comp)
{
    comp->count = -1;
}

/* Gets memory of the target whose key can be invalidated. */
static void selftest_take(struct selftest_loop *loop)
{
    struct selftest_call call = {.op = SELFTEST_TAKE};

    if (!loop->is_remote) {
        selftest_ksm(loop, &loop->taken, selftest_map(SELFTEST_TAKEN),
                     SELFTEST_TAKEN, UCT_MD_MEM_ACCESS_ALL);
        return;
    }
    selftest_call(loop, &call, NULL, NULL);
    loop->taken.bytes   = calloc(1, SELFTEST_TAKEN);
    loop->taken.size    = SELFTEST_TAKEN;
    loop->taken.address = call.a;
    selftest_mem_unpack(loop, &loop->taken, call.key);
}

static void selftest_take_back(struct selftest_loop *loop)
{
    struct selftest_call call = {.op = SELFTEST_TAKE_BACK};
    uct_completion_t comp     = {.func = selftest_invalidated, .count = 1};
    uct_md_mem_dereg_params_t params = {
        .field_mask = UCT_MD_MEM_DEREG_FIELD_MEMH |
                      UCT_MD_MEM_DEREG_FIELD_FLAGS |
                      UCT_MD_MEM_DEREG_FIELD_COMPLETION,
        .memh  = loop->taken.memh,
        .flags = UCT_MD_MEM_DEREG_FLAG_INVALIDATE,
        .comp  = &comp,
    };

    if (loop->is_remote) {
        selftest_call(loop, &call, NULL, NULL);
        return;
    }
    perf_uct_check(uct_md_mem_dereg_v2(loop->uct.md, &params),
                   "an invalidation");
    while (comp.count != -1) {
        uct_worker_progress(loop->uct.worker);
    }
    memset(loop->taken.bytes, 0, SELFTEST_TAKEN);
}

void selftest_serve_take(struct selftest_loop *loop, struct selftest_call *call,
                         uint8_t *data)
{
    (void)data;
    selftest_take(loop);
    call->a = loop->taken.address;
    memcpy(call->key, loop->taken.key, sizeof(call->key));
}

void selftest_serve_take_back(struct selftest_loop *loop,
                              struct selftest_call *call, uint8_t *data)
{
    (void)call, (void)data;
    selftest_take_back(loop);
}

void selftest_invalidation(struct selftest_loop *loop)
{
    selftest_loop_open(loop);
    selftest_take(loop);
    selftest_reach(loop, &loop->taken, 0, SELFTEST_TAKEN);
    selftest_take_back(loop);
    selftest_put_fails(loop, loop->taken.rkey.rkey, loop->taken.address,
                       "a put to invalidated memory");
    selftest_pull(loop, &loop->taken, 0, SELFTEST_TAKEN);
    if (loop->taken.bytes[0] != 0) {
        perf_fail("a put to invalidated memory has arrived");
    }
}
