/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The segment of the fabric: memory that all its processes have mapped. It
 * holds all that one process' device has to reach in another's: the table of
 * processes, the numbered objects (hca_obj.h) and the arena (hca_arena.h), from
 * which rings, completion queues and doorbell records come.
 *
 * It is a memfd, so that it ends with its last process however that one dies.
 * An address in it is kept as an offset (hca_off_t, 0 for none): each process
 * maps it elsewhere.
 *
 * hca_fabric.c decides when it is created, mapped and hidden.
 */
#ifndef HCA_SEGMENT_H
#define HCA_SEGMENT_H

#include "hca_rule.h"
#include "softhca/base/hca_mutex.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef uint32_t hca_off_t;

#define HCA_MAX_PROCS     1024u
#define HCA_MAX_DEVS      256u /* hca_dev.h */
#define HCA_DEVS_PER_NODE 16u
#define HCA_MAX_COUNTS    24u         /* hca_count.h */
#define HCA_MAX_TRAFFIC   8u          /* hca_traffic.h */
#define HCA_CHUNK_SIZE    (1ul << 20) /* bytes */
#define HCA_MAX_CHUNKS    3072u       /* 3 GiB of address space, sparse */
#define HCA_ATOMIC_LOCKS  64u
#define HCA_ARENA         (1ul << 30) /* offset of the chunks, behind tables */
#define HCA_MAX_OFF       (HCA_ARENA + HCA_MAX_CHUNKS * HCA_CHUNK_SIZE)
#define HCA_PIT_SIZE      (8ul << 20) /* behind them; nothing uses it */
#define HCA_SHARE_RUNS    1024u       /* hca_share.h */

enum hca_proc_state {
    HCA_PROC_FREE,
    HCA_PROC_ALIVE,
    HCA_PROC_DEAD /* found dead, or has left; others free the slot */
};

/* A slot of an attached process. */
struct hca_proc {
    _Atomic(uint32_t) state;
    uint32_t gen; /* counts the processes that had this slot */
    pid_t pid;
    uint64_t start_time, stack; /* hca_task.h: detect a reused pid, exec() */
    uint64_t asks_inode;        /* of asks_fd: likewise */
    _Atomic(int) asks_fd;       /* hca_proc_have_watched(); 0: none yet */
    _Atomic(uint32_t) freezes;  /* odd: some of its pages are read-only now */
    _Atomic(uint32_t) turn;     /* lowest bit: index in hca_accesses.of */
    uint32_t node;              /* of its devices */
    _Atomic(uint16_t) failed;   /* its devices that have failed: a bit each */
    _Atomic(uint32_t) memory[HCA_DEVS_PER_NODE]; /* device memory, in bytes */
} __attribute__((aligned(64)));

/* Accesses of one process to mkeys that are under way, by the owner of the
 * mkeys (obj/hca_mkey.h). Those of a dead process do not count. */
struct hca_accesses {
    _Atomic(uint32_t) of[HCA_MAX_PROCS][2];
};

/* Memory of a process that peers may map: a part of a file. */
struct hca_share_run {
    uint64_t start, end; /* addresses in the process */
    uint64_t id;         /* unique on the fabric, for all time */
    uint64_t offset;     /* of start in the file */
    uint64_t dev, inode; /* of the file */
    int32_t file;        /* descriptor of the process, or a shmid (is_sysv) */
    bool is_sysv;        /* shmat() maps it */
    bool is_writable;
};

/* The runs of one process, in the order of addresses, none over another. The
 * process writes them; peers read them without a lock (hca_share_map.c). */
struct hca_share {
    _Atomic(uint32_t) seq; /* odd: being written, or the process has ended */
    uint32_t count;
    struct hca_share_run runs[HCA_SHARE_RUNS];
} __attribute__((aligned(64)));

/* Head of the segment. lock guards procs, chunks and slots of objects. With
 * reap_lock, taken before it, one process at a time frees what another left. */
struct hca_fabric {
    uint64_t magic;  /* written last: the segment is ready */
    uint32_t source; /* checksum of the source of the creator's library */
    struct hca_mutex lock;
    struct hca_mutex reap_lock;
    struct hca_mutex xrcd_lock; /* hca_domain.c */
    struct hca_proc procs[HCA_MAX_PROCS];
    _Atomic(uint32_t) procs_end; /* no slot from here on was ever used */
    uint16_t chunk_owner[HCA_MAX_CHUNKS];       /* slot + 1, 0 free */
    _Atomic(uint8_t) dev_link[HCA_MAX_DEVS];    /* HCA_LINK_* of hca_dev.h */
    _Atomic(uint16_t) dev_subnet[HCA_MAX_DEVS]; /* number + 1; 0: unset */
    _Atomic(uint16_t) port_down[HCA_MAX_DEVS];  /* keeper's slot; 0: it is up */
    _Atomic(uint32_t) bad_qkeys[HCA_MAX_DEVS];  /* datagrams that had one */
    _Atomic(uint32_t) bad_pkeys[HCA_MAX_DEVS];  /* messages that had one */
    _Atomic(uint32_t) counts[HCA_MAX_DEVS][HCA_MAX_COUNTS];
    /* of destroyed QPs */
    _Atomic(uint64_t) traffic[HCA_MAX_DEVS][HCA_MAX_TRAFFIC];
    _Atomic(bool) has_rules; /* some process has, or had, rules of faults */
    struct hca_rule rules[HCA_MAX_RULES]; /* of the fabric: hca_rules.h */
    uint64_t id;                          /* unique on this machine */
    _Atomic(uint64_t) num_runs;           /* of hca_share_run.id, ever used */
    hca_off_t tables;
    struct hca_mutex atomic_locks[HCA_ATOMIC_LOCKS]; /* hca_atomic.c */
    struct hca_accesses accesses[HCA_MAX_PROCS];     /* sparse: by process */
    /* sparse, too; hca_segment_hide() hides them */
    struct hca_share shares[HCA_MAX_PROCS] __attribute__((aligned(4096)));
};

/* NULL until mapped */
extern struct hca_fabric *hca_fabric __attribute__((visibility("hidden")));
/* this process' slot; 0: it has none */
extern unsigned hca_self __attribute__((visibility("hidden")));

/* Returns the address of an offset. Any process of this user may have written
 * it: each value leads into the mapping, with HCA_PIT_SIZE bytes behind it. */
static inline void *hca_at(hca_off_t off)
{
    return (char *)hca_fabric + off;
}

static inline void *hca_ptr(hca_off_t off)
{
    return (off == 0) ? NULL : hca_at(off);
}

static inline hca_off_t hca_off(const void *ptr)
{
    return (ptr == NULL) ? 0 : (const char *)ptr - (const char *)hca_fabric;
}

/* Creates the memory of a new fabric, @size bytes. @return descriptor (the
 * caller's) or -errno, logged. */
int hca_segment_create(const char *name, size_t size);

/* Maps all of it as hca_fabric. @fd, which the caller has marked, stays open;
 * after an error or hca_segment_unmap() the caller closes it.
 * @return 0 or -errno. */
int hca_segment_map(int fd);
void hca_segment_unmap(void);

/* Maps pages of it a second time, in place of the pages at @to. Calls the
 * kernel directly, past any hook. @return 0 or -errno. */
int hca_segment_map_again(const void *from, size_t size, void *to);

/* Makes the objects and all chunks but those of this process inaccessible.
 * valgrind's search for leaks, which comes after this, would read the whole
 * segment and so fill its holes: gigabytes, for minutes. */
void hca_segment_hide(void);

#endif
