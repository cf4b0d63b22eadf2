/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * What the drivers of test/bench/count-insn have callgrind collect, and under
 * what name it is written. Without callgrind nothing is collected.
 */
#ifndef DCX_BENCH_COLLECT_H
#define DCX_BENCH_COLLECT_H

#include "uct_pair.h"

/* Begins or ends what is collected, if 'on'. */
void bench_collect(int on);

/* Progress until it finds nothing, collected if 'on'. Returns how many calls
 * that found nothing were collected. */
unsigned bench_drain(uct_iface_h iface, int on);

/* Has what was collected written as a part of an operation (such as "post"), and
 * prints that line: in what number of messages, with how many calls of progress
 * that found nothing. */
void bench_dump(const char *op, const char *how, const char *part,
                unsigned messages, unsigned empty);

/* What crosses PCIe from here on, and per message: a line for each kind, with
 * times, bytes and cache lines, if the software device counts it. */
void bench_traffic_begin(void);
void bench_traffic_print(const char *op, const char *how, unsigned messages);

/* Whether 'names', the end of an argv, has this one, or none at all. */
int bench_wanted(const char *name, char **names);

#endif
