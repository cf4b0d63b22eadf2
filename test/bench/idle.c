/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Cost of an open device without any use: prints the proportional set size of
 * the process before and with one context, PD, CQ and DCI-sized QP, in KiB, and
 * the CPU time while the process sleeps, in milliseconds. "Before" has
 * libibverbs and libmlx5 loaded but no context open.
 */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static long pss_kib(void)
{
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    char line[128];
    long kib = -1;

    while ((file != NULL) && fgets(line, sizeof(line), file)) {
        if (sscanf(line, "Pss: %ld kB", &kib) == 1) {
            break;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return kib;
}

static double cpu_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec * 1e3 + now.tv_nsec * 1e-6;
}

static struct ibv_qp *create_queues(struct ibv_context *ctx)
{
    struct ibv_pd *pd            = ibv_alloc_pd(ctx);
    struct ibv_cq *cq            = ibv_create_cq(ctx, 256, NULL, NULL, 0);
    struct ibv_qp_init_attr attr = {
        .send_cq = cq,
        .recv_cq = cq,
        .qp_type = IBV_QPT_RC,
        .cap     = {.max_send_wr  = 128,
                    .max_recv_wr  = 128,
                    .max_send_sge = 2,
                    .max_recv_sge = 1},
    };

    return ((pd == NULL) || (cq == NULL)) ? NULL : ibv_create_qp(pd, &attr);
}

int main(int argc, char **argv)
{
    unsigned seconds         = (argc > 1) ? atoi(argv[1]) : 3;
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *ctx;
    long before, with;
    double cpu;

    if ((list == NULL) || (list[0] == NULL)) {
        fprintf(stderr, "idle: no device\n");
        return 1;
    }
    before = pss_kib();
    ctx    = ibv_open_device(list[0]);
    if ((ctx == NULL) || (create_queues(ctx) == NULL)) {
        fprintf(stderr, "idle: cannot open the device\n");
        return 1;
    }
    with = pss_kib();
    cpu  = cpu_ms();
    sleep(seconds);
    printf("%ld %ld %.3f\n", before, with, cpu_ms() - cpu);
    return 0;
}
