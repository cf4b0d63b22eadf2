/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * QUERY_PORT, and queries of the GID table.
 */
#define _GNU_SOURCE
#include "uverbs.h"
#include "softhca/fabric/hca_dev.h"

#include <errno.h>
#include <net/if.h>
#include <string.h>

#define UVERBS_PORT_WIDTH_4X 2
#define UVERBS_PORT_HDR      64 /* 50 Gb/s a lane */
#define UVERBS_PORT_LINK_UP  5
#define UVERBS_PORT_POLLING  2
#define UVERBS_PORT_VLS      4 /* VL0-7 */

/* Counters of PortInfo saturate (IBTA 14.2.5.6). */
static uint16_t uverbs_port_count(uint32_t count)
{
    return (count < UINT16_MAX) ? count : UINT16_MAX;
}

static void uverbs_port_fill(unsigned dev, struct ib_uverbs_query_port_resp *r)
{
    bool roce = hca_dev_is_roce(dev), init = hca_dev_is_init(dev);
    bool down = hca_dev_is_down(dev) && !init;

    *r = (struct ib_uverbs_query_port_resp){
        .port_cap_flags = hca_dev_cap_mask(dev) |
                          (roce ? IB_UVERBS_PCF_IP_BASED_GIDS : 0),
        .max_msg_sz     = 1u << 30,
        .gid_tbl_len    = HCA_GID_TABLE_LEN,
        .qkey_viol_cntr = uverbs_port_count(hca_fabric->bad_qkeys[dev]),
        .bad_pkey_cntr  = uverbs_port_count(hca_fabric->bad_pkeys[dev]),
        .pkey_tbl_len   = hca_dev_num_pkeys(dev),
        .lid            = hca_dev_lid(dev),
        .lmc            = hca_dev_lmc(dev),
        .sm_lid         = (roce || init) ? 0 : 1,
        .state          = down ? IBV_PORT_DOWN :
                          init ? IBV_PORT_INIT :
                                 IBV_PORT_ACTIVE,
        .max_mtu        = IBV_MTU_4096,
        .active_mtu     = IBV_MTU_4096,
        .max_vl_num     = roce ? 0 : UVERBS_PORT_VLS,
        .subnet_timeout = roce ? 0 : 18,
        .active_width   = UVERBS_PORT_WIDTH_4X,
        .active_speed   = UVERBS_PORT_HDR,
        .phys_state     = down ? UVERBS_PORT_POLLING : UVERBS_PORT_LINK_UP,
        .link_layer     = roce ? IBV_LINK_LAYER_ETHERNET :
                                 IBV_LINK_LAYER_INFINIBAND,
        .flags          = roce ? IB_UVERBS_QPF_GRH_REQUIRED : 0,
    };
}

static const struct uverbs_attr_spec uverbs_query_port_attrs[] = {
    {UVERBS_ATTR_QUERY_PORT_PORT_NUM, UVERBS_IN, UVERBS_MANDATORY, 8, 8, 0},
    {UVERBS_ATTR_QUERY_PORT_RESP, UVERBS_OUT,
     UVERBS_MANDATORY | UVERBS_TRAILING,
     offsetof(struct ib_uverbs_query_port_resp_ex, reserved),
     sizeof(struct ib_uverbs_query_port_resp_ex), 0},
};

static int uverbs_query_port(struct uverbs_req *req)
{
    struct ib_uverbs_query_port_resp_ex resp = {0};

    if (uverbs_get_const(req, UVERBS_ATTR_QUERY_PORT_PORT_NUM) != 1) {
        return -EINVAL;
    }
    uverbs_port_fill(req->ctx->dev, &resp.legacy_resp);
    return uverbs_put(req, UVERBS_ATTR_QUERY_PORT_RESP, &resp, sizeof(resp));
}

/* @return true if the table has an entry at @index. */
static bool uverbs_gid_fill(unsigned dev, unsigned index,
                            struct ib_uverbs_gid_entry *entry)
{
    static const uint32_t types[] = {
        [HCA_GID_IB]      = IB_UVERBS_GID_TYPE_IB,
        [HCA_GID_ROCE_V1] = IB_UVERBS_GID_TYPE_ROCE_V1,
        [HCA_GID_ROCE_V2] = IB_UVERBS_GID_TYPE_ROCE_V2,
    };
    enum hca_gid_type type;

    memset(entry, 0, sizeof(*entry));
    type = hca_dev_gid(dev, index, (uint8_t *)entry->gid);
    if (type == HCA_GID_NONE) {
        return false;
    }
    entry->gid_index = index;
    entry->port_num  = 1;
    entry->gid_type  = types[type];
    if (hca_dev_is_roce(dev)) {
        entry->netdev_ifindex = if_nametoindex(HCA_GID_NETDEV);
    }
    return true;
}

static const struct uverbs_attr_spec uverbs_query_gid_entry_attrs[] = {
    {UVERBS_ATTR_QUERY_GID_ENTRY_PORT, UVERBS_IN, UVERBS_MANDATORY, 4, 8, 0},
    {UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX, UVERBS_IN, UVERBS_MANDATORY, 4, 8,
     0},
    {UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS, UVERBS_IN, UVERBS_MANDATORY, 4, 8, 0},
    {UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, UVERBS_OUT,
     UVERBS_MANDATORY | UVERBS_TRAILING, sizeof(struct ib_uverbs_gid_entry),
     sizeof(struct ib_uverbs_gid_entry), 0},
};

static int uverbs_query_gid_entry(struct uverbs_req *req)
{
    uint64_t index = uverbs_get_const(req,
                                      UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX);
    struct ib_uverbs_gid_entry entry;

    if ((uverbs_get_const(req, UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS) != 0) ||
        (uverbs_get_const(req, UVERBS_ATTR_QUERY_GID_ENTRY_PORT) != 1) ||
        (index >= HCA_GID_TABLE_LEN)) {
        return -EINVAL;
    }
    if (!uverbs_gid_fill(req->ctx->dev, index, &entry)) {
        return -ENODATA;
    }
    return uverbs_put(req, UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, &entry,
                      sizeof(entry));
}

static const struct uverbs_attr_spec uverbs_query_gid_table_attrs[] = {
    {UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE, UVERBS_IN, UVERBS_MANDATORY, 8, 8,
     0},
    {UVERBS_ATTR_QUERY_GID_TABLE_FLAGS, UVERBS_IN, 0, 4, 8, 0},
    {UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, UVERBS_OUT, UVERBS_MANDATORY, 0,
     UINT16_MAX, 0},
    {UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, UVERBS_OUT, UVERBS_MANDATORY,
     8, 8, 0},
};

static int uverbs_query_gid_table(struct uverbs_req *req)
{
    uint64_t size = uverbs_get_const(req,
                                     UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE);
    struct ib_uverbs_gid_entry entries[HCA_GID_TABLE_LEN];
    uint8_t table[HCA_GID_TABLE_LEN * 64] = {0};
    uint64_t num                          = 0;
    int ret;

    /* programs may have a shorter entry (older) or a longer one (newer) */
    if ((size == 0) || (size > 64) ||
        (uverbs_get_const(req, UVERBS_ATTR_QUERY_GID_TABLE_FLAGS) != 0)) {
        return -EINVAL;
    }
    for (unsigned i = 0; i < HCA_GID_TABLE_LEN; i++) {
        if (uverbs_gid_fill(req->ctx->dev, i, &entries[num])) {
            memcpy(table + num * size, &entries[num],
                   (size < sizeof(entries[0])) ? size : sizeof(entries[0]));
            num++;
        }
    }
    if (uverbs_len(req, UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES) <
        num * size) {
        return -EINVAL;
    }

    ret = uverbs_put(req, UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, table,
                     num * size);
    return (ret != 0) ?
               ret :
               uverbs_put(req, UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES,
                          &num, sizeof(num));
}

static const struct uverbs_attr_spec uverbs_query_port_mlx5_attrs[] = {
    {MLX5_IB_ATTR_QUERY_PORT_PORT_NUM, UVERBS_IN, UVERBS_MANDATORY, 4, 4, 0},
    {MLX5_IB_ATTR_QUERY_PORT, UVERBS_OUT, UVERBS_MANDATORY | UVERBS_TRAILING,
     offsetof(struct mlx5_ib_uapi_query_port, reg_c0) +
         sizeof(struct mlx5_ib_uapi_reg),
     UINT16_MAX, 0},
};

/* Answers with zeros: the driver's part describes the switch of virtual ports,
 * which this device does not have. */
static int uverbs_query_port_mlx5(struct uverbs_req *req)
{
    struct mlx5_ib_uapi_query_port resp = {};

    if (uverbs_get_const(req, MLX5_IB_ATTR_QUERY_PORT_PORT_NUM) != 1) {
        return -EINVAL;
    }
    return uverbs_put(req, MLX5_IB_ATTR_QUERY_PORT, &resp, sizeof(resp));
}

const struct uverbs_method uverbs_port_methods[] = {
    {.object  = UVERBS_OBJECT_DEVICE,
     .id      = MLX5_IB_METHOD_QUERY_PORT,
     .name    = "query_port_mlx5",
     .handler = uverbs_query_port_mlx5,
     UVERBS_ATTRS(uverbs_query_port_mlx5_attrs)},
    {.object  = UVERBS_OBJECT_DEVICE,
     .id      = UVERBS_METHOD_QUERY_PORT,
     .name    = "query_port",
     .handler = uverbs_query_port,
     UVERBS_ATTRS(uverbs_query_port_attrs)},
    {.object  = UVERBS_OBJECT_DEVICE,
     .id      = UVERBS_METHOD_QUERY_GID_ENTRY,
     .name    = "query_gid_entry",
     .handler = uverbs_query_gid_entry,
     UVERBS_ATTRS(uverbs_query_gid_entry_attrs)},
    {.object  = UVERBS_OBJECT_DEVICE,
     .id      = UVERBS_METHOD_QUERY_GID_TABLE,
     .name    = "query_gid_table",
     .handler = uverbs_query_gid_table,
     UVERBS_ATTRS(uverbs_query_gid_table_attrs)},
    {.handler = NULL},
};
