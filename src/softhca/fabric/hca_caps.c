/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The variables of hca_caps.h. Names of limits are those of ibv_devinfo(1), as
 * far as it has them.
 */
#define _GNU_SOURCE
#include "hca_caps.h"
#include "softhca/base/hca_log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HCA_CAPS_MAX_US 100000u

struct hca_caps hca_caps;

static const char *const hca_lack_names[HCA_NUM_LACKS] = {
    [HCA_LACK_DC]          = "dc",
    [HCA_LACK_DEVX]        = "devx",
    [HCA_LACK_SM]          = "sm",
    [HCA_LACK_ACCESS]      = "access",
    [HCA_LACK_UVERBS]      = "uverbs",
    [HCA_LACK_WC]          = "wc",
    [HCA_LACK_ATOMICS]     = "atomics",
    [HCA_LACK_DM]          = "dm",
    [HCA_LACK_FREE_CLOCK]  = "free_clock",
    [HCA_LACK_RTS2RST]     = "rts2rst",
    [HCA_LACK_LAG_DCT]     = "lag_dct",
    [HCA_LACK_TM]          = "tm",
    [HCA_LACK_TM_ROCE]     = "tm_roce",
    [HCA_LACK_TM_DC]       = "tm_rndv_dc",
    [HCA_LACK_TM_INDIRECT] = "tm_indirect",
    [HCA_LACK_TM_OWN_KEY]  = "tm_own_key",
    [HCA_LACK_STRIDES]     = "strides",
    [HCA_LACK_UMR_ATOMIC]  = "umr_atomic",
    [HCA_LACK_UMR_FENCE]   = "umr_fence",
    [HCA_LACK_REPEAT]      = "repeat",
    [HCA_LACK_REPEAT_NEST] = "repeat_nest",
    [HCA_LACK_ODP]         = "odp",
    [HCA_LACK_ODP_ATOMIC]  = "odp_atomic",
    [HCA_LACK_DMABUF]      = "dmabuf",
};

static const char *const hca_limit_names[HCA_NUM_LIMITS] = {
    [HCA_LIMIT_QP]          = "max_qp",
    [HCA_LIMIT_QP_WR]       = "max_qp_wr",
    [HCA_LIMIT_CQE]         = "max_cqe",
    [HCA_LIMIT_SRQ_WR]      = "max_srq_wr",
    [HCA_LIMIT_TAGS]        = "max_num_tags",
    [HCA_LIMIT_RD_ATOMIC]   = "max_rd_atomic_dc",
    [HCA_LIMIT_INDIRECTION] = "max_indirection",
    [HCA_LIMIT_INLINE_KLM]  = "max_inline_klm",
    [HCA_LIMIT_DM]          = "max_dm_size",
};

#define HCA_LACK(_name) (1u << HCA_LACK_##_name)

/* Features that are not known of any adapter, so that no model has them:
 *
 *   RTS2RST       2RST_QP of a queue in RTS: UCX resets queues in error only
 *   TM_INDIRECT   indirect mkeys in the tag list: UCX has direct ones there
 *   REPEAT_NEST   repeated blocks over repeated blocks: no published program
 *                 has them
 *   UMR_FENCE     capability umr_fence: 0, the value of firmware without the
 *                 field, means strong ordering (get_umr_fence() of mlx5_ib)
 *   TM_ROCE       tag matching on Ethernet: ibv_devinfo of a ConnectX-5 in
 *                 issue 5376 of UCX shows none
 *   TM_OWN_KEY    rendezvous by its sender's own DC access key: UCX has one key
 *                 for all
 *   ODP_ATOMIC    atomics on memory on demand: ibv_devinfo of MLNX_OFED shows
 *                 none, for RC and for DC (a ConnectX-4 Lx, 14.27.1016)
 *
 * Nor has any model more than one stream in error before its initiator fails
 * (torchcomms, pull 958). */
#define HCA_MODEL_ALL \
    (HCA_LACK(RTS2RST) | HCA_LACK(TM_INDIRECT) | HCA_LACK(REPEAT_NEST) | \
     HCA_LACK(UMR_FENCE) | HCA_LACK(TM_ROCE) | HCA_LACK(TM_OWN_KEY) | \
     HCA_LACK(ODP_ATOMIC))

static const struct hca_model {
    const char *name;
    bool is_roce;
    unsigned lacks;
    uint8_t log_streams;
} hca_models[] = {
    /* no streams of initiators: "older generations" (UCX, pull 8445) */
    {"cx5", false, HCA_MODEL_ALL, 0},
    {"cx6", false, HCA_MODEL_ALL, HCA_MAX_LOG_STREAMS},
    /* Ethernet alone (its product brief); with REAL_TIME_CLOCK_ENABLE it has no
     * other timestamps (issue 8267 of UCX) */
    {"cx6dx", true, HCA_MODEL_ALL | HCA_LACK(FREE_CLOCK), HCA_MAX_LOG_STREAMS},
    {"cx7", false, HCA_MODEL_ALL | HCA_LACK(FREE_CLOCK), HCA_MAX_LOG_STREAMS},
    /* umr_modify_atomic_disabled of virtual functions (Linux c8d75a980fab); no
     * atomics and no device memory, as where PCI_ATOMIC_MODE is off in the
     * firmware's configuration, and MEMIC_SIZE_LIMIT is DISABLED; no text shows
     * one with on-demand paging */
    {"vf", false,
     HCA_MODEL_ALL | HCA_LACK(UMR_ATOMIC) | HCA_LACK(ATOMICS) | HCA_LACK(DM) |
         HCA_LACK(ODP),
     HCA_MAX_LOG_STREAMS},
    /* the bond of SOFTHCA_LAG=y has no DC (create_dct() of mlx5_ib) */
    {"roce", true, HCA_MODEL_ALL | HCA_LACK(LAG_DCT), HCA_MAX_LOG_STREAMS},
};

/* Translations in a UMR WQE of all models, as kernels of MLNX_OFED announced */
enum { HCA_MODEL_INLINE_KLM = 20 };

/* Features lacking without a model */
#define HCA_MODEL_DEFAULT (HCA_LACK(TM_ROCE) | HCA_LACK(TM_OWN_KEY))

/* Returns true if a limit can have this value. Rings, and reads and atomics of
 * a DCI, are 2^n; the device keeps an entry of some rings for itself: 2^n - 1
 * (mlx5_ib_query_device()). */
static bool hca_caps_is_valid(int limit, unsigned long number)
{
    if ((limit == HCA_LIMIT_CQE) || (limit == HCA_LIMIT_SRQ_WR) ||
        (limit == HCA_LIMIT_TAGS)) {
        number++;
    }
    return (limit == HCA_LIMIT_QP) || (limit >= HCA_LIMIT_INDIRECTION) ||
           ((number & (number - 1)) == 0);
}

static int hca_caps_find(const char *name, const char *const *names,
                         int num_names)
{
    int i = 0;

    while ((i < num_names) && strcmp(name, names[i])) {
        i++;
    }
    return (i < num_names) ? i : -1;
}

static bool hca_caps_lack(struct hca_caps *caps, char *item)
{
    int lack = hca_caps_find(item, hca_lack_names, HCA_NUM_LACKS);

    caps->lacks |= (lack < 0) ? 0 : 1u << lack;
    return lack >= 0;
}

static bool hca_caps_have(struct hca_caps *caps, char *item)
{
    int lack = hca_caps_find(item, hca_lack_names, HCA_NUM_LACKS);

    caps->lacks &= (lack < 0) ? ~0u : ~(1u << lack);
    return lack >= 0;
}

static bool hca_caps_model(struct hca_caps *caps, char *item)
{
    const struct hca_model *model;

    for (unsigned i = 0; i < sizeof(hca_models) / sizeof(*hca_models); i++) {
        model = &hca_models[i];
        if (!strcmp(item, model->name) &&
            (caps->limits[HCA_LIMIT_INLINE_KLM] == 0)) { /* only one model */
            caps->lacks                        = model->lacks;
            caps->is_roce                      = model->is_roce;
            caps->log_streams                  = model->log_streams;
            caps->log_errored                  = 0;
            caps->limits[HCA_LIMIT_INLINE_KLM] = HCA_MODEL_INLINE_KLM;
            return true;
        }
    }
    return false;
}

/* Reads "name=number"; the device itself has less than 2^31 of anything. */
static bool hca_caps_limit(struct hca_caps *caps, char *item)
{
    char *value = strchr(item, '='), *end;
    unsigned long number;
    int limit;

    if ((value == NULL) || (value[1] < '0') || (value[1] > '9')) {
        return false;
    }
    *value = '\0';
    number = strtoul(value + 1, &end, 10);
    limit  = hca_caps_find(item, hca_limit_names, HCA_NUM_LIMITS);
    if ((limit < 0) || (*end != '\0') || (number == 0) || (number >> 31) ||
        !hca_caps_is_valid(limit, number)) {
        return false;
    }
    caps->limits[limit] = number;
    return true;
}

/* Passes each item of the list to @take. */
static int hca_caps_list(const char *name, const char *usage,
                         bool (*take)(struct hca_caps *caps, char *item),
                         struct hca_caps *caps)
{
    const char *value = getenv(name);
    char text[256], *save, *item;
    bool good;

    if (value == NULL) {
        return 0;
    }
    good = (value[0] != '\0') && (strlen(value) < sizeof(text));
    strncpy(text, value, sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    for (item = strtok_r(text, ",", &save); good && (item != NULL);
         item = strtok_r(NULL, ",", &save)) {
        good = take(caps, item);
    }
    if (!good) {
        hca_error("%s=%s: use %s", name, value, usage);
    }
    return good ? 0 : -EINVAL;
}

#define HCA_CAPS_FEATURES \
    "dc, devx, sm, access, uverbs, wc, atomics, dm, free_clock, rts2rst, " \
    "lag_dct, tm, tm_roce, tm_rndv_dc, tm_indirect, tm_own_key, strides, " \
    "umr_atomic, umr_fence, repeat, repeat_nest, odp, odp_atomic, dmabuf, or " \
    "several of these with commas"

/* Variables, in this order, as a later one refines an earlier one. */
static const struct {
    const char *name, *usage;
    bool (*take)(struct hca_caps *caps, char *item);
} hca_caps_vars[] = {
    {"SOFTHCA_MODEL", "cx5, cx6, cx6dx, cx7, vf or roce", hca_caps_model},
    {"SOFTHCA_LACKS", HCA_CAPS_FEATURES, hca_caps_lack},
    {"SOFTHCA_HAS", HCA_CAPS_FEATURES, hca_caps_have},
    {"SOFTHCA_LIMITS",
     "max_qp=N, max_qp_wr=2^N, max_cqe=2^N-1, "
     "max_srq_wr=2^N-1, max_num_tags=2^N-1, max_rd_atomic_dc=2^N, "
     "max_indirection=N, max_inline_klm=N, max_dm_size=N, or several of these "
     "with commas",
     hca_caps_limit},
};

int hca_caps_bool(const char *name, bool *value)
{
    const char *str = getenv(name);

    if (str == NULL) {
        return 0;
    }
    if (strcmp(str, "y") && strcmp(str, "n")) {
        hca_error("%s=%s: use y or n", name, str);
        return -EINVAL;
    }
    *value = (str[0] == 'y');
    return 0;
}

void hca_caps_us(const char *name, uint64_t *ns)
{
    const char *value = getenv(name);
    unsigned long us;
    char *end;

    if (value == NULL) {
        return;
    }
    us = strtoul(value, &end, 10);
    if ((*value < '0') || (*value > '9') || (*end != '\0') ||
        (us > HCA_CAPS_MAX_US)) {
        hca_error("%s=%s: use 0 to %u (microseconds)", name, value,
                  HCA_CAPS_MAX_US);
        return;
    }
    *ns = us * 1000;
}

int hca_caps_init(void)
{
    struct hca_caps caps = {
        .lacks       = HCA_MODEL_DEFAULT,
        .log_streams = HCA_MAX_LOG_STREAMS,
        .log_errored = HCA_MAX_LOG_ERRORED,
        .share       = true,
    };
    int ret = 0;

    for (unsigned i = 0;
         (ret == 0) && (i < sizeof(hca_caps_vars) / sizeof(*hca_caps_vars));
         i++) {
        ret = hca_caps_list(hca_caps_vars[i].name, hca_caps_vars[i].usage,
                            hca_caps_vars[i].take, &caps);
    }
    if (ret == 0) {
        ret = hca_caps_bool("SOFTHCA_MEMLOCK", &caps.memlock);
    }
    if (ret == 0) {
        ret = hca_caps_bool("SOFTHCA_SHARE", &caps.share);
    }
    if (caps.lacks & HCA_LACK(ODP)) {
        caps.lacks |= HCA_LACK(ODP_ATOMIC);
    }
    if (ret == 0) {
        hca_caps = caps;
    }
    return ret;
}

void hca_caps_set_link(bool is_roce)
{
    if (is_roce && hca_lacks(HCA_LACK_TM_ROCE)) {
        hca_caps.lacks |= HCA_LACK(TM);
    }
}
