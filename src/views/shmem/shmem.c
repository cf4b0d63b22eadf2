/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Speeds up OpenSHMEM's strided put and get in unmodified programs. The library
 * of Open MPI (oshmem/shmem/c/shmem_iput.c, shmem_iget.c) puts or gets each
 * element, and waits for the answer of each get. This library speeds up
 *
 * - a get of elements that lie close together: it reads everything from the
 *   first to the last, holes included, and extracts the elements. While UCP
 *   requests one element, a device reads more bytes than most strides have;
 * - a get of elements that lie far apart: it requests them all before it waits;
 * - a put to elements without holes: it copies them, and puts the copy.
 *
 * A put to elements with holes is left to the library of Open MPI: that returns
 * as soon as the device has the element, so its puts already follow each other
 * without waiting.
 *
 * The library's own functions are called by their names of the profiling
 * interface, so that a tool sees only the program's calls. They report invalid
 * arguments. A tool that is linked with the program comes behind a preloaded
 * library: the usual names here pass their calls to it. It calls the names of
 * the profiling interface, and these do the work.
 *
 * The code assumes the standard's prototypes (OpenSHMEM 1.4, 9.5 and 9.6), and
 * that a context is a pointer. Any thread may call it; threads share only
 * addresses that are looked up once.
 */
#define _GNU_SOURCE
#include "views/ucp/hook_views.h"
#include "loader/loader.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SHMEM_CLOSE  = 512,     /* bytes from one element to the next: at 100 Gb/s
                             * 40 ns, which is less than UCP takes to request
                             * one, through shared memory, too */
    SHMEM_PIECE  = 1 << 18, /* bytes that are read or written at once */
    SHMEM_SMALL  = 2048,    /* bytes for which a buffer on the stack is used */
    SHMEM_WINDOW = 256      /* gets that one quiet waits for */
};

typedef void (*shmem_strided_t)(void *dest, const void *source, ptrdiff_t dst,
                                ptrdiff_t sst, size_t nelems, int pe);
typedef void (*shmem_ctx_strided_t)(void *ctx, void *dest, const void *source,
                                    ptrdiff_t dst, ptrdiff_t sst, size_t nelems,
                                    int pe);
typedef void (*shmem_move_t)(void *dest, const void *source, size_t length,
                             int pe);
typedef void (*shmem_ctx_move_t)(void *ctx, void *dest, const void *source,
                                 size_t length, int pe);
typedef void (*shmem_quiet_t)(void);
typedef void (*shmem_ctx_quiet_t)(void *ctx);

/* A function that the first call looks up */
typedef struct shmem_function {
    const char *name; /* of the profiling interface: p and the usual one */
    void *ours;       /* NULL: call the library; else a tool, or this */
    void *addr;
} shmem_function_t;

/* A function on the default context, and on a given one */
typedef struct shmem_function_pair {
    shmem_function_t plain;
    shmem_function_t ctx;
} shmem_function_pair_t;

/* A call of the program */
typedef struct shmem_call {
    shmem_function_t *real;
    int has_ctx;
    void *ctx;
    char *dest;
    const char *source;
    ptrdiff_t dst; /* strides, in elements */
    ptrdiff_t sst;
    size_t nelems;
    size_t size; /* of an element */
    int pe;
} shmem_call_t;

/* clang-format off */
#define SHMEM_PAIR(_name) \
    {.plain.name = "pshmem_" #_name, .ctx.name = "pshmem_ctx_" #_name}
/* clang-format on */

static shmem_function_pair_t shmem_getmem     = SHMEM_PAIR(getmem);
static shmem_function_pair_t shmem_putmem     = SHMEM_PAIR(putmem);
static shmem_function_pair_t shmem_getmem_nbi = SHMEM_PAIR(getmem_nbi);
static shmem_function_pair_t shmem_quiet      = SHMEM_PAIR(quiet);

/* Looks up @name, or the usual name if there is no profiling interface. */
static void *shmem_look_up(const char *name)
{
    void *addr = loader_ucx_symbol(RTLD_NEXT, "liboshmem.so.40", name);

    return (addr != NULL) ?
               addr :
               loader_ucx_symbol(RTLD_NEXT, "liboshmem.so.40", name + 1);
}

static void *shmem_object(const void *addr)
{
    Dl_info info;

    return dladdr(addr, &info) ? info.dli_fbase : NULL;
}

/* Returns the next function of the usual name, a tool's; or ours if the next
 * one is the library's. */
static void *shmem_look_up_tool(const shmem_function_t *function)
{
    void *addr = dlsym(RTLD_NEXT, function->name + 1);
    void *real = shmem_look_up(function->name);

    return ((addr == NULL) || (shmem_object(addr) == shmem_object(real))) ?
               function->ours :
               addr;
}

static void *shmem_function(shmem_function_t *function)
{
    void *addr = __atomic_load_n(&function->addr, __ATOMIC_RELAXED);

    if (addr == NULL) {
        addr = (function->ours == NULL) ? shmem_look_up(function->name) :
                                          shmem_look_up_tool(function);
        if (addr == NULL) {
            fprintf(stderr, "dcx: this process has no %s\n",
                    function->name + 1);
            abort();
        }
        __atomic_store_n(&function->addr, addr, __ATOMIC_RELAXED);
    }
    return addr;
}

/* --- the library's functions on the context of a call --------------------- */

static void shmem_call_move(const shmem_call_t *call,
                            shmem_function_pair_t *pair, void *dest,
                            const void *source, size_t length)
{
    if (call->has_ctx) {
        ((shmem_ctx_move_t)shmem_function(&pair->ctx))(call->ctx, dest, source,
                                                       length, call->pe);
    } else {
        ((shmem_move_t)shmem_function(&pair->plain))(dest, source, length,
                                                     call->pe);
    }
}

static void shmem_call_quiet(const shmem_call_t *call)
{
    if (call->has_ctx) {
        ((shmem_ctx_quiet_t)shmem_function(&shmem_quiet.ctx))(call->ctx);
    } else {
        ((shmem_quiet_t)shmem_function(&shmem_quiet.plain))();
    }
}

static void shmem_call_real(const shmem_call_t *call)
{
    void *real = shmem_function(call->real);

    if (call->has_ctx) {
        ((shmem_ctx_strided_t)real)(call->ctx, call->dest, call->source,
                                    call->dst, call->sst, call->nelems,
                                    call->pe);
    } else {
        ((shmem_strided_t)real)(call->dest, call->source, call->dst, call->sst,
                                call->nelems, call->pe);
    }
}

/* --- elements in memory --------------------------------------------------- */

static char *shmem_dest(const shmem_call_t *call, size_t index)
{
    return call->dest + (ptrdiff_t)(index * call->size) * call->dst;
}

static const char *shmem_source(const shmem_call_t *call, size_t index)
{
    return call->source + (ptrdiff_t)(index * call->size) * call->sst;
}

static inline __attribute__((always_inline)) void
shmem_copy_size(char *dest, ptrdiff_t dst, const char *source, ptrdiff_t sst,
                size_t nelems, size_t size)
{
    ptrdiff_t dest_step   = dst * (ptrdiff_t)size;
    ptrdiff_t source_step = sst * (ptrdiff_t)size;

    for (size_t i = 0; i < nelems; ++i) {
        memcpy(dest, source, size);
        dest += dest_step;
        source += source_step;
    }
}

/* Copies elements; strides are in elements. Most types have one of these
 * sizes. */
static void shmem_copy(char *dest, ptrdiff_t dst, const char *source,
                       ptrdiff_t sst, size_t nelems, size_t size)
{
    switch (size) {
    case 1:
        shmem_copy_size(dest, dst, source, sst, nelems, 1);
        break;
    case 2:
        shmem_copy_size(dest, dst, source, sst, nelems, 2);
        break;
    case 4:
        shmem_copy_size(dest, dst, source, sst, nelems, 4);
        break;
    case 8:
        shmem_copy_size(dest, dst, source, sst, nelems, 8);
        break;
    case 16:
        shmem_copy_size(dest, dst, source, sst, nelems, 16);
        break;
    default:
        shmem_copy_size(dest, dst, source, sst, nelems, size);
    }
}

/* --- ways to do a call ---------------------------------------------------- */

/* Reads from the first element of the piece to the last, and extracts them. */
static void shmem_get_piece(const shmem_call_t *call, char *buffer,
                            size_t index, size_t nelems)
{
    const char *first = shmem_source(call, index);
    const char *last  = shmem_source(call, index + nelems - 1);
    const char *start = (first < last) ? first : last;
    const char *end   = ((first < last) ? last : first) + call->size;

    shmem_call_move(call, &shmem_getmem, buffer, start, end - start);
    shmem_copy(shmem_dest(call, index), call->dst, buffer + (first - start),
               call->sst, nelems, call->size);
}

static void shmem_put_piece(const shmem_call_t *call, char *buffer,
                            size_t index, size_t nelems)
{
    shmem_copy(buffer, 1, shmem_source(call, index), call->sst, nelems,
               call->size);
    shmem_call_move(call, &shmem_putmem, shmem_dest(call, index), buffer,
                    nelems * call->size);
}

typedef void (*shmem_piece_t)(const shmem_call_t *call, char *buffer,
                              size_t index, size_t nelems);

/* Moves a call piece by piece through a buffer, in which an element takes @step
 * bytes. */
static void shmem_call_buffered(const shmem_call_t *call, size_t step,
                                shmem_piece_t move)
{
    size_t piece = SHMEM_PIECE / step;
    char small[SHMEM_SMALL];
    char *buffer = small;
    size_t index, left;

    if (call->nelems > SHMEM_SMALL / step) {
        piece  = (call->nelems < piece) ? call->nelems : piece;
        buffer = malloc(piece * step);
        if (buffer == NULL) {
            shmem_call_real(call);
            return;
        }
    }

    for (index = 0; index < call->nelems; index += piece) {
        left = call->nelems - index;
        move(call, buffer, index, (left < piece) ? left : piece);
    }

    if (buffer != small) {
        free(buffer);
    }
}

/* Requests one element after the other, and waits for SHMEM_WINDOW of them at
 * once. */
static void shmem_get_pipelined(const shmem_call_t *call)
{
    for (size_t i = 0; i < call->nelems; ++i) {
        if ((i > 0) && (i % SHMEM_WINDOW == 0)) {
            shmem_call_quiet(call);
        }
        shmem_call_move(call, &shmem_getmem_nbi, shmem_dest(call, i),
                        shmem_source(call, i), call->size);
    }
    shmem_call_quiet(call);
}

/* --- choice of a way ------------------------------------------------------ */

/* Returns 1 if UCX_DCX_TYPES=n, which turns off all handling of strided
 * data. */
static int shmem_is_off(void)
{
    const uct_dcx_view_policy_t *policy = hook_policy();

    return (policy == NULL) || (policy->mode == UCT_DCX_VIEW_OFF);
}

static int shmem_is_contiguous(const shmem_call_t *call)
{
    return (call->dst == 1) && (call->sst == 1);
}

static void shmem_put(const shmem_call_t *call)
{
    if (shmem_is_off() || (call->nelems < 2) || (call->dst != 1)) {
        shmem_call_real(call);
    } else if (shmem_is_contiguous(call)) {
        shmem_call_move(call, &shmem_putmem, call->dest, call->source,
                        call->nelems * call->size);
    } else {
        shmem_call_buffered(call, call->size, shmem_put_piece);
    }
}

static void shmem_get(const shmem_call_t *call)
{
    size_t step = labs(call->sst) * call->size;

    if (shmem_is_off() || (call->nelems < 2) || (step == 0)) {
        shmem_call_real(call);
    } else if (shmem_is_contiguous(call)) {
        shmem_call_move(call, &shmem_getmem, call->dest, call->source,
                        call->nelems * call->size);
    } else if (step <= SHMEM_CLOSE) {
        shmem_call_buffered(call, step, shmem_get_piece);
    } else {
        shmem_get_pipelined(call);
    }
}

/* --- the names ------------------------------------------------------------ */

#define SHMEM_ARGS \
    void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, \
        size_t nelems, int pe
#define SHMEM_CTX_ARGS void *ctx, SHMEM_ARGS

/* clang-format off */
/* Defines one name of a function; its arguments come last. */
#define SHMEM_DEFINE_NAME(_do, _name, _real, _ours, _size, _has_ctx, _ctx, \
                          ...) \
    __attribute__((visibility("default"))) void _name(__VA_ARGS__) \
    { \
        static shmem_function_t real = {.name = _real, .ours = _ours}; \
        const shmem_call_t call      = {&real, _has_ctx, _ctx, dest, source, \
                                        dst, sst, nelems, _size, pe}; \
\
        _do(&call); \
    }
/* clang-format on */

/* Defines both names of an interposed function. */
#define SHMEM_DEFINE(_do, _name, _size, _has_ctx, _ctx, _args) \
    void _name(_args); \
    void p##_name(_args); \
    SHMEM_DEFINE_NAME(_do, p##_name, "p" #_name, NULL, _size, _has_ctx, _ctx, \
                      _args) \
    SHMEM_DEFINE_NAME(shmem_call_real, _name, "p" #_name, p##_name, _size, \
                      _has_ctx, _ctx, _args)

/* Defines put and get on both kinds of contexts, with names that end in _put
 * and _get. */
#define SHMEM_DEFINE_ALL(_put, _get, _size) \
    SHMEM_DEFINE(shmem_put, shmem_##_put, _size, 0, NULL, SHMEM_ARGS) \
    SHMEM_DEFINE(shmem_get, shmem_##_get, _size, 0, NULL, SHMEM_ARGS) \
    SHMEM_DEFINE(shmem_put, shmem_ctx_##_put, _size, 1, ctx, SHMEM_CTX_ARGS) \
    SHMEM_DEFINE(shmem_get, shmem_ctx_##_get, _size, 1, ctx, SHMEM_CTX_ARGS)

#define SHMEM_DEFINE_TYPE(_name, _type) \
    SHMEM_DEFINE_ALL(_name##_iput, _name##_iget, sizeof(_type))

SHMEM_DEFINE_TYPE(char, char)
SHMEM_DEFINE_TYPE(short, short)
SHMEM_DEFINE_TYPE(int, int)
SHMEM_DEFINE_TYPE(long, long)
SHMEM_DEFINE_TYPE(longlong, long long)
SHMEM_DEFINE_TYPE(schar, signed char)
SHMEM_DEFINE_TYPE(uchar, unsigned char)
SHMEM_DEFINE_TYPE(ushort, unsigned short)
SHMEM_DEFINE_TYPE(uint, unsigned int)
SHMEM_DEFINE_TYPE(ulong, unsigned long)
SHMEM_DEFINE_TYPE(ulonglong, unsigned long long)
SHMEM_DEFINE_TYPE(float, float)
SHMEM_DEFINE_TYPE(double, double)
SHMEM_DEFINE_TYPE(longdouble, long double)
SHMEM_DEFINE_TYPE(int8, int8_t)
SHMEM_DEFINE_TYPE(int16, int16_t)
SHMEM_DEFINE_TYPE(int32, int32_t)
SHMEM_DEFINE_TYPE(int64, int64_t)
SHMEM_DEFINE_TYPE(uint8, uint8_t)
SHMEM_DEFINE_TYPE(uint16, uint16_t)
SHMEM_DEFINE_TYPE(uint32, uint32_t)
SHMEM_DEFINE_TYPE(uint64, uint64_t)
SHMEM_DEFINE_TYPE(size, size_t)
SHMEM_DEFINE_TYPE(ptrdiff, ptrdiff_t)

SHMEM_DEFINE_ALL(iput8, iget8, 1)
SHMEM_DEFINE_ALL(iput16, iget16, 2)
SHMEM_DEFINE_ALL(iput32, iget32, 4)
SHMEM_DEFINE_ALL(iput64, iget64, 8)
SHMEM_DEFINE_ALL(iput128, iget128, 16)
