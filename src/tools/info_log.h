/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Captures errors that UCX and the transport log, as text for the report. One
 * thread.
 */
#ifndef DCX_INFO_LOG_H
#define DCX_INFO_LOG_H

/* From now on, keeps errors and warnings instead of printing them. */
void info_log_keep(void);

/* Returns the first error or warning since the last call; "" if there was none.
 * The text is valid until the next call. */
const char *info_log_take(void);

#endif
