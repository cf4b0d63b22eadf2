/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * One line per event, to stderr or to the file named by SOFTHCA_LOG_FILE, up
 * to the level of SOFTHCA_LOG (error, warn, info, debug, trace; default warn).
 * If the program replaces the file's descriptor by dup2(), lines go to stderr.
 * Messages are like those of UCX: lower case, object first ("qp 0x10042: ...").
 * A line is built on the stack and written by one write(2), so that any thread
 * may log, also in a signal handler. A line over 512 bytes is cut.
 *
 * base/ is for all other folders, and calls none of them: log lines,
 * descriptors, mutexes, mappings, libc behind the preloaded functions,
 * valgrind.
 */
#ifndef HCA_LOG_H
#define HCA_LOG_H

#include <stdarg.h>

enum hca_log_level {
    HCA_LOG_ERROR, /* cannot go on */
    HCA_LOG_WARN,  /* goes on; a correct program causes none */
    HCA_LOG_INFO,  /* objects and state changes */
    HCA_LOG_DEBUG, /* control path: every ioctl */
    HCA_LOG_TRACE  /* data path: every message */
};

extern enum hca_log_level hca_log_level __attribute__((visibility("hidden")));

/* Reads SOFTHCA_LOG and SOFTHCA_LOG_FILE. A wrong value logs an error, and the
 * default stays. Called once, at load. */
void hca_log_init(void);

/* Writes a line of any level; hca_log() checks the level first. Keeps errno. */
void hca_log_write(enum hca_log_level level, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#define hca_log(_level, ...) \
    do { \
        if (__builtin_expect((_level) <= hca_log_level, 0)) { \
            hca_log_write(_level, __VA_ARGS__); \
        } \
    } while (0)

#define hca_error(...) hca_log(HCA_LOG_ERROR, __VA_ARGS__)
#define hca_warn(...)  hca_log(HCA_LOG_WARN, __VA_ARGS__)
#define hca_info(...)  hca_log(HCA_LOG_INFO, __VA_ARGS__)
#define hca_debug(...) hca_log(HCA_LOG_DEBUG, __VA_ARGS__)
#define hca_trace(...) hca_log(HCA_LOG_TRACE, __VA_ARGS__)

#endif
