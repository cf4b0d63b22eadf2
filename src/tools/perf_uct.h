/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * dcx, through UCT's public interface: the domain, one interface, the endpoint
 * to the peer, and a mailbox of one message. One thread. What fails ends the
 * process, and so does a peer that is gone.
 */
#ifndef DCX_PERF_UCT_H
#define DCX_PERF_UCT_H

#include "perf_boot.h"

#include <uct/api/uct.h>

enum {
    PERF_MAIL_MAX    = 160,
    PERF_ADDRESS_MAX = 128,
    PERF_DEVICE_MAX  = 64,
    PERF_IDLE_MAX    = 1 << 14
};

struct perf_uct {
    uct_component_h         component;
    uct_md_h                md;
    ucs_async_context_t    *async;
    uct_worker_h            worker;
    uct_iface_h             iface;
    uct_iface_attr_t        attr;
    uct_ep_h                ep;
    size_t                  max_pieces; /* of a key: UCX_DCX_UMR_MAX_ENTRIES */
    char                    device[PERF_DEVICE_MAX];
    const struct perf_boot *boot;
    bool                    has_failed; /* the peer has */
    bool                    may_end;    /* ... and it may go, too */
    unsigned                idle;       /* times that nothing came */
    bool                    has_mail;
    uint8_t                 mail[PERF_MAIL_MAX];
};

/* An interface's address, as the peer gets it */
struct perf_address {
    uint8_t device[PERF_ADDRESS_MAX];
    uint8_t iface[PERF_ADDRESS_MAX];
};

/* device: such as "mlx5_0:1", or NULL for the first one */
void perf_uct_open(struct perf_uct *uct, const struct perf_boot *boot,
                   const char *device);

/* The same; more: further parameters of the interface, or NULL. @return that of
 * uct_iface_open(). */
ucs_status_t
perf_uct_open_with(struct perf_uct *uct, const struct perf_boot *boot,
                   const char *device, const uct_iface_params_t *more);

void perf_uct_address(struct perf_uct *uct, struct perf_address *address);
void perf_uct_connect(struct perf_uct *uct, const struct perf_address *peer);
void perf_uct_close(struct perf_uct *uct);

/* Now and then, while nothing comes: whether the peer is there */
void perf_uct_look_after(struct perf_uct *uct);

/* Once round a loop that waits for something. @return what has come. */
static inline unsigned perf_uct_progress(struct perf_uct *uct)
{
    unsigned count = uct_worker_progress(uct->worker);

    if (uct->has_failed ||
        ((count == 0) && (++uct->idle % PERF_IDLE_MAX == 0))) {
        perf_uct_look_after(uct);
    }
    return count;
}

/* Sends PERF_MAIL_MAX bytes or less; takes the next that comes. */
void perf_uct_send(struct perf_uct *uct, const void *mail, size_t length);
void perf_uct_receive(struct perf_uct *uct, void *mail, size_t length);

/* Until all that was posted is done */
void perf_uct_flush(struct perf_uct *uct);

/* Ends the process if `status` is an error. */
void perf_uct_check(ucs_status_t status, const char *what);

#endif
