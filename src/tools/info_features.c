/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The table of features; see info_features.h.
 */
#include "info_features.h"

#include <string.h>

#define INFO_NO_VERB  "rdma-core has no verb for it"
#define INFO_ETHERNET "for Ethernet frames, dcx sends none"

static const char info_used[] = "used";
static const char info_not[]  = "not used";
static const char info_cant[] = "not usable";

/* A section of the guide. @reason: if it is used, the option or the function */
struct info_feature {
    const char *name;
    const char *use;
    const char *reason;
    const char *row; /* of the device: its capability; or NULL */
};

/* clang-format off */
static const struct info_feature info_features[] = {
    {"Accelerated Verbs", info_used, "mlx5dv_init_obj()", NULL},
    {"AS Notify", info_cant, INFO_NO_VERB, NULL},
    {"Atomic Operations", info_used, "uct_ep_atomic64_fetch()", "atomics"},
    {"Extended Atomics", info_used, "UCX_DCX_EXT_ATOMICS", "extended atomics"},
    {"Atomic Response Endianness", info_used, "uct_dcx_atomic_done64_be()",
     NULL},
    {"Checksum Offload", info_cant, INFO_ETHERNET, NULL},
    {"Contiguous Pages", info_used, "UCX_DCX_ALLOC", NULL},
    {"CQE Compression", info_not, "8 bytes: 1.2 lines, 1.0 without it", NULL},
    {"CQ Moderation", info_not, "it delays events, dcx waits for one", NULL},
    {"Cross Channel", info_cant, INFO_NO_VERB, NULL},
    {"Device Memory", info_used, "UCX_DCX_DM_SIZE", "device memory"},
    {"Dynamically Connected (DC) QPs", info_used, "UCX_DCX_NUM_DCI",
     "DC transport"},
    {"DC RDMA Atomic", info_used, "UCX_DCX_MAX_RD_ATOMIC", NULL},
    {"DC On-Demand-Paging (DC ODP)", info_used, "UCX_DCX_ODP",
     "on-demand paging"},
    {"Key Violations", info_cant, INFO_NO_VERB, NULL},
    {"Flow Entropy", info_cant, INFO_NO_VERB, NULL},
    {"Flow Steering", info_cant, INFO_ETHERNET, NULL},
    {"HW Offload for Erasure Code", info_cant, INFO_NO_VERB, NULL},
    {"Inline Receive", info_used, "UCX_DCX_RX_INLINE", NULL},
    {"Memory Window (MW)", info_not, "UCX has no call for it", NULL},
    {"Multi-Packet RQ", info_not, "a message has one receive buffer", NULL},
    {"No Operation (NOP)", info_used, "MLX5_OPCODE_NOP", NULL},
    {"Out-of-Order (OOO)", info_used, "UCX_DCX_AR_ENABLE", NULL},
    {"PeerDirect Sync", info_cant, INFO_NO_VERB, NULL},
    {"PeerDirect Async", info_cant, INFO_NO_VERB, NULL},
    {"Physical Address Memory", info_cant, INFO_NO_VERB, NULL},
    {"Prefetch Memory Region", info_used, "uct_md_mem_advise()",
     "on-demand paging"},
    {"Query GID Attributes", info_used, "UCX_DCX_GID_INDEX", NULL},
    {"Raw Ethernet", info_cant, INFO_ETHERNET, NULL},
    {"Registration of Memory Region", info_used, "UCX_DCX_RCACHE", NULL},
    {"Resource Domain", info_used, "ibv_alloc_td()", NULL},
    {"RoCE Time-Stamping", info_not, "no field in UCT", "timestamps"},
    {"Shared Memory Region", info_cant, INFO_NO_VERB, NULL},
    {"Tag Matching", info_used, "UCX_DCX_TM_ENABLE", "tag matching"},
    {"TCP Segmentation Offload (TSO)", info_cant, INFO_ETHERNET, NULL},
    {"Tunneled Atomic", info_cant, INFO_NO_VERB, NULL},
    {"User-Mode Memory Registration", info_used, "UCX_DCX_UMR_LAYOUTS", "UMR"},
    {"VLAN Offload", info_cant, INFO_ETHERNET, NULL},
};
/* clang-format on */

/* Returns what the device has; "" if it has no such row. */
static const char *info_features_found(const struct info_part *device,
                                       const char *what)
{
    for (unsigned i = 0; (device != NULL) && (i < device->num_rows); i++) {
        if ((what != NULL) && !strcmp(device->rows[i].what, what)) {
            return device->rows[i].found;
        }
    }
    return "";
}

static void info_feature_print(const struct info_feature *feature,
                               const struct info_part *device, FILE *out)
{
    const char *found = info_features_found(device, feature->row);
    int length        = strcspn(found, ","); /* without "guessed" */

    fprintf(out, "  %-30s %-10s %s%s%.*s%s\n", feature->name,
            !strcmp(found, "no") ? info_cant : feature->use, feature->reason,
            (length > 0) ? " (" : "", length, found, (length > 0) ? ")" : "");
}

void info_features_print(const struct info_report *report, FILE *out)
{
    const unsigned count = sizeof(info_features) / sizeof(*info_features);

    fprintf(out, "  %-30s %-10s %s\n", "FEATURE", "USE",
            "REASON OR OPTION (OF THE DEVICE)");
    for (unsigned i = 0; i < count; i++) {
        info_feature_print(&info_features[i], report->first, out);
    }
}
