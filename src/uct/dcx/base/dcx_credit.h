/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The arithmetic of flow control: it limits the active messages that an
 * endpoint may send before it hears from the receiver. A credit is one message,
 * and one receive buffer. Each endpoint has a fixed base of credits; the
 * receiver's bank grants more, and the endpoint's next request returns them. So
 * a receiver stores no state for each peer, only the sum of these grants. Pure
 * code: no device, no endpoint, no UCX. Called by fc/.
 */
#ifndef UCT_DCX_CREDIT_H
#define UCT_DCX_CREDIT_H

#include <stdint.h>

/* Selects the default of a parameter of uct_dcx_credit_bank() */
#define UCT_DCX_CREDIT_AUTO UINT16_MAX

/* Requests in an epoch. A request counts only if the bank offers less than a
 * base for it. A grant that is not returned in its own epoch or the next one
 * expires: its holder has ended, or is idle. Of 50 endpoints that send at the
 * same rate each requests 20 times in an epoch. */
enum { UCT_DCX_CREDIT_EPOCH = 1024 };


/* The receiver's account */
typedef struct uct_dcx_credit_bank {
    uint16_t window; /* maximum credits of an endpoint */
    uint16_t base;   /* credits of its own, restored by each request */
    uint16_t size;   /* maximum of all grants together */
    uint16_t alone;  /* maximum of a grant if there is no other */
    uint16_t share;  /* a grant beside others: 1 / share of the free credits */
    uint16_t epoch;
    uint16_t requests;   /* in this epoch */
    uint32_t granted[2]; /* granted and not returned, in even and in odd epochs:
                          * this one and the previous */
} uct_dcx_credit_bank_t;


/* Credits granted beyond the base, and when */
typedef struct uct_dcx_credit_extra {
    uint16_t credits;
    uint16_t epoch;
} uct_dcx_credit_extra_t;


/* Returns the smaller of two numbers of credits. */
static inline unsigned uct_dcx_credit_min(unsigned a, unsigned b)
{
    return (a < b) ? a : b;
}


/* Returns a bank for @num_bufs receive buffers. Grants are from two fifths of
 * @queue_len, which is more if buffers are longer and therefore fewer; three
 * fifths of the buffers at most. The other buffers are for the bases of
 * endpoints. An endpoint that is alone gets a full window, but no more than its
 * base and a fifth of @queue_len, or two thirds of the bank, which is the
 * default window. With several endpoints each gets, by default, up to a
 * sixteenth of @queue_len, or seven times the base if @base is larger than a
 * seventh of that. The base is by default that of a queue of @num_bufs. */
static inline uct_dcx_credit_bank_t uct_dcx_credit_bank(unsigned num_bufs,
                                                        unsigned queue_len,
                                                        unsigned window,
                                                        unsigned base)
{
    uct_dcx_credit_bank_t bank = {};
    unsigned several           = window; /* window of each of them */
    unsigned own               = window; /* window that is the base's */
    unsigned max_extra;

    if (window == UCT_DCX_CREDIT_AUTO) {
        several = (queue_len > 16) ? queue_len / 16 : 1;
        own     = (num_bufs > 16) ? num_bufs / 16 : 1;
    }

    if (base == UCT_DCX_CREDIT_AUTO) {
        base = (own + 6) / 7;
    }

    if ((window == UCT_DCX_CREDIT_AUTO) && (several + 6 < 7 * base)) {
        several = 7 * base - 6;
    }

    max_extra   = (several > base) ? several - base : 1;
    bank.size   = uct_dcx_credit_min(queue_len * 2 / 5, num_bufs * 3 / 5);
    bank.alone  = uct_dcx_credit_min(queue_len * 2 / 5 / 2, bank.size * 2 / 3);
    bank.share  = (bank.size >= 2 * max_extra) ? bank.size / max_extra : 2;
    bank.base   = base;
    bank.window = (window == UCT_DCX_CREDIT_AUTO) ? base + bank.alone : window;
    return bank;
}


/* Returns the credits that one more endpoint can get beyond its base. Each
 * grant reduces the next one: if n endpoints keep asking, each gets size / (n +
 * share - 1). */
static inline unsigned uct_dcx_credit_offer(const uct_dcx_credit_bank_t *bank)
{
    uint32_t granted   = bank->granted[0] + bank->granted[1];
    uint32_t max_extra = bank->window - bank->base;
    uint32_t offer     = 0;

    if (granted == 0) {
        offer = bank->alone;
    } else if (granted < bank->size) {
        offer = (bank->size - granted) / bank->share;
    }

    return (offer < max_extra) ? offer : max_extra;
}


/* Returns a grant to the bank, unless it has expired. */
static inline void uct_dcx_credit_return(uct_dcx_credit_bank_t *bank,
                                         uct_dcx_credit_extra_t extra)
{
    uint32_t *granted = &bank->granted[extra.epoch & 1];

    if ((uint16_t)(bank->epoch - extra.epoch) < 2) {
        *granted -= (*granted < extra.credits) ? *granted : extra.credits;
    }
}


/* Handles the request of an endpoint that has @left credits and has returned
 * its previous grant. The new grant is @offer, or the excess of @left over the
 * base if that is more. Stores the grant in @extra. Returns the credits to add:
 * with @left they make up the base, of at least one, and the grant. */
static inline unsigned uct_dcx_credit_grant(uct_dcx_credit_bank_t *bank,
                                            unsigned left, unsigned offer,
                                            uct_dcx_credit_extra_t *extra)
{
    unsigned base = (bank->base > 0) ? bank->base : 1;

    if ((offer < base) && (++bank->requests == UCT_DCX_CREDIT_EPOCH)) {
        bank->requests = 0;
        bank->epoch++;
        bank->granted[bank->epoch & 1] = 0;
    }

    extra->credits = (left > base + offer) ? left - base : offer;
    extra->epoch   = bank->epoch;
    bank->granted[bank->epoch & 1] += extra->credits;
    return base + extra->credits - left;
}

#endif
