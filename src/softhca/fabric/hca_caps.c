/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The variables of hca_caps.h. Names of limits are those of ibv_devinfo(1).
 */
#define _GNU_SOURCE
#include "hca_caps.h"
#include "softhca/base/hca_log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct hca_caps hca_caps;

static const char *const hca_lack_names[HCA_NUM_LACKS] = {
    [HCA_LACK_DC]      = "dc",
    [HCA_LACK_DEVX]    = "devx",
    [HCA_LACK_SM]      = "sm",
    [HCA_LACK_ACCESS]  = "access",
    [HCA_LACK_UVERBS]  = "uverbs",
    [HCA_LACK_TM]      = "tm",
    [HCA_LACK_TM_DC]   = "tm_rndv_dc",
    [HCA_LACK_STRIDES] = "strides",
    [HCA_LACK_WC]      = "wc",
};

static const char *const hca_limit_names[HCA_NUM_LIMITS] = {
    [HCA_LIMIT_QP]     = "max_qp",
    [HCA_LIMIT_QP_WR]  = "max_qp_wr",
    [HCA_LIMIT_CQE]    = "max_cqe",
    [HCA_LIMIT_SRQ_WR] = "max_srq_wr",
    [HCA_LIMIT_TAGS]   = "max_num_tags",
};

/* The device has rings of 2^n entries; of some it keeps one for itself
 * (mlx5_ib_query_device()). */
static bool hca_caps_is_ring(int limit, unsigned long number)
{
    if ((limit == HCA_LIMIT_CQE) || (limit == HCA_LIMIT_SRQ_WR) ||
        (limit == HCA_LIMIT_TAGS)) {
        number++;
    }
    return (limit == HCA_LIMIT_QP) || ((number & (number - 1)) == 0);
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

/* "name=number"; the device itself has less than 2^31 of anything. */
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
        !hca_caps_is_ring(limit, number)) {
        return false;
    }
    caps->limits[limit] = number;
    return true;
}

/* Hands each item of the list to `take`. */
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

int hca_caps_init(void)
{
    const char *memlock  = getenv("SOFTHCA_MEMLOCK");
    struct hca_caps caps = {};
    int ret;

    ret = hca_caps_list("SOFTHCA_LACKS", "dc, devx, sm, access, uverbs, tm, "
                        "tm_rndv_dc, strides, wc, or several of these with "
                        "commas", hca_caps_lack, &caps);
    if (ret == 0) {
        ret = hca_caps_list("SOFTHCA_LIMITS", "max_qp=N, max_qp_wr=2^N, "
                            "max_cqe=2^N-1, max_srq_wr=2^N-1, "
                            "max_num_tags=2^N-1, or several of these with "
                            "commas", hca_caps_limit, &caps);
    }
    if ((ret == 0) && (memlock != NULL)) {
        caps.memlock = !strcmp(memlock, "y");
        if (!caps.memlock && strcmp(memlock, "n")) {
            hca_error("SOFTHCA_MEMLOCK=%s: use y or n", memlock);
            ret = -EINVAL;
        }
    }
    if (ret == 0) {
        hca_caps = caps;
    }
    return ret;
}
