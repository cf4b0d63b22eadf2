/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/* Finds missing pages of regions that are registered on demand: hca_odp.h. */
#define _GNU_SOURCE
#include "hca_odp.h"
#include "softhca/fabric/hca_caps.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HCA_ODP_DEFAULT_US 100u
#define HCA_ODP_PRESENT    (1ull << 63) /* of an entry of pagemap */
#define HCA_ODP_PAGES      128u         /* entries read at a time */

uint64_t hca_odp_ns = HCA_ODP_DEFAULT_US * 1000ull;

void hca_odp_init(void)
{
    hca_caps_us("SOFTHCA_PAGE_FAULT", &hca_odp_ns);
}

/* Returns true if one of @count pages from @page on is missing. */
static bool hca_odp_misses(int fd, uint64_t page, unsigned count)
{
    uint64_t entries[HCA_ODP_PAGES];
    ssize_t size = syscall(SYS_pread64, fd, entries, count * sizeof(*entries),
                           page * sizeof(*entries));

    for (ssize_t i = 0; i < size / (ssize_t)sizeof(*entries); i++) {
        if (!(entries[i] & HCA_ODP_PRESENT)) {
            return true;
        }
    }
    return false;
}

/* Opens the file for each access: nothing is left to close in a process that
 * forks, and a pid is never that of another process. */
bool hca_odp_is_missing(struct hca_owner owner, uint64_t va, uint64_t length)
{
    uint64_t page = va / 4096, end = (va + length + 4095) / 4096;
    bool is_missing = false;
    char path[32];
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)owner.pid);
    fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    while ((page < end) && !is_missing) {
        unsigned count = (end - page < HCA_ODP_PAGES) ? end - page :
                                                        HCA_ODP_PAGES;

        is_missing = hca_odp_misses(fd, page, count);
        page += count;
    }
    syscall(SYS_close, fd);
    return is_missing;
}
