/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * What an interface announces: the sizes of its operations, worked out once
 * from the size of a WQE, its flags, and figures of speed. Called by UCT.
 */
#include "dcx_ep.h"

#include <ucs/sys/math.h>
#include <ucs/sys/sys.h>


/* What am_zcopy takes apart from its header */
#define UCT_DCX_AM_IOV         3

/* What every WQE begins with, in the longer form of the address */
#define UCT_DCX_CTRL_AV        (sizeof(struct mlx5_wqe_ctrl_seg) + \
                                sizeof(struct mlx5_wqe_av))

/* The longest WQE of a read that the device takes (MLX5_MAX_SGE_RD in Linux,
 * include/linux/mlx5/device.h) */
#define UCT_DCX_MAX_READ_WQE   512

/* Length field of a data segment, and messages that all mlx5 devices take */
#define UCT_DCX_MAX_MESSAGE    UCS_BIT(30)


void uct_dcx_caps_init(uct_dcx_limits_t *limits,
                       const uct_dcx_iface_config_t *config,
                       const uct_dcx_port_t *port)
{
    const size_t am_hdr   = UCT_DCX_WQE_INLINE_HDR + sizeof(uct_dcx_am_hdr_t);
    const size_t put_hdr  = UCT_DCX_WQE_INLINE_HDR +
                            sizeof(struct mlx5_wqe_raddr_seg);
    const size_t data_seg = sizeof(struct mlx5_wqe_data_seg);
    const size_t am_min   = am_hdr + sizeof(uint64_t);
    size_t room;

    room           = UCT_DCX_CTRL_AV + ucs_max(put_hdr, am_min) +
                     config->tx.min_inline;
    limits->max_bb = ucs_max(ucs_div_round_up(room, MLX5_SEND_WQE_BB),
                             UCT_DCX_MIN_MAX_BB);

    room              = limits->max_bb * MLX5_SEND_WQE_BB - UCT_DCX_CTRL_AV;
    limits->am_short  = ucs_min(room - am_hdr,
                                config->seg_size - sizeof(uct_dcx_am_hdr_t));
    limits->am_iov    = UCT_DCX_AM_IOV;
    limits->am_bcopy  = config->seg_size - sizeof(uct_dcx_am_hdr_t);
    limits->am_zcopy  = limits->am_bcopy;
    limits->am_hdr    = ucs_min(room - am_hdr - (limits->am_iov * data_seg),
                                limits->am_zcopy);
    limits->put_short = room - put_hdr;
    limits->rma_iov   = (room - sizeof(struct mlx5_wqe_raddr_seg)) / data_seg;
    limits->get_iov   = ucs_min(limits->rma_iov,
                                (UCT_DCX_MAX_READ_WQE - UCT_DCX_CTRL_AV -
                                 sizeof(struct mlx5_wqe_raddr_seg)) /
                                data_seg);
    limits->rma_bcopy = config->seg_size;
    limits->rma_zcopy = ucs_min(port->attr.max_msg_sz, UCT_DCX_MAX_MESSAGE);
}


static void uct_dcx_caps_query_am(const uct_dcx_iface_t *iface,
                                  uct_iface_attr_t *attr)
{
    const uct_dcx_limits_t *limits = &iface->limits;

    attr->cap.am.max_short       = limits->am_short;
    attr->cap.am.max_bcopy       = limits->am_bcopy;
    attr->cap.am.min_zcopy       = 0;
    attr->cap.am.max_zcopy       = limits->am_zcopy;
    attr->cap.am.max_hdr         = limits->am_hdr;
    attr->cap.am.max_iov         = limits->am_iov;
    attr->cap.am.opt_zcopy_align = UCS_SYS_PCI_MAX_PAYLOAD;
    attr->cap.am.align_mtu       = uct_dcx_port_mtu_bytes(&iface->port);
}


static void uct_dcx_caps_query_rma(const uct_dcx_iface_t *iface,
                                   uct_iface_attr_t *attr)
{
    const uct_dcx_limits_t *limits = &iface->limits;
    unsigned mtu                   = uct_dcx_port_mtu_bytes(&iface->port);

    attr->cap.put.max_short       = limits->put_short;
    attr->cap.put.max_bcopy       = limits->rma_bcopy;
    attr->cap.put.min_zcopy       = 0;
    attr->cap.put.max_zcopy       = limits->rma_zcopy;
    attr->cap.put.max_iov         = limits->rma_iov;
    attr->cap.put.opt_zcopy_align = UCS_SYS_PCI_MAX_PAYLOAD;
    attr->cap.put.align_mtu       = mtu;

    attr->cap.get.max_bcopy       = limits->rma_bcopy;
    attr->cap.get.min_zcopy       = 0;
    attr->cap.get.max_zcopy       = limits->rma_zcopy;
    attr->cap.get.max_iov         = limits->get_iov;
    attr->cap.get.opt_zcopy_align = UCS_SYS_PCI_MAX_PAYLOAD;
    attr->cap.get.align_mtu       = mtu;
}


ucs_status_t
uct_dcx_caps_query(uct_iface_h tl_iface, uct_iface_attr_t *attr)
{
    uct_dcx_iface_t *iface = ucs_derived_of(tl_iface, uct_dcx_iface_t);

    uct_base_iface_query(&iface->super, attr);
    attr->cap.flags       = UCT_IFACE_FLAG_AM_SHORT          |
                            UCT_IFACE_FLAG_AM_BCOPY          |
                            UCT_IFACE_FLAG_AM_ZCOPY          |
                            UCT_IFACE_FLAG_PUT_SHORT         |
                            UCT_IFACE_FLAG_PUT_BCOPY         |
                            UCT_IFACE_FLAG_PUT_ZCOPY         |
                            UCT_IFACE_FLAG_GET_BCOPY         |
                            UCT_IFACE_FLAG_GET_ZCOPY         |
                            UCT_IFACE_FLAG_PENDING           |
                            UCT_IFACE_FLAG_CONNECT_TO_IFACE  |
                            UCT_IFACE_FLAG_CB_SYNC           |
                            UCT_IFACE_FLAG_EP_CHECK          |
                            UCT_IFACE_FLAG_ERRHANDLE_PEER_FAILURE |
                            UCT_IFACE_FLAG_ERRHANDLE_ZCOPY_BUF    |
                            UCT_IFACE_FLAG_ERRHANDLE_REMOTE_MEM;
    attr->cap.event_flags = UCT_IFACE_FLAG_EVENT_SEND_COMP |
                            UCT_IFACE_FLAG_EVENT_RECV      |
                            UCT_IFACE_FLAG_EVENT_FD;
    attr->device_addr_len = sizeof(uct_dcx_dev_addr_t);
    attr->iface_addr_len  = sizeof(uct_dcx_iface_addr_t);
    attr->ep_addr_len     = 0;
    attr->max_conn_priv   = 0;
    attr->dev_num_paths   = iface->port.num_paths;
    uct_dcx_caps_query_am(iface, attr);
    uct_dcx_caps_query_rma(iface, attr);
    uct_dcx_atomic_query(iface->port.dev, attr);

    attr->latency             = ucs_linear_func_make(
            uct_dcx_port_latency(&iface->port), 0);
    attr->bandwidth.shared    = uct_dcx_port_bandwidth(&iface->port);
    attr->bandwidth.dedicated = 0;
    attr->overhead            = 40e-9; /* of a post, as UCX has it for mlx5 */
    attr->priority            = 0;
    return UCS_OK;
}


ucs_status_t
uct_dcx_caps_estimate_perf(uct_iface_h tl_iface, uct_perf_attr_t *attr)
{
    uct_dcx_iface_t *iface = ucs_derived_of(tl_iface, uct_dcx_iface_t);
    ucs_status_t status;

    status = uct_base_iface_estimate_perf(tl_iface, attr);
    if (status != UCS_OK) {
        return status;
    }

    if (attr->field_mask & UCT_PERF_ATTR_FIELD_MAX_INFLIGHT_EPS) {
        attr->max_inflight_eps = uct_dcx_pool_num_dci(&iface->dci.pool);
    }
    return UCS_OK;
}
