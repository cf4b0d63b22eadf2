/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The program of test/faults: its options, and the ledger, in memory that all
 * processes share. A rank is a process with a worker of UCP; a flow is the
 * operations of one rank (its source) on another (its sink).
 *
 *   faults.c  options, processes, verdict
 *   rank.c    one rank: its worker, endpoints, and order of work
 *   op.c      the kinds of operation: how they are posted and verified
 *   lists.c   those of lists, by UCT
 *   pools.c   what dcx has in use
 *   data.c    payloads
 */
#ifndef DCX_TEST_FAULTS_H
#define DCX_TEST_FAULTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    MAX_RANKS        = 160,
    MAX_ADDRESS      = 1024,
    MAX_KEY          = 256,
    MAX_TAGS         = 16,
    MAX_LIST_ADDRESS = 64 /* also of a device, and a key */
};

/* State of an operation in the ledger, as its source writes it. An error is
 * the (negative) status. */
enum { OP_NONE, OP_POSTED, OP_OK };

/* Phases of a rank, each of which waits for all living ranks */
enum {
    PHASE_START,
    PHASE_READY,    /* has published its address and key */
    PHASE_WIRED,    /* has its endpoints, wired up if any rank has a fault */
    PHASE_DONE,     /* its operations and receives have ended */
    PHASE_CLOSED,   /* its endpoints are closed */
    PHASE_FINISHED, /* its worker is destroyed, nothing was left over */
};

struct op_kind;

/* Event that a rank brings on itself */
struct event {
    unsigned after; /* operations that it has posted by then */
    unsigned stop;  /* milliseconds */
    bool is_kill;
    bool is_set;
};

struct options {
    const struct op_kind *op;
    unsigned ops; /* of each flow */
    unsigned ranks;
    unsigned window;   /* outstanding operations of a flow */
    uint64_t deadline; /* of each wait, in microseconds */
    unsigned within;   /* milliseconds in which all errors come; 0: any */
    int source;        /* the only rank that sends; -1: all do */
    const char *fault[MAX_RANKS];
    struct event event[MAX_RANKS];
    bool is_hit[MAX_RANKS]; /* errors are allowed to and from this rank */
    bool allow[128];        /* allowed errors, by their negated status */
    bool may_fail;          /* an error is allowed */
    bool must_fail;         /* an error is required */
    bool reconnects;        /* a failed endpoint is replaced by a new one */
    bool pages_out;         /* memory is registered on demand, and dropped */
};

struct rank_info {
    pid_t pid;
    _Atomic int phase;
    _Atomic bool is_dead;
    _Atomic uint32_t posted;
    uint64_t first;       /* time at which it begins to post, in microseconds */
    uint64_t memory;      /* address of the memory for puts, gets, atomics */
    uint64_t page_faults; /* of the device, that it has waited for */
    size_t address_length;
    size_t key_length;
    char address[MAX_ADDRESS];
    char key[MAX_KEY];
    char list_device[MAX_LIST_ADDRESS];
    char list_address[MAX_LIST_ADDRESS];
    char list_key[MAX_LIST_ADDRESS];
};

struct flow {
    _Atomic uint32_t handler_calls; /* of the error handler of the source */
    _Atomic int handler_status;
    _Atomic bool is_broken;   /* the source's endpoint has failed */
    _Atomic bool is_complete; /* the source posts no more */
    _Atomic uint32_t received_wrong;
    _Atomic uint64_t last; /* time of the last end, in microseconds */
    _Atomic int8_t *sent;  /* state of each operation */
    _Atomic uint8_t *got;  /* how often the sink received it, verified */
    _Atomic int8_t *lost;  /* status of a receive that ended with an error */
};

struct ledger {
    struct options options;
    _Atomic unsigned pending; /* lists that were a pending request */
    struct rank_info rank[MAX_RANKS];
    struct flow *flow; /* of all pairs, by source */
};

extern struct ledger *ledger;

static inline struct flow *ledger_flow(unsigned source, unsigned sink)
{
    return &ledger->flow[(source * ledger->options.ranks) + sink];
}

static inline bool ledger_sends(unsigned source)
{
    return (ledger->options.source < 0) ||
           ((unsigned)ledger->options.source == source);
}

/* Returns true if a pair exchanges nothing more: one of the two has lost its
 * endpoint, or is dead. */
static inline bool ledger_is_broken(unsigned a, unsigned b)
{
    return ledger_flow(a, b)->is_broken || ledger_flow(b, a)->is_broken ||
           ledger->rank[a].is_dead || ledger->rank[b].is_dead;
}

/* Runs rank @me; returns the status of its process. */
int rank_run(unsigned me);

#endif
