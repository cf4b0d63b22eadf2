/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The fabric: one segment of memory that every process of one user shares
 * whose SOFTHCA_FABRIC names it. It holds what one process' device has to
 * reach in another's: the numbered objects (hca_obj.h) and the arena, from
 * which rings, completion queues and doorbell records come.
 *
 * The segment is a memfd, so that it ends with its last process however that
 * one dies. It is found through the run-time folder (hca_rundir.h): each
 * attached process keeps a directory there, with the link `fabric.<name>` to
 * its descriptor in /proc, and its sysfs tree.
 *
 * An address in the segment is kept as an offset (hca_off_t, 0 for none): each
 * process maps it elsewhere.
 *
 * fabric/ is called by all rooms above it. It keeps objects, memory and
 * processes, and does not know what they are for: who executes on an object,
 * which program made it, which files show the device.
 */
#ifndef HCA_FABRIC_H
#define HCA_FABRIC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <sys/types.h>

typedef uint64_t hca_off_t;

#define HCA_MAX_PROCS   1024u
#define HCA_MAX_DEVS    256u /* hca_dev.h */
#define HCA_DEVS_PER_NODE 16u
#define HCA_MAX_COUNTS  16u /* hca_count.h */
#define HCA_MAX_TRAFFIC 4u  /* hca_traffic.h */
#define HCA_CHUNK_SIZE  (1ul << 20)
#define HCA_CHUNK_KEPT  UINT16_MAX /* hca_arena_keep() */
#define HCA_MAX_CHUNKS  4096u /* 4 GiB of address space, sparse */
#define HCA_ATOMIC_LOCKS 64u

enum hca_proc_state {
    HCA_PROC_FREE,
    HCA_PROC_ALIVE,
    HCA_PROC_DEAD /* found dead; its objects are being taken back */
};

/* One attached process. */
struct hca_proc {
    _Atomic(uint32_t) state;
    uint32_t         gen; /* counts the processes that had this slot */
    pid_t            pid;
    uint64_t         start_time; /* /proc/PID/stat: tells a reused pid */
    int              asks_fd; /* hca_proc_have_watched(); 0: none yet */
    _Atomic(uint32_t) holds; /* keys in use by it this moment */
    _Atomic(uint32_t) freezes; /* odd: some of its pages are read-only now */
    _Atomic(uint32_t) given_up; /* its objects that others have destroyed */
    _Atomic(uint32_t) walk_turn; /* where walks of its keys count: lowest bit */
    uint32_t         node; /* of the devices that it has */
    _Atomic(uint32_t) memory[HCA_DEVS_PER_NODE]; /* of devices, in bytes */
} __attribute__((aligned(64)));

/* Walks of one process over indirect keys, by whose keys they are
 * (obj/hca_walk.h). What one that died had under way ends with it. */
struct hca_walks {
    _Atomic(uint32_t) of[HCA_MAX_PROCS][2];
};

/* Head of the segment. lock guards procs, chunks and object numbers;
 * reap_lock, taken before it, that one process at a time takes back what
 * another left. */
struct hca_fabric {
    uint64_t         magic; /* written last: the segment is ready */
    uint32_t         source; /* sum of the source of who made it */
    pthread_mutex_t  lock;
    pthread_mutex_t  reap_lock;
    struct hca_proc  procs[HCA_MAX_PROCS];
    uint16_t         chunk_owner[HCA_MAX_CHUNKS]; /* proc + 1, 0 free, or
                                                     HCA_CHUNK_KEPT */
    _Atomic(uint8_t) dev_link[HCA_MAX_DEVS]; /* enum hca_link */
    _Atomic(uint16_t) port_down[HCA_MAX_DEVS]; /* by whom; 0: it is up */
    _Atomic(uint32_t) bad_qkeys[HCA_MAX_DEVS]; /* datagrams that had one */
    _Atomic(uint32_t) bad_pkeys[HCA_MAX_DEVS]; /* messages that had one */
    _Atomic(uint32_t) counts[HCA_MAX_DEVS][HCA_MAX_COUNTS];
    _Atomic(uint64_t) traffic[HCA_MAX_DEVS][HCA_MAX_TRAFFIC]; /* of QPs that are
                                                                 gone */
    uint64_t         id;       /* no other of this machine has it */
    _Atomic(uint64_t) num_files; /* of devices, ever opened */
    hca_off_t        tables;
    hca_off_t        arena;
    pthread_mutex_t  atomic_locks[HCA_ATOMIC_LOCKS]; /* hca_atomic.c */
    struct hca_walks walks[HCA_MAX_PROCS]; /* sparse: who attaches has a row */
};

extern struct hca_fabric *hca_fabric; /* NULL until attached */
extern unsigned hca_self;             /* this process' slot */

/* Puts into the directory of this process what else is to be found there.
 * @return 0 or -errno, logged. */
typedef int (*hca_fabric_fill_t)(const char *dir);

struct hca_kind_ops;

/* Attaches this process, once; later calls return the first result. Reads
 * SOFTHCA_DIR, SOFTHCA_FABRIC.
 * @param kinds  of objects, HCA_NUM_KINDS: the same in all processes
 * @param fill  called before any other call returns; NULL: there is nothing
 * @return 0 or -errno, logged with what to do. */
int hca_fabric_attach(const struct hca_kind_ops *kinds,
                      hca_fabric_fill_t fill);

/* Leaves: takes back what this process still holds, removes its directory.
 * Called at exit; a forked child's call does nothing. No doorbell of this
 * thread may come meanwhile: the caller sees to that. */
void hca_fabric_detach(void);

/* Before a process ends that does not leave, or that has forked and knows of
 * nothing here: under valgrind, what its search for leaks is not to read. */
void hca_fabric_hide(void);

/* Whether this very process (not one that forked it) is attached now. */
bool hca_fabric_is_attached(void);

/* The directory of this process, with no slash at its end; valid once
 * attached. */
const char *hca_fabric_dir(void);

/* Marks a process as dead and takes back its objects and chunks. Any process
 * may call it once it knows of the death (hca_proc.h), with no lock of that
 * one's objects held; `gen` says which life of the slot is meant. Where a
 * stopped process holds an object, the rest is left to the next caller. As
 * for hca_fabric_detach(), no doorbell of this thread may come meanwhile. */
void hca_fabric_reap(unsigned proc, uint32_t gen);

/* Who goes on with what a process was executing, once its own objects are gone;
 * no object may be locked that the caller of hca_fabric_reap() holds. `heir`
 * returns false if it could not take over all: the next caller tries again.
 * Called before the first object of this process is made. */
void hca_fabric_set_heir(bool (*heir)(unsigned proc));

static inline void *hca_ptr(hca_off_t off)
{
    return (off == 0) ? NULL : (char*)hca_fabric + off;
}

static inline hca_off_t hca_off(const void *ptr)
{
    return (ptr == NULL) ? 0 : (const char*)ptr - (const char*)hca_fabric;
}

#endif
