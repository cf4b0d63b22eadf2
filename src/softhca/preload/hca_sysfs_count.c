/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The counters of a port, named as by ib_core (counters/) and mlx5_ib
 * (hw_counters/): hca_traffic.h, hca_count.h. A file is rewritten before a
 * program opens it, or its folder: a new file replaces it, so that readers of
 * the old one are not disturbed. Any thread may call this.
 */
#define _GNU_SOURCE
#include "hca_sysfs_count.h"
#include "softhca/fabric/hca_count.h"
#include "softhca/fabric/hca_dev.h"
#include "softhca/obj/hca_traffic.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HCA_SYSFS_PORT "/ports/1/"

/* LRH, BTH and ICRC of each packet (IBTA, data packet format) */
#define HCA_SYSFS_HEADERS 24

#define HCA_SYSFS_NUM_HW (HCA_NUM_COUNTS + HCA_NUM_TRAFFIC - HCA_IN_WRITES)

static const char *const hca_sysfs_counts[HCA_SYSFS_NUM_HW] = {
    [HCA_COUNT_OUT_OF_BUFFER]              = "out_of_buffer",
    [HCA_COUNT_OUT_OF_SEQUENCE]            = "out_of_sequence",
    [HCA_COUNT_DUPLICATE_REQUEST]          = "duplicate_request",
    [HCA_COUNT_RNR_NAK_RETRY_ERR]          = "rnr_nak_retry_err",
    [HCA_COUNT_LOCAL_ACK_TIMEOUT_ERR]      = "local_ack_timeout_err",
    [HCA_COUNT_RESP_LOCAL_LENGTH_ERROR]    = "resp_local_length_error",
    [HCA_COUNT_RESP_CQE_ERROR]             = "resp_cqe_error",
    [HCA_COUNT_RESP_CQE_FLUSH_ERROR]       = "resp_cqe_flush_error",
    [HCA_COUNT_RESP_REMOTE_ACCESS_ERRORS]  = "resp_remote_access_errors",
    [HCA_COUNT_REQ_CQE_ERROR]              = "req_cqe_error",
    [HCA_COUNT_REQ_CQE_FLUSH_ERROR]        = "req_cqe_flush_error",
    [HCA_COUNT_REQ_REMOTE_INVALID_REQUEST] = "req_remote_invalid_request",
    [HCA_COUNT_REQ_REMOTE_ACCESS_ERRORS]   = "req_remote_access_errors",
    [HCA_COUNT_REQ_TRANSPORT_RETRIES_EXCEEDED] =
        "req_transport_retries_exceeded",
    [HCA_COUNT_REQ_RNR_RETRIES_EXCEEDED] = "req_rnr_retries_exceeded",
    [HCA_COUNT_RX_ICRC_ENCAPSULATED]     = "rx_icrc_encapsulated",
    [HCA_COUNT_PACKET_SEQ_ERR]           = "packet_seq_err",
    [HCA_COUNT_IMPLIED_NAK_SEQ_ERR]      = "implied_nak_seq_err",
    [HCA_COUNT_RX_DCT_CONNECT]           = "rx_dct_connect",
    /* of hca_traffic.h, from HCA_IN_WRITES on */
    [HCA_NUM_COUNTS] = "rx_write_requests",
    "rx_read_requests",
    "rx_atomic_requests",
};

/* PortCounters and PortCountersExtended of IBTA's performance management, named
 * as in drivers/infiniband/core/sysfs.c. */
static const char *const hca_sysfs_port_counts[] = {
    "port_xmit_data", /* in words of four bytes */
    "port_rcv_data",
    "port_xmit_packets",
    "port_rcv_packets",
    "unicast_xmit_packets",
    "unicast_rcv_packets",
    "port_rcv_errors",
    /* always 0 here */
    "multicast_xmit_packets",
    "multicast_rcv_packets",
    "symbol_error",
    "link_error_recovery",
    "link_downed",
    "port_rcv_remote_physical_errors",
    "port_rcv_switch_relay_errors",
    "port_xmit_discards",
    "port_xmit_constraint_errors",
    "port_rcv_constraint_errors",
    "local_link_integrity_errors",
    "excessive_buffer_overrun_errors",
    "VL15_dropped",
    "port_xmit_wait",
};

static uint64_t hca_sysfs_count_words(uint64_t packets, uint64_t bytes)
{
    return (packets * HCA_SYSFS_HEADERS + bytes) / 4;
}

/* Packets with a wrong ICRC are port_rcv_errors (IBTA 16.1.3.5), on Ethernet
 * rx_icrc_encapsulated. */
static uint64_t hca_sysfs_bad_icrcs(unsigned dev)
{
    return atomic_load(
        &hca_fabric->counts[dev][HCA_COUNT_RX_ICRC_ENCAPSULATED]);
}

static uint64_t hca_sysfs_port_count(unsigned dev, unsigned i)
{
    struct hca_traffic sum;

    hca_traffic_sum(dev, &sum);
    switch (i) {
    case 0:
        return hca_sysfs_count_words(sum.counts[HCA_OUT_PACKETS],
                                     sum.counts[HCA_OUT_BYTES]);
    case 1:
        return hca_sysfs_count_words(sum.counts[HCA_IN_PACKETS],
                                     sum.counts[HCA_IN_BYTES]);
    case 2:
    case 4:
        return sum.counts[HCA_OUT_PACKETS];
    case 3:
    case 5:
        return sum.counts[HCA_IN_PACKETS];
    case 6:
        return hca_dev_is_roce(dev) ? 0 : hca_sysfs_bad_icrcs(dev);
    default:
        return 0;
    }
}

static uint64_t hca_sysfs_hw_count(unsigned dev, unsigned i)
{
    struct hca_traffic sum;

    if (i >= HCA_NUM_COUNTS) {
        hca_traffic_sum(dev, &sum);
        return (uint32_t)sum.counts[HCA_IN_WRITES + i - HCA_NUM_COUNTS];
    }
    if ((i == HCA_COUNT_RX_ICRC_ENCAPSULATED) && !hca_dev_is_roce(dev)) {
        return 0;
    }
    return atomic_load(&hca_fabric->counts[dev][i]);
}

static const struct hca_sysfs_counters {
    const char *folder;
    const char *const *names;
    unsigned num;
    uint64_t (*value)(unsigned dev, unsigned i);
} hca_sysfs_counters[] = {
    {"counters", hca_sysfs_port_counts,
     sizeof(hca_sysfs_port_counts) / sizeof(hca_sysfs_port_counts[0]),
     hca_sysfs_port_count},
    {"hw_counters", hca_sysfs_counts, HCA_SYSFS_NUM_HW, hca_sysfs_hw_count},
};

#define HCA_SYSFS_NUM_COUNTERS \
    (sizeof(hca_sysfs_counters) / sizeof(hca_sysfs_counters[0]))

static int hca_sysfs_count_write(int dirfd, const char *path, uint64_t count)
{
    int fd  = syscall(SYS_openat, dirfd, path,
                      O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0444);
    int ret = 0;

    if (fd < 0) {
        return -errno;
    }
    if (dprintf(fd, "%llu\n", (unsigned long long)count) < 0) {
        ret = -errno;
    }
    syscall(SYS_close, fd);
    return ret;
}

static int hca_sysfs_counters_create(int dirfd, const char *folder,
                                     const struct hca_sysfs_counters *counters)
{
    char path[PATH_MAX];
    int ret = 0;

    snprintf(path, sizeof(path), "%s" HCA_SYSFS_PORT "%s", folder,
             counters->folder);
    if ((mkdirat(dirfd, path, 0755) < 0) && (errno != EEXIST)) {
        return -errno;
    }
    for (unsigned i = 0; (ret == 0) && (i < counters->num); i++) {
        snprintf(path, sizeof(path), "%s" HCA_SYSFS_PORT "%s/%s", folder,
                 counters->folder, counters->names[i]);
        ret = hca_sysfs_count_write(dirfd, path, 0);
    }
    return ret;
}

int hca_sysfs_count_create(int dirfd, const char *folder)
{
    int ret = 0;

    for (unsigned i = 0; (ret == 0) && (i < HCA_SYSFS_NUM_COUNTERS); i++) {
        ret = hca_sysfs_counters_create(dirfd, folder, &hca_sysfs_counters[i]);
    }
    return ret;
}

/* Replaces file @name of the folder, which is the first @len bytes of @real. */
static void hca_sysfs_count_replace(const char *real, size_t len,
                                    const char *name, uint64_t count)
{
    char file[PATH_MAX + NAME_MAX], anew[PATH_MAX + NAME_MAX];

    /* beside the folder, so that listings do not show it */
    snprintf(anew, sizeof(anew), "%.*s/../.%s.%d", (int)len, real, name,
             (int)syscall(SYS_gettid));
    snprintf(file, sizeof(file), "%.*s/%s", (int)len, real, name);
    if (hca_sysfs_count_write(AT_FDCWD, anew, count) == 0) {
        rename(anew, file);
    }
}

/* Rewrites a counter, or for a folder all of its counters: a program that opens
 * the folder may then open them by openat().
 * @param file  path below that of the port */
static void
hca_sysfs_counters_refresh(const struct hca_sysfs_counters *counters,
                           unsigned dev, const char *file, const char *real)
{
    size_t len       = strlen(counters->folder);
    const char *name = file + len;

    if (strncmp(file, counters->folder, len) ||
        ((*name != '/') && (*name != '\0'))) {
        return;
    }
    len = strlen(real) - strlen(name);
    name += strspn(name, "/");
    for (unsigned i = 0; i < counters->num; i++) {
        if ((*name == '\0') || !strcmp(name, counters->names[i])) {
            hca_sysfs_count_replace(real, len, counters->names[i],
                                    counters->value(dev, i));
        }
    }
}

/* Finds the device whose folder is part of the path. @return its n, or a number
 * beyond the last device */
static unsigned hca_sysfs_count_dev(const char *path)
{
    char name[HCA_DEV_NAME_LEN], folder[HCA_DEV_NAME_LEN + 2];
    unsigned n;

    for (n = 0; n < hca_config.num_devs; n++) {
        hca_dev_name(n, name);
        snprintf(folder, sizeof(folder), "/%s/", name);
        if (strstr(path, folder) != NULL) {
            break;
        }
    }
    return n;
}

void hca_sysfs_count_refresh(const char *path, const char *real)
{
    const char *port = strstr(path, HCA_SYSFS_PORT);
    unsigned n;

    if (port == NULL) {
        return;
    }
    n = hca_sysfs_count_dev(path);
    for (unsigned i = 0;
         (i < HCA_SYSFS_NUM_COUNTERS) && (n < hca_config.num_devs); i++) {
        hca_sysfs_counters_refresh(&hca_sysfs_counters[i], hca_dev_local(n),
                                   port + strlen(HCA_SYSFS_PORT), real);
    }
}
