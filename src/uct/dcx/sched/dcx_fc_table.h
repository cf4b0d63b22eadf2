/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The table of flow control (fc/): an entry for each endpoint that has
 * requested credits; it grows. It is in sched/ because entries are released
 * when endpoints fail or are destroyed. A free entry keeps the credits that
 * were granted to it. Owned by the thread that progresses the interface.
 */
#ifndef UCT_DCX_FC_TABLE_H
#define UCT_DCX_FC_TABLE_H

#include "uct/dcx/base/dcx_credit.h"
#include "uct/dcx/queue/dcx_endpoint.h"


typedef struct uct_dcx_fc_entry {
    uct_dcx_ep_t *ep;             /* NULL: this entry is free */
    uct_dcx_av_t av;              /* of the entry's last endpoint */
    uct_dcx_credit_extra_t extra; /* returned by the next request, of this
                                   * endpoint or another one to the same
                                   * target */
    uint16_t reserve;             /* credits that are left when it requests
                                   * more */
    uint16_t seq;                 /* of the entry's last request; 0: none */
    uint16_t ticks;               /* reminders sent since that request */
    uint16_t next;                /* of a free entry: the next free one, or
                                   * UCT_DCX_EP_NO_FC_ENTRY */
} uct_dcx_fc_entry_t;


struct uct_dcx_fc_table {
    uct_dcx_fc_entry_t *entries;
    unsigned num;         /* length of the table */
    unsigned max;         /* maximum of @num */
    uint16_t free;        /* first free one, or UCT_DCX_EP_NO_FC_ENTRY */
    unsigned num_blocked; /* endpoints that wait for a grant */
};


void uct_dcx_fc_table_init(uct_dcx_fc_table_t *table);
void uct_dcx_fc_table_cleanup(uct_dcx_fc_table_t *table);

/* Returns the entry of an endpoint, a new one if it has none; valid until the
 * next call, which may move the table. Returns NULL if there are too many, or
 * memory is short. */
uct_dcx_fc_entry_t *uct_dcx_fc_table_get(uct_dcx_fc_table_t *table,
                                         uct_dcx_ep_t *ep);

/* Blocks an endpoint that has requested credits. Returns non-zero if it is the
 * only blocked one. */
int uct_dcx_fc_table_block(uct_dcx_fc_table_t *table, uct_dcx_ep_t *ep);

/* Returns an endpoint, if it has requested credits, to OPEN: its grant has
 * arrived. */
void uct_dcx_fc_table_unblock(uct_dcx_fc_table_t *table, uct_dcx_ep_t *ep);

/* Releases the entry, if any, of an endpoint that fails or is canceled. If a
 * grant for it arrives later, its credits are kept for the next endpoint to the
 * same target. */
void uct_dcx_fc_table_leave(uct_dcx_fc_table_t *table, uct_dcx_ep_t *ep);

#endif
