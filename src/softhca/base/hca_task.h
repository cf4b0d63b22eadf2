/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Threads of all processes, as the kernel numbers them. A number is another
 * thread's some time after the first has ended: with the time of its start it
 * is unique. A program that exec() starts has the number and the start of the
 * program before it, but its stack is elsewhere.
 */
#ifndef HCA_TASK_H
#define HCA_TASK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A thread; of a process, that is its first one. */
struct hca_task {
    char state;       /* 'Z': it has ended; 'T' and 't': it is stopped */
    unsigned threads; /* of its process; 1 for one that waits for its parent */
    uint64_t start;   /* clock ticks after boot */
    uint64_t stack;   /* address of the stack of its program; 0: unknown */
};

/* Reads the file of a thread, or of a process.
 * @return 0, -ESRCH (there is none), or -errno: unknown, for want of a
 *         descriptor for example. */
int hca_task_stat(pid_t tid, struct hca_task *task);

/* Number of this thread (bits 0 to 29), the lowest 16 bits of its start (from
 * bit 32 on; 0: unknown), and 16 bits of its stack's address (from bit 48 on;
 * 0: unknown). In the static TLS block: signal handlers use it. */
extern __thread uint64_t hca_task_id __attribute__((tls_model("initial-exec")));

/* Sets hca_task_id, and returns it. */
uint64_t hca_task_identify(void);

/* Returns hca_task_id, which is set at the first call. */
static inline uint64_t hca_task_self(void)
{
    return __builtin_expect(hca_task_id != 0, 1) ? hca_task_id :
                                                   hca_task_identify();
}

/* Returns true if the thread of that hca_task_id has ended, or its program by
 * exec(); false if that is unknown. Reads a file. */
bool hca_task_is_dead(uint64_t id);

/* Forgets hca_task_id in a forked child. */
void hca_task_forked(void);

#endif
