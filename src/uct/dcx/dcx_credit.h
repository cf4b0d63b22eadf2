/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The arithmetic of flow control: how many active messages an endpoint may
 * send before it hears from the receiver, and how many a receiver promises to
 * all of its peers together. A credit is one message, and one receive buffer.
 * Pure code: no device, no endpoint, no UCX. Its user is dcx_fc.c.
 */
#ifndef UCT_DCX_CREDIT_H
#define UCT_DCX_CREDIT_H

#include <stdint.h>
#include <string.h>


/* Resolved when the interface opens. */
typedef struct uct_dcx_credit_sizes {
    uint16_t window;  /* what an endpoint has at most */
    uint16_t initial; /* what an endpoint of a peer begins with */
    uint16_t reserve; /* what is left when an endpoint asks for more */
    uint16_t limit;   /* what is promised to all peers at a time */
} uct_dcx_credit_sizes_t;

/* Ask for the default of uct_dcx_credit_sizes() */
#define UCT_DCX_CREDIT_AUTO  UINT16_MAX


/* What an endpoint has, cut in two: when 'left' is used up the endpoint asks,
 * and goes on with the reserve. */
typedef struct uct_dcx_credit {
    uint16_t left;
    uint16_t reserve;
} uct_dcx_credit_t;


/* The receiver's account. Messages are counted from the interface's beginning,
 * and the count runs over. */
typedef struct uct_dcx_credit_book {
    uint32_t limit;
    uint32_t promised; /* the count of messages when all promised ones came */
    uint16_t least;    /* what is worth a grant */
} uct_dcx_credit_book_t;


/* Since when none of the promised messages has come, of a receiver that waits
 * for them. Time in any unit. */
typedef struct uct_dcx_credit_quiet {
    uint32_t out;   /* not come by then */
    uint64_t since; /* 0: not looked at the clock yet */
} uct_dcx_credit_quiet_t;


/* How many endpoints ask: those told apart by a hash in this and in the last
 * window of requests. Their number takes no state for each of them. */
enum {
    UCT_DCX_CREDIT_LOG_WINDOW = 10, /* requests, and places of the hash */
    UCT_DCX_CREDIT_WINDOW     = 1 << UCT_DCX_CREDIT_LOG_WINDOW
};

typedef struct uct_dcx_credit_crowd {
    uint64_t seen[UCT_DCX_CREDIT_WINDOW / 64];
    uint16_t requests; /* in this window */
    uint16_t count;    /* endpoints in this window */
    uint16_t before;   /* ... in the last one */
} uct_dcx_credit_crowd_t;


/* 'queue_len' receive buffers: one half is for what endpoints begin with, the
 * other for grants. 'thresh' is the part of the window that is the reserve. */
static inline uct_dcx_credit_sizes_t
uct_dcx_credit_sizes(unsigned queue_len, unsigned window, unsigned initial,
                     double thresh)
{
    uct_dcx_credit_sizes_t sizes;

    if (window == UCT_DCX_CREDIT_AUTO) {
        window = (queue_len > 16) ? queue_len / 16 : 1;
    }

    if (initial == UCT_DCX_CREDIT_AUTO) {
        initial = (window + 7) / 8;
    }

    sizes.window  = window;
    sizes.initial = initial;
    sizes.reserve = (uint16_t)(sizes.window * thresh);
    sizes.limit   = (queue_len > 1) ? queue_len / 2 : 1;
    return sizes;
}


/* An endpoint has 'total'. Most of it may be reserve: it asks at once then. */
static inline uct_dcx_credit_t
uct_dcx_credit_split(unsigned total, unsigned reserve)
{
    uct_dcx_credit_t credit;

    credit.reserve = (reserve < total) ? reserve : total;
    credit.left    = total - credit.reserve;
    return credit;
}


/* The account of a receiver that has 'received' so many. */
static inline uct_dcx_credit_book_t
uct_dcx_credit_open(const uct_dcx_credit_sizes_t *sizes, uint32_t received)
{
    uct_dcx_credit_book_t book;
    unsigned least = (sizes->window + 3) / 4;

    least         = (least < sizes->initial) ? sizes->initial : least;
    book.limit    = sizes->limit;
    book.promised = received;
    book.least    = (least < sizes->limit) ? least : sizes->limit;
    return book;
}


/* How many of the promised messages have not come. */
static inline uint32_t
uct_dcx_credit_out(const uct_dcx_credit_book_t *book, uint32_t received)
{
    int32_t out = (int32_t)(book->promised - received);

    return (out > 0) ? out : 0;
}


static inline void
uct_dcx_credit_promise(uct_dcx_credit_book_t *book, uint32_t received,
                       unsigned credits)
{
    book->promised = received + uct_dcx_credit_out(book, received) + credits;
}


/* The last one received was none of the promised ones. */
static inline void
uct_dcx_credit_skip(uct_dcx_credit_book_t *book, uint32_t received)
{
    if ((int32_t)(book->promised - received) >= 0) {
        book->promised++;
    }
}


/* An endpoint asks, known by 'who'. */
static inline void
uct_dcx_credit_crowd_add(uct_dcx_credit_crowd_t *crowd, uint32_t who)
{
    uint32_t place = (who * 0x9e3779b1u) >> (32 - UCT_DCX_CREDIT_LOG_WINDOW);
    uint64_t bit   = (uint64_t)1 << (place % 64);

    if (!(crowd->seen[place / 64] & bit)) {
        crowd->seen[place / 64] |= bit;
        crowd->count++;
    }

    if (++crowd->requests == UCT_DCX_CREDIT_WINDOW) {
        memset(crowd->seen, 0, sizeof(crowd->seen));
        crowd->before   = crowd->count;
        crowd->count    = 0;
        crowd->requests = 0;
    }
}


static inline unsigned
uct_dcx_credit_crowd_size(const uct_dcx_credit_crowd_t *crowd)
{
    return (crowd->count > crowd->before) ? crowd->count : crowd->before;
}


/* How many more may be promised. */
static inline uint32_t
uct_dcx_credit_room(const uct_dcx_credit_book_t *book, uint32_t received)
{
    uint32_t out = uct_dcx_credit_out(book, received);

    return (out < book->limit) ? book->limit - out : 0;
}


/* Whether an endpoint that wants 'want' is given any. */
static inline int uct_dcx_credit_has_room(const uct_dcx_credit_book_t *book,
                                          uint32_t received, unsigned want)
{
    return uct_dcx_credit_room(book, received) >=
           ((want < book->least) ? want : book->least);
}


/* What it is given then: its share among so many that ask. If that is not
 * worth a grant, they have turns. Either way whoever asks first gets no more
 * than whoever asks last. */
static inline unsigned
uct_dcx_credit_grant(uct_dcx_credit_book_t *book, uint32_t received,
                     unsigned want, unsigned crowd)
{
    uint32_t room  = uct_dcx_credit_room(book, received);
    uint32_t share = book->limit / ((crowd > 0) ? crowd : 1);
    uint32_t grant = (share < book->least) ? book->least : share;

    grant = (grant > want) ? want : grant;
    grant = (grant > room) ? room : grant;
    uct_dcx_credit_promise(book, received, grant);
    return grant;
}


/* Begins to wait. */
static inline void uct_dcx_credit_listen(uct_dcx_credit_quiet_t *quiet,
                                         const uct_dcx_credit_book_t *book,
                                         uint32_t received)
{
    quiet->out   = uct_dcx_credit_out(book, received);
    quiet->since = 0;
}


/* Whether a promised message has come since then, or since the last call: the
 * clock need not be looked at. Requests and grants are none of those. */
static inline int
uct_dcx_credit_heard(uct_dcx_credit_quiet_t *quiet,
                     const uct_dcx_credit_book_t *book, uint32_t received)
{
    if (uct_dcx_credit_out(book, received) >= quiet->out) {
        return 0;
    }

    uct_dcx_credit_listen(quiet, book, received);
    return 1;
}


/* None has. Whether that is so for as long as 'patience'; if so, it begins
 * again. */
static inline int uct_dcx_credit_is_quiet(uct_dcx_credit_quiet_t *quiet,
                                          uint64_t now, uint64_t patience)
{
    int has_begun = quiet->since != 0;

    if (has_begun && (now - quiet->since < patience)) {
        return 0;
    }

    quiet->since = now;
    return has_begun;
}


/* Nothing is on the way, but nothing can be granted either: peers that have
 * credits do not use them, and some may be dead. Half is written off. */
static inline void
uct_dcx_credit_forgive(uct_dcx_credit_book_t *book, uint32_t received)
{
    book->promised = received + uct_dcx_credit_out(book, received) / 2;
}

#endif
