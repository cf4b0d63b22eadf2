/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * What UCX and the transport log as errors becomes text of a report: they say
 * best what is wrong. One thread.
 */
#ifndef DCX_INFO_LOG_H
#define DCX_INFO_LOG_H

/* From here on, errors and warnings are kept instead of printed. */
void info_log_keep(void);

/* The first one since the last call; "" if there was none. It stands until the
 * next call. */
const char *info_log_take(void);

#endif
