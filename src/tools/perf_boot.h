/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Connects the two processes, which then exchange one block of bytes: by PMIx
 * if a launcher started them (perf_boot_pmix.c), or by TCP (perf_boot_tcp.c).
 * All else goes over dcx.
 */
#ifndef DCX_PERF_BOOT_H
#define DCX_PERF_BOOT_H

#include <stdbool.h>
#include <stddef.h>

#define PERF_PORT "13337"

/* A method of connection; its functions end the process if they fail. */
struct perf_boot {
    bool measures; /* this is the near process: rank 0, or started with HOST */
    /* Sends @mine, and waits for @theirs; both have @length bytes */
    void (*swap)(const void *mine, void *theirs, size_t length);
    bool (*is_gone)(void); /* true: the peer is known to have ended */
    void (*close)(void);
};

/* Connects by PMIx. Ends the process if that fails, if the job does not have
 * two processes, or if dcx_perf was built without PMIx. */
void perf_boot_pmix_open(struct perf_boot *boot);

/* Returns a socket that listens on @port; prints a line that says so. Ends the
 * process if that fails. */
int perf_tcp_listen(const char *port);

/* Return a connection whose blocking reads time out after 20 seconds; end the
 * process if there is none. Connecting takes up to 20 seconds for each address
 * of @host; accepting waits without a limit. */
int perf_tcp_connect(const char *host, const char *port);
int perf_tcp_accept(int listener);

/* Connects by TCP. @host: NULL to wait for the peer */
void perf_boot_tcp_open(struct perf_boot *boot, const char *host,
                        const char *port);

#endif
