/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The devices: see hca_dev.h. Their GUIDs, MACs, LIDs and GIDs follow from
 * their numbers and dev_link, so that no process has to ask another. hca_config
 * is written once, while attaching; dev_link is atomic.
 */
#define _GNU_SOURCE
#include "hca_dev.h"
#include "hca_caps.h"
#include "softhca/base/hca_log.h"

#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Locally administered identifiers: no vendor's device has them. */
#define HCA_DEV_GUID 0x0264637800000000ull /* 02 "dcx", then the number */

#define HCA_PKEY_DEFAULT 0xffffu

#define HCA_DEV_NAME_CHARS \
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"

struct hca_config hca_config = {
    .num_devs = 1,
    .node     = 0,
    .link     = HCA_LINK_IB,
    .down     = HCA_DEVS_PER_NODE,
    .other    = HCA_DEVS_PER_NODE,
    .sls      = 0xffff,
    .tclass   = UINT_MAX,
    .pkeys    = {HCA_PKEY_DEFAULT},
};

static const char *const hca_link_names[] = {
    [HCA_LINK_NONE] = "no",
    [HCA_LINK_IB]   = "ib",
    [HCA_LINK_ROCE] = "roce",
};

/* Reads a number. Takes decimal digits only: strtoul() would accept "-1", " 1"
 * and "1x". */
static int hca_config_uint(const char *name, unsigned min, unsigned max,
                           unsigned *value)
{
    const char *str = getenv(name);
    unsigned long number;

    if (str == NULL) {
        return 0;
    }

    number = strtoul(str, NULL, 10);
    if ((str[0] == '\0') || (strlen(str) > 9) ||
        (strspn(str, "0123456789") != strlen(str)) || (number < min) ||
        (number > max)) {
        hca_error("%s=%s: use a number from %u to %u", name, str, min, max);
        return -EINVAL;
    }
    *value = number;
    return 0;
}

static int hca_config_link(const char *name, enum hca_link *link)
{
    const char *str = getenv(name);

    if (str == NULL) {
        return 0;
    }
    for (unsigned i = HCA_LINK_IB; i <= HCA_LINK_ROCE; i++) {
        if (!strcmp(str, hca_link_names[i])) {
            *link = i;
            return 0;
        }
    }
    hca_error("%s=%s: use ib or roce", name, str);
    return -EINVAL;
}

/* Reads a number of up to @max at the start of a list with commas: @prefix,
 * "0x" or "", and digits. Returns its end, or NULL if it is none. */
static const char *hca_config_number(const char *str, const char *prefix,
                                     unsigned long max, unsigned long *value)
{
    size_t length = strlen(prefix);
    char *end;

    if (strncmp(str, prefix, length) || !isxdigit((uint8_t)str[length])) {
        return NULL;
    }
    *value = strtoul(str, &end, (length == 0) ? 10 : 16);
    return ((end == str) || (*value > max) ||
            ((*end != ',') && (*end != '\0'))) ?
               NULL :
               end;
}

/* Returns the next number of the list, or NULL. */
static const char *hca_config_next(const char *end)
{
    return (*end == ',') ? end + 1 : NULL;
}

/* Sets the first entries of the table; the others name no partition. */
static int hca_config_pkeys(const char *name, uint16_t *pkeys)
{
    const char *str = getenv(name), *end;
    unsigned count  = 0;
    unsigned long pkey;

    for (const char *p = str; p != NULL; p = hca_config_next(end)) {
        end = hca_config_number(p, "0x", 0xffff, &pkey);
        if ((end == NULL) || (count == HCA_PKEY_TABLE_LEN)) {
            hca_error("%s=%s: use up to %u P_Keys such as 0xffff,0x8001, from "
                      "0x0 to 0xffff",
                      name, str, HCA_PKEY_TABLE_LEN);
            return -EINVAL;
        }
        pkeys[count++] = pkey;
    }
    return 0;
}

static int hca_config_sls(const char *name, uint16_t *sls)
{
    const char *str = getenv(name), *end;
    uint16_t mask   = 0;
    unsigned long sl;

    for (const char *p = str; p != NULL; p = hca_config_next(end)) {
        end = hca_config_number(p, "", 15, &sl);
        if (end == NULL) {
            hca_error("%s=%s: use service levels from 0 to 15, such as 0,5",
                      name, str);
            return -EINVAL;
        }
        mask |= 1u << sl;
    }
    *sls = (str == NULL) ? *sls : mask;
    return 0;
}

static bool hca_config_has_name(const struct hca_config *config, unsigned count,
                                const char *name)
{
    for (unsigned n = 0; n < count; n++) {
        if (!strcmp(config->names[n], name)) {
            return true;
        }
    }
    return false;
}

/* Names the first devices. Names as the kernel gives them are not allowed:
 * another device may have one. */
static int hca_config_names(const char *name, struct hca_config *config)
{
    const char *str = getenv(name), *p = str;
    unsigned n = 0;
    size_t length;

    while (p != NULL) {
        length = strcspn(p, ",");
        if ((length == 0) || (length >= HCA_DEV_NAME_LEN) ||
            (strspn(p, HCA_DEV_NAME_CHARS) < length) || !strncmp(p, "mlx", 3) ||
            (n == HCA_DEVS_PER_NODE)) {
            break;
        }
        snprintf(config->names[n], HCA_DEV_NAME_LEN, "%.*s", (int)length, p);
        if (hca_config_has_name(config, n, config->names[n])) {
            break;
        }
        n++;
        p = (p[length] == ',') ? p + length + 1 : NULL;
    }
    if (p != NULL) {
        hca_error("%s=%s: use up to %u names such as ibp1s0,rocep2s0f1, each "
                  "once, of up to %u letters, digits, - and _, none beginning "
                  "with mlx",
                  name, str, HCA_DEVS_PER_NODE, HCA_DEV_NAME_LEN - 1);
        return -EINVAL;
    }
    return 0;
}

/* Rejects options that the link layer does not have. */
static int hca_config_check(const struct hca_config *config)
{
    if ((config->lmc != 0) && (config->link != HCA_LINK_IB)) {
        hca_error("SOFTHCA_LMC=%u: use 0, RoCE has no LIDs", config->lmc);
        return -EINVAL;
    }
    if ((config->subnet != 0) && (config->link != HCA_LINK_IB)) {
        hca_error("SOFTHCA_SUBNET=%u: use 0, RoCE has no such subnets",
                  config->subnet);
        return -EINVAL;
    }
    if (config->lag && (config->link != HCA_LINK_ROCE)) {
        hca_error("SOFTHCA_LAG=y: use n, ports of InfiniBand are not bonded");
        return -EINVAL;
    }
    if ((getenv("SOFTHCA_PKEYS") != NULL) && (config->link != HCA_LINK_IB)) {
        hca_error("SOFTHCA_PKEYS: unset it, RoCE has only the default "
                  "partition");
        return -EINVAL;
    }
    if ((config->sls != 0xffff) && (config->link != HCA_LINK_IB)) {
        hca_error("SOFTHCA_SLS: unset it, RoCE has no service levels");
        return -EINVAL;
    }
    if ((config->tclass != UINT_MAX) && (config->link != HCA_LINK_ROCE)) {
        hca_error("SOFTHCA_TCLASS=%u: unset it, only RoCE has a class for all "
                  "packets of a port",
                  config->tclass);
        return -EINVAL;
    }
    if (hca_lacks(HCA_LACK_SM) && (config->link != HCA_LINK_IB)) {
        hca_error("SOFTHCA_LACKS=sm: remove sm, RoCE has no subnet manager");
        return -EINVAL;
    }
    return 0;
}

/* Numeric variables */
static const struct {
    const char *name;
    unsigned min, max;
    size_t offset; /* of its unsigned in struct hca_config */
} hca_config_uints[] = {
    {"SOFTHCA_DEVICES", 1, HCA_DEVS_PER_NODE,
     offsetof(struct hca_config, num_devs)},
    {"SOFTHCA_NODE", 0, HCA_MAX_DEVS / HCA_DEVS_PER_NODE - 1,
     offsetof(struct hca_config, node)},
    {"SOFTHCA_SUBNET", 0, UINT16_MAX - 1, offsetof(struct hca_config, subnet)},
    {"SOFTHCA_LMC", 0, 7, offsetof(struct hca_config, lmc)},
    {"SOFTHCA_TCLASS", 0, 255, offsetof(struct hca_config, tclass)},
    {"SOFTHCA_DCI_STREAMS", 0, HCA_MAX_LOG_STREAMS,
     offsetof(struct hca_config, log_streams)},
    {"SOFTHCA_DCI_ERRORED", 0, HCA_MAX_LOG_ERRORED,
     offsetof(struct hca_config, log_errored)},
    {"SOFTHCA_DOWN", 0, HCA_DEVS_PER_NODE - 1,
     offsetof(struct hca_config, down)},
    {"SOFTHCA_OTHER", 0, HCA_DEVS_PER_NODE - 1,
     offsetof(struct hca_config, other)},
};

int hca_config_init(void)
{
    struct hca_config config = hca_config;
    int ret                  = hca_caps_init();

    if (ret == 0) {
        config.link        = hca_caps.is_roce ? HCA_LINK_ROCE : config.link;
        config.log_streams = hca_caps.log_streams;
        config.log_errored = hca_caps.log_errored;
    }
    for (size_t i = 0; (ret == 0) && (i < sizeof(hca_config_uints) /
                                              sizeof(hca_config_uints[0]));
         i++) {
        ret = hca_config_uint(
            hca_config_uints[i].name, hca_config_uints[i].min,
            hca_config_uints[i].max,
            (unsigned *)((char *)&config + hca_config_uints[i].offset));
    }
    if (ret == 0) {
        ret = hca_config_link("SOFTHCA_LINK", &config.link);
    }
    if (ret == 0) {
        ret = hca_caps_bool("SOFTHCA_LAG", &config.lag);
    }
    if (ret == 0) {
        ret = hca_config_pkeys("SOFTHCA_PKEYS", config.pkeys);
    }
    if (ret == 0) {
        ret = hca_config_sls("SOFTHCA_SLS", &config.sls);
    }
    if (ret == 0) {
        ret = hca_config_names("SOFTHCA_NAMES", &config);
    }
    if (ret == 0) {
        ret = hca_config_check(&config);
    }
    if (ret == 0) {
        hca_caps_set_link(config.link == HCA_LINK_ROCE);
        hca_config = config;
    }
    return ret;
}

static void hca_dev_log_other(unsigned n, uint8_t other)
{
    hca_error("SOFTHCA_LINK=%s, SOFTHCA_LMC=%u: mlx5_%u of node %u is %s with "
              "LMC %u, and %s, in the running fabric; use that, another "
              "SOFTHCA_NODE or another SOFTHCA_FABRIC",
              hca_link_names[hca_config.link], hca_config.lmc, n,
              hca_config.node, hca_link_names[other & HCA_LINK_LAYER],
              (other & HCA_LINK_LMC) >> HCA_LINK_LMC_SHIFT,
              (other & HCA_LINK_DOWN) ? "down" : "up");
}

/* Sets the subnet of device @n of this node, unless another process has set it.
 * Returns false if that was another one. */
static bool hca_dev_set_subnet(unsigned n)
{
    uint16_t other = 0, own = hca_config.subnet + 1;

    if (!atomic_compare_exchange_strong(
            &hca_fabric->dev_subnet[hca_dev_local(n)], &other, own) &&
        (other != own)) {
        hca_error(
            "SOFTHCA_SUBNET=%u: mlx5_%u of node %u is in subnet %u of the "
            "running fabric; use that, another SOFTHCA_NODE or another "
            "SOFTHCA_FABRIC",
            hca_config.subnet, n, hca_config.node, other - 1u);
        return false;
    }
    return true;
}

int hca_dev_register(void)
{
    struct hca_proc *self = &hca_fabric->procs[hca_self];

    self->node = hca_config.node;
    memset(self->memory, 0, sizeof(self->memory));
    for (unsigned n = 0; n < hca_config.num_devs; n++) {
        unsigned dev  = hca_dev_local(n);
        uint8_t other = HCA_LINK_NONE;
        uint8_t own = hca_config.link | (hca_config.lmc << HCA_LINK_LMC_SHIFT) |
                      (((n == hca_config.down) || hca_lacks(HCA_LACK_SM)) ?
                           HCA_LINK_DOWN :
                           0);

        /* before the device is there for others */
        if (!hca_dev_set_subnet(n)) {
            return -EINVAL;
        }
        if (!atomic_compare_exchange_strong(&hca_fabric->dev_link[dev], &other,
                                            own) &&
            (other != own)) {
            hca_dev_log_other(n, other);
            return -EINVAL;
        }
    }
    return 0;
}

uint64_t hca_dev_guid(unsigned dev)
{
    return htobe64(HCA_DEV_GUID | dev);
}

void hca_dev_name(unsigned n, char name[HCA_DEV_NAME_LEN])
{
    if (hca_config.names[n][0] != '\0') {
        memcpy(name, hca_config.names[n], HCA_DEV_NAME_LEN);
    } else {
        snprintf(name, HCA_DEV_NAME_LEN, "mlx%d_%u",
                 hca_dev_is_other(n) ? 4 : 5, n);
    }
}

void hca_dev_mac(unsigned dev, uint8_t mac[6])
{
    const uint8_t value[6] = {0x02, 'd', 'c', 'x', dev >> 8, dev};

    memcpy(mac, value, sizeof(value));
}

/* Subnet prefix and the port's GUID (IBTA 4.1.1). The prefix is fe80::/64, or
 * site-local and ends with the number of the subnet. @index 1 is the GID for
 * routers: it has the FLID, and the identifier that the OpenIB subnet manager
 * gives (UCX, uct_ib_iface_gid_index()). */
static void hca_dev_gid_ib(unsigned dev, unsigned index, uint8_t gid[16])
{
    uint16_t subnet = hca_dev_subnet(dev), flid = hca_dev_flid(dev);
    uint64_t guid = (index == 0) ? hca_dev_guid(dev) :
                                   htobe64((0x001405ull << 40) | dev);

    memset(gid, 0, 16);
    gid[0] = 0xfe;
    gid[1] = (subnet == 0) ? 0x80 : 0xc0;
    if (index == 1) {
        gid[4] = flid >> 8;
        gid[5] = flid;
    }
    gid[6] = subnet >> 8;
    gid[7] = subnet;
    memcpy(gid + 8, &guid, sizeof(guid));
}

/* IPv6 link-local address of the MAC (RFC 4291, appendix A). */
static void hca_dev_gid_eui64(unsigned dev, uint8_t gid[16])
{
    uint8_t mac[6];

    hca_dev_mac(dev, mac);
    memset(gid, 0, 16);
    gid[0] = 0xfe;
    gid[1] = 0x80;
    memcpy(gid + 8, mac, 3);
    gid[8] ^= 2; /* universal/local bit */
    gid[11] = 0xff;
    gid[12] = 0xfe;
    memcpy(gid + 13, mac + 3, 3);
}

/* 198.18.node.n+1 mapped into IPv6: the range for tests (RFC 2544). */
static void hca_dev_gid_ipv4(unsigned dev, uint8_t gid[16])
{
    const uint8_t tail[6] = {0xff,
                             0xff,
                             198,
                             18,
                             dev / HCA_DEVS_PER_NODE,
                             dev % HCA_DEVS_PER_NODE + 1};

    memset(gid, 0, 16);
    memcpy(gid + 10, tail, sizeof(tail));
}

/* Entries are in the order of a RoCE NIC: each address as v1, then as v2. */
enum hca_gid_type hca_dev_gid(unsigned dev, unsigned index, uint8_t gid[16])
{
    memset(gid, 0, 16);
    if (!hca_dev_is_roce(dev)) {
        if (index > (hca_dev_subnet(dev) != 0)) {
            return HCA_GID_NONE;
        }
        hca_dev_gid_ib(dev, index, gid);
        return HCA_GID_IB;
    }

    if (index >= HCA_GID_TABLE_LEN) {
        return HCA_GID_NONE;
    }
    if (index < 2) {
        hca_dev_gid_eui64(dev, gid);
    } else {
        hca_dev_gid_ipv4(dev, gid);
    }
    return (index & 1) ? HCA_GID_ROCE_V2 : HCA_GID_ROCE_V1;
}

/* Returns the device's number, which ends each form of GID. */
static unsigned hca_dev_gid_number(const uint8_t gid[16])
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

    return memcmp(gid, mapped, sizeof(mapped)) ?
               gid[15] :
               gid[14] * HCA_DEVS_PER_NODE + gid[15] - 1u;
}

int hca_dev_by_gid(const uint8_t gid[16])
{
    unsigned dev = hca_dev_gid_number(gid);
    uint8_t own[16];

    if ((dev >= HCA_MAX_DEVS) || (hca_fabric->dev_link[dev] == HCA_LINK_NONE)) {
        return -1;
    }
    for (unsigned i = 0; i < HCA_GID_TABLE_LEN; i++) {
        if ((hca_dev_gid(dev, i, own) != HCA_GID_NONE) &&
            !memcmp(own, gid, sizeof(own))) {
            return dev;
        }
    }
    return -1;
}

bool hca_dev_take_memory(unsigned dev, uint32_t size, uint32_t total)
{
    unsigned node = dev / HCA_DEVS_PER_NODE, n = dev % HCA_DEVS_PER_NODE;
    uint64_t taken = 0;

    atomic_fetch_add(&hca_fabric->procs[hca_self].memory[n], size);
    for (unsigned i = 0; i < HCA_MAX_PROCS; i++) {
        struct hca_proc *proc = &hca_fabric->procs[i];

        if ((atomic_load(&proc->state) == HCA_PROC_ALIVE) &&
            (proc->node == node)) {
            taken += atomic_load(&proc->memory[n]);
        }
    }
    if (taken > total) {
        hca_dev_give_memory(dev, size);
        return false;
    }
    return true;
}

void hca_dev_give_memory(unsigned dev, uint32_t size)
{
    atomic_fetch_sub(
        &hca_fabric->procs[hca_self].memory[dev % HCA_DEVS_PER_NODE], size);
}

unsigned hca_dev_num_pkeys(unsigned dev)
{
    return hca_dev_is_roce(dev) ? 1 : HCA_PKEY_TABLE_LEN;
}

uint16_t hca_dev_pkey(unsigned dev, unsigned index)
{
    return (index < hca_dev_num_pkeys(dev)) ? hca_config.pkeys[index] : 0;
}
