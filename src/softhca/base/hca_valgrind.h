/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Whether the program is run by valgrind. Then code must not be rewritten,
 * writes below the stack pointer would be reported, and some system calls are
 * unknown.
 */
#ifndef HCA_VALGRIND_H
#define HCA_VALGRIND_H

#include <stdbool.h>

/* Found out by the first call; any thread, also in a signal handler. */
bool hca_valgrind_active(void);

#endif
