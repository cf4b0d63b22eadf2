/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The arithmetic of flow control: how many active messages an endpoint may
 * send before it hears from the receiver. A credit is one message, and one
 * receive buffer. Each endpoint has a base that is its own; what it may send
 * beyond that is lent from a bank, and is returned with its next request. So a
 * receiver knows of its peers no more than the sum of what it has lent.
 * Pure code: no device, no endpoint, no UCX. Its user is fc/.
 */
#ifndef UCT_DCX_CREDIT_H
#define UCT_DCX_CREDIT_H

#include <stdint.h>

/* Asks for a default of uct_dcx_credit_bank() */
#define UCT_DCX_CREDIT_AUTO  UINT16_MAX

/* Requests of an epoch, of those for which the bank has less than a base. A
 * loan that is not returned in its own or the next one is forgotten: its holder
 * has ended, or is idle. Of 50 endpoints that send alike each requests 20 times
 * meanwhile. */
enum {
    UCT_DCX_CREDIT_EPOCH = 1024
};


/* The receiver's account */
typedef struct uct_dcx_credit_bank {
    uint16_t window;   /* what an endpoint of a peer has at most */
    uint16_t base;     /* ... begins with, and is granted at each request */
    uint16_t size;     /* what all of them may be lent at a time */
    uint16_t share;    /* one is lent 1 / share of what is left of that */
    uint16_t epoch;
    uint16_t requests; /* in this epoch */
    uint32_t lent[2];  /* and not returned, of even and of odd epochs: of this
                        * one and the one before */
} uct_dcx_credit_bank_t;


/* Credits beyond the base, and when they were lent */
typedef struct uct_dcx_credit_loan {
    uint16_t credits;
    uint16_t epoch;
} uct_dcx_credit_loan_t;


/* Two fifths of 'queue_len' receive buffers are for loans, the others for the
 * bases of endpoints. One alone is lent a whole window, but no more than half of
 * the bank: by default that. One of several has a sixteenth of the buffers then,
 * or seven times a base that is larger than a seventh of those, at most. */
static inline uct_dcx_credit_bank_t
uct_dcx_credit_bank(unsigned queue_len, unsigned window, unsigned base)
{
    uct_dcx_credit_bank_t bank = {};
    unsigned several           = window; /* of each of them */
    unsigned max_loan;

    if (window == UCT_DCX_CREDIT_AUTO) {
        several = (queue_len > 16) ? queue_len / 16 : 1;
    }

    if (base == UCT_DCX_CREDIT_AUTO) {
        base = (several + 6) / 7;
    }

    if ((window == UCT_DCX_CREDIT_AUTO) && (several + 6 < 7 * base)) {
        several = 7 * base - 6;
    }

    max_loan    = (several > base) ? several - base : 1;
    bank.size   = queue_len * 2 / 5;
    bank.share  = (bank.size >= 2 * max_loan) ? bank.size / max_loan : 2;
    bank.base   = base;
    bank.window = (window == UCT_DCX_CREDIT_AUTO) ?
                  base + bank.size / 2 : window;
    return bank;
}


/* Returns the credits that one more endpoint may be lent. Each loan leaves
 * less for the next one: if n keep asking, they come to
 * size / (n + share - 1) each. */
static inline unsigned uct_dcx_credit_offer(const uct_dcx_credit_bank_t *bank)
{
    uint32_t lent     = bank->lent[0] + bank->lent[1];
    uint32_t max_loan = bank->window - bank->base;
    unsigned share    = (lent == 0) ? 2 : bank->share;
    uint32_t offer    = (lent < bank->size) ? (bank->size - lent) / share : 0;

    return (offer < max_loan) ? offer : max_loan;
}


static inline void uct_dcx_credit_return(uct_dcx_credit_bank_t *bank,
                                         uct_dcx_credit_loan_t loan)
{
    uint32_t *lent = &bank->lent[loan.epoch & 1];

    if ((uint16_t)(bank->epoch - loan.epoch) < 2) {
        *lent -= (*lent < loan.credits) ? *lent : loan.credits;
    }
}


/* The request of an endpoint that has 'left' credits and returned its loan. It is
 * lent 'offer', or what it still has beyond its base if that is more. Returns
 * the credits that it is granted: with those left they are its base, of one at
 * least, and the loan. */
static inline unsigned
uct_dcx_credit_grant(uct_dcx_credit_bank_t *bank, unsigned left,
                     unsigned offer, uct_dcx_credit_loan_t *loan)
{
    unsigned base = (bank->base > 0) ? bank->base : 1;

    if ((offer < base) && (++bank->requests == UCT_DCX_CREDIT_EPOCH)) {
        bank->requests = 0;
        bank->epoch++;
        bank->lent[bank->epoch & 1] = 0;
    }

    loan->credits = (left > base + offer) ? left - base : offer;
    loan->epoch   = bank->epoch;
    bank->lent[bank->epoch & 1] += loan->credits;
    return base + loan->credits - left;
}

#endif
