/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The table of flow control (fc/), which grows: an entry for each endpoint that
 * has requested credits. It is in this room as entries are given back when
 * endpoints fail or are destroyed; the loan stays in them. Owned by the thread
 * that progresses the interface.
 */
#ifndef UCT_DCX_FC_TABLE_H
#define UCT_DCX_FC_TABLE_H

#include "uct/dcx/base/dcx_credit.h"
#include "uct/dcx/queue/dcx_endpoint.h"


typedef struct uct_dcx_fc_entry {
    uct_dcx_ep_t          *ep;     /* NULL: this entry is free */
    uct_dcx_av_t          av;      /* of the last endpoint that it was for */
    uct_dcx_credit_loan_t loan;    /* is returned with the next request, of that
                                    * endpoint or another to the same target */
    uint16_t              reserve; /* credits left when it requests more */
    uint16_t              seq;     /* of the last request from this entry */
    uint16_t              ticks;   /* of the timer, since it is blocked */
    uint16_t              next;    /* free: the next free one */
} uct_dcx_fc_entry_t;


struct uct_dcx_fc_table {
    uct_dcx_fc_entry_t *entries;
    unsigned           num;         /* length of the table */
    unsigned           max;         /* ... at most */
    uint16_t           free;        /* first free one */
    unsigned           num_blocked; /* endpoints that wait for a grant */
};


void uct_dcx_fc_table_init(uct_dcx_fc_table_t *table);
void uct_dcx_fc_table_cleanup(uct_dcx_fc_table_t *table);

/* The entry of an endpoint, a new one if it has none. NULL: there are too many,
 * or memory is short. */
uct_dcx_fc_entry_t *
uct_dcx_fc_table_get(uct_dcx_fc_table_t *table, uct_dcx_ep_t *ep);

/* Has the endpoint, which has requested credits, wait for them. Returns
 * non-zero if it is the only one that does. */
int uct_dcx_fc_table_block(uct_dcx_fc_table_t *table, uct_dcx_ep_t *ep);

/* A grant has come for the endpoint. */
void uct_dcx_fc_table_unblock(uct_dcx_fc_table_t *table, uct_dcx_ep_t *ep);

/* The endpoint goes or fails: of a grant that comes for it the loan is kept for
 * the next one to the same target. */
void uct_dcx_fc_table_leave(uct_dcx_fc_table_t *table, uct_dcx_ep_t *ep);

#endif
