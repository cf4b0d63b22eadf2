/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/* dcx_info --live: the figures of a running process; see info_live.c. */
#ifndef DCX_INFO_LIVE_H
#define DCX_INFO_LIVE_H

/* Prints the figures of the process with this number. Returns the exit status;
 * prints the reason to stderr unless it is INFO_GOOD. */
int info_live_print(const char *pid);

#endif
