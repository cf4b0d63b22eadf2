/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Memory for many objects of one size; see dcx_slab.h.
 */
#include "dcx_slab.h"

#include <stdint.h>
#include <string.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/sys.h>

/* UCX's configuration switches these requests off. Here they cost little, and
 * memcheck finds uses of an object after its release. */
#undef NVALGRIND
#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#else
#define VALGRIND_CREATE_MEMPOOL(_pool, _redzone, _is_zeroed)
#define VALGRIND_DESTROY_MEMPOOL(_pool)
#define VALGRIND_MEMPOOL_ALLOC(_pool, _addr, _size)
#define VALGRIND_MEMPOOL_FREE(_pool, _addr)
#define VALGRIND_MAKE_MEM_DEFINED(_addr, _size)
#define VALGRIND_MAKE_MEM_NOACCESS(_addr, _size)
#endif

/* Poisoning for AddressSanitizer, if it is compiled in */
#if __has_include(<sanitizer/asan_interface.h>)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(_addr, _size)
#define ASAN_UNPOISON_MEMORY_REGION(_addr, _size)
#endif


/* With malloc()'s overhead a chunk is four pages. */
#define UCT_DCX_SLAB_CHUNK (16384 - 16)

/* Size of the link to the next chunk, and alignment of objects */
#define UCT_DCX_SLAB_ALIGN 16

/* Bit of the link in a released object: see uct_dcx_slab_init() */
#define UCT_DCX_SLAB_FREE 1


void uct_dcx_slab_init(uct_dcx_slab_t *slab, size_t size)
{
    memset(slab, 0, sizeof(*slab));
    slab->size = size;
    VALGRIND_CREATE_MEMPOOL(slab, 0, 0);
}


size_t uct_dcx_slab_cleanup(uct_dcx_slab_t *slab)
{
    void *chunk;

    VALGRIND_DESTROY_MEMPOOL(slab);
    while (slab->chunks != NULL) {
        chunk        = slab->chunks;
        slab->chunks = *(void **)chunk;
        ucs_free(chunk);
    }
    return slab->num_used;
}


static int uct_dcx_slab_grow(uct_dcx_slab_t *slab)
{
    const size_t room = UCT_DCX_SLAB_CHUNK - UCT_DCX_SLAB_ALIGN;
    char *chunk       = ucs_malloc(UCT_DCX_SLAB_CHUNK, "uct_dcx_slab");

    if (chunk == NULL) {
        return 0;
    }

    *(void **)chunk = slab->chunks;
    slab->chunks    = chunk;
    slab->next      = chunk + UCT_DCX_SLAB_ALIGN;
    slab->end       = slab->next + (room - room % slab->size);
    VALGRIND_MAKE_MEM_NOACCESS(slab->next, slab->end - slab->next);
    return 1;
}


void *uct_dcx_slab_get(uct_dcx_slab_t *slab)
{
    void *obj = slab->free;

    if (obj != NULL) {
        VALGRIND_MAKE_MEM_DEFINED(obj, sizeof(void *));
        slab->free = *(char **)obj - UCT_DCX_SLAB_FREE;
    } else if ((slab->next != slab->end) || uct_dcx_slab_grow(slab)) {
        obj = slab->next;
        slab->next += slab->size;
    } else {
        return NULL;
    }

    slab->num_used++;
    ASAN_UNPOISON_MEMORY_REGION(obj, slab->size);
    VALGRIND_MEMPOOL_ALLOC(slab, obj, slab->size);
    return obj;
}


void uct_dcx_slab_put(uct_dcx_slab_t *slab, void *obj)
{
    *(char **)obj = (char *)slab->free + UCT_DCX_SLAB_FREE;
    slab->free    = obj;
    slab->num_used--;
    VALGRIND_MEMPOOL_FREE(slab, obj);

    /* all but the link, which the slab itself reads */
    ASAN_POISON_MEMORY_REGION((char *)obj + sizeof(void *),
                              slab->size - sizeof(void *));
}


/* Chunks that the callback adds are in front of @newest. */
void uct_dcx_slab_visit(uct_dcx_slab_t *slab, void (*visit)(void *obj))
{
    const size_t room = UCT_DCX_SLAB_CHUNK - UCT_DCX_SLAB_ALIGN;
    char *newest      = slab->chunks;
    char *next        = slab->next;
    char *chunk, *obj, *end;

    for (chunk = newest; chunk != NULL; chunk = *(char **)chunk) {
        obj = chunk + UCT_DCX_SLAB_ALIGN;
        end = (chunk == newest) ? next : obj + (room - room % slab->size);
        for (; obj != end; obj += slab->size) {
            VALGRIND_MAKE_MEM_DEFINED(obj, sizeof(void *));
            if (!(*(uintptr_t *)obj & UCT_DCX_SLAB_FREE)) {
                visit(obj);
            }
        }
    }
}
