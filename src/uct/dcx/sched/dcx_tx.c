/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * States of initiators and endpoints, and their relation; see dcx_tx.h.
 */
#include "dcx_tx.h"

#include <ucs/debug/log.h>
#include <ucs/sys/math.h>


#define UCT_DCX_DCI_BIT(_state) UCS_BIT(UCT_DCX_DCI_##_state)

/* A state, and the mask of its successors */
typedef struct uct_dcx_state {
    const char *name;
    unsigned next;
} uct_dcx_state_t;


/* Successors of each state in which an endpoint has an exclusive initiator */
#define UCT_DCX_DCI_ENDS \
    (UCT_DCX_DCI_BIT(IDLE) | UCT_DCX_DCI_BIT(LEFT) | UCT_DCX_DCI_BIT(ERROR) | \
     UCT_DCX_DCI_BIT(LOST))

static const uct_dcx_state_t uct_dcx_dci_states[] = {
    [UCT_DCX_DCI_NONE] = {"NONE", 0},
    [UCT_DCX_DCI_IDLE] = {"IDLE", UCT_DCX_DCI_BIT(HELD) |
                                      UCT_DCX_DCI_BIT(WATCHED) |
                                      UCT_DCX_DCI_BIT(LOST)},
    [UCT_DCX_DCI_HELD] = {"HELD", UCT_DCX_DCI_ENDS | UCT_DCX_DCI_BIT(WATCHED) |
                                      UCT_DCX_DCI_BIT(WAITQ)},
    [UCT_DCX_DCI_WATCHED]  = {"WATCHED",
                              UCT_DCX_DCI_ENDS | UCT_DCX_DCI_BIT(WAITQ)},
    [UCT_DCX_DCI_LEFT]     = {"LEFT",
                              UCT_DCX_DCI_BIT(IDLE) | UCT_DCX_DCI_BIT(LOST)},
    [UCT_DCX_DCI_ERROR]    = {"ERROR", UCT_DCX_DCI_ENDS},
    [UCT_DCX_DCI_OPEN]     = {"OPEN", UCT_DCX_DCI_BIT(WAITQ) |
                                          UCT_DCX_DCI_BIT(DRAINING) |
                                          UCT_DCX_DCI_BIT(LOST)},
    [UCT_DCX_DCI_DRAINING] = {"DRAINING", UCT_DCX_DCI_BIT(OPEN) |
                                              UCT_DCX_DCI_BIT(WAITQ) |
                                              UCT_DCX_DCI_BIT(LOST)},
    [UCT_DCX_DCI_WAITQ]    = {"WAITQ", UCT_DCX_DCI_ENDS |
                                           UCT_DCX_DCI_BIT(WATCHED) |
                                           UCT_DCX_DCI_BIT(OPEN) |
                                           UCT_DCX_DCI_BIT(DRAINING)},
    [UCT_DCX_DCI_LOST]     = {"LOST", 0},
};

static_assert(ucs_static_array_size(uct_dcx_dci_states) == UCT_DCX_DCI_LAST,
              "all states");


const char *uct_dcx_tx_state_name(const uct_dcx_dci_t *dci)
{
    return uct_dcx_dci_states[dci->state].name;
}


/* Asserts and traces a transition. @what is the kind of object, @id its number
 * or address. */
static void uct_dcx_tx_check(const uct_dcx_state_t *table, const char *what,
                             uintptr_t id, unsigned state, unsigned next)
{
    ucs_assertv(table[state].next & UCS_BIT(next), "%s 0x%lx: %s -> %s", what,
                id, table[state].name, table[next].name);
    uct_dcx_trace("%s 0x%lx: %s -> %s", what, id, table[state].name,
                  table[next].name);
}


void uct_dcx_tx_set_state(uct_dcx_dci_t *dci, uct_dcx_dci_state_t state)
{
    if (dci->state != state) {
        uct_dcx_tx_check(uct_dcx_dci_states, "DCI", dci->txq.sq.qpn, dci->state,
                         state);
        dci->state = state;

        /* The state is checked before the next WQE. */
        uct_dcx_sq_stop(&dci->txq.sq);
    }
}


/* --- endpoint of an initiator --------------------------------------------- */

void uct_dcx_tx_link(uct_dcx_dci_set_t *set, uct_dcx_dci_t *dci,
                     uct_dcx_ep_t *ep)
{
    uct_dcx_sq_t *sq = &dci->txq.sq;

    set->pool.num_idle--;
    dci->ep  = ep;
    ep->dci  = dci->index;
    ep->home = dci->index;
    if (ep->flags & UCT_DCX_EP_FLAG_GRANT) {
        set->hand = dci; /* the next grant takes the same one */
    } else {
        dci->last = ep;
    }
    if (set->throttled || set->traced) {
        uct_dcx_tx_set_state(dci, UCT_DCX_DCI_WATCHED);
    } else {
        dci->state = UCT_DCX_DCI_HELD; /* not traced */
    }

    if (set->throttled) {
        sq->limit = ucs_min(sq->capacity, set->pool.share);
    }
}


uct_dcx_ep_t *uct_dcx_tx_unlink(uct_dcx_dci_set_t *set, uct_dcx_dci_t *dci)
{
    uct_dcx_ep_t *ep = dci->ep;

    ucs_assert(uct_dcx_txq_is_idle(&dci->txq));
    uct_dcx_tx_set_state(dci, UCT_DCX_DCI_IDLE);
    dci->txq.turn++;
    dci->txq.sq.limit = dci->txq.sq.capacity;
    uct_dcx_sq_idle(&dci->txq.sq);
    set->pool.num_idle++;

    dci->ep = NULL;
    if (ep != NULL) {
        ep->dci = UCT_DCX_NO_DCI;
    }
    return ep;
}


void uct_dcx_tx_part(uct_dcx_dci_t *dci, uct_dcx_ep_t *ep)
{
    ep->dci = UCT_DCX_NO_DCI;
    if (uct_dcx_dci_is_shared(dci)) {
        return;
    }

    dci->ep = NULL;
    if (dci->state != UCT_DCX_DCI_LOST) {
        uct_dcx_tx_set_state(dci, UCT_DCX_DCI_LEFT);
    }
}


/* --- watching and waiting ------------------------------------------------- */

void uct_dcx_tx_watch(uct_dcx_dci_t *dci)
{
    if (dci->state == UCT_DCX_DCI_HELD) {
        uct_dcx_tx_set_state(dci, UCT_DCX_DCI_WATCHED);
    }
}


void uct_dcx_tx_wait(uct_dcx_dci_t *dci, const uct_dcx_ep_t *ep)
{
    const unsigned works = UCT_DCX_DCI_BIT(HELD) | UCT_DCX_DCI_BIT(WATCHED) |
                           UCT_DCX_DCI_BIT(OPEN);

    if (UCS_BIT(dci->state) & works) {
        uct_dcx_tx_set_state(dci, UCT_DCX_DCI_WAITQ);
    }

    if (dci->served == ep) {
        dci->served = NULL; /* later requests go behind its own */
    }
}


void uct_dcx_tx_unwait(uct_dcx_dci_t *dci)
{
    if ((dci->state == UCT_DCX_DCI_WAITQ) && (dci->served == NULL) &&
        ucs_arbiter_is_empty(&dci->waitq)) {
        uct_dcx_tx_set_state(dci, uct_dcx_dci_is_shared(dci) ?
                                      UCT_DCX_DCI_OPEN :
                                      UCT_DCX_DCI_WATCHED);
    }
}


/* --- quotas --------------------------------------------------------------- */

void uct_dcx_tx_throttle(uct_dcx_dci_set_t *set)
{
    uct_dcx_dci_t *dci;
    unsigned i;

    for (i = 0; i < set->num_created; ++i) {
        dci = &set->dci[set->created[i]];
        uct_dcx_tx_watch(dci);
        uct_dcx_sq_stop(&dci->txq.sq);
        if (dci->ep != NULL) {
            dci->txq.sq.limit = ucs_min(dci->txq.sq.limit, set->pool.share);
        }
    }
    set->throttled = 1;
    set->stuck     = 0;
    uct_dcx_dci_set_open(set);
}


void uct_dcx_tx_unthrottle(uct_dcx_dci_set_t *set)
{
    unsigned i;

    for (i = 0; i < set->num_created; ++i) {
        set->dci[set->created[i]].txq.sq.limit =
            set->dci[set->created[i]].txq.sq.capacity;
    }
    set->throttled = 0;
    uct_dcx_dci_set_open(set);
}


/* The slow path releases the initiator, and resets the limit. */
void uct_dcx_tx_drain(uct_dcx_dci_t *dci)
{
    uct_dcx_tx_watch(dci);
    dci->txq.sq.limit = 0;
    uct_dcx_sq_stop(&dci->txq.sq);
}


void uct_dcx_tx_hold(uct_dcx_dci_set_t *set, uct_dcx_dci_t *dci)
{
    if (set->throttled && !uct_dcx_dci_is_shared(dci) &&
        (set->pool.share < UINT_MAX)) {
        uct_dcx_tx_drain(dci);
    }
}


void uct_dcx_tx_spend(uct_dcx_dci_t *dci, uint16_t num_bb)
{
    uct_dcx_sq_t *sq = &dci->txq.sq;

    if (sq->limit < sq->capacity) {
        sq->limit -= ucs_min(sq->limit, num_bb);
        if (uct_dcx_dci_is_shared(dci) && uct_dcx_txq_is_idle(&dci->txq)) {
            sq->limit = sq->capacity;
        }
        uct_dcx_sq_stop(sq);
    }
}


/* --- endpoints ------------------------------------------------------------ */

#define UCT_DCX_EP_BIT(_state) UCS_BIT(UCT_DCX_EP_##_state)

static const uct_dcx_state_t uct_dcx_ep_states[] = {
    [UCT_DCX_EP_OPEN]      = {"OPEN", UCT_DCX_EP_BIT(REQUESTED) |
                                          UCT_DCX_EP_BIT(GIVEN_UP) |
                                          UCT_DCX_EP_BIT(FAILED)},
    [UCT_DCX_EP_REQUESTED] = {"REQUESTED",
                              UCT_DCX_EP_BIT(OPEN) | UCT_DCX_EP_BIT(BLOCKED)},
    [UCT_DCX_EP_BLOCKED]   = {"BLOCKED", UCT_DCX_EP_BIT(OPEN)},
    [UCT_DCX_EP_GIVEN_UP]  = {"GIVEN_UP", UCT_DCX_EP_BIT(FAILED)},
    [UCT_DCX_EP_FAILED]    = {"FAILED", 0},
};

static_assert(ucs_static_array_size(uct_dcx_ep_states) == UCT_DCX_EP_LAST,
              "all states");


void uct_dcx_tx_check_ep(const uct_dcx_ep_t *ep, uct_dcx_ep_state_t state)
{
    uct_dcx_tx_check(uct_dcx_ep_states, "ep", (uintptr_t)ep, ep->state, state);
}


void uct_dcx_tx_bind(uct_dcx_dci_set_t *set, uct_dcx_ep_t *ep)
{
    uct_dcx_binding_t binding = uct_dcx_dci_set_bind(set);

    ep->state  = UCT_DCX_EP_OPEN;
    ep->dci    = binding.dci;
    ep->stream = binding.stream;
    ep->last   = 0;
    ep->flags  = (binding.dci != UCT_DCX_NO_DCI) ? UCT_DCX_EP_FLAG_SHARED : 0;
}


void uct_dcx_tx_unbind(uct_dcx_ep_t *ep)
{
    ep->dci = UCT_DCX_NO_DCI;
    if (ep->state == UCT_DCX_EP_FAILED) {
        ep->left = UCT_DCX_NO_DCI;
    }
}


void uct_dcx_tx_fail(uct_dcx_ep_t *ep, ucs_status_t status)
{
    uct_dcx_tx_set_ep(ep, UCT_DCX_EP_FAILED);
    ep->error = -status;
    ep->left  = ep->dci; /* only a shared one */
    ep->dci   = UCT_DCX_NO_DCI;
}
