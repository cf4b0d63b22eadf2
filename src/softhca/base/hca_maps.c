/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/* The mappings of this process: see hca_maps.h. No state. */
#define _GNU_SOURCE
#include "hca_maps.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint64_t hca_maps_hex(const char **str)
{
    uint64_t value = 0;

    for (;; (*str)++) {
        char c = **str;

        if ((c >= '0') && (c <= '9')) {
            value = value * 16 + (c - '0');
        } else if ((c >= 'a') && (c <= 'f')) {
            value = value * 16 + (c - 'a' + 10);
        } else {
            return value;
        }
    }
}

static void hca_maps_parse(const char *line, struct hca_vma *vma)
{
    vma->line  = line;
    vma->start = hca_maps_hex(&line);
    line++; /* - */
    vma->end       = hca_maps_hex(&line);
    vma->prot      = ((line[1] == 'r') ? PROT_READ : 0) |
                     ((line[2] == 'w') ? PROT_WRITE : 0) |
                     ((line[3] == 'x') ? PROT_EXEC : 0);
    vma->is_shared = line[4] == 's';
    line          += sizeof(" rw-p ") - 1;
    vma->offset = hca_maps_hex(&line);
}

void hca_maps_walk(void (*fn)(const struct hca_vma *vma, void *arg), void *arg)
{
    int fd = syscall(SYS_openat, AT_FDCWD, "/proc/self/maps",
                     O_RDONLY | O_CLOEXEC);
    char buf[4096 + 512];
    size_t fill = 0;
    ssize_t got;

    if (fd < 0) {
        return;
    }
    while ((got = syscall(SYS_read, fd, buf + fill,
                          sizeof(buf) - 1 - fill)) > 0) {
        char *line = buf, *end;
        struct hca_vma vma;

        buf[fill + got] = '\0';
        for (; (end = strchr(line, '\n')) != NULL; line = end + 1) {
            *end = '\0';
            hca_maps_parse(line, &vma);
            fn(&vma, arg);
        }
        fill = strlen(line);
        if (fill == sizeof(buf) - 1) {
            fill = 0; /* a line that long names no file of ours */
        }
        memmove(buf, line, fill);
    }
    syscall(SYS_close, fd);
}

/* What lies before `mapped` is known. */
struct hca_maps_query {
    struct hca_range *range;
    uintptr_t         mapped;
};

static void hca_maps_query_vma(const struct hca_vma *vma, void *arg)
{
    struct hca_maps_query *query = arg;
    struct hca_range *range      = query->range;

    if ((vma->end <= range->start) || (vma->start >= range->end)) {
        return;
    }
    range->prot      &= vma->prot;
    range->is_shared |= vma->is_shared;
    if ((vma->start <= query->mapped) && (vma->end > query->mapped)) {
        query->mapped = vma->end;
    }
}

void hca_maps_query(struct hca_range *range)
{
    struct hca_maps_query query = {range, range->start};

    range->is_shared = false;
    range->prot      = PROT_READ | PROT_WRITE | PROT_EXEC;
    hca_maps_walk(hca_maps_query_vma, &query);
    range->is_whole = query.mapped >= range->end;
}
