/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Limits and attributes of an interface: the sizes of its operations,
 * calculated once from the size of a WQE, its flags, and performance figures.
 * Called by UCT.
 */
#include "dcx_caps.h"
#include "uct/dcx/base/dcx_sizes.h"
#include "uct/dcx/ep/dcx_atomic.h"
#include "uct/dcx/strided/dcx_iov.h"
#include "uct/dcx/net/dcx_addr.h"
#include "uct/dcx/net/dcx_port_addr.h"
#include "uct/dcx/tm/dcx_tm.h"
#include "uct/dcx/ucx/dcx_ucx.h"

#include <ucs/debug/log.h>
#include <ucs/sys/math.h>
#include <ucs/sys/string.h>
#include <ucs/sys/sys.h>


/* Pieces of am_zcopy, apart from its header */
#define UCT_DCX_AM_IOV 3

/* First bytes of each WQE, with the long form of the address */
#define UCT_DCX_CTRL_AV \
    (sizeof(struct mlx5_wqe_ctrl_seg) + sizeof(struct mlx5_wqe_av))

/* Limit of a read WQE, in bytes (MLX5_MAX_SGE_RD in Linux,
 * include/linux/mlx5/device.h) */
#define UCT_DCX_MAX_READ_WQE 512

/* Limit of a data segment's length field, and of messages on all mlx5
 * devices */
#define UCT_DCX_MAX_MESSAGE UCS_BIT(30)


/* Calculates the length of the list, on a device that supports @max tagged
 * buffers. */
static ucs_status_t uct_dcx_caps_list_size(const uct_dcx_iface_config_t *config,
                                           const uct_dcx_device_t *dev,
                                           unsigned max, unsigned *num_tags_p)
{
    unsigned wanted = uct_dcx_sizes_num_tags(config);
    static int is_told;

    if ((wanted > max) && (config->tm.enable == UCS_YES) &&
        (config->tm.list_size != UCS_ULUNITS_AUTO)) {
        ucs_error("UCX_DCX_TM_LIST_SIZE=%u exceeds the limit of the device: "
                  "set it to at most %u",
                  wanted, max);
        return UCS_ERR_INVALID_PARAM;
    }

    if ((wanted > max) && !is_told) {
        ucs_info("%s: posts up to %u receives to the device, not %u",
                 uct_dcx_device_name(dev), max, wanted);
        is_told = 1;
    }
    *num_tags_p = ucs_min(wanted, max);
    return UCS_OK;
}


ucs_status_t uct_dcx_caps_init_tm(const uct_dcx_iface_config_t *config,
                                  const uct_dcx_device_t *dev,
                                  const uct_iface_params_t *params,
                                  unsigned *num_tags_p)
{
    const char *fault = uct_dcx_device_tm_fault(dev);
    static int is_told;
    unsigned max;

    *num_tags_p = 0;
    if ((config->tm.enable == UCS_NO) || !uct_dcx_tm_is_wanted(params)) {
        return UCS_OK;
    }

    max = uct_dcx_sizes_max_tags(config, dev->tm.max_tags, dev->attr.max_cqe);
    if ((fault == NULL) && (max > 0)) {
        return uct_dcx_caps_list_size(config, dev, max, num_tags_p);
    }

    fault = (fault != NULL) ? fault :
                              "UCX_DCX_RX_QUEUE_LEN leaves no completions for "
                              "tag matching";
    if (config->tm.enable == UCS_YES) {
        ucs_error("UCX_DCX_TM_ENABLE=y: %s cannot match tags: %s; "
                  "UCX_DCX_TM_ENABLE=try continues without",
                  uct_dcx_device_name(dev), fault);
        return UCS_ERR_UNSUPPORTED;
    }

    if (!is_told) {
        ucs_info("%s cannot match tags: %s", uct_dcx_device_name(dev), fault);
        is_told = 1;
    }
    return UCS_OK;
}


void uct_dcx_caps_init(uct_dcx_limits_t *limits,
                       const uct_dcx_iface_config_t *config,
                       const uct_dcx_port_t *port)
{
    const size_t am_hdr  = UCT_DCX_WQE_INLINE_HDR + sizeof(uct_dcx_am_hdr_t);
    const size_t put_hdr = UCT_DCX_WQE_INLINE_HDR +
                           sizeof(struct mlx5_wqe_raddr_seg);
    const size_t data_seg = sizeof(struct mlx5_wqe_data_seg);
    uct_dcx_sizes_t sizes;
    size_t room;

    static_assert(sizeof(uct_dcx_am_hdr_t) + sizeof(uint64_t) <=
                      sizeof(struct mlx5_wqe_raddr_seg),
                  "uct_dcx_sizes_init() takes the header of a put");

    uct_dcx_sizes_init(&sizes, config, limits->num_tags);
    limits->seg_size = sizes.seg_size;
    limits->am_size  = sizes.am_size;
    limits->max_bb   = sizes.max_bb;
    room             = limits->max_bb * MLX5_SEND_WQE_BB - UCT_DCX_CTRL_AV;
    limits->am_short = ucs_min(room - am_hdr,
                               limits->am_size - sizeof(uct_dcx_am_hdr_t));
    limits->am_iov   = UCT_DCX_AM_IOV;
    /* UCP's headers are multiples of 8 bytes, and MPICH cannot unpack a part of
     * a message that ends within a number. */
    limits->am_bcopy = ucs_align_down_pow2(
        limits->am_size - sizeof(uct_dcx_am_hdr_t), sizeof(uint64_t));
    limits->am_zcopy  = limits->am_bcopy;
    limits->am_hdr    = ucs_min(room - am_hdr - (limits->am_iov * data_seg),
                                limits->am_zcopy);
    limits->put_short = room - put_hdr;
    limits->rma_iov   = (room - sizeof(struct mlx5_wqe_raddr_seg)) / data_seg;
    limits->get_iov   = ucs_min(limits->rma_iov,
                                (UCT_DCX_MAX_READ_WQE - UCT_DCX_CTRL_AV -
                               sizeof(struct mlx5_wqe_raddr_seg)) /
                                    data_seg);
    limits->rma_bcopy = limits->seg_size;
    limits->rma_zcopy = ucs_min(port->attr.max_msg_sz, UCT_DCX_MAX_MESSAGE);

    limits->strided.max_plain = config->strided.max_plain;

    limits->strided.copy = uct_dcx_profile_threshold(
        &port->dev->profile, UCT_DCX_THRESHOLD_COPY, config->strided.copy);
    limits->strided.copy_piece = uct_dcx_profile_threshold(
        &port->dev->profile, UCT_DCX_THRESHOLD_COPY_PIECE,
        config->strided.copy_piece);

    memset(&limits->tag, 0, sizeof(limits->tag));
    if (limits->num_tags > 0) {
        uct_dcx_caps_init_tag(limits, port->dev->tm.max_hdr);
        if (config->tm.min_recv != UCS_MEMUNITS_AUTO) {
            limits->tag.min_recv = config->tm.min_recv;
        }
    }
}


/* Limits rendezvous requests. UCP's own rendezvous header needs the longest
 * request that we send, and UCP aborts if it may not be that long: a device
 * that supports less is not asked to fetch data. */
void uct_dcx_caps_init_tag(uct_dcx_limits_t *limits, size_t max_request)
{
    const size_t inl_hdr = UCT_DCX_WQE_INLINE_HDR + sizeof(struct ibv_tmh);
    size_t room          = limits->max_bb * MLX5_SEND_WQE_BB - UCT_DCX_CTRL_AV;

    limits->tag.bcopy     = limits->seg_size - sizeof(struct ibv_tmh);
    limits->tag.max_short = ucs_min(room - inl_hdr, limits->tag.bcopy);
    limits->tag.min_recv  = ucs_max(limits->tag.bcopy, UCT_DCX_MAX_TM_REQUEST);
    limits->tag.iov       = (room - ucs_align_up(inl_hdr, UCT_DCX_WQE_SEG)) /
                      sizeof(struct mlx5_wqe_data_seg);
    if (max_request >= UCT_DCX_MAX_TM_REQUEST) {
        limits->tag.rndv_zcopy = limits->rma_zcopy;
        limits->tag.rndv_hdr   = UCT_DCX_MAX_TM_REQUEST - UCT_DCX_TM_RNDV_HDR +
                               UCT_DCX_TM_RNDV_IN_TMH;
    } else {
        limits->tag.rndv_zcopy = 0;
        limits->tag.rndv_hdr   = limits->tag.max_short;
    }
}


static ucs_status_t
uct_dcx_caps_check_streams(const uct_dcx_iface_config_t *config,
                           const uct_dcx_device_t *dev)
{
    const uct_dcx_policy_t *policy = uct_dcx_policy_get(config->tx.policy);

    if (!policy->has_streams) {
        return UCS_OK;
    }

    if (dev->log_streams == 0) {
        ucs_error("UCX_DCX_TX_POLICY=%s needs DCI streams, and %s has none; "
                  "set another one, such as dcs_quota",
                  policy->name, uct_dcx_device_name(dev));
        return UCS_ERR_UNSUPPORTED;
    }

    if (config->tx.num_streams > UCS_BIT(dev->log_streams)) {
        ucs_error("UCX_DCX_NUM_DCI_STREAMS=%u exceeds the limit of the "
                  "device: set it to at most %lu",
                  config->tx.num_streams, UCS_BIT(dev->log_streams));
        return UCS_ERR_INVALID_PARAM;
    }
    return UCS_OK;
}


ucs_status_t uct_dcx_caps_check(const uct_dcx_iface_config_t *config,
                                unsigned max_bb, const uct_dcx_device_t *dev)
{
    const struct ibv_device_attr *attr = &dev->attr;
    const struct {
        const char *name;
        unsigned long value;
        unsigned long max;
    } limits[] = {
        {"NUM_DCI", config->tx.num_dci, attr->max_qp},
        /* in WQEBBs: the kernel's mlx5_ib compares a send queue's length in
         * WQEBBs with the number that it announces (calc_sq_size()) */
        {"TX_QUEUE_LEN", config->tx.queue_len, attr->max_qp_wr / max_bb},
        {"RX_QUEUE_LEN", config->rx.queue_len, attr->max_srq_wr},
    };
    unsigned i;

    for (i = 0; i < ucs_static_array_size(limits); ++i) {
        if (limits[i].value > limits[i].max) {
            ucs_error("UCX_DCX_%s=%lu exceeds the limit of the device: set it "
                      "to at most %lu",
                      limits[i].name, limits[i].value, limits[i].max);
            return UCS_ERR_INVALID_PARAM;
        }
    }
    return uct_dcx_caps_check_streams(config, dev);
}


static void uct_dcx_caps_query_am(const uct_dcx_queues_t *queues,
                                  uct_iface_attr_t *attr)
{
    const uct_dcx_limits_t *limits = &queues->limits;

    attr->cap.am.max_short       = limits->am_short;
    attr->cap.am.max_bcopy       = limits->am_bcopy;
    attr->cap.am.max_zcopy       = limits->am_zcopy;
    attr->cap.am.max_hdr         = limits->am_hdr;
    attr->cap.am.max_iov         = UCT_DCX_IOV_ANNOUNCED;
    attr->cap.am.opt_zcopy_align = UCS_SYS_PCI_MAX_PAYLOAD;
    attr->cap.am.align_mtu       = uct_dcx_port_mtu_bytes(&queues->port);
}


/* Returns the maximum of entries of an operation on data that may be too long
 * to be copied: those of a strided mkey, or @plain. */
static size_t uct_dcx_caps_max_iov(const uct_dcx_limits_t *limits, size_t plain)
{
    return ucs_max(ucs_min(limits->strided.max_klm, UCT_DCX_IOV_MAX), plain);
}


static void uct_dcx_caps_query_rma(const uct_dcx_queues_t *queues,
                                   uct_iface_attr_t *attr)
{
    const uct_dcx_limits_t *limits = &queues->limits;
    unsigned mtu                   = uct_dcx_port_mtu_bytes(&queues->port);

    attr->cap.put.max_short = limits->put_short;
    attr->cap.put.max_bcopy = limits->rma_bcopy;
    attr->cap.put.max_zcopy = limits->rma_zcopy;
    attr->cap.put.max_iov   = uct_dcx_caps_max_iov(limits, limits->rma_iov);
    attr->cap.put.opt_zcopy_align = UCS_SYS_PCI_MAX_PAYLOAD;
    attr->cap.put.align_mtu       = mtu;

    attr->cap.get.max_bcopy = limits->rma_bcopy;
    attr->cap.get.max_zcopy = limits->rma_zcopy;
    attr->cap.get.max_iov   = uct_dcx_caps_max_iov(limits, limits->get_iov);
    attr->cap.get.opt_zcopy_align = UCS_SYS_PCI_MAX_PAYLOAD;
    attr->cap.get.align_mtu       = mtu;
}


static void uct_dcx_caps_query_tag(const uct_dcx_queues_t *queues,
                                   uct_iface_attr_t *attr)
{
    const uct_dcx_limits_t *limits = &queues->limits;

    if (queues->tm == NULL) {
        return;
    }

    attr->cap.flags |= UCT_IFACE_FLAG_TAG_EAGER_SHORT |
                       UCT_IFACE_FLAG_TAG_EAGER_BCOPY |
                       UCT_IFACE_FLAG_TAG_EAGER_ZCOPY |
                       UCT_IFACE_FLAG_TAG_RNDV_ZCOPY;
    attr->cap.tag.eager.max_short      = limits->tag.max_short;
    attr->cap.tag.eager.max_bcopy      = limits->tag.bcopy;
    attr->cap.tag.eager.max_zcopy      = limits->tag.bcopy;
    attr->cap.tag.eager.max_iov        = UCT_DCX_IOV_ANNOUNCED;
    attr->cap.tag.rndv.max_zcopy       = limits->tag.rndv_zcopy;
    attr->cap.tag.rndv.max_hdr         = limits->tag.rndv_hdr;
    attr->cap.tag.rndv.max_iov         = 1;
    attr->cap.tag.recv.min_recv        = limits->tag.min_recv;
    attr->cap.tag.recv.max_zcopy       = limits->rma_zcopy;
    attr->cap.tag.recv.max_iov         = 1;
    attr->cap.tag.recv.max_outstanding = limits->num_tags;
}


ucs_status_t uct_dcx_caps_query(uct_iface_h tl_iface, uct_iface_attr_t *attr)
{
    uct_dcx_queues_t *queues = ucs_derived_of(tl_iface, uct_dcx_queues_t);

    uct_base_iface_query(&queues->super, attr); /* sets all other fields to 0 */
    attr->cap.flags = UCT_IFACE_FLAG_AM_SHORT | UCT_IFACE_FLAG_AM_BCOPY |
                      UCT_IFACE_FLAG_AM_ZCOPY | UCT_IFACE_FLAG_PUT_SHORT |
                      UCT_IFACE_FLAG_PUT_BCOPY | UCT_IFACE_FLAG_PUT_ZCOPY |
                      UCT_IFACE_FLAG_GET_BCOPY | UCT_IFACE_FLAG_GET_ZCOPY |
                      UCT_IFACE_FLAG_PENDING | UCT_IFACE_FLAG_CONNECT_TO_IFACE |
                      UCT_IFACE_FLAG_CB_SYNC | UCT_IFACE_FLAG_EP_CHECK |
                      UCT_IFACE_FLAG_ERRHANDLE_PEER_FAILURE |
                      UCT_IFACE_FLAG_ERRHANDLE_ZCOPY_BUF |
                      UCT_IFACE_FLAG_ERRHANDLE_REMOTE_MEM |
                      UCT_DCX_UCX_IFACE_FLAGS;
    attr->cap.event_flags = UCT_IFACE_FLAG_EVENT_SEND_COMP |
                            UCT_IFACE_FLAG_EVENT_RECV | UCT_IFACE_FLAG_EVENT_FD;
    attr->device_addr_len = sizeof(uct_dcx_packed_dev_addr_t);
    attr->iface_addr_len  = sizeof(uct_dcx_iface_addr_t);
    attr->dev_num_paths   = queues->port.num_paths;
    uct_dcx_caps_query_am(queues, attr);
    uct_dcx_caps_query_rma(queues, attr);
    uct_dcx_caps_query_tag(queues, attr);
    uct_dcx_atomic_query(queues->port.dev, attr);

    attr->latency = ucs_linear_func_make(uct_dcx_port_latency(&queues->port),
                                         0);
    attr->bandwidth.shared = uct_dcx_port_bandwidth(&queues->port);
    attr->overhead         = 40e-9; /* of a post, UCX's figure for mlx5 */
    return UCS_OK;
}


ucs_status_t uct_dcx_caps_estimate_perf(uct_iface_h tl_iface,
                                        uct_perf_attr_t *attr)
{
    uct_dcx_queues_t *queues = ucs_derived_of(tl_iface, uct_dcx_queues_t);
    ucs_status_t status;

    status = uct_base_iface_estimate_perf(tl_iface, attr);
    if (status != UCS_OK) {
        return status;
    }

    if (attr->field_mask & UCT_PERF_ATTR_FIELD_MAX_INFLIGHT_EPS) {
        attr->max_inflight_eps = queues->dci.pool.num_dci;
    }
    return UCS_OK;
}
