/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The segment: made, mapped, recognized. See hca_segment.h; what is in it says
 * hca_fabric.h.
 */
#define _GNU_SOURCE
#include "hca_segment.h"
#include "softhca/base/hca_fd.h"
#include "softhca/base/hca_log.h"
#include "softhca/base/hca_mutex.h"
#include "hca_obj.h"
#include "softhca/base/hca_valgrind.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define HCA_SEGMENT_MAGIC   0x6163686674666f73ull /* "softhca" */
#define HCA_SEGMENT_AWAY    (1ul << 40)

/* Of the source that this library is of; the Makefile computes it. */
extern const unsigned hca_source_sum;

static int hca_segment_fd; /* open as long as it is mapped */
static bool hca_segment_inherited;

static size_t hca_page_up(size_t size)
{
    return (size + 4095) & ~4095ul;
}

static size_t hca_segment_size(void)
{
    return hca_page_up(sizeof(struct hca_fabric)) +
           hca_page_up(hca_obj_tables_size()) + HCA_MAX_CHUNKS * HCA_CHUNK_SIZE;
}

void hca_segment_format(void)
{
    struct timespec now;

    hca_mutex_init(&hca_fabric->lock);
    hca_mutex_init(&hca_fabric->reap_lock);
    for (unsigned i = 0; i < HCA_ATOMIC_LOCKS; i++) {
        hca_mutex_init(&hca_fabric->atomic_locks[i]);
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    hca_fabric->id      = now.tv_sec * 1000000000ull + now.tv_nsec;
    hca_fabric->source  = hca_source_sum;
    hca_fabric->tables  = hca_page_up(sizeof(struct hca_fabric));
    hca_fabric->arena   = hca_fabric->tables +
                          hca_page_up(hca_obj_tables_size());
    hca_obj_tables_init();
    hca_fabric->magic = HCA_SEGMENT_MAGIC;
}

/* Whether it is the one that this process inherited when it was forked. */
static bool hca_segment_is_mapped(int fd)
{
    struct stat own, other;

    return (hca_fabric != NULL) && (fstat(hca_segment_fd, &own) == 0) &&
           (fstat(fd, &other) == 0) && (own.st_dev == other.st_dev) &&
           (own.st_ino == other.st_ino);
}

/* In the place of an inherited one, as there are pointers to that; else far below
 * the libraries: what is within 2 GiB of them is for trampolines (hca_patch.h). */
int hca_segment_map(int fd)
{
    bool again = hca_segment_is_mapped(fd);
    void *hint = (void*)(((uintptr_t)&hca_fabric - HCA_SEGMENT_AWAY) & ~4095ul);
    void *map  = mmap(again ? hca_fabric : hint, hca_segment_size(),
                      PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_NORESERVE | (again ? MAP_FIXED : 0), fd,
                      0);
    int ret;

    if (map == MAP_FAILED) {
        ret = -errno;
        hca_error("fabric: no %zu GiB of address space: %s; raise ulimit -v",
                  hca_segment_size() >> 30, strerror(-ret));
        return ret;
    }
    madvise(map, hca_segment_size(), MADV_DONTDUMP);
    if (again) {
        hca_fd_close(hca_segment_fd);
    }
    hca_segment_inherited = again;
    hca_fabric     = map;
    hca_segment_fd = hca_fd_keep(fd);
    return 0;
}

/* mremap() with a size of 0 is one step and needs no descriptor; but valgrind
 * does not know it. */
int hca_segment_map_again(const void *from, size_t size, void *to)
{
    long ret;

    if (hca_valgrind_active()) {
        ret = syscall(SYS_mmap, to, size, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_FIXED, hca_segment_fd, hca_off(from));
    } else {
        ret = syscall(SYS_mremap, from, 0ul, size,
                      MREMAP_MAYMOVE | MREMAP_FIXED, to);
    }
    return (ret == -1) ? -errno : 0;
}

int hca_segment_create(const char *name)
{
    struct rlimit limit;
    char label[64];
    int fd, ret;

    if ((getrlimit(RLIMIT_FSIZE, &limit) == 0) &&
        (limit.rlim_cur < hca_segment_size())) {
        hca_error("fabric: ulimit -f is below %zu GiB; raise it (the memory "
                  "is taken only where it is used)", hca_segment_size() >> 30);
        return -EFBIG;
    }

    snprintf(label, sizeof(label), "softhca:%s", name);
    fd = memfd_create(label, MFD_CLOEXEC);
    if ((fd < 0) || (fchmod(fd, 0600) < 0) ||
        (ftruncate(fd, hca_segment_size()) < 0)) {
        ret = -errno;
        hca_error("fabric: no shared memory: %s", strerror(-ret));
        if (fd >= 0) {
            close(fd);
        }
        return ret;
    }
    return fd;
}

int hca_segment_check(void)
{
    if ((hca_fabric->magic == HCA_SEGMENT_MAGIC) &&
        (hca_fabric->source == hca_source_sum)) {
        return 0;
    }
    hca_error("fabric: the running one is of another build of softhca; set "
              "SOFTHCA_FABRIC to another name or end its processes");
    return -EPROTO;
}

bool hca_segment_is_inherited(void)
{
    return hca_segment_inherited;
}

void hca_segment_unmap(void)
{
    munmap(hca_fabric, hca_segment_size());
    hca_fabric = NULL;
}

void hca_segment_hide(void)
{
    char *head = (char*)hca_fabric, *arena = hca_ptr(hca_fabric->arena);
    unsigned first = 0;

    head += hca_page_up(sizeof(struct hca_fabric));
    mprotect(head, arena - head, PROT_NONE);
    for (unsigned i = 0; i <= HCA_MAX_CHUNKS; i++) {
        if ((i < HCA_MAX_CHUNKS) &&
            (hca_fabric->chunk_owner[i] != hca_self + 1)) {
            continue;
        }
        if (i > first) {
            mprotect(arena + first * HCA_CHUNK_SIZE,
                     (i - first) * HCA_CHUNK_SIZE, PROT_NONE);
        }
        first = i + 1;
    }
}
