/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Two interfaces of one transport in one process, an endpoint from the first to
 * the second, and registered memory, for the drivers in this folder. Each
 * interface has a worker of its own, so that sender and receiver make progress
 * separately. Uses public functions of UCT only; an error ends the process.
 */
#ifndef DCX_BENCH_UCT_PAIR_H
#define DCX_BENCH_UCT_PAIR_H

#include <ucs/async/async_fwd.h>
#include <uct/api/uct.h>

#define BENCH_CHECK(_expr) bench_check((_expr), #_expr)

enum { BENCH_MEM_SIZE = 1 << 23 };

struct bench_side {
    ucs_async_context_t *async;
    uct_worker_h worker;
    uct_iface_h iface;
    uct_iface_attr_t attr;
    void *dev_addr;
    void *iface_addr;
};

struct bench_pair {
    uct_component_h component;
    uct_md_h md;
    struct bench_side a; /* sender */
    struct bench_side b; /* receiver */
    uct_ep_h ep;         /* from a to b */
    uint8_t *mem;        /* BENCH_MEM_SIZE bytes, for both sides */
    uct_mem_h memh;
    uct_rkey_bundle_t rkey;
};


/* Ends the process if 'status' is an error. */
void bench_check(ucs_status_t status, const char *what);

/* Opens 'tl' (such as "dcx") on 'dev' (such as "mlx5_0:1"). */
void bench_pair_open(struct bench_pair *pair, const char *tl, const char *dev);

/* Opens the same with tag matching. A tagged message that does not match a
 * posted receive goes to 'eager_cb'; an unexpected rendezvous ends the
 * process. */
void bench_pair_open_tm(struct bench_pair *pair, const char *tl,
                        const char *dev, uct_tag_unexp_eager_cb_t eager_cb,
                        void *eager_arg);

void bench_pair_close(struct bench_pair *pair);

/* Opens another interface on the memory domain of the pair, with a worker of
 * its own; the caller closes it before the pair. */
void bench_side_open(struct bench_pair *pair, struct bench_side *side,
                     const char *tl, const char *dev);

void bench_side_close(struct bench_side *side);

/* Has an interface drop active messages with this id. */
void bench_side_drop(struct bench_side *side, uint8_t id);

/* Makes progress on both sides until nothing is outstanding on 'side'. */
void bench_side_flush(const struct bench_side *side,
                      const struct bench_side *peer);

/* Creates another endpoint from a to b; the caller destroys it. */
uct_ep_h bench_pair_connect(const struct bench_pair *pair);

/* Makes progress until nothing is outstanding on a. */
void bench_pair_flush(const struct bench_pair *pair);

#endif
