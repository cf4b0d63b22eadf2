/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Preloaded by test/faults/startup: one allocation or command of a process
 * fails with ENOMEM, and a line on standard error tells that it was reached.
 *
 *   DCX_SHORT=OF:N   the N-th of OF fails, from 1. OF is the beginning of a
 *                    library's name, for the heap and the mappings that it
 *                    allocates itself, or "command", for ioctls of verbs.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

/* The function of that name behind ours */
#define NEXT(_name) \
    ({ \
        static __typeof__(&(_name)) next; \
        (next != NULL) ? next : (next = short_next(#_name)); \
    })

#define CALLER __builtin_return_address(0)

/* In Open MPI only a handle reaches libucs, which came by dlopen(). */
static void *short_next(const char *name)
{
    void *next = dlsym(RTLD_NEXT, name);

    return (next != NULL) ?
               next :
               dlsym(dlopen("libucs.so.0", RTLD_LAZY | RTLD_NOLOAD), name);
}

static char of[64];
static size_t of_length;
static unsigned long nth;
static atomic_ulong count;

static void __attribute__((constructor)) short_init(void)
{
    const char *text = getenv("DCX_SHORT");

    if (text != NULL) {
        sscanf(text, "%63[^:]:%lu", of, &nth);
        of_length = strlen(of);
    }
}

/* Counts one more; returns 1 if it is the one to fail. */
static int short_fails(void)
{
    char line[128];

    if (atomic_fetch_add(&count, 1) + 1 != nth) {
        return 0;
    }
    snprintf(line, sizeof(line), "short: %s %lu fails\n", of, nth);
    (void)!write(STDERR_FILENO, line, strlen(line));
    errno = ENOMEM;
    return 1;
}

/* Returns 1 if the library that @caller is in must not get memory. */
static int short_of_memory(void *caller)
{
    struct dl_find_object object;
    const char *name;

    if ((nth == 0) || _dl_find_object(caller, &object)) {
        return 0;
    }
    name = strrchr(object.dlfo_link_map->l_name, '/');
    return (name != NULL) && !strncmp(name + 1, of, of_length) && short_fails();
}

void *malloc(size_t size)
{
    return short_of_memory(CALLER) ? NULL : NEXT(malloc)(size);
}

void *calloc(size_t num, size_t size)
{
    return short_of_memory(CALLER) ? NULL : NEXT(calloc)(num, size);
}

void *realloc(void *mem, size_t size)
{
    return short_of_memory(CALLER) ? NULL : NEXT(realloc)(mem, size);
}

int posix_memalign(void **mem_p, size_t align, size_t size)
{
    return short_of_memory(CALLER) ? ENOMEM :
                                     NEXT(posix_memalign)(mem_p, align, size);
}

/* UCX that tracks its memory has functions of its own. */
void *ucs_malloc(size_t size, const char *name);
void *ucs_calloc(size_t num, size_t size, const char *name);
void *ucs_realloc(void *mem, size_t size, const char *name);
int ucs_posix_memalign(void **mem_p, size_t align, size_t size,
                       const char *name);

void *ucs_malloc(size_t size, const char *name)
{
    return short_of_memory(CALLER) ? NULL : NEXT(ucs_malloc)(size, name);
}

void *ucs_calloc(size_t num, size_t size, const char *name)
{
    return short_of_memory(CALLER) ? NULL : NEXT(ucs_calloc)(num, size, name);
}

void *ucs_realloc(void *mem, size_t size, const char *name)
{
    return short_of_memory(CALLER) ? NULL : NEXT(ucs_realloc)(mem, size, name);
}

int ucs_posix_memalign(void **mem_p, size_t align, size_t size,
                       const char *name)
{
    return short_of_memory(CALLER) ?
               ENOMEM :
               NEXT(ucs_posix_memalign)(mem_p, align, size, name);
}

void *mmap(void *addr, size_t size, int prot, int flags, int fd, off_t offset)
{
    return short_of_memory(CALLER) ?
               MAP_FAILED :
               NEXT(mmap)(addr, size, prot, flags, fd, offset);
}

int ioctl(int fd, unsigned long request, ...)
{
    va_list args;
    void *arg;

    va_start(args, request);
    arg = va_arg(args, void *);
    va_end(args);
    return ((request == RDMA_VERBS_IOCTL) && !strcmp(of, "command") &&
            short_fails()) ?
               -1 :
               NEXT(ioctl)(fd, request, arg);
}
