/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
#include "dcx_figures.h"
#include "common/launch_rank.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>


#define UCT_DCX_FIGURES_OP_NAME(_op, _name)               _name
#define UCT_DCX_FIGURES_OTHER_TEXT(_figure, _name, _text) _text

static const char *const uct_dcx_figures_ops[] = {
    UCT_DCX_FIGURES_OPS(UCT_DCX_FIGURES_OP_NAME)};

static const char *const uct_dcx_figures_text[] = {
    UCT_DCX_FIGURES_OTHERS(UCT_DCX_FIGURES_OTHER_TEXT)};

/* of ib_core, and of mlx5_ib (drivers/infiniband/hw/mlx5/counters.c) */
static const char *const uct_dcx_figures_counts[UCT_DCX_NUM_PORT_COUNTS] = {
    "counters/port_xmit_packets",
    "counters/port_xmit_data",
    "counters/port_rcv_packets",
    "counters/port_rcv_data",
    "hw_counters/rx_write_requests",
    "hw_counters/rx_read_requests",
    "hw_counters/rx_atomic_requests",
    "hw_counters/rx_dct_connect",
    "hw_counters/rnr_nak_retry_err",
    "hw_counters/local_ack_timeout_err",
    "hw_counters/packet_seq_err",
    "hw_counters/out_of_sequence",
    "hw_counters/out_of_buffer",
    "hw_counters/duplicate_request",
    "hw_counters/req_transport_retries_exceeded",
    "hw_counters/req_rnr_retries_exceeded",
};

_Static_assert(sizeof(uct_dcx_figures_block_t) % sizeof(uint64_t) == 0,
               "is summed as an array");

uct_dcx_figures_t *uct_dcx_figures;
int uct_dcx_figures_is_printed;

/* protects the use of blocks and ports */
static pthread_mutex_t uct_dcx_figures_lock = PTHREAD_MUTEX_INITIALIZER;

/* the memfd, which dcx_info finds as long as it is open */
static int uct_dcx_figures_fd = -1;


/* Returns the value of a counter of "mlx5_0:1", UINT64_MAX if it cannot be
 * read. */
static uint64_t uct_dcx_figures_count(const char *port, unsigned i)
{
    size_t length  = strcspn(port, ":");
    char path[256] = "", text[32] = "";
    uint64_t value = UINT64_MAX;
    int fd;

    snprintf(path, sizeof(path), "/sys/class/infiniband/%.*s/ports/%s/%s",
             (int)length, port, port + length + (port[length] != '\0'),
             uct_dcx_figures_counts[i]);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        if (read(fd, text, sizeof(text) - 1) > 0) {
            value = strtoull(text, NULL, 0);
        }
        close(fd);
    }
    return value;
}


/* Notes the present counters of a port that was not opened before. */
static void uct_dcx_figures_add_port(const char *name)
{
    uct_dcx_figures_t *figures = uct_dcx_figures;
    unsigned i, j;

    for (i = 0; i < UCT_DCX_FIGURES_PORTS; ++i) {
        if (!strcmp(figures->ports[i].name, name)) {
            return;
        }
        if (figures->ports[i].name[0] != '\0') {
            continue;
        }

        for (j = 0; j < UCT_DCX_NUM_PORT_COUNTS; ++j) {
            figures->ports[i].first[j] = uct_dcx_figures_count(name, j);
        }
        snprintf(figures->ports[i].name, sizeof(figures->ports[i].name), "%s",
                 name);
        return;
    }
}


/* Leaves the table to the parent, in a forked child: both would write to it. It
 * stays mapped for interfaces that are open. */
static void uct_dcx_figures_leave(void)
{
    if (uct_dcx_figures != NULL) {
        close(uct_dcx_figures_fd);
        uct_dcx_figures = NULL;
    }
}


static void uct_dcx_figures_create(void)
{
    static int leaves_at_fork;
    int fd = memfd_create(UCT_DCX_FIGURES_NAME, MFD_CLOEXEC);
    uct_dcx_figures_t *figures = MAP_FAILED;
    const char *rank           = launch_rank();

    if (!leaves_at_fork) {
        pthread_atfork(NULL, NULL, uct_dcx_figures_leave);
        leaves_at_fork = 1;
    }
    if ((fd >= 0) && (ftruncate(fd, sizeof(*figures)) == 0)) {
        figures = mmap(NULL, sizeof(*figures), PROT_READ | PROT_WRITE,
                       MAP_SHARED, fd, 0);
    }
    if (figures == MAP_FAILED) {
        close(fd);
        return;
    }

    uct_dcx_figures_fd  = fd;
    figures->pid        = getpid();
    figures->is_used[0] = 1;
    snprintf(figures->rank, sizeof(figures->rank), "%s",
             (rank == NULL) ? "" : rank);
    __atomic_store_n(&figures->size, sizeof(*figures), __ATOMIC_RELEASE);
    __atomic_store_n(&uct_dcx_figures, figures, __ATOMIC_RELEASE);
}


uct_dcx_figures_block_t *uct_dcx_figures_open(const char *port)
{
    uct_dcx_figures_block_t *block = NULL;
    unsigned i;

    pthread_mutex_lock(&uct_dcx_figures_lock);
    if (uct_dcx_figures == NULL) {
        uct_dcx_figures_create();
    }
    if (uct_dcx_figures != NULL) {
        uct_dcx_figures_add_port(port);
        for (i = 1; (i < UCT_DCX_FIGURES_BLOCKS) && (block == NULL); ++i) {
            if (!uct_dcx_figures->is_used[i]) {
                uct_dcx_figures->is_used[i] = 1;
                block                       = &uct_dcx_figures->blocks[i];
            }
        }
    }
    pthread_mutex_unlock(&uct_dcx_figures_lock);
    return block;
}


/* Adds all counts of @from. */
static void uct_dcx_figures_sum(uct_dcx_figures_block_t *sum,
                                const uct_dcx_figures_block_t *from)
{
    const uint64_t *counts = (const uint64_t *)from;
    uint64_t *sums         = (uint64_t *)sum;
    unsigned i;

    for (i = 0; i < UCT_DCX_FIGURES_COUNTS; ++i) {
        __atomic_fetch_add(&sums[i], counts[i], __ATOMIC_RELAXED);
    }
}


void uct_dcx_figures_close(uct_dcx_figures_block_t *block)
{
    uct_dcx_figures_t *figures = uct_dcx_figures;

    if ((figures == NULL) || (block < figures->blocks) ||
        (block >= &figures->blocks[UCT_DCX_FIGURES_BLOCKS])) {
        return;
    }

    pthread_mutex_lock(&uct_dcx_figures_lock);
    uct_dcx_figures_sum(&figures->blocks[0], block);
    memset(block, 0, sizeof(*block));
    figures->is_used[block - figures->blocks] = 0;
    pthread_mutex_unlock(&uct_dcx_figures_lock);
}


static void uct_dcx_figures_print_ports(const uct_dcx_figures_t *figures,
                                        FILE *out)
{
    uint64_t first, now, gain;
    unsigned i, j;

    for (i = 0; i < UCT_DCX_FIGURES_PORTS; ++i) {
        if (figures->ports[i].name[0] == '\0') {
            break;
        }

        fprintf(out, "  port %.63s, all processes since it was opened:\n",
                figures->ports[i].name);
        for (j = 0; j < UCT_DCX_NUM_PORT_COUNTS; ++j) {
            first = figures->ports[i].first[j];
            now   = uct_dcx_figures_count(figures->ports[i].name, j);
            gain  = now - first;
            if (!strncmp(uct_dcx_figures_counts[j], "hw_", 3)) {
                gain = (uint32_t)gain; /* mlx5_ib's have 32 bits, and wrap */
            }
            if ((first != UINT64_MAX) && (now != UINT64_MAX) && (gain != 0)) {
                fprintf(out, "  %-40s %12" PRIu64 "\n",
                        strchr(uct_dcx_figures_counts[j], '/') + 1, gain);
            }
        }
    }
}


void uct_dcx_figures_total(const uct_dcx_figures_t *figures,
                           uct_dcx_figures_block_t *sum)
{
    unsigned i;

    pthread_mutex_lock(&uct_dcx_figures_lock);
    for (i = 0; i < UCT_DCX_FIGURES_BLOCKS; ++i) {
        if (figures->is_used[i]) {
            uct_dcx_figures_sum(sum, &figures->blocks[i]);
        }
    }
    pthread_mutex_unlock(&uct_dcx_figures_lock);
}


void uct_dcx_figures_print(const uct_dcx_figures_t *figures, FILE *out)
{
    uct_dcx_figures_block_t sum = {};
    unsigned i;

    uct_dcx_figures_total(figures, &sum);
    fprintf(out, "dcx figures:%s%.15s process %d\n",
            (figures->rank[0] == '\0') ? "" : " rank ", figures->rank,
            figures->pid);
    fprintf(out, "  %-16s %12s %16s %12s\n", "operation", "number", "bytes",
            "no room");
    for (i = 0; i < UCT_DCX_OP_LAST; ++i) {
        if ((sum.ops[i].num > 0) || (sum.ops[i].waits > 0)) {
            fprintf(out, "  %-16s %12" PRIu64 " %16" PRIu64 " %12" PRIu64 "\n",
                    uct_dcx_figures_ops[i], sum.ops[i].num, sum.ops[i].bytes,
                    sum.ops[i].waits);
        }
    }
    for (i = 0; i < UCT_DCX_FIGURE_LAST; ++i) {
        if (sum.counts[i] > 0) {
            fprintf(out, "  %-40s %12" PRIu64 "\n", uct_dcx_figures_text[i],
                    sum.counts[i]);
        }
    }
    uct_dcx_figures_print_ports(figures, out);
}


char *uct_dcx_figures_table(void)
{
    char *text  = NULL;
    size_t size = 0;
    FILE *out   = open_memstream(&text, &size);

    if (out != NULL) {
        uct_dcx_figures_print(uct_dcx_figures, out);
        fclose(out);
    }
    return text;
}


/* Prints all in one write, as many processes share stderr. A child of vfork()
 * or clone() has the figures of its parent. */
static void __attribute__((destructor)) uct_dcx_figures_end(void)
{
    char *text;

    if (!uct_dcx_figures_is_printed || (uct_dcx_figures == NULL) ||
        (uct_dcx_figures->pid != getpid())) {
        return;
    }

    text = uct_dcx_figures_table();
    if (text != NULL) {
        fputs(text, stderr);
        free(text);
    }
}
