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
 * doorbell/ is called by exec/ (pages, guarded atomics), fabric/ (guarded
 * copies, pages that are exchanged), uverbs/ (device memory) and preload/
 * (signals). It calls a function for a store and does not know what a queue or
 * a device is. This header is its door; the others are for its own files.
 */
#ifndef HCA_TRAP_H
#define HCA_TRAP_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * Called once per store, in the thread that stores, as if the instruction had
 * called it: no lock of the trap is held, registers and errno are preserved
 * around it, and a signal handler of the program that stores too may interrupt
 * and enter it again. It must not use long double or MMX, whose
 * registers are not preserved.
 *
 * @param arg     as given to hca_trap_add()
 * @param offset  of the store from the beginning of the page
 * @param value   the bytes stored, valid during the call. A hint: all zero
 *                where it cannot be known, which is always so under valgrind
 * @param size    of the store in bytes, 1..64
 */
typedef void (*hca_trap_fn)(void *arg, uintptr_t offset, const void *value,
                            unsigned size);

/* sighandler_t, for files compiled without _GNU_SOURCE. */
typedef void (*hca_trap_sighandler)(int sig);

/**
 * Prepares the trap. Nothing of the program is changed yet. Call it once,
 * before hca_trap_add(); the functions for signals at the end work without it.
 *
 * @param patch  rewrite storing instructions after their first trap, where
 *               that is safe; false: every store traps
 */
void hca_trap_init(bool patch);

/** Installs the handlers, once. @return 0, or -errno of sigaction. */
int hca_trap_install(void);

/**
 * Makes a faulting store to the range call @fn from now on. The first call
 * installs the handlers; each call checks that they are still in place.
 *
 * @param page  mapped readable and not writable by the caller
 * @param len   bytes
 *
 * @return 0, -EINVAL for an empty range, -EEXIST if it overlaps another,
 *         -ENOSPC if too many are known, or -errno of sigaction.
 */
int hca_trap_add(void *page, size_t len, hca_trap_fn fn, void *arg);

/**
 * hca_trap_add() for a page of 4096 bytes that has BlueFlame registers, too.
 * For a store that hca_push_part() takes, @fn may not be called.
 */
struct hca_push;
int hca_trap_add_push(void *page, hca_trap_fn fn, void *arg,
                      struct hca_push *push);

/**
 * Forgets a range, before it is unmapped. A call of its function that has begun
 * in another thread may still be running when this returns.
 *
 * @return 0, or -ENOENT if no range begins at page.
 */
int hca_trap_del(void *page);

/**
 * Calls @fn at each SIGBUS of a memory access: memory behind a mapping of the
 * device file may exist only from the first access on. Installs the handlers.
 * @fn runs in the handler and must be async-signal-safe; it returns true if the
 * access can be made again.
 *
 * @return 0, or -errno of sigaction.
 */
int hca_trap_bus(bool (*fn)(const void *addr));

/**
 * Makes stores to [start, start + len), which the caller is about to make
 * read-only, wait in their threads until the range is thawed; each store is
 * then made again, so that the pages may be exchanged meanwhile. The handlers
 * must be installed. One range at a time; another caller waits for the first.
 * The caller itself stores nothing there.
 */
void hca_trap_freeze(void *start, size_t len);
void hca_trap_thaw(void);

/** Thaws in a forked child: no thread holds a range. */
void hca_trap_freeze_forked(void);

/**
 * memcpy() within the process that survives inaccessible memory. Needs the
 * handlers, that is, a hca_trap_add() before. After an error the bytes of @dst
 * are undefined. The buffers may not overlap.
 *
 * @return 0, or -EFAULT if either side cannot be accessed (unmapped, wrong
 *         protection, beyond the end of a mapped file).
 */
int hca_trap_guard_memcpy(void *dst, const void *src, size_t n);

/**
 * Compare and exchange, sequentially consistent, on memory that may be
 * inaccessible. Needs the handlers.
 *
 * @param ptr       aligned
 * @param expected  value that must be there; on -EAGAIN, the value found
 *
 * @return 0, -EAGAIN if another value was there, or -EFAULT if it cannot be
 *         written.
 */
int hca_trap_guard_swap4(uint32_t *ptr, uint32_t *expected, uint32_t desired);
int hca_trap_guard_swap8(uint64_t *ptr, uint64_t *expected, uint64_t desired);

/** Calls @fn in the handler before a SIGSEGV or SIGBUS ends the process. */
void hca_trap_at_end(void (*fn)(void));

/*
 * Replacements for libc's functions of these names; semantics, return values
 * and errno are theirs. They may run before any constructor.
 *
 * A program that blocks SIGSEGV or SIGBUS must still be able to trap, so these
 * are never blocked in the kernel. In their place stands a real-time signal
 * that no process sends (60 for SIGSEGV, 61 for SIGBUS): it is blocked when the
 * program means the other. So the kernel keeps the program's wish in the mask
 * of each thread, through siglongjmp(), threads and fork, and the functions
 * that read a mask translate back. The program cannot use those two itself.
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
