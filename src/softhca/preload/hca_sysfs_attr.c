/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Contents of a device's files in sysfs. Names and formats are those of Linux:
 * drivers/infiniband/core/sysfs.c (ports, GUIDs), uverbs_main.c (abi_version,
 * dev, ibdev), hw/mlx5/main.c (fw_ver, hca_type, board_id), pci-sysfs.c.
 */
#define _GNU_SOURCE
#include "hca_sysfs_attr.h"
#include "softhca/fabric/hca_caps.h"
#include "softhca/fabric/hca_dev.h"
#include "softhca/uverbs/uverbs.h"

#include <endian.h>
#include <limits.h>
#include <stdio.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define HCA_PCI_VENDOR    0x15b3u /* Mellanox */
#define HCA_PCI_CONNECTX3 0x1003u

const char *hca_sysfs_driver(unsigned n)
{
    return hca_dev_is_other(n) ? "mlx4" : "mlx5";
}

static bool hca_sysfs_is_roce(const struct hca_sysfs_ctx *ctx)
{
    return hca_dev_is_roce(ctx->dev);
}

static unsigned hca_sysfs_part(const struct hca_sysfs_ctx *ctx)
{
    return hca_dev_is_other(ctx->n) ? HCA_PCI_CONNECTX3 : UVERBS_PART_ID;
}

static int hca_sysfs_print_ibdev(const struct hca_sysfs_ctx *ctx, char *buf,
                                 size_t size)
{
    char name[HCA_DEV_NAME_LEN];

    hca_dev_name(ctx->n, name);
    return snprintf(buf, size, "%s", name);
}

static int hca_sysfs_print_guid(const struct hca_sysfs_ctx *ctx, char *buf,
                                size_t size)
{
    uint64_t guid = be64toh(hca_dev_guid(ctx->dev));

    return snprintf(buf, size, "%04x:%04x:%04x:%04x", (unsigned)(guid >> 48),
                    (unsigned)(guid >> 32) & 0xffff,
                    (unsigned)(guid >> 16) & 0xffff, (unsigned)guid & 0xffff);
}

static int hca_sysfs_print_fw(const struct hca_sysfs_ctx *ctx, char *buf,
                              size_t size)
{
    (void)ctx;
    return snprintf(buf, size, "%u.%u.%04u", (unsigned)(UVERBS_FW_VER >> 32),
                    (unsigned)(UVERBS_FW_VER >> 16) & 0xffff,
                    (unsigned)UVERBS_FW_VER & 0xffff);
}

static int hca_sysfs_print_hca_type(const struct hca_sysfs_ctx *ctx, char *buf,
                                    size_t size)
{
    return snprintf(buf, size, "MT%u", hca_sysfs_part(ctx));
}

/* Prints a PSID, which names a kind of adapter. Kinds of softhca differ in
 * properties that no capability shows; each has a bit, set if it is not the
 * default. */
static int hca_sysfs_print_board_id(const struct hca_sysfs_ctx *ctx, char *buf,
                                    size_t size)
{
    unsigned kind = (hca_lacks(HCA_LACK_TM_INDIRECT) << 0) |
                    (hca_lacks(HCA_LACK_REPEAT_NEST) << 1) |
                    ((hca_caps.limits[HCA_LIMIT_INLINE_KLM] != 0) << 2) |
                    (!hca_lacks(HCA_LACK_TM_OWN_KEY) << 3);

    (void)ctx;
    return snprintf(buf, size, "SOFTHCA_%02u", kind);
}

static int hca_sysfs_print_node_desc(const struct hca_sysfs_ctx *ctx, char *buf,
                                     size_t size)
{
    return snprintf(buf, size, "node%u mlx5_%u softhca", hca_config.node,
                    ctx->n);
}

static int hca_sysfs_print_lid(const struct hca_sysfs_ctx *ctx, char *buf,
                               size_t size)
{
    return snprintf(buf, size, "0x%x", hca_dev_lid(ctx->dev));
}

static int hca_sysfs_print_lmc(const struct hca_sysfs_ctx *ctx, char *buf,
                               size_t size)
{
    return snprintf(buf, size, "%u", hca_dev_lmc(ctx->dev));
}

static int hca_sysfs_print_sm_lid(const struct hca_sysfs_ctx *ctx, char *buf,
                                  size_t size)
{
    bool has_sm = !hca_sysfs_is_roce(ctx) && !hca_dev_is_init(ctx->dev);

    return snprintf(buf, size, "0x%x", has_sm ? 1 : 0);
}

static int hca_sysfs_print_cap_mask(const struct hca_sysfs_ctx *ctx, char *buf,
                                    size_t size)
{
    return snprintf(buf, size, "0x%08x", hca_dev_cap_mask(ctx->dev));
}

static int hca_sysfs_print_state(const struct hca_sysfs_ctx *ctx, char *buf,
                                 size_t size)
{
    return snprintf(buf, size, "%s",
                    hca_dev_is_init(ctx->dev) ? "2: INIT" :
                    hca_dev_is_down(ctx->dev) ? "1: DOWN" :
                                                "4: ACTIVE");
}

static int hca_sysfs_print_phys_state(const struct hca_sysfs_ctx *ctx,
                                      char *buf, size_t size)
{
    bool down = hca_dev_is_down(ctx->dev) && !hca_dev_is_init(ctx->dev);

    return snprintf(buf, size, "%s", down ? "2: Polling" : "5: LinkUp");
}

static int hca_sysfs_print_link_layer(const struct hca_sysfs_ctx *ctx,
                                      char *buf, size_t size)
{
    return snprintf(buf, size, "%s",
                    hca_sysfs_is_roce(ctx) ? "Ethernet" : "InfiniBand");
}

static int hca_sysfs_print_pkey(const struct hca_sysfs_ctx *ctx, char *buf,
                                size_t size)
{
    return (ctx->index >= hca_dev_num_pkeys(ctx->dev)) ?
               0 :
               snprintf(buf, size, "0x%04x",
                        hca_dev_pkey(ctx->dev, ctx->index));
}

static int hca_sysfs_print_gid(const struct hca_sysfs_ctx *ctx, char *buf,
                               size_t size)
{
    uint8_t gid[16];
    int len = 0;

    hca_dev_gid(ctx->dev, ctx->index, gid); /* an empty entry is all zeros */
    for (unsigned i = 0; i < sizeof(gid); i += 2) {
        len += snprintf(buf + len, size - len, "%s%02x%02x", i ? ":" : "",
                        gid[i], gid[i + 1]);
    }
    return len;
}

static int hca_sysfs_print_gid_type(const struct hca_sysfs_ctx *ctx, char *buf,
                                    size_t size)
{
    uint8_t gid[16];

    switch (hca_dev_gid(ctx->dev, ctx->index, gid)) {
    case HCA_GID_IB:
    case HCA_GID_ROCE_V1:
        return snprintf(buf, size, "IB/RoCE v1");
    case HCA_GID_ROCE_V2:
        return snprintf(buf, size, "RoCE v2");
    default:
        return 0;
    }
}

static int hca_sysfs_print_gid_ndev(const struct hca_sysfs_ctx *ctx, char *buf,
                                    size_t size)
{
    return hca_sysfs_is_roce(ctx) ? snprintf(buf, size, HCA_GID_NETDEV) : 0;
}

/* Prints what MLNX_OFED shows of a class that the administrator has set. */
static int hca_sysfs_print_tclass(const struct hca_sysfs_ctx *ctx, char *buf,
                                  size_t size)
{
    (void)ctx;
    return (hca_config.tclass == UINT_MAX) ?
               0 :
               snprintf(buf, size, "Global tclass=%u", hca_config.tclass);
}

static int hca_sysfs_print_modalias(const struct hca_sysfs_ctx *ctx, char *buf,
                                    size_t size)
{
    return snprintf(buf, size, "pci:v%08Xd%08Xsv%08Xsd%08Xbc02sc%02Xi00",
                    HCA_PCI_VENDOR, hca_sysfs_part(ctx), HCA_PCI_VENDOR, 6,
                    hca_sysfs_is_roce(ctx) ? 0 : 7);
}

static int hca_sysfs_print_vendor(const struct hca_sysfs_ctx *ctx, char *buf,
                                  size_t size)
{
    (void)ctx;
    return snprintf(buf, size, "0x%04x", HCA_PCI_VENDOR);
}

static int hca_sysfs_print_device(const struct hca_sysfs_ctx *ctx, char *buf,
                                  size_t size)
{
    return snprintf(buf, size, "0x%04x", hca_sysfs_part(ctx));
}

/* Prints MLX5_IB_UVERBS_ABI_VERSION or MLX4_IB_UVERBS_ABI_VERSION. */
static int hca_sysfs_print_abi(const struct hca_sysfs_ctx *ctx, char *buf,
                               size_t size)
{
    return snprintf(buf, size, "%d", hca_dev_is_other(ctx->n) ? 4 : 1);
}

/* IB_UVERBS_MAJOR and IB_UVERBS_BASE_MINOR of the kernel */
dev_t hca_sysfs_rdev(unsigned minor)
{
    return makedev(231, 192 + minor);
}

static int hca_sysfs_print_rdev(const struct hca_sysfs_ctx *ctx, char *buf,
                                size_t size)
{
    dev_t rdev = hca_sysfs_rdev(ctx->minor);

    return snprintf(buf, size, "%u:%u", major(rdev), minor(rdev));
}

static int hca_sysfs_print_class(const struct hca_sysfs_ctx *ctx, char *buf,
                                 size_t size)
{
    return snprintf(buf, size, "%s",
                    hca_sysfs_is_roce(ctx) ? "0x020000" : "0x020700");
}

static unsigned hca_sysfs_num_cpus(void)
{
    long cpus = sysconf(_SC_NPROCESSORS_CONF);

    return ((cpus < 1) || (cpus > 2048)) ? 1 : cpus;
}

/* Prints a mask of all CPUs, in words of 32, the last first: the device is
 * equally far from all. */
static int hca_sysfs_print_local_cpus(const struct hca_sysfs_ctx *ctx,
                                      char *buf, size_t size)
{
    unsigned cpus = hca_sysfs_num_cpus();
    unsigned odd  = cpus % 32;
    int len       = 0;

    (void)ctx;
    if (odd != 0) {
        len = snprintf(buf, size, "%0*x", (cpus < 32) ? (int)(odd + 3) / 4 : 8,
                       (1u << odd) - 1);
    }
    for (unsigned i = 0; i < cpus / 32; i++) {
        len += snprintf(buf + len, size - len, "%sffffffff", len ? "," : "");
    }
    return len;
}

static int hca_sysfs_print_local_cpulist(const struct hca_sysfs_ctx *ctx,
                                         char *buf, size_t size)
{
    unsigned cpus = hca_sysfs_num_cpus();

    (void)ctx;
    return (cpus == 1) ? snprintf(buf, size, "0") :
                         snprintf(buf, size, "0-%u", cpus - 1);
}

const struct hca_sysfs_file hca_sysfs_files[] = {
    {HCA_SYSFS_PCI, "vendor", .print = hca_sysfs_print_vendor},
    {HCA_SYSFS_PCI, "device", .print = hca_sysfs_print_device},
    {HCA_SYSFS_PCI, "subsystem_vendor", .print = hca_sysfs_print_vendor},
    {HCA_SYSFS_PCI, "subsystem_device", .text = "0x0006"},
    {HCA_SYSFS_PCI, "revision", .text = "0x00"},
    {HCA_SYSFS_PCI, "class", .print = hca_sysfs_print_class},
    {HCA_SYSFS_PCI, "modalias", .print = hca_sysfs_print_modalias},
    {HCA_SYSFS_PCI, "numa_node", .text = "-1"},
    {HCA_SYSFS_PCI, "local_cpus", .print = hca_sysfs_print_local_cpus},
    {HCA_SYSFS_PCI, "local_cpulist", .print = hca_sysfs_print_local_cpulist},
    {HCA_SYSFS_PCI, "current_link_speed", .text = "16.0 GT/s PCIe"},
    {HCA_SYSFS_PCI, "current_link_width", .text = "16"},
    {HCA_SYSFS_PCI, "max_link_speed", .text = "16.0 GT/s PCIe"},
    {HCA_SYSFS_PCI, "max_link_width", .text = "16"},

    {HCA_SYSFS_IBDEV, "node_type", .text = "1: CA"},
    {HCA_SYSFS_IBDEV, "node_guid", .print = hca_sysfs_print_guid},
    {HCA_SYSFS_IBDEV, "sys_image_guid", .print = hca_sysfs_print_guid},
    {HCA_SYSFS_IBDEV, "node_desc", .print = hca_sysfs_print_node_desc},
    {HCA_SYSFS_IBDEV, "fw_ver", .print = hca_sysfs_print_fw},
    {HCA_SYSFS_IBDEV, "hca_type", .print = hca_sysfs_print_hca_type},
    {HCA_SYSFS_IBDEV, "hw_rev", .text = "0"},
    {HCA_SYSFS_IBDEV, "board_id", .print = hca_sysfs_print_board_id},
    {HCA_SYSFS_IBDEV, "ports/1/state", .print = hca_sysfs_print_state},
    {HCA_SYSFS_IBDEV, "ports/1/phys_state",
     .print = hca_sysfs_print_phys_state},
    {HCA_SYSFS_IBDEV, "ports/1/rate", .text = "200 Gb/sec (4X HDR)"},
    {HCA_SYSFS_IBDEV, "ports/1/link_layer",
     .print = hca_sysfs_print_link_layer},
    {HCA_SYSFS_IBDEV, "ports/1/lid", .print = hca_sysfs_print_lid},
    {HCA_SYSFS_IBDEV, "ports/1/lid_mask_count", .print = hca_sysfs_print_lmc},
    {HCA_SYSFS_IBDEV, "ports/1/sm_lid", .print = hca_sysfs_print_sm_lid},
    {HCA_SYSFS_IBDEV, "ports/1/sm_sl", .text = "0"},
    {HCA_SYSFS_IBDEV, "ports/1/cap_mask", .print = hca_sysfs_print_cap_mask},
    {HCA_SYSFS_IBDEV, "ports/1/has_smi", .text = "1"},
    {HCA_SYSFS_IBDEV, "ports/1/pkeys/%u", .print = hca_sysfs_print_pkey,
     .count = HCA_PKEY_TABLE_LEN},
    {HCA_SYSFS_IBDEV, "ports/1/gids/%u", .print = hca_sysfs_print_gid,
     .count = HCA_GID_TABLE_LEN},
    {HCA_SYSFS_IBDEV, "ports/1/gid_attrs/types/%u",
     .print = hca_sysfs_print_gid_type, .count = HCA_GID_TABLE_LEN},
    {HCA_SYSFS_IBDEV, "ports/1/gid_attrs/ndevs/%u",
     .print = hca_sysfs_print_gid_ndev, .count = HCA_GID_TABLE_LEN},

    {HCA_SYSFS_IBDEV, "tc/1/traffic_class", .print = hca_sysfs_print_tclass},

    {HCA_SYSFS_UVERBS, "abi_version", .print = hca_sysfs_print_abi},
    {HCA_SYSFS_UVERBS, "dev", .print = hca_sysfs_print_rdev},
    {HCA_SYSFS_UVERBS, "ibdev", .print = hca_sysfs_print_ibdev},
    {.name = NULL},
};
