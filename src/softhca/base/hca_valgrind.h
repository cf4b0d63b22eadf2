/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Detects valgrind. Under it code must not be rewritten, writes below the
 * stack pointer would be reported, and some system calls are unknown.
 */
#ifndef HCA_VALGRIND_H
#define HCA_VALGRIND_H

#include <stdbool.h>

/* @return true if valgrind runs the program. Any thread. The first call reads
 * the environment, so make it outside of signal handlers. */
bool hca_valgrind_active(void);

#endif
