/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The segment: creation, mapping, hiding. See hca_segment.h.
 */
#define _GNU_SOURCE
#include "hca_segment.h"
#include "softhca/base/hca_fd.h"
#include "softhca/base/hca_log.h"
#include "softhca/base/hca_sys.h"
#include "softhca/base/hca_valgrind.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HCA_SEGMENT_AWAY (1ul << 40)

struct hca_fabric *hca_fabric;
unsigned hca_self;

static int hca_segment_fd; /* open as long as it is mapped */
static size_t hca_segment_size;

static size_t hca_segment_gib(size_t size)
{
    return (size + (1ul << 30) - 1) >> 30;
}

/* Returns true if the file is the segment that this process has mapped already:
 * it was forked by an attached process. */
static bool hca_segment_is_mapped(const struct stat *st)
{
    struct stat own;

    return (hca_fabric != NULL) &&
           (hca_sys()->fstat(hca_segment_fd, &own) == 0) &&
           (own.st_dev == st->st_dev) && (own.st_ino == st->st_ino);
}

/* Maps it over an inherited mapping, to which there may be pointers; else far
 * below the libraries, as the 2 GiB around them are for trampolines
 * (hca_patch.h). */
int hca_segment_map(int fd)
{
    void *hint = (void *)(((uintptr_t)&hca_fabric - HCA_SEGMENT_AWAY) &
                          ~4095ul);
    struct stat st;
    bool again;
    void *map;
    int ret;

    if (hca_sys()->fstat(fd, &st) < 0) {
        return -errno;
    }
    again = hca_segment_is_mapped(&st);
    map   = mmap(again ? hca_fabric : hint, st.st_size, PROT_READ | PROT_WRITE,
               MAP_SHARED | MAP_NORESERVE | (again ? MAP_FIXED : 0), fd, 0);
    if (map == MAP_FAILED) {
        ret = -errno;
        hca_error("fabric: no %zu GiB of address space: %s%s",
                  hca_segment_gib(st.st_size), strerror(-ret),
                  (ret == -ENOMEM) ? "; raise ulimit -v" : "");
        return ret;
    }
    hca_sys()->madvise(map, st.st_size, MADV_DONTDUMP);
    if (again) {
        hca_fd_close(hca_segment_fd);
    }
    hca_segment_size = st.st_size;
    hca_fabric       = map;
    hca_segment_fd   = fd;
    return 0;
}

/* Uses mremap() with a size of 0, which is one step and needs no descriptor,
 * but which valgrind lacks. */
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

int hca_segment_create(const char *name, size_t size)
{
    struct rlimit limit;
    char label[64];
    int fd, ret;

    if ((getrlimit(RLIMIT_FSIZE, &limit) == 0) && (limit.rlim_cur < size)) {
        hca_error("fabric: ulimit -f is below %zu GiB; raise it (the memory "
                  "is taken only where it is used)",
                  hca_segment_gib(size));
        return -EFBIG;
    }

    snprintf(label, sizeof(label), "softhca:%s", name);
    fd = memfd_create(label, MFD_CLOEXEC);
    if ((fd < 0) || (fchmod(fd, 0600) < 0) || (ftruncate(fd, size) < 0)) {
        ret = -errno;
        hca_error("fabric: no shared memory: %s", strerror(-ret));
        if (fd >= 0) {
            hca_sys()->close(fd);
        }
        return ret;
    }
    return fd;
}

void hca_segment_unmap(void)
{
    munmap(hca_fabric, hca_segment_size);
    hca_fabric = NULL;
}

void hca_segment_hide(void)
{
    char *shares   = (char *)hca_fabric->shares;
    char *arena    = hca_at(HCA_ARENA);
    unsigned first = 0;

    mprotect(shares, arena - shares, PROT_NONE);
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
    mprotect(arena + HCA_MAX_CHUNKS * HCA_CHUNK_SIZE, HCA_PIT_SIZE, PROT_NONE);
}
