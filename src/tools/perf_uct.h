/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * dcx through UCT's public interface: the domain, one interface, the endpoint
 * to the peer, and a mailbox of one message. One thread. A failure, or the end
 * of the peer, ends the process.
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
    uct_component_h component;
    uct_md_h md;
    ucs_async_context_t *async;
    uct_worker_h worker;
    uct_iface_h iface;
    uct_iface_attr_t attr;
    uct_ep_h ep;
    size_t max_pieces;            /* of a key: UCX_DCX_UMR_MAX_ENTRIES */
    char device[PERF_DEVICE_MAX]; /* the one in use, "mlx5_0:1" */
    const struct perf_boot *boot;
    bool has_failed; /* the endpoint has failed */
    bool may_end;    /* neither this nor the end of the peer is an error */
    unsigned idle;   /* empty polls; PERF_IDLE_MAX of them: check the peer */
    bool has_mail;
    uint8_t mail[PERF_MAIL_MAX];
};

/* An interface's address, as sent to the peer */
struct perf_address {
    uint8_t device[PERF_ADDRESS_MAX];
    uint8_t iface[PERF_ADDRESS_MAX];
};

/* Opens the domain and the interface. @device: such as "mlx5_0:1", or NULL for
 * the first one */
void perf_uct_open(struct perf_uct *uct, const struct perf_boot *boot,
                   const char *device);

/* Opens the domain and the interface. @more: further parameters of the
 * interface, or NULL. @return the status of uct_iface_open(). Other failures
 * end the process. */
ucs_status_t perf_uct_open_with(struct perf_uct *uct,
                                const struct perf_boot *boot,
                                const char *device,
                                const uct_iface_params_t *more);

void perf_uct_address(struct perf_uct *uct, struct perf_address *address);
void perf_uct_connect(struct perf_uct *uct, const struct perf_address *peer);
void perf_uct_close(struct perf_uct *uct);

/* Ends the process if the peer has ended, unless uct->may_end. Yields the
 * processor. */
void perf_uct_look_after(struct perf_uct *uct);

/* Progresses once, in a loop that waits for something. @return the number of
 * events. */
static inline unsigned perf_uct_progress(struct perf_uct *uct)
{
    unsigned count = uct_worker_progress(uct->worker);

    if (uct->has_failed ||
        ((count == 0) && (++uct->idle % PERF_IDLE_MAX == 0))) {
        perf_uct_look_after(uct);
    }
    return count;
}

/* Send up to PERF_MAIL_MAX bytes; wait for the next message, and copy its first
 * @length bytes. */
void perf_uct_send(struct perf_uct *uct, const void *mail, size_t length);
void perf_uct_receive(struct perf_uct *uct, void *mail, size_t length);

/* Waits until all posted operations are complete. */
void perf_uct_flush(struct perf_uct *uct);

/* Ends the process if @status is an error. @what: the failed action */
void perf_uct_check(ucs_status_t status, const char *what);

#endif
