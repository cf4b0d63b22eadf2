/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/* Marks the device's descriptors, in a bitmap: see hca_fd.h. */
#define _GNU_SOURCE
#include "hca_fd.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Descriptors that can be marked: the default of fs.nr_open. If the system has
 * a higher limit, those above are not protected, without a message. */
#define HCA_FD_MAX   (1u << 20)
#define HCA_FD_WORDS (HCA_FD_MAX / 64)

static _Atomic uint64_t hca_fds[HCA_FD_WORDS];

static _Atomic uint64_t *hca_fd_word(int fd)
{
    return ((fd >= 0) && ((unsigned)fd < HCA_FD_MAX)) ? &hca_fds[fd / 64] :
                                                        NULL;
}

int hca_fd_mark(int fd)
{
    _Atomic uint64_t *word = hca_fd_word(fd);

    if (word != NULL) {
        atomic_fetch_or(word, 1ull << (fd % 64));
    }
    return fd;
}

void hca_fd_unmark(int fd)
{
    _Atomic uint64_t *word = hca_fd_word(fd);

    if (word != NULL) {
        atomic_fetch_and(word, ~(1ull << (fd % 64)));
    }
}

/* Unmarks first, as another thread may reuse the number once it is closed.
 * Makes the system call, as preload_fd.c interposes close(). */
void hca_fd_close(int fd)
{
    _Atomic uint64_t *word = hca_fd_word(fd);
    const uint64_t bit     = 1ull << ((unsigned)fd % 64);

    if ((word == NULL) || (atomic_fetch_and(word, ~bit) & bit)) {
        syscall(SYS_close, fd);
    }
}

bool hca_fd_is_own(int fd)
{
    _Atomic uint64_t *word = hca_fd_word(fd);

    return (word != NULL) &&
           ((atomic_load_explicit(word, memory_order_relaxed) >> (fd % 64)) &
            1);
}

bool hca_fd_next(unsigned first, unsigned last, unsigned *fd)
{
    for (unsigned i = first / 64; (i < HCA_FD_WORDS) && (i <= last / 64); i++) {
        uint64_t word = atomic_load(&hca_fds[i]);

        if (i == first / 64) {
            word &= ~0ull << (first % 64);
        }
        if (word != 0) {
            *fd = i * 64 + __builtin_ctzll(word);
            return *fd <= last;
        }
    }
    return false;
}
