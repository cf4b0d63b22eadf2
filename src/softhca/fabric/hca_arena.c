/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The arena: see hca_arena.h. A process owns whole chunks, so that others can
 * free those of a dead one; within its chunks it hands out runs of pages. The
 * list of runs is in process-local memory, under one mutex. Control path only:
 * libmlx5 allocates here when it makes a queue.
 */
#define _GNU_SOURCE
#include "hca_arena.h"
#include "hca_fabric.h"
#include "hca_rules.h"
#include "softhca/base/hca_log.h"
#include "softhca/base/hca_sys.h"
#include "softhca/base/hca_mutex.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HCA_PAGE        4096ul
#define HCA_CHUNK_PAGES (HCA_CHUNK_SIZE / HCA_PAGE)

/* Run of pages, free or handed out; neighbours in address order. */
struct hca_run {
    char *addr;
    size_t pages;
    bool is_free;
    struct hca_run *prev, *next; /* NULL at the end of an extent */
};

static pthread_mutex_t hca_arena_mutex = PTHREAD_MUTEX_INITIALIZER;

/* The first run of the extent that starts at a chunk. */
static struct hca_run *hca_extents[HCA_MAX_CHUNKS];

/* New addresses of chunks since hca_arena_abandon(); NULL: as before */
static char *hca_aliases[HCA_MAX_CHUNKS];

static char *hca_arena_base(void)
{
    return hca_at(HCA_ARENA);
}

static unsigned hca_chunk_of(const void *ptr)
{
    return ((const char *)ptr - hca_arena_base()) / HCA_CHUNK_SIZE;
}

/* Takes n neighbouring chunks. @return the first, or HCA_MAX_CHUNKS. */
static unsigned hca_chunks_take(unsigned n)
{
    unsigned first = HCA_MAX_CHUNKS, run = 0;

    hca_mutex_lock(&hca_fabric->lock);
    for (unsigned i = 0; (i < HCA_MAX_CHUNKS) && (run < n); i++) {
        run = (hca_fabric->chunk_owner[i] == 0) ? run + 1 : 0;
        if (run == n) {
            first = i + 1 - n;
        }
    }
    for (unsigned i = 0; (first < HCA_MAX_CHUNKS) && (i < n); i++) {
        hca_fabric->chunk_owner[first + i] = hca_self + 1;
    }
    hca_mutex_unlock(&hca_fabric->lock);
    return first;
}

static void hca_chunks_give(unsigned first, unsigned n)
{
    /* a hole in the memfd: frees the memory, reads as zeros */
    for (unsigned i = first; i < first + n; i++) {
        hca_sys()->madvise((hca_aliases[i] != NULL) ?
                               hca_aliases[i] :
                               hca_arena_base() + i * HCA_CHUNK_SIZE,
                           HCA_CHUNK_SIZE, MADV_REMOVE);
    }
    hca_mutex_lock(&hca_fabric->lock);
    memset(&hca_fabric->chunk_owner[first], 0,
           n * sizeof(hca_fabric->chunk_owner[0]));
    hca_mutex_unlock(&hca_fabric->lock);
}

static struct hca_run *hca_extent_create(size_t pages)
{
    unsigned n          = (pages + HCA_CHUNK_PAGES - 1) / HCA_CHUNK_PAGES;
    struct hca_run *run = calloc(1, sizeof(*run));
    unsigned first;

    if (run == NULL) {
        return NULL;
    }
    first = hca_chunks_take(n);
    if (first == HCA_MAX_CHUNKS) {
        free(run);
        return NULL;
    }
    run->addr          = hca_arena_base() + first * HCA_CHUNK_SIZE;
    run->pages         = n * HCA_CHUNK_PAGES;
    run->is_free       = true;
    hca_extents[first] = run;
    return run;
}

static struct hca_run *hca_run_find_free(size_t pages)
{
    for (unsigned i = 0; i < HCA_MAX_CHUNKS; i++) {
        for (struct hca_run *run = hca_extents[i]; run; run = run->next) {
            if (run->is_free && (run->pages >= pages)) {
                return run;
            }
        }
    }
    return NULL;
}

static struct hca_run *hca_run_find(const void *ptr)
{
    unsigned i = hca_chunk_of(ptr);

    if (i >= HCA_MAX_CHUNKS) {
        return NULL;
    }
    while ((i > 0) && (hca_extents[i] == NULL)) {
        i--; /* an extent of several chunks is entered under its first */
    }
    for (struct hca_run *run = hca_extents[i]; run; run = run->next) {
        if (((const char *)ptr >= run->addr) &&
            ((const char *)ptr < run->addr + run->pages * HCA_PAGE)) {
            return run;
        }
    }
    return NULL;
}

/* Cuts a free run so that its first @pages are a run of their own. */
static bool hca_run_split(struct hca_run *run, size_t pages)
{
    struct hca_run *rest;

    if (run->pages == pages) {
        return true;
    }
    rest = calloc(1, sizeof(*rest));
    if (rest == NULL) {
        return false;
    }
    rest->addr    = run->addr + pages * HCA_PAGE;
    rest->pages   = run->pages - pages;
    rest->is_free = true;
    rest->prev    = run;
    rest->next    = run->next;
    if (rest->next != NULL) {
        rest->next->prev = rest;
    }
    run->next  = rest;
    run->pages = pages;
    return true;
}

/* Joins a free run with its next one, if that is free. */
static void hca_run_join(struct hca_run *run)
{
    struct hca_run *next = run->next;

    if ((next == NULL) || !run->is_free || !next->is_free) {
        return;
    }
    run->pages += next->pages;
    run->next = next->next;
    if (run->next != NULL) {
        run->next->prev = run;
    }
    free(next);
}

/* Finds a free run, which the caller then takes; with the mutex held. */
static struct hca_run *hca_run_get(size_t size)
{
    size_t pages = (size + HCA_PAGE - 1) / HCA_PAGE;
    struct hca_run *run;

    if ((size == 0) || (size > HCA_MAX_CHUNKS * HCA_CHUNK_SIZE)) {
        errno = EINVAL;
        return NULL;
    }
    run = hca_run_find_free(pages);
    if (run == NULL) {
        run = hca_extent_create(pages);
    }
    if ((run == NULL) || !hca_run_split(run, pages)) {
        hca_error("arena: no room for %zu bytes of queues", size);
        errno = ENOMEM;
        return NULL;
    }
    return run;
}

void *hca_arena_reserve(size_t size)
{
    struct hca_run *run;

    pthread_mutex_lock(&hca_arena_mutex);
    run = hca_run_get(size);
    if (run != NULL) {
        run->is_free = false;
    }
    pthread_mutex_unlock(&hca_arena_mutex);
    return (run == NULL) ? NULL : run->addr;
}

static void hca_run_free(struct hca_run *run)
{
    run->is_free = true;
    hca_sys()->madvise(run->addr, run->pages * HCA_PAGE, MADV_REMOVE);
    hca_run_join(run);
    if (run->prev != NULL) {
        run = run->prev;
        hca_run_join(run);
    }
    if (run->is_free && (run->prev == NULL) && (run->next == NULL)) {
        unsigned first = hca_chunk_of(run->addr);

        hca_extents[first] = NULL;
        hca_chunks_give(first, run->pages / HCA_CHUNK_PAGES);
        free(run);
    }
}

/* Touches the memory now, so that a lack of it is an error here and not a
 * SIGBUS when a ring is written. */
void *hca_arena_alloc(size_t size)
{
    struct hca_run *run;

    if (hca_rules_are_set() &&
        (hca_rules_fail(HCA_RULE_ALLOC, "memory") != 0)) {
        errno = ENOMEM;
        return NULL;
    }
    pthread_mutex_lock(&hca_arena_mutex);
    run = hca_run_get(size);
    if ((run != NULL) &&
        (hca_sys()->madvise(run->addr, run->pages * HCA_PAGE,
                            MADV_POPULATE_WRITE) < 0) &&
        (errno != EINVAL)) { /* EINVAL: Linux before 5.14 lacks it */
        hca_error("arena: no memory for %zu bytes of queues", size);
        hca_run_free(run);
        errno = ENOMEM;
        run   = NULL;
    }
    if (run != NULL) {
        run->is_free = false;
    }
    pthread_mutex_unlock(&hca_arena_mutex);
    return (run == NULL) ? NULL : run->addr;
}

void hca_arena_free(void *ptr)
{
    struct hca_run *run;

    /* a forked child, or a program that frees after its exit handlers ran,
     * could free memory that is another process' by now */
    if ((ptr == NULL) || !hca_fabric_is_attached()) {
        return;
    }
    pthread_mutex_lock(&hca_arena_mutex);
    run = hca_run_find(ptr);
    if ((run == NULL) || (run->addr != ptr) || run->is_free) {
        hca_error("arena: free of %p, which was not allocated", ptr);
    } else {
        hca_run_free(run);
    }
    pthread_mutex_unlock(&hca_arena_mutex);
}

bool hca_arena_contains(const void *ptr, size_t size)
{
    const char *base = hca_arena_base(), *p = ptr;
    struct hca_run *run;
    bool is_inside;

    if ((p < base) || (p >= base + HCA_MAX_CHUNKS * HCA_CHUNK_SIZE)) {
        return false;
    }
    pthread_mutex_lock(&hca_arena_mutex);
    run       = hca_run_find(ptr);
    is_inside = (run != NULL) && !run->is_free &&
                (size <= run->pages * HCA_PAGE - (size_t)(p - run->addr));
    pthread_mutex_unlock(&hca_arena_mutex);
    return is_inside;
}

bool hca_arena_is_ample(void)
{
    unsigned taken = 0;

    for (unsigned i = 0; i < HCA_MAX_CHUNKS; i++) {
        taken += (hca_fabric->chunk_owner[i] != 0);
    }
    return taken <= HCA_MAX_CHUNKS / 2;
}

void hca_arena_forked(void)
{
    pthread_mutex_init(&hca_arena_mutex, NULL);
    memset(hca_extents, 0, sizeof(hca_extents));
    memset(hca_aliases, 0, sizeof(hca_aliases)); /* of its parent's segment */
}

/* Puts a private copy in place of a chunk, which gets another address. The copy
 * is made elsewhere and then moved: readers never see other contents. */
static void hca_chunk_abandon(unsigned i)
{
    char *chunk = hca_arena_base() + i * HCA_CHUNK_SIZE;
    void *alias = mremap(chunk, 0, HCA_CHUNK_SIZE, MREMAP_MAYMOVE);
    void *copy  = mmap(NULL, HCA_CHUNK_SIZE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if ((alias != MAP_FAILED) && (copy != MAP_FAILED)) {
        memcpy(copy, chunk, HCA_CHUNK_SIZE);
        mremap(copy, HCA_CHUNK_SIZE, HCA_CHUNK_SIZE,
               MREMAP_MAYMOVE | MREMAP_FIXED, chunk);
        hca_aliases[i] = alias;
    }
}

void hca_arena_abandon(void)
{
    for (unsigned i = 0; i < HCA_MAX_CHUNKS; i++) {
        if (hca_fabric->chunk_owner[i] == hca_self + 1) {
            hca_chunk_abandon(i);
        }
    }
}

void hca_arena_reap(unsigned proc)
{
    for (unsigned i = 0; i < HCA_MAX_CHUNKS; i++) {
        if (hca_fabric->chunk_owner[i] == proc + 1) {
            hca_chunks_give(i, 1);
        }
    }
}
