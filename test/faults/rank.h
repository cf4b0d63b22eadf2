/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * One rank, as op.c and lists.c see it: its peers, with a slot for each
 * outstanding operation and for each posted receive.
 */
#ifndef DCX_TEST_FAULTS_RANK_H
#define DCX_TEST_FAULTS_RANK_H

#include "data.h"
#include "faults.h"

#include <ucp/api/ucp.h>
#include <uct/api/uct.h>

struct peer;

struct slot {
    struct peer *peer;
    unsigned number; /* in its window */
    uint32_t sequence;
    unsigned parts;      /* requests that have not ended; 0: the slot is free */
    ucs_status_t status; /* of the ended ones */
    uint64_t since;      /* time of the post, in microseconds */
    void *request;       /* of a receive */
    uint64_t value;      /* result of an atomic */
    char *buffer;
    ucp_mem_h memh;      /* registered for all operations; or NULL */
    ucp_dt_iov_t *list;  /* pieces of the buffer */
    uct_mem_h list_memh; /* of the buffer, for lists */
};

struct peer {
    unsigned rank;
    ucp_ep_h ep;
    ucp_rkey_h key;
    uct_ep_h list_ep; /* of lists, which have no other */
    uct_rkey_bundle_t list_key;
    bool has_greeted; /* its first message has arrived */
    bool has_failed;  /* its error handler was called */
    bool is_closed;
    uint32_t posted;  /* operations */
    uint32_t checked; /* of the peer on this rank, verified in order */
    uint32_t waited;  /* receives posted */
    struct slot *out;
    struct slot *in;
};

struct rank {
    unsigned me;
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_mem_h memh;
    char *memory;
    size_t memory_length;
    unsigned requests; /* count of outstanding ones */
    uint64_t last;     /* time of the last event, in microseconds */
    struct peer peer[MAX_RANKS];
};

extern struct rank rank;

/* A kind of operation */
struct op_kind {
    const char *name;
    size_t min, max; /* bytes */
    bool is_tag;     /* its sink posts receives */
    bool is_put;     /* its sink verifies memory when the source is told OK */
    bool is_told;    /* OK means that the sink has the data */
    bool is_list;    /* of UCT, by lists.c; without post */
    unsigned pieces; /* of the buffers; 0: they are contiguous */
    ucs_status_ptr_t (*post)(struct slot *slot, ucp_request_param_t *param);
    bool (*end)(struct slot *slot); /* verifies; false: wrong */
    const char *const *environment; /* settings that make UCX take this path */
};

const struct op_kind *op_find(const char *name);

/* Returns the names of all kinds, separated by commas. */
const char *op_names(void);

/* Sets what the kind needs in the environment, unless the user has set it. */
void op_set_environment(const struct op_kind *op);

/* With --page-out: drops the pages of rank.memory, which keeps its data, in
 * some of the calls. */
void op_page_out(void);

/* Returns true if the operations access memory of the peer without its help. */
bool op_is_one_sided(void);

/* Allocates and registers memory, and sets up the handlers of messages. */
void op_begin(void);
void op_begin_peer(struct peer *peer);
void op_end_peer(struct peer *peer);
void op_end(void);

/* Posts the next operation to @peer in a free slot. */
void op_post(struct peer *peer, struct slot *slot);

/* Notes that a request of the slot has ended. */
void op_part_end(struct slot *slot, ucs_status_t status);

/* Returns the bytes of a slot's buffer. */
size_t op_room(void);

/* Posts receives from @peer. */
void op_receive(struct peer *peer);

/* Verifies the puts of @peer that it was told OK for. */
void op_check_puts(struct peer *peer);

bool op_is_all_sent(const struct peer *peer);

/* Cancels the receives from @peer, which has stopped sending. */
void op_cancel(struct peer *peer);

/* Receives the messages of failed endpoints that no receive is for: UCP keeps
 * them in receive buffers of dcx. */
void op_drop_unexpected(void);

/* Returns true if all that @peer sends has arrived, or will not. */
bool op_is_received(const struct peer *peer);

/* Prints and ends the process: something that no fault explains. */
void rank_fail(const char *format, ...)
    __attribute__((format(printf, 1, 2), noreturn));

/* Notes that an operation or a receive has ended. */
void rank_event(void);

/* Error handler of the endpoint to the peer @arg */
void rank_ep_failed(void *arg, ucp_ep_h ep, ucs_status_t status);

#endif
