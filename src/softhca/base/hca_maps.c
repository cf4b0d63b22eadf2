/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/* The mappings of this process: see hca_maps.h. */
#define _GNU_SOURCE
#include "hca_maps.h"
#include "hca_fd.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
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

static uint64_t hca_maps_decimal(const char **str)
{
    uint64_t value = 0;

    for (; (**str >= '0') && (**str <= '9'); (*str)++) {
        value = value * 10 + (**str - '0');
    }
    return value;
}

/* Parses a line. @return its rest, from the spaces before the name on. */
static const char *hca_maps_parse(const char *line, struct hca_vma *vma)
{
    unsigned major;

    vma->line  = line;
    vma->start = hca_maps_hex(&line);
    line++; /* - */
    vma->end  = hca_maps_hex(&line);
    vma->prot = ((line[1] == 'r') ? PROT_READ : 0) |
                ((line[2] == 'w') ? PROT_WRITE : 0) |
                ((line[3] == 'x') ? PROT_EXEC : 0);
    vma->is_shared = line[4] == 's';
    line += sizeof(" rw-p ") - 1;
    vma->offset = hca_maps_hex(&line);
    line++;
    major = hca_maps_hex(&line);
    line++;
    vma->dev = makedev(major, hca_maps_hex(&line));
    line++;
    vma->inode = hca_maps_decimal(&line);
    return line;
}

/* Descriptor of hca_maps_keep(), -1: none; opened by the process maps_pid */
static _Atomic int maps_kept = -1;
static pid_t maps_pid;

static int hca_maps_open_new(const char *path)
{
    return syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
}

int hca_maps_keep(void)
{
    int none = -1, fd;

    if (maps_kept >= 0) {
        return 0;
    }
    fd = hca_fd_mark(hca_maps_open_new("/proc/self/maps"));
    if (fd < 0) {
        return -errno;
    }
    maps_pid = getpid();
    if (!atomic_compare_exchange_strong(&maps_kept, &none, fd)) {
        hca_fd_close(fd); /* another thread was first */
    }
    return 0;
}

void hca_maps_forked(void)
{
    if (maps_kept >= 0) {
        hca_fd_close(maps_kept); /* it shows the parent's mappings */
        maps_kept = -1;
    }
}

/* Opens a new descriptor, which no other thread reads; if that fails, returns
 * the kept one. */
static int hca_maps_open(void)
{
    int fd = hca_maps_open_new("/proc/self/maps");

    return ((fd >= 0) || !hca_fd_is_own(maps_kept) || (maps_pid != getpid())) ?
               fd :
               maps_kept;
}

static void hca_maps_close(int fd)
{
    if (fd != maps_kept) {
        syscall(SYS_close, fd);
    }
}

/* Calls @fn for each line, until it returns false. */
static void hca_maps_lines(int fd, bool (*fn)(const char *line, void *arg),
                           void *arg)
{
    char buf[4096 + 512];
    size_t fill = 0, offset = 0;
    ssize_t got;

    while ((got = syscall(SYS_pread64, fd, buf + fill, sizeof(buf) - 1 - fill,
                          offset)) > 0) {
        char *line = buf, *end;

        offset += got;
        buf[fill + got] = '\0';
        for (; (end = strchr(line, '\n')) != NULL; line = end + 1) {
            *end = '\0';
            if (!fn(line, arg)) {
                return;
            }
        }
        fill = strlen(line);
        if (fill == sizeof(buf) - 1) {
            fill = 0; /* a name too long for any file that is searched */
        }
        memmove(buf, line, fill);
    }
}

struct hca_maps_walk {
    void (*fn)(const struct hca_vma *vma, void *arg);
    void *arg;
};

static bool hca_maps_walk_line(const char *line, void *arg)
{
    const struct hca_maps_walk *walk = arg;
    struct hca_vma vma;

    hca_maps_parse(line, &vma);
    walk->fn(&vma, walk->arg);
    return true;
}

static void hca_maps_read(int fd,
                          void (*fn)(const struct hca_vma *vma, void *arg),
                          void *arg)
{
    hca_maps_lines(fd, hca_maps_walk_line, &(struct hca_maps_walk){fn, arg});
}

bool hca_maps_walk(void (*fn)(const struct hca_vma *vma, void *arg), void *arg)
{
    int fd = hca_maps_open();

    if (fd < 0) {
        return false;
    }
    hca_maps_read(fd, fn, arg);
    hca_maps_close(fd);
    return true;
}

/* PROCMAP_QUERY of Linux 6.11, include/uapi/linux/fs.h: the mapping of an
 * address. Its permission flags equal PROT_*. */
struct hca_procmap {
    uint64_t size;
    uint64_t query_flags;
    uint64_t query_addr;
    uint64_t vma_start, vma_end;
    uint64_t vma_flags;
    uint64_t vma_page_size, vma_offset;
    uint64_t inode;
    uint32_t dev_major, dev_minor;
    uint32_t vma_name_size, build_id_size;
    uint64_t vma_name_addr, build_id_addr;
};
static_assert(sizeof(struct hca_procmap) == 104, "PROCMAP_QUERY");

#define HCA_PROCMAP_QUERY      _IOWR('f', 17, struct hca_procmap)
#define HCA_PROCMAP_VMA_SHARED 8u

/* Queries @range by PROCMAP_QUERY. @return 0, also if a mapping is missing;
 * -ENOTTY: the kernel is older. */
static int hca_maps_ask(int fd, struct hca_range *range)
{
    struct hca_procmap vma = {.size = sizeof(vma), .vma_end = range->start};

    while (vma.vma_end < range->end) {
        vma.query_addr = vma.vma_end;
        if (syscall(SYS_ioctl, fd, HCA_PROCMAP_QUERY, &vma) != 0) {
            return (errno == ENOENT) ? 0 : -ENOTTY;
        }
        range->prot &= vma.vma_flags;
        range->is_shared |= (vma.vma_flags & HCA_PROCMAP_VMA_SHARED) != 0;
    }
    range->is_whole = true;
    return 0;
}

/* A query of @range, which is mapped up to @mapped as far as it is known */
struct hca_maps_query {
    struct hca_range *range;
    uintptr_t mapped;
};

static void hca_maps_query_vma(const struct hca_vma *vma, void *arg)
{
    struct hca_maps_query *query = arg;
    struct hca_range *range      = query->range;

    if ((vma->end <= range->start) || (vma->start >= range->end)) {
        return;
    }
    range->prot &= vma->prot;
    range->is_shared |= vma->is_shared;
    if ((vma->start <= query->mapped) && (vma->end > query->mapped)) {
        query->mapped = vma->end;
    }
}

static void hca_maps_look_up(int fd, struct hca_range *range)
{
    struct hca_maps_query query = {range, range->start};

    hca_maps_read(fd, hca_maps_query_vma, &query);
    range->is_whole = query.mapped >= range->end;
}

int hca_maps_query(struct hca_range *range)
{
    int fd = hca_maps_open();

    if (fd < 0) {
        return -errno;
    }
    range->is_whole  = false;
    range->is_shared = false;
    range->prot      = PROT_READ | PROT_WRITE | PROT_EXEC;
    if (hca_maps_ask(fd, range) != 0) {
        hca_maps_look_up(fd, range);
    }
    hca_maps_close(fd);
    return 0;
}

/* --- one mapping ---------------------------------------------------------- */

struct hca_maps_find {
    uintptr_t addr;
    struct hca_vma *vma;
    bool is_found;
};

static bool hca_maps_find_line(const char *line, void *arg)
{
    struct hca_maps_find *find = arg;

    hca_maps_parse(line, find->vma);
    find->is_found = (find->addr >= find->vma->start) &&
                     (find->addr < find->vma->end);
    return !find->is_found;
}

bool hca_maps_find(uintptr_t addr, struct hca_vma *vma)
{
    struct hca_procmap map    = {.size = sizeof(map), .query_addr = addr};
    struct hca_maps_find find = {addr, vma, false};
    int fd                    = hca_maps_open();

    if (fd < 0) {
        return false;
    }
    if (syscall(SYS_ioctl, fd, HCA_PROCMAP_QUERY, &map) == 0) {
        find.is_found  = true;
        vma->start     = map.vma_start;
        vma->end       = map.vma_end;
        vma->prot      = map.vma_flags & (PROT_READ | PROT_WRITE | PROT_EXEC);
        vma->is_shared = (map.vma_flags & HCA_PROCMAP_VMA_SHARED) != 0;
        vma->offset    = map.vma_offset;
        vma->dev       = makedev(map.dev_major, map.dev_minor);
        vma->inode     = map.inode;
        vma->line      = NULL;
    } else if (errno != ENOENT) {
        hca_maps_lines(fd, hca_maps_find_line, &find);
    }
    hca_maps_close(fd);
    return find.is_found;
}

/* A search of /proc/self/smaps (proc(5)): after the line that /proc/self/maps
 * has for a mapping, it has lines with properties, among them VmFlags. */
struct hca_maps_plain {
    uintptr_t start, end;
    bool is_here; /* the lines are of the mapping that has the range */
    int advice;
};

/* Flags of plain memory, with the advice that sets them. 0: none, the
 * protection or a state of the kernel. */
static const struct {
    char name[4];
    int advice;
} hca_maps_flags[] = {
    {"rd ", 0},
    {"wr ", 0},
    {"mr ", 0},
    {"mw ", 0},
    {"me ", 0},
    {"ac ", 0},
    {"nr ", 0},
    {"sd ", 0},
    {"dc ", MADV_DONTFORK},
    {"hg ", MADV_HUGEPAGE},
    {"dd ", MADV_DONTDUMP},
};

#define HCA_MAPS_FLAGS (sizeof(hca_maps_flags) / sizeof(hca_maps_flags[0]))

/* @return as hca_maps_plain() */
static int hca_maps_advice(const char *flags)
{
    int advice = 0;

    for (; *flags != '\0'; flags += 3) {
        unsigned i = 0;

        while ((i < HCA_MAPS_FLAGS) &&
               strncmp(flags, hca_maps_flags[i].name, 3)) {
            i++;
        }
        if (i == HCA_MAPS_FLAGS) {
            return -EBUSY;
        }
        advice |= 1 << hca_maps_flags[i].advice;
    }
    return advice & ~1;
}

static bool hca_maps_plain_line(const char *line, void *arg)
{
    static const char flags[]    = "VmFlags: ";
    struct hca_maps_plain *plain = arg;
    struct hca_vma vma;
    const char *name;

    if ((*line >= 'A') && (*line <= 'Z')) {
        if (!plain->is_here || strncmp(line, flags, sizeof(flags) - 1)) {
            return true;
        }
        plain->advice = hca_maps_advice(line + sizeof(flags) - 1);
        return false;
    }
    name           = hca_maps_parse(line, &vma);
    name           = name + strspn(name, " ");
    plain->is_here = (vma.start <= plain->start) && (vma.end >= plain->end) &&
                     !vma.is_shared && (vma.inode == 0) &&
                     (vma.prot == (PROT_READ | PROT_WRITE)) &&
                     ((*name == '\0') || !strncmp(name, "[anon:", 6));
    return vma.start < plain->end;
}

int hca_maps_plain(uintptr_t start, uintptr_t end)
{
    struct hca_maps_plain plain = {start, end, false, -EBUSY};
    int fd                      = hca_maps_open_new("/proc/self/smaps");

    if (fd >= 0) {
        hca_maps_lines(fd, hca_maps_plain_line, &plain);
        syscall(SYS_close, fd);
    }
    return plain.advice;
}
