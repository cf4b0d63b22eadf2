/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Collection by callgrind for the drivers of test/bench/count-insn, and the
 * names of its dumps. Without callgrind the functions do nothing.
 */
#ifndef DCX_BENCH_COLLECT_H
#define DCX_BENCH_COLLECT_H

#include "uct_pair.h"

/* Starts collection, or stops it if it is under way; does nothing unless
 * @on. */
void bench_collect(int on);

/* Makes progress until nothing is left to do, collected if 'on'. Returns the
 * number of collected calls that did nothing. */
unsigned bench_drain(uct_iface_h iface, int on);

/* Dumps the collected part of an operation (such as "post"), and prints the
 * name of the dump, with the number of messages and of calls of progress that
 * did nothing. */
void bench_dump(const char *op, const char *how, const char *part,
                unsigned messages, unsigned empty);

/* Count PCIe traffic from begin to print. Printed per message: a line for each
 * kind, with times, bytes and cache lines, if the software device counts it. */
void bench_traffic_begin(void);
void bench_traffic_print(const char *op, const char *how, unsigned messages);

/* Returns 1 if 'names', the end of an argv, contains 'name' or is empty. */
int bench_wanted(const char *name, char **names);

#endif
