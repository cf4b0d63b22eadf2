/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Connects the two processes, and lets each send the other one block of bytes:
 * by PMIx if a launcher started them (perf_boot_pmix.c), or by TCP
 * (perf_boot_tcp.c). All else goes over dcx.
 */
#ifndef DCX_PERF_BOOT_H
#define DCX_PERF_BOOT_H

#include <stdbool.h>
#include <stddef.h>

#define PERF_PORT "13337"

/* A method of connection; its functions end the process if they fail. */
struct perf_boot {
    bool measures; /* this is the near process: rank 0, or started with HOST */
    void (*swap)(const void *mine, void *theirs, size_t length);
    bool (*is_gone)(void); /* true: the peer is known to have ended */
    void (*close)(void);
};

/* Connects by PMIx. Ends the process also if there are not two of them. */
void perf_boot_pmix_open(struct perf_boot *boot);

/* Opens a socket that waits on @port, and prints that. Ends the process if it
 * fails. */
int perf_tcp_listen(const char *port);

/* Return a connection, or end the process after a timeout of seconds, which
 * also limits blocking reads from it. */
int perf_tcp_connect(const char *host, const char *port);
int perf_tcp_accept(int listener);

/* Connects by TCP. @host: NULL to wait for the peer */
void perf_boot_tcp_open(struct perf_boot *boot, const char *host,
                        const char *port);

#endif
