/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The rows of a device, with one function for each group of rows. A function
 * sets the value found and the value that dcx needs with the current options,
 * and marks values that are too low. See info_device.h.
 */
#include "info_device.h"
#include "uct/dcx/base/dcx_policy.h"
#include "uct/dcx/base/dcx_sizes.h"
#include "uct/dcx/dev/dcx_gpu.h"
#include "uct/dcx/ucx/dcx_ucx.h"
#include "uct/dcx/strided/dcx_key.h"
#include "info_limit.h"
#include "info_log.h"
#include "info_near.h"
#include "info_port.h"
#include "info_site.h"
#include "info_soft.h"
#include "info_views.h"
#include "info_verdict.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucs/config/parser.h>
#include <ucs/sys/math.h>
#include <ucs/sys/string.h>
#include <unistd.h>

/* A device under examination */
struct info_device {
    struct ibv_device *ibdev;
    struct info_report *report;
    struct info_part *part;
    uct_dcx_md_t md; /* only its device is used */
    const uct_dcx_iface_config_t *config;
    const uct_dcx_md_config_t *md_config;
    const uct_dcx_view_config_t *views; /* NULL: there are none */
};

static const char *info_yes_no(bool yes)
{
    return yes ? "yes" : "no";
}

/* --- the device ----------------------------------------------------------- */
/* Appends the driver: its name is the last part of a link in sysfs. */
static void info_driver(struct info_device *dev)
{
    struct info_row *row = info_part_add(dev->part, "driver", NULL);
    char path[PATH_MAX], target[PATH_MAX];
    const char *name;
    ssize_t length;

    snprintf(path, sizeof(path), "%.*s/device/driver", PATH_MAX - 16,
             dev->ibdev->ibdev_path);
    length                     = readlink(path, target, sizeof(target) - 1);
    target[ucs_max(length, 0)] = '\0';
    name                       = strrchr(target, '/');
    info_row_found(row, "%s", (name == NULL) ? "unknown" : name + 1);
    info_row_needs(row, "mlx5_core");
    if (!uct_dcx_device_is_mlx5(dev->ibdev)) {
        info_row_bad(dev->part, row,
                     "it is not an mlx5 device; only these "
                     "have the DC transport");
    }
}

/* Appends the profile, and the features that only dcx_selftest can find out, as
 * no public source documents them. */
static void info_profile(struct info_device *dev)
{
    const uct_dcx_device_t *device = &dev->md.dev;
    struct info_row *row           = info_part_add(dev->part, "profile",
                                                   "UCX_DCX_PROFILE");

    if (device->profile.path[0] == '\0') {
        info_row_found(row, "none");
        info_row_needs(row, "from dcx_selftest, for:");
    } else {
        info_row_found(row, "yes");
        info_row_needs(row, "%.*s", INFO_TEXT_MAX - 1, device->profile.path);
    }

    row = info_part_add(dev->part, "strides over strides", "UCX_DCX_PROFILE");
    info_row_found(row, "%s", info_yes_no(device->umr.has_nests));
    info_row_needs(row, "or lists of pieces");

    row = info_part_add(dev->part, "pieces in a WQE", "UCX_DCX_PROFILE");
    info_row_found(row, "%u", device->umr.max_inline);
    info_row_needs(row, "%u at most", UCT_DCX_DEVICE_MAX_INLINE);

    row = info_part_add(dev->part, "tagged layouts", "UCX_DCX_PROFILE");
    info_row_found(row, "%s", info_yes_no(device->tm.has_keys));
    info_row_needs(row, "or software matches");
}

static void info_transport(struct info_device *dev)
{
    const uct_dcx_device_t *device = &dev->md.dev;
    struct info_row *row;

    row = info_part_add(dev->part, "firmware", NULL);
    info_row_found(row, "%s", device->attr.fw_ver);

    info_profile(dev);
    row = info_part_add(dev->part, "DC transport", NULL);
    info_row_found(row, "%s", info_yes_no(device->has_dc));
    info_row_needs(row, "yes");
    if (!device->has_dc) {
        info_row_bad(dev->part, row, "%s: ConnectX-4 and newer have it",
                     uct_dcx_device_dc_fault(device));
    }

    row = info_part_add(dev->part, "timestamps", NULL);
    info_row_found(row, "%s",
                   !device->answers ? "unknown" :
                   (device->ts_format == PRM_TS_FORMAT_REAL_TIME) ?
                                      "real time" :
                   (device->ts_format == PRM_TS_FORMAT_BOTH) ? "both clocks" :
                                                               "free running");
    info_row_needs(row, "any");

    row = info_part_add(dev->part, "DEVX", "UCX_DCX_DEVX");
    info_row_found(row, "%s",
                   !device->has_devx ? "no" :
                   device->answers   ? "yes" :
                                       "yes, no QUERY_HCA_CAP");
    info_row_needs(row, "optional");
}

/* Describes how the device registers memory of GPUs. */
static const char *info_gpu(const struct info_device *dev)
{
    int has_dmabuf, has_peers;

    if (dev->md_config->site.gpu_direct == UCS_NO) {
        return "no";
    }

    has_dmabuf = UCT_DCX_UCX_HAS_DMABUF &&
                 uct_dcx_gpu_has_dmabuf(dev->md.dev.pd);
    has_peers = uct_dcx_gpu_peer_types() != 0;
    return (has_dmabuf && has_peers) ? "by dma-buf, peer memory" :
           has_dmabuf                ? "by dma-buf" :
           has_peers                 ? "by peer memory" :
                                       "no";
}

static void info_dm(struct info_device *dev)
{
    const uct_dcx_iface_config_t *config = dev->config;
    struct ibv_device_attr_ex attr       = {};
    struct info_row *row = info_part_add(dev->part, "device memory",
                                         "UCX_DCX_DM_SIZE");
    char text[32];

    ibv_query_device_ex(dev->md.dev.ctx, NULL, &attr);
    info_row_found(
        row, "%s",
        (attr.max_dm_size == 0) ?
            "no" :
            ucs_memunits_to_str(attr.max_dm_size, text, sizeof(text)));
    info_row_needs(row, "%s",
                   ucs_memunits_to_str(config->dm.size * config->dm.count, text,
                                       sizeof(text)));
}

static const char *info_sizes(unsigned sizes)
{
    static const char *const names[] = {"no", "4 bytes", "8 bytes",
                                        "4 and 8 bytes"};

    return names[(sizes / sizeof(uint32_t)) & 3];
}

static void info_atomics(struct info_device *dev)
{
    const uct_dcx_device_t *device = &dev->md.dev;
    const char *source             = device->answers ? "" : ", guessed";
    struct info_row *row;

    row = info_part_add(dev->part, "atomics", "UCX_DCX_DEVX");
    info_row_found(row, "%s%s", info_sizes(device->atomic.std), source);
    info_row_needs(row, "for add, cswap");

    row = info_part_add(dev->part, "extended atomics", "UCX_DCX_EXT_ATOMICS");
    info_row_found(row, "%s%s", info_sizes(device->atomic.ext), source);
    info_row_needs(row, "for 32 bit, and, or, xor, swap");

    row = info_part_add(dev->part, "indirect mkeys", "UCX_DCX_DEVX");
    info_row_found(row, "%s", info_yes_no(device->indirect_keys));
    info_row_needs(row, "to invalidate memory");

    row = info_part_add(dev->part, "atomics on these", "UCX_DCX_DEVX");
    info_row_found(row, "%s", info_yes_no(device->indirect_atomics));
    info_row_needs(row, "optional");

    row = info_part_add(dev->part, "relaxed ordering",
                        "UCX_DCX_PCI_RELAXED_ORDERING");
    info_row_found(row, "%s", info_yes_no(device->has_relaxed));
    info_row_needs(row, "for gets to some hosts");

    row = info_part_add(dev->part, "on-demand paging", "UCX_DCX_ODP");
    info_row_found(row, "%s", info_yes_no(device->odp_fault == NULL));
    info_row_needs(row, "to register without pinning");

    row = info_part_add(dev->part, "memory of GPUs", "UCX_DCX_GPU_DIRECT_RDMA");
    info_row_found(row, "%s", info_gpu(dev));
    info_row_needs(row, "optional");

    row = info_part_add(dev->part, "short address vector", "UCX_DCX_DEVX");
    info_row_found(row, "%s", info_yes_no(device->compact_av));
    info_row_needs(row, "for shorter WQEs");
}

/* Appends the streams. Only some policies need them. */
static void info_streams(struct info_device *dev)
{
    const uct_dcx_iface_config_t *config = dev->config;
    const uct_dcx_policy_t *policy = uct_dcx_policy_get(config->tx.policy);
    const uint8_t log_streams      = dev->md.dev.log_streams;
    unsigned count                 = (log_streams == 0) ? 0 : 1u << log_streams;
    const char *option             = (count == 0) ? "UCX_DCX_TX_POLICY" :
                                                    "UCX_DCX_NUM_DCI_STREAMS";
    struct info_row *row = info_part_add(dev->part, "DCI streams", option);

    if (count == 0) {
        info_row_found(row, "no");
    } else {
        info_row_found(row, "%u, of which %u may fail", count,
                       1u << dev->md.dev.log_errored);
    }

    if (!policy->has_streams) {
        info_row_needs(row, "for hw_dcs");
        return;
    }

    info_row_needs(row, "%u", config->tx.num_streams);
    if (count == 0) {
        if (info_row_bad(dev->part, row,
                         "UCX_DCX_TX_POLICY=%s needs DCI "
                         "streams, and the device has none",
                         policy->name)) {
            info_part_fix(dev->part, "unset UCX_DCX_TX_POLICY");
        }
    } else if ((count < config->tx.num_streams) &&
               info_row_bad(dev->part, row,
                            "the device has %u DCI "
                            "streams; lower UCX_DCX_NUM_DCI_STREAMS",
                            count)) {
        info_part_fix(dev->part, "export UCX_DCX_NUM_DCI_STREAMS=%u", count);
    }
}

static void info_tagged_buffers(struct info_device *dev)
{
    const uct_dcx_iface_config_t *config = dev->config;
    const unsigned wanted                = uct_dcx_sizes_num_tags(config);
    const unsigned max                   = info_max_tags(&dev->md.dev, config);
    struct info_row *row = info_part_add(dev->part, "tagged buffers",
                                         "UCX_DCX_TM_LIST_SIZE");

    info_row_found(row, "%u", max);
    if ((config->tm.enable != UCS_YES) ||
        (config->tm.list_size == UCS_ULUNITS_AUTO)) {
        info_row_needs(row, "%u at most", wanted);
        return;
    }

    info_row_needs(row, "%u", wanted);
    if ((max < wanted) && info_row_bad(dev->part, row,
                                       "the limit of the device is %u posted "
                                       "receives; lower UCX_DCX_TM_LIST_SIZE",
                                       max)) {
        info_part_fix(dev->part, "export UCX_DCX_TM_LIST_SIZE=%u", max);
    }
}

/* Appends tag matching, its buffers, and rendezvous by the device. */
static void info_tags(struct info_device *dev)
{
    const uct_dcx_iface_config_t *config = dev->config;
    const uct_dcx_device_t *device       = &dev->md.dev;
    const char *fault                    = uct_dcx_device_tm_fault(device);
    struct info_row *row;

    row = info_part_add(dev->part, "tag matching", "UCX_DCX_TM_ENABLE");
    info_row_found(row, "%s", info_yes_no(fault == NULL));
    info_row_needs(row, "%s",
                   (config->tm.enable == UCS_YES) ? "yes" :
                   (config->tm.enable == UCS_NO)  ? "not used" :
                                                    "optional");
    if ((config->tm.enable == UCS_YES) && (fault != NULL) &&
        info_row_bad(dev->part, row, "UCX_DCX_TM_ENABLE=y, and %s", fault)) {
        info_part_fix(dev->part, "export UCX_DCX_TM_ENABLE=try");
    }

    info_tagged_buffers(dev);
    row = info_part_add(dev->part, "rendezvous by DC", NULL);
    info_row_found(row, "%s", info_yes_no(device->tm.rndv_dc));
    info_row_needs(row, "for tag matching");
}

static void info_types(struct info_device *dev)
{
    const uct_dcx_device_t *device = &dev->md.dev;
    struct info_row *row;

    if (dev->views == NULL) {
        return;
    }

    row = info_part_add(dev->part, "views", "UCX_DCX_TYPES");
    info_row_found(row, "%s",
                   info_yes_no(device->umr.has_keys && device->has_devx));
    info_row_needs(row, "%s",
                   (dev->views->types == UCS_NO) ? "not used" :
                                                   "for derived data types");
}

/* Appends the depth of layouts, and the fence that a WQE after a UMR needs. */
static void info_levels(struct info_device *dev)
{
    static const char *const fences[] = {
        [PRM_UMR_FENCE_STRONG] = "strong order",
        [PRM_UMR_FENCE_SMALL]  = "a small fence",
        [PRM_UMR_FENCE_NONE]   = "nothing",
    };
    const uct_dcx_umr_caps_t *umr = &dev->md.dev.umr;
    struct info_row *row;

    row = info_part_add(dev->part, "depth of layouts", NULL);
    info_row_found(row, "%u%s", umr->max_depth,
                   umr->has_nests ? "" : ", one of them strided");
    info_row_needs(row, "1 and more");

    row = info_part_add(dev->part, "behind a UMR", NULL);
    info_row_found(row, "%s",
                   (umr->fence <= PRM_UMR_FENCE_NONE) ? fences[umr->fence] :
                                                        "unknown");
    info_row_needs(row, "any");
}

/* Appends a threshold of packing, and its source. */
static void info_threshold(struct info_device *dev, const char *what,
                           const char *variable, uct_dcx_threshold_t threshold,
                           size_t option)
{
    const uct_dcx_profile_t *profile = &dev->md.dev.profile;
    size_t value = uct_dcx_profile_threshold(profile, threshold, option);
    struct info_row *row = info_part_add(dev->part, what, variable);
    uct_dcx_sizes_t sizes;
    char text[32];

    if (threshold == UCT_DCX_THRESHOLD_COPY) {
        uct_dcx_sizes_init(&sizes, dev->config,
                           info_num_tags(&dev->md.dev, dev->config));
        value = ucs_min(value, sizes.seg_size);
    }
    info_row_found(row, "%s", ucs_memunits_to_str(value, text, sizeof(text)));
    info_row_needs(row, "%s",
                   (option != UCS_MEMUNITS_AUTO) ? "as set" :
                   (value > uct_dcx_profile_defaults[threshold]) ?
                                                   "from the profile" :
                                                   "the default");
}

static void info_thresholds(struct info_device *dev)
{
    const uct_dcx_iface_config_t *config = dev->config;

    info_threshold(dev, "copied up to", "UCX_DCX_STRIDED_COPY",
                   UCT_DCX_THRESHOLD_COPY, config->strided.copy);
    info_threshold(dev, "pieces copied up to", "UCX_DCX_STRIDED_COPY_PIECE",
                   UCT_DCX_THRESHOLD_COPY_PIECE, config->strided.copy_piece);
    if (dev->views != NULL) {
        info_threshold(dev, "zero-copy types from", "UCX_DCX_TYPES_MIN_LENGTH",
                       UCT_DCX_THRESHOLD_LENGTH, dev->views->min_length);
        info_threshold(dev, "zero-copy blocks from", "UCX_DCX_TYPES_MIN_BLOCK",
                       UCT_DCX_THRESHOLD_BLOCK, dev->views->min_block);
    }
}

/* Appends the mkeys for layouts. They are created when needed; without them
 * strided data is copied, or sent in pieces. */
static void info_layouts(struct info_device *dev)
{
    const uct_dcx_device_t *device    = &dev->md.dev;
    const uct_dcx_md_config_t *config = dev->md_config;
    struct info_row *row;

    row = info_part_add(dev->part, "UMR", NULL);
    info_row_found(row, "%s", info_yes_no(device->umr.has_keys));
    info_row_needs(row, "for strided data");
    info_types(dev);
    if (!device->umr.has_keys) {
        return;
    }

    info_thresholds(dev);
    info_levels(dev);
    row = info_part_add(dev->part, "pieces of a layout",
                        "UCX_DCX_UMR_MAX_ENTRIES");
    info_row_found(row, "%u", device->umr.max_klm);
    info_row_needs(row, "%u at most", config->umr_max_entries);

    row = info_part_add(dev->part, "mkeys for layouts", "UCX_DCX_UMR_LAYOUTS");
    info_row_found(row, "%d", device->attr.max_mr);
    info_row_needs(row, "%u at most",
                   UCT_DCX_KEY_SIZES *
                       (config->umr_slots + config->umr_layouts));
}

static void info_extras(struct info_device *dev)
{
    info_dm(dev);
    info_tags(dev);
    info_layouts(dev);
    info_streams(dev);
}

/* Registers @size bytes as a test, as the effect of the limit depends on the
 * capabilities of the process, and with softhca on SOFTHCA_MEMLOCK. Returns
 * false if the limit is exceeded. */
static bool info_may_lock(struct info_device *dev, size_t size)
{
    void *memory      = mmap(NULL, size, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct ibv_mr *mr = ibv_reg_mr(dev->md.dev.pd, memory, size,
                                   IBV_ACCESS_LOCAL_WRITE);
    bool is_refused   = (mr == NULL) && ((errno == ENOMEM) || (errno == EPERM));

    if (mr != NULL) {
        ibv_dereg_mr(mr);
    }
    munmap(memory, size);
    return !is_refused;
}

static void info_memlock(struct info_device *dev)
{
    struct info_row *row = info_part_add(dev->part, "locked memory",
                                         "ulimit -l");
    char advice[INFO_TEXT_MAX];
    uct_dcx_sizes_t sizes;
    struct rlimit limit;
    size_t needs;

    uct_dcx_sizes_init(&sizes, dev->config,
                       info_num_tags(&dev->md.dev, dev->config));
    needs = sizes.seg_size * (sizes.rx_length - 1);
    getrlimit(RLIMIT_MEMLOCK, &limit);
    if (limit.rlim_cur == RLIM_INFINITY) {
        info_row_found(row, "unlimited");
    } else {
        info_row_found(row, "%lu KiB", limit.rlim_cur / 1024);
    }
    info_row_needs(row, "%zu KiB and the program's", needs / 1024);
    if ((limit.rlim_cur < needs) && !info_may_lock(dev, needs) &&
        info_row_bad(dev->part, row,
                     "locked memory: the limit is %lu KiB, "
                     "dcx needs %zu",
                     limit.rlim_cur / 1024, needs / 1024)) {
        info_advise_limit('l', needs, advice);
        info_part_fix(dev->part, "%s", advice);
    }
}

/* --- all of them ---------------------------------------------------------- */
/* Appends the rows of a device that the transport has opened, and its ports. */
static void info_device_open(struct info_device *dev)
{
    info_transport(dev);
    info_limits(dev->part, &dev->md.dev, dev->config);
    info_atomics(dev);
    info_extras(dev);
    info_memlock(dev);
    for (unsigned i = 1; i <= dev->md.dev.attr.phys_port_cnt; i++) {
        info_port_report(dev->report, &dev->md, dev->config, i);
    }
    for (struct info_part *port = dev->part->next; port; port = port->next) {
        if (info_part_usable(port) && !info_part_usable(dev->part)) {
            snprintf(port->why, sizeof(port->why), "%s", dev->part->why);
            snprintf(port->fix, sizeof(port->fix), "%s", dev->part->fix);
        }
    }
    uct_dcx_device_close(&dev->md.dev);
}

/* Appends the reason why a device could not be opened. Tries to open its node:
 * libibverbs reports a node without permission as missing (open_cdev()). */
static void info_no_access(struct info_device *dev)
{
    struct info_row *row = info_part_add(dev->part, "access", NULL);
    char path[PATH_MAX];
    int fd;

    snprintf(path, sizeof(path), "/dev/infiniband/%.64s", dev->ibdev->dev_name);
    info_row_needs(row, "read, write");
    fd = open(path, O_RDWR | O_CLOEXEC);
    if ((fd < 0) && (errno == EACCES)) {
        info_row_found(row, "no");
        if (info_row_bad(dev->part, row, "no right to open %s", path)) {
            info_part_fix(dev->part,
                          "ask the administrator for the right to "
                          "read and write %s (in a container: --device)",
                          path);
        }
        return;
    }
    if (fd >= 0) {
        close(fd);
        info_row_found(row, "yes");
    }
    info_row_bad(dev->part, row, "%s", info_log_take());
}

static void info_device(struct info_device *dev)
{
    dev->part = info_report_add(dev->report, false,
                                ibv_get_device_name(dev->ibdev));
    info_driver(dev);
    if (!info_part_usable(dev->part)) {
        return;
    }

    info_log_take();
    if (uct_dcx_device_open(&dev->md.dev, dev->ibdev, dev->md_config->site.devx,
                            dev->md_config->ext_atomics,
                            dev->md_config->profile) == UCS_OK) {
        info_device_open(dev);
    } else {
        info_no_access(dev);
    }
}


/* Replaces the name of the option in an error by that of its variable: UCX's
 * parser logs it without the prefix. */
static void info_name_option(const char *error, const ucs_config_field_t *table,
                             char *text, size_t max)
{
    static const char parser[] = "Invalid value for ";
    char option[64];

    if (!strncmp(error, parser, strlen(parser)) &&
        (sscanf(error + strlen(parser), "%63[A-Z_]", option) == 1)) {
        snprintf(text, max, "invalid value for %s%s",
                 uct_dcx_site_variable(table, option),
                 error + strlen(parser) + strlen(option));
    } else {
        snprintf(text, max, "%s", error);
    }
}

/* Reads options from the environment and UCX's files. If one cannot be parsed,
 * sets the report's error, and uses the defaults. */
static void info_options_read(void *options, ucs_config_field_t *table,
                              struct info_report *report)
{
    info_log_take();
    if (uct_dcx_ucx_read_options(options, table, "DCX_") != UCS_OK) {
        info_name_option(info_log_take(), table, report->error,
                         sizeof(report->error));
        ucs_config_parser_set_default_values(options, table);
    }
}

static void info_subnet_check(const uct_dcx_md_config_t *config,
                              uint64_t *subnet, struct info_report *report)
{
    info_log_take();
    if (uct_dcx_site_subnet(&config->site, uct_dcx_component.md_config.table,
                            subnet) != UCS_OK) {
        snprintf(report->error, sizeof(report->error), "%s", info_log_take());
    }
}

/* Checks the ranges of values that could be parsed; sets the report's error. */
static void info_options_check(uct_dcx_iface_config_t *config,
                               struct info_report *report)
{
    info_log_take();
    if (uct_dcx_config_check(config) != UCS_OK) {
        snprintf(report->error, sizeof(report->error), "%s", info_log_take());
        ucs_config_parser_release_opts(config, uct_dcx_iface_config_table);
        ucs_config_parser_set_default_values(config,
                                             uct_dcx_iface_config_table);
    }
}

int info_device_report(struct info_report *report, const char *name)
{
    ucs_config_field_t *md_table = uct_dcx_component.md_config.table;
    uct_dcx_iface_config_t config;
    uct_dcx_md_config_t md_config;
    uct_dcx_view_config_t views;
    struct ibv_device **list;
    uint64_t subnet;

    info_options_read(&config, uct_dcx_iface_config_table, report);
    info_options_read(&md_config, md_table, report);
    if (info_views_table != NULL) {
        info_options_read(&views, info_views_table, report);
    }
    info_options_check(&config, report);
    info_near_option(report->unknown, sizeof(report->unknown));
    info_subnet_check(&md_config, &subnet, report);
    info_site_report(&report->site, uct_dcx_iface_config_table);
    info_site_report(&report->site, md_table);
    /* NULL: there is no device, as the kernel's module is not loaded. */
    list = info_soft_list(report->soft_error);
    for (unsigned i = 0; (list != NULL) && (list[i] != NULL); i++) {
        struct info_device dev = {
            .ibdev     = list[i],
            .report    = report,
            .md.subnet = subnet,
            .config    = &config,
            .md_config = &md_config,
            .views     = (info_views_table != NULL) ? &views : NULL,
        };

        if ((name == NULL) || !strcmp(name, ibv_get_device_name(list[i]))) {
            info_device(&dev);
        }
    }
    if (list != NULL) {
        ibv_free_device_list(list);
    }
    ucs_config_parser_release_opts(&config, uct_dcx_iface_config_table);
    ucs_config_parser_release_opts(&md_config, md_table);
    if (info_views_table != NULL) {
        ucs_config_parser_release_opts(&views, info_views_table);
    }
    return ((name == NULL) || (report->first != NULL)) ? 0 : -ENODEV;
}
