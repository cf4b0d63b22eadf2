/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/* Use of the pools of dcx in this process; see pools.c. */
#ifndef DCX_TEST_FAULTS_POOLS_H
#define DCX_TEST_FAULTS_POOLS_H

#include <stdbool.h>

/* Notes what is in use; nothing has been sent yet. Returns false if dcx has no
 * interface. */
bool pools_begin(void);

/* Returns true if as much is in use as at the beginning. */
bool pools_are_back(void);

/* Prints what is in use, and what was at the beginning. */
void pools_print(void);

#endif
