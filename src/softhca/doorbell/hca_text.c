/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Looks up the text of loaded modules. Called in the thread that stores to a
 * doorbell, also in the handler of its fault. dl_iterate_phdr() takes the
 * loader's lock; this is safe there, as the loader stores to no doorbell. Files
 * are read by system calls, as open() is interposed. No state. Specification:
 * ELF program headers, elf(5).
 */
#define _GNU_SOURCE
#include "hca_text.h"

#include <fcntl.h>
#include <link.h>
#include <sys/syscall.h>
#include <unistd.h>

struct search {
    uintptr_t addr;
    struct hca_text *out;
};

static int search_module(struct dl_phdr_info *info, size_t size, void *arg)
{
    const struct search *s = arg;
    const ElfW(Phdr) * ph;
    uintptr_t offset;
    int i;

    (void)size;
    for (i = 0; i < info->dlpi_phnum; ++i) {
        ph     = &info->dlpi_phdr[i];
        offset = s->addr - (info->dlpi_addr + ph->p_vaddr);
        if ((ph->p_type == PT_LOAD) && (ph->p_flags == (PF_R | PF_X)) &&
            (offset < ph->p_filesz)) {
            s->out->path   = *info->dlpi_name ? info->dlpi_name :
                                                "/proc/self/exe";
            s->out->offset = ph->p_offset + offset;
            s->out->left   = ph->p_filesz - offset;
            return 1;
        }
    }
    return 0;
}

bool hca_text_find(uintptr_t addr, struct hca_text *out)
{
    struct search s = {.addr = addr, .out = out};

    return dl_iterate_phdr(search_module, &s) != 0;
}

size_t hca_text_original(uintptr_t addr, void *bytes, size_t len)
{
    struct hca_text text;
    ssize_t n;
    int fd;

    if (!hca_text_find(addr, &text)) {
        return 0;
    }

    fd = syscall(SYS_openat, AT_FDCWD, text.path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }

    n = syscall(SYS_pread64, fd, bytes, (len < text.left) ? len : text.left,
                text.offset);
    syscall(SYS_close, fd);
    return (n < 0) ? 0 : n;
}
