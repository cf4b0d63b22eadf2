/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Payloads. Each byte follows from the sender, the receiver and the sequence
 * number of the operation, which are also the header, so that a wrong,
 * misplaced or old byte is seen.
 */
#ifndef DCX_TEST_FAULTS_DATA_H
#define DCX_TEST_FAULTS_DATA_H

#include <stddef.h>
#include <stdint.h>

/* Start of each payload */
struct data_id {
    uint16_t from;
    uint16_t to;
    uint32_t sequence;
};

/* Writes the payload of an operation; @length is at least that of the id. */
void data_fill(void *buffer, size_t length, struct data_id id);

/* Writes bytes that no payload begins with. */
void data_spoil(void *buffer, size_t length);

/* Returns 0 if @buffer holds the payload of @id. Otherwise prints the first
 * wrong byte after @what, and returns -1. */
int data_check(const char *what, const void *buffer, size_t length,
               struct data_id id);

#endif
