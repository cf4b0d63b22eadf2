/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Captures errors and warnings that UCX and the transport log, as text for the
 * report. One thread.
 */
#ifndef DCX_INFO_LOG_H
#define DCX_INFO_LOG_H

/* Makes UCX's log keep errors, warnings and diagnostics instead of printing
 * them. Call once. */
void info_log_keep(void);

/* Returns the first message of the most severe level since the last call, cut
 * to 255 bytes; "": none. The text is valid until the next call. */
const char *info_log_take(void);

#endif
