/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * How the two processes find each other and exchange a block of bytes each,
 * once: by PMIx where a launcher started them (perf_boot_pmix.c), or by a
 * connection of TCP (perf_boot_tcp.c). All else goes over dcx.
 */
#ifndef DCX_PERF_BOOT_H
#define DCX_PERF_BOOT_H

#include <stdbool.h>
#include <stddef.h>

#define PERF_PORT "13337"

/* A way; its functions end the process if they fail. */
struct perf_boot {
    bool measures; /* this process does: rank 0, or who was given HOST */
    void (*swap)(const void *mine, void *theirs, size_t length);
    bool (*is_gone)(void); /* that the peer is known to have ended */
    void (*close)(void);
};

/* Ends the process, too, if there are not two of them. */
void perf_boot_pmix_open(struct perf_boot *boot);

/* Opens a socket that waits on @port, and says so; ends the process if it
 * cannot. */
int perf_tcp_listen(const char *port);

/* Returns a connection; ends the process if there is none within seconds. Reads
 * from it, if they block, take no longer either. */
int perf_tcp_connect(const char *host, const char *port);
int perf_tcp_accept(int listener);

/* host: NULL to wait for the other */
void perf_boot_tcp_open(struct perf_boot *boot, const char *host,
                        const char *port);

#endif
