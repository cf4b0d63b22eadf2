/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Lists, which UCP 1.13 has no operation for: an interface of UCT beside that
 * of the worker, with an endpoint to each peer, and memory of its own domain.
 * A list that finds no room is a pending request.
 */
#ifndef DCX_TEST_FAULTS_LISTS_H
#define DCX_TEST_FAULTS_LISTS_H

#include "rank.h"

/* Bytes of a piece, and of the longest list */
enum { LISTS_PIECE = 256, LISTS_MAX = 4096 };

/* Opens the interface. */
void lists_begin(void);

/* Registers rank.memory, and writes its key and the addresses into the
 * ledger. */
void lists_publish(void);

/* Closes everything; endpoints are closed, and memory of slots is released. */
void lists_end(void);

/* Creates the endpoint to a peer. */
void lists_connect(struct peer *peer);

void lists_close(struct peer *peer);

/* Makes progress, and ends the pending lists of failed endpoints. */
void lists_progress(void);

/* Posts the list of a slot: @length bytes from its buffer to @remote of its
 * peer, or back, in pieces. Registers the buffer for the first one. */
void lists_post(struct slot *slot, size_t length, uint64_t remote, bool is_get);

/* Deregisters the buffer of a slot. */
void lists_end_slot(struct slot *slot);

#endif
