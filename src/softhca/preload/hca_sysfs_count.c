/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The counters of a port, as mlx5_ib names them (hca_count.h). A file is written
 * anew whenever somebody is about to open it: another one takes its place, so
 * that who reads the old one is not disturbed. Any thread may come here.
 */
#define _GNU_SOURCE
#include "hca_sysfs_count.h"
#include "softhca/fabric/hca_count.h"
#include "softhca/fabric/hca_dev.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HCA_SYSFS_COUNTERS "/ports/1/hw_counters"

static const char *const hca_sysfs_counts[HCA_NUM_COUNTS] = {
    [HCA_COUNT_OUT_OF_BUFFER]             = "out_of_buffer",
    [HCA_COUNT_OUT_OF_SEQUENCE]           = "out_of_sequence",
    [HCA_COUNT_DUPLICATE_REQUEST]         = "duplicate_request",
    [HCA_COUNT_RNR_NAK_RETRY_ERR]         = "rnr_nak_retry_err",
    [HCA_COUNT_LOCAL_ACK_TIMEOUT_ERR]     = "local_ack_timeout_err",
    [HCA_COUNT_RESP_LOCAL_LENGTH_ERROR]   = "resp_local_length_error",
    [HCA_COUNT_RESP_CQE_ERROR]            = "resp_cqe_error",
    [HCA_COUNT_RESP_CQE_FLUSH_ERROR]      = "resp_cqe_flush_error",
    [HCA_COUNT_RESP_REMOTE_ACCESS_ERRORS] = "resp_remote_access_errors",
    [HCA_COUNT_REQ_CQE_ERROR]             = "req_cqe_error",
    [HCA_COUNT_REQ_CQE_FLUSH_ERROR]       = "req_cqe_flush_error",
    [HCA_COUNT_REQ_REMOTE_INVALID_REQUEST] = "req_remote_invalid_request",
    [HCA_COUNT_REQ_REMOTE_ACCESS_ERRORS]  = "req_remote_access_errors",
    [HCA_COUNT_REQ_TRANSPORT_RETRIES_EXCEEDED] =
            "req_transport_retries_exceeded",
    [HCA_COUNT_REQ_RNR_RETRIES_EXCEEDED]  = "req_rnr_retries_exceeded",
};

static int hca_sysfs_count_write(int dirfd, const char *path, uint32_t count)
{
    int fd = syscall(SYS_openat, dirfd, path,
                     O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0444);
    int ret = 0;

    if (fd < 0) {
        return -errno;
    }
    if (dprintf(fd, "%u\n", count) < 0) {
        ret = -errno;
    }
    syscall(SYS_close, fd);
    return ret;
}

int hca_sysfs_count_create(int dirfd, const char *folder)
{
    char path[PATH_MAX];
    int ret = 0;

    snprintf(path, sizeof(path), "%s" HCA_SYSFS_COUNTERS, folder);
    if ((mkdirat(dirfd, path, 0755) < 0) && (errno != EEXIST)) {
        return -errno;
    }
    for (unsigned i = 0; (ret == 0) && (i < HCA_NUM_COUNTS); i++) {
        snprintf(path, sizeof(path), "%s" HCA_SYSFS_COUNTERS "/%s", folder,
                 hca_sysfs_counts[i]);
        ret = hca_sysfs_count_write(dirfd, path, 0);
    }
    return ret;
}

static void hca_sysfs_count_replace(const char *real, uint32_t count)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s.%d", real, (int)syscall(SYS_gettid));
    if (hca_sysfs_count_write(AT_FDCWD, path, count) == 0) {
        rename(path, real);
    }
}

void hca_sysfs_count_refresh(const char *path, const char *real)
{
    const char *port = strstr(path, HCA_SYSFS_COUNTERS "/");
    const char *name = strstr(path, "/mlx5_");
    unsigned n;

    if ((port == NULL) || (name == NULL) ||
        (sscanf(name, "/mlx5_%u/", &n) != 1) || (n >= hca_config.num_devs)) {
        return;
    }
    port += sizeof(HCA_SYSFS_COUNTERS);
    for (unsigned i = 0; i < HCA_NUM_COUNTS; i++) {
        if (!strcmp(port, hca_sysfs_counts[i])) {
            hca_sysfs_count_replace(
                    real, hca_fabric->counts[hca_dev_local(n)][i]);
        }
    }
}
