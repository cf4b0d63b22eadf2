/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Threads of all processes, as the kernel numbers them. A number is another
 * thread's some time after the first has ended: with the time of its start it
 * is unique.
 */
#ifndef HCA_TASK_H
#define HCA_TASK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Reads the state of a thread ('Z': it has ended, but not its process, or its
 * parent has not waited for that) and its start in clock ticks after boot; the
 * number of a process is that of its first thread.
 * @return 0, -ESRCH (there is none), or -errno: unknown, for want of a
 *         descriptor for example. */
int hca_task_stat(pid_t tid, char *state, uint64_t *start);

/* Number of this thread (bits 0 to 29), and the lower half of its start (from
 * bit 32 on; 0: unknown). In the static TLS block: signal handlers use it. */
extern __thread uint64_t hca_task_id __attribute__((tls_model("initial-exec")));

/* Sets hca_task_id, and returns it. */
uint64_t hca_task_identify(void);

/* Returns hca_task_id, which is set at the first call. */
static inline uint64_t hca_task_self(void)
{
    return __builtin_expect(hca_task_id != 0, 1) ? hca_task_id :
                                                   hca_task_identify();
}

/* Returns true if the thread of that hca_task_id has ended; false if that is
 * unknown. Reads a file. */
bool hca_task_is_dead(uint64_t id);

/* Forgets hca_task_id in a forked child. */
void hca_task_forked(void);

#endif
