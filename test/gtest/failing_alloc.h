/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Replaces the allocators of libc and of UCX: makes one allocation of the
 * transport's module fail, and counts those that it has not freed. Defines
 * malloc(): only one file of a program can include this.
 */
#ifndef DCX_TEST_FAILING_ALLOC_H
#define DCX_TEST_FAILING_ALLOC_H

#include "dcx_loop.h"

#include <array>
#include <atomic>
#include <dlfcn.h>
#include <link.h>
#include <ucs/datastruct/mpool.h>

extern "C" {
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t num, size_t size);
void *__libc_realloc(void *ptr, size_t size);
void *__libc_memalign(size_t align, size_t size);
void __libc_free(void *ptr);
}

namespace failing_alloc {

inline uintptr_t module_begin, module_end;

/* Number of allocations, and the one that fails, from 1; 0: none */
inline std::atomic<unsigned> num_allocs, fail_at;

/* Live allocations of the module, from index 0, and how many of them each mark
 * stands for. free() searches the list only if the pointer has a mark. */
inline std::array<void *, 4096> live;
inline std::array<std::atomic<uint8_t>, 65536> marks;
inline size_t num_live;
inline std::atomic_flag lock = ATOMIC_FLAG_INIT;

inline std::atomic<uint8_t> &mark(const void *ptr)
{
    return marks[((uintptr_t)ptr >> 4) % marks.size()];
}

inline int note_module(struct dl_phdr_info *info, size_t, void *)
{
    if (strstr(info->dlpi_name, "libuct_dcx") == NULL) {
        return 0;
    }
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const auto &header = info->dlpi_phdr[i];

        if ((header.p_type == PT_LOAD) && (header.p_flags & PF_X)) {
            module_begin = info->dlpi_addr + header.p_vaddr;
            module_end   = module_begin + header.p_memsz;
        }
    }
    return 1;
}

/* Loads the module; its allocation @nth from now on fails. */
inline void arm(unsigned nth)
{
    dlopen(dcx_loop::module(), RTLD_NOW);
    dl_iterate_phdr(note_module, NULL);
    num_allocs = 0;
    fail_at    = nth;
}

inline bool has_failed()
{
    return num_allocs >= fail_at;
}

inline bool is_module(const void *caller)
{
    return ((uintptr_t)caller >= module_begin) &&
           ((uintptr_t)caller < module_end);
}

inline bool is_next()
{
    return ++num_allocs == fail_at;
}

inline bool is_failing(const void *caller)
{
    return is_module(caller) && is_next();
}

inline void *add(const void *caller, void *ptr)
{
    if (is_module(caller) && (ptr != NULL)) {
        while (lock.test_and_set()) {
        }
        if (num_live < live.size()) {
            live[num_live++] = ptr;
            mark(ptr)++;
        }
        lock.clear();
    }
    return ptr;
}

inline void remove(void *ptr)
{
    if ((ptr == NULL) || (mark(ptr) == 0)) {
        return;
    }
    while (lock.test_and_set()) {
    }
    for (size_t i = 0; i < num_live; i++) {
        if (live[i] == ptr) {
            live[i] = live[--num_live];
            mark(ptr)--;
            break;
        }
    }
    lock.clear();
}

} /* namespace failing_alloc */

#define FAILING_ALLOC_CALLER __builtin_return_address(0)

extern "C" {
/* Called by the module if UCX tracks memory; they call malloc() */
void *ucs_malloc(size_t size, const char *name)
{
    static auto real = (__typeof__(&ucs_malloc))dlsym(RTLD_NEXT, "ucs_malloc");
    const void *caller = FAILING_ALLOC_CALLER;

    return failing_alloc::is_failing(caller) ?
               NULL :
               failing_alloc::add(caller, real(size, name));
}

void *ucs_calloc(size_t num, size_t size, const char *name)
{
    static auto real = (__typeof__(&ucs_calloc))dlsym(RTLD_NEXT, "ucs_calloc");
    const void *caller = FAILING_ALLOC_CALLER;

    return failing_alloc::is_failing(caller) ?
               NULL :
               failing_alloc::add(caller, real(num, size, name));
}

int ucs_posix_memalign(void **mem_p, size_t align, size_t size,
                       const char *name)
{
    static auto real =
        (__typeof__(&ucs_posix_memalign))dlsym(RTLD_NEXT, "ucs_posix_memalign");
    const void *caller = FAILING_ALLOC_CALLER;
    int error;

    if (failing_alloc::is_failing(caller)) {
        return ENOMEM;
    }
    error = real(mem_p, align, size, name);
    if (error == 0) {
        failing_alloc::add(caller, *mem_p);
    }
    return error;
}

/* Called by memory pools of UCX, not only those of the module */
ucs_status_t ucs_mpool_chunk_malloc(ucs_mpool_t *mp, size_t *size, void **chunk)
{
    static auto real = (__typeof__(&ucs_mpool_chunk_malloc))dlsym(
        RTLD_NEXT, "ucs_mpool_chunk_malloc");

    return failing_alloc::is_next() ? UCS_ERR_NO_MEMORY : real(mp, size, chunk);
}

/* Called by the module if UCX does not track memory */
void *malloc(size_t size)
{
    const void *caller = FAILING_ALLOC_CALLER;

    return failing_alloc::is_failing(caller) ?
               NULL :
               failing_alloc::add(caller, __libc_malloc(size));
}

void *calloc(size_t num, size_t size)
{
    const void *caller = FAILING_ALLOC_CALLER;

    return failing_alloc::is_failing(caller) ?
               NULL :
               failing_alloc::add(caller, __libc_calloc(num, size));
}

void *realloc(void *ptr, size_t size)
{
    const void *caller = FAILING_ALLOC_CALLER;
    void *moved;

    if (failing_alloc::is_failing(caller)) {
        return NULL;
    }
    failing_alloc::remove(ptr);
    moved = __libc_realloc(ptr, size);
    return failing_alloc::add(caller, moved);
}

int posix_memalign(void **mem_p, size_t align, size_t size)
{
    const void *caller = FAILING_ALLOC_CALLER;

    if (failing_alloc::is_failing(caller)) {
        return ENOMEM;
    }
    *mem_p = failing_alloc::add(caller, __libc_memalign(align, size));
    return (*mem_p == NULL) ? ENOMEM : 0;
}

void free(void *ptr)
{
    failing_alloc::remove(ptr);
    __libc_free(ptr);
}
}

#endif
