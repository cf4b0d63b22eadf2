/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The interface and its parts, each of which is declared in the room that it
 * belongs to. One thread at a time may use an interface (UCT's rule for thread
 * modes single and serialized).
 *
 * iface/ is the room on top: it opens and closes an interface, connects its
 * parts, answers UCT's queries, delivers messages and handles send CQEs. Called
 * by UCT alone. It must not know how a WQE is written, nor which endpoint gets
 * an initiator; no other room includes its headers.
 */
#ifndef UCT_DCX_IFACE_H
#define UCT_DCX_IFACE_H

#include "uct/dcx/dev/dcx_async.h"
#include "uct/dcx/fc/dcx_fc.h"
#include "uct/dcx/tm/dcx_tm.h"


/* Descriptors for waiting, see dcx_event.c */
typedef struct uct_dcx_event {
    int fd; /* ready when the channel or the timer is */
    int timer_fd;
    int timer_runs; /* the timer was set; it may have expired */
} uct_dcx_event_t;


/* Failures of queues and of the device, see dcx_fatal.c */
typedef struct uct_dcx_fatal {
    uct_dcx_async_user_t user;
    uct_dcx_async_watch_t xrq; /* with tag matching */
    uct_dcx_async_watch_t cmd; /* with tag matching: the command QP */
    int is_closed;             /* all operations and endpoints have failed */
} uct_dcx_fatal_t;


typedef struct uct_dcx_count uct_dcx_count_t; /* dcx_count.h */

typedef struct uct_dcx_iface {
    uct_dcx_queues_t super;
    uct_dcx_fc_t fc;
    uct_dcx_event_t event;
    uct_dcx_fatal_t fatal;
    uct_dcx_tm_t tm;
    uct_dcx_count_t *count; /* NULL: operations are not counted */
} uct_dcx_iface_t;


/* Returns non-zero if a failure was reported that progress has not handled
 * yet. */
static inline int uct_dcx_fatal_is_pending(const uct_dcx_iface_t *iface)
{
    return __atomic_load_n(&iface->super.dci.fatal, __ATOMIC_RELAXED) != 0;
}

#endif
