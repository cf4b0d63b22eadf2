/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Doorbells. A page that the device offers for doorbells is mapped read-only,
 * so that a store to it traps in the storing thread; the trap calls the device
 * there and execution goes on behind the instruction. Sites that trapped once
 * are rewritten to call the device without a fault (hca_patch). This takes the
 * signals SIGSEGV and SIGBUS, which stay usable by the program: it sees its
 * own actions and masks, through the functions at the end, which the preload
 * library offers under libc's names.
 *
 * doorbell/ is called by exec/ (pages), resp/ (guarded atomics), fabric/
 * (guarded copies, pages that are exchanged), uverbs/ (device memory, guarded
 * copies), dispatch/ (installation) and preload/ (signals). It calls a function
 * for each store, and knows no queues and devices. This header and hca_push.h
 * are for these callers; the others are for its own files.
 */
#ifndef HCA_TRAP_H
#define HCA_TRAP_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * Called once per store, in the thread that stores, as if the instruction had
 * called it. No lock of the trap is held; registers and errno are preserved. A
 * signal handler of the program may interrupt it, store too, and so enter it
 * again. It must not use long double or MMX, whose registers are not preserved.
 *
 * @param arg     as given to hca_trap_add()
 * @param offset  of the store from the beginning of the range
 * @param value   the bytes stored, valid during the call. A hint: all zero if
 *                they are not known, as always under valgrind
 * @param size    of the store in bytes, 1..64
 */
typedef void (*hca_trap_fn)(void *arg, uintptr_t offset, const void *value,
                            unsigned size);

/* sighandler_t, for files compiled without _GNU_SOURCE. */
typedef void (*hca_trap_sighandler)(int sig);

/**
 * Prepares the trap, without a change to the program. Call it once, before
 * hca_trap_add(); the functions for signals at the end work without it.
 *
 * @param patch  rewrite storing instructions after their first trap, where
 *               that is safe; false: every store traps
 */
void hca_trap_init(bool patch);

/** Installs the handlers, unless they are in place.
 * @return 0, or -errno of sigaction(). */
int hca_trap_install(void);

/**
 * Makes a faulting store to the range call @fn from now on. The first call
 * installs the handlers; each call checks that they are still in place.
 *
 * @param page  mapped readable and not writable by the caller
 * @param len   bytes
 *
 * @return 0, -EINVAL for an empty range, -EEXIST if it overlaps another,
 *         -ENOSPC if there are too many, or -errno of sigaction().
 */
int hca_trap_add(void *page, size_t len, hca_trap_fn fn, void *arg);

/**
 * Calls hca_trap_add() for a page of 4096 bytes with BlueFlame registers. If a
 * trampoline passes a store to hca_push_part(), and that takes it, @fn is not
 * called.
 */
struct hca_push;
int hca_trap_add_push(void *page, hca_trap_fn fn, void *arg,
                      struct hca_push *push);

/**
 * Forgets a range, before it is unmapped. Another thread may still be in a call
 * of its function when this returns, so its arg and push must stay valid.
 *
 * @return 0, or -ENOENT if no range begins at @page.
 */
int hca_trap_del(void *page);

/**
 * Installs the handlers, and calls @fn at each SIGBUS of a memory access from
 * now on: memory behind a mapping of the device file may exist only from the
 * first access on. @fn runs in the handler and must be async-signal-safe; it
 * returns true if the access can be made again. There is one @fn.
 *
 * @return 0, or -errno of sigaction().
 */
int hca_trap_bus(bool (*fn)(const void *addr));

/**
 * Freezes [start, start + len), which the caller is about to make read-only. A
 * store that faults there waits until the range is thawed; it is then made
 * again, so that the pages may be exchanged meanwhile. The handlers must be
 * installed. One range at a time: another caller waits.
 *
 * The same thread thaws, after the range is writable again. Until then all of
 * its signals but SIGSEGV and SIGBUS are blocked, and it must store nothing
 * there.
 */
void hca_trap_freeze(void *start, size_t len);
void hca_trap_thaw(void);

/** Thaws in a forked child, where the thread that froze may not exist. */
void hca_trap_freeze_forked(void);

/**
 * Copies within the process; memory may be inaccessible. Needs the handlers
 * (hca_trap_install()). After an error the bytes of @dst are undefined. The
 * buffers must not overlap.
 *
 * @return 0, or -EFAULT if either side cannot be accessed (unmapped, wrong
 *         protection, beyond the end of a mapped file).
 */
int hca_trap_guard_memcpy(void *dst, const void *src, size_t n);

/** Pieces of one length, each at a stride from the one before it. A stride may
 * be 0. */
struct hca_trap_rows {
    char *to;
    const char *from;
    size_t to_stride, from_stride;
    size_t length, count; /* not 0 */
};

/** Copies rows, the first one first; otherwise as hca_trap_guard_memcpy(). */
int hca_trap_guard_rows(const struct hca_trap_rows *rows);

/**
 * Compares and exchanges, sequentially consistent; memory may be inaccessible.
 * Needs the handlers.
 *
 * @param ptr       aligned
 * @param expected  value that must be there; on -EAGAIN, the value found
 *
 * @return 0, -EAGAIN if another value was there, or -EFAULT if @ptr cannot be
 *         read or written.
 */
int hca_trap_guard_swap4(uint32_t *ptr, uint32_t *expected, uint32_t desired);
int hca_trap_guard_swap8(uint64_t *ptr, uint64_t *expected, uint64_t desired);

/** Calls @fn, which must be async-signal-safe, in the handler before a SIGSEGV
 * or SIGBUS ends the process. */
void hca_trap_at_end(void (*fn)(void));

/*
 * Replacements for libc's functions of these names; semantics, return values
 * and errno are theirs. They may run before any constructor.
 *
 * A program that blocks SIGSEGV or SIGBUS must still be able to trap, so these
 * are never blocked in the kernel. If the program blocks one, a signal that
 * stands for it is blocked instead: 60 for SIGSEGV, 61 for SIGBUS. So the
 * kernel keeps the program's choice in the mask of each thread, through
 * siglongjmp(), threads and fork, and the functions that read a mask translate
 * back. The program cannot use signals 60 and 61 itself.
 */
int hca_trap_sigaction(int sig, const struct sigaction *act,
                       struct sigaction *oldact);
hca_trap_sighandler
hca_trap_signal(int sig, hca_trap_sighandler handler); /* bsd_signal too */
hca_trap_sighandler hca_trap_sysv_signal(int sig, hca_trap_sighandler handler);
int hca_trap_sigprocmask(int how, const sigset_t *set, sigset_t *oldset);
int hca_trap_pthread_sigmask(int how, const sigset_t *set, sigset_t *oldset);

/* Translates @set for functions that wait under a mask of the program.
 * @return @own, with the mask for the kernel; NULL if @set is NULL. */
const sigset_t *hca_trap_wait_mask(const sigset_t *set, sigset_t *own);

#endif
