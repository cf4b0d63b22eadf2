/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Implements strict_bench.h. The destructor fails the test if an object cannot
 * be destroyed.
 */
#include "strict_bench.h"

#include <fcntl.h>

namespace {

const enum ibv_qp_type qp_types[][2] = {
    [SERVICE_RC]  = {IBV_QPT_RC, IBV_QPT_RC},
    [SERVICE_UC]  = {IBV_QPT_UC, IBV_QPT_UC},
    [SERVICE_UD]  = {IBV_QPT_UD, IBV_QPT_UD},
    [SERVICE_XRC] = {IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV},
    [SERVICE_DC]  = {IBV_QPT_DRIVER, IBV_QPT_DRIVER},
    [SERVICE_TM]  = {IBV_QPT_RC, IBV_QPT_RC},
};

/* Masks of the attributes that each transition needs (IBTA 11.2.5.2) */
struct transition {
    int init, rtr, rts;
};

constexpr int to_init = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
constexpr int to_rtr  = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                       IBV_QP_RQ_PSN;
constexpr int resp = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
constexpr int req  = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;

const transition transitions[][2] = {
    [SERVICE_RC]  = {{to_init, to_rtr | resp, req},
                     {to_init, to_rtr | resp, req}},
    [SERVICE_UC]  = {{to_init, to_rtr, IBV_QP_SQ_PSN},
                     {to_init, to_rtr, IBV_QP_SQ_PSN}},
    [SERVICE_UD]  = {{IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0,
                      IBV_QP_SQ_PSN},
                     {IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0,
                      IBV_QP_SQ_PSN}},
    [SERVICE_XRC] = {{to_init, to_rtr, req},
                     {to_init, to_rtr | resp, IBV_QP_TIMEOUT | IBV_QP_SQ_PSN}},
    [SERVICE_DC]  = {},
    [SERVICE_TM]  = {{to_init, to_rtr | resp, req},
                     {to_init, to_rtr | resp, req}},
};

} /* namespace */

strict_bench::strict_bench(strict_service service,
                           const strict_options &options) :
    m_service(service),
    m_wq_sig(options.wq_sig)
{
    struct ibv_ah_attr attr = dev.ah_attr(options.grh || dev.is_roce());
    struct mlx5dv_ah dv_ah  = {};
    struct mlx5dv_obj obj   = {};

    HCA_CHECK_CALL((other_pd = ibv_alloc_pd(dev.ctx)) != NULL);
    if (options.to_cqe) {
        setenv("MLX5_SCATTER_TO_CQE", "1", 1);
    }
    send_cq.reset(new raw_cq(dev.ctx, 63));
    recv_cq.reset(new raw_cq(dev.ctx, options.recv_cqe));
    src.reset(new strict_mem(dev.pd, IBV_ACCESS_LOCAL_WRITE, 0x11));
    dst.reset(new strict_mem(dev.pd, ACCESS_ALL, 0x22));

    HCA_CHECK_CALL((m_ah = ibv_create_ah(dev.pd, &attr)) != NULL);
    obj.ah.in  = m_ah;
    obj.ah.out = &dv_ah;
    HCA_CHECK_CALL(mlx5dv_init_obj(&obj, MLX5DV_OBJ_AH) == 0);
    m_av = *dv_ah.av;

    if (has_srq()) {
        srq = create_srq();
        rsrq.reset(new raw_srq(srq));
    }
    if (options.wq_sig) {
        setenv("MLX5_QP_SIGNATURE", "1", 1);
    }
    sender   = create_qp(true);
    receiver = create_qp(false);
    unsetenv("MLX5_QP_SIGNATURE");
    setenv("MLX5_SCATTER_TO_CQE", "0", 1);
    connect(receiver, sender, {.access = options.access});
    connect(sender, receiver,
            {.mtu = options.mtu, .max_rd_atomic = options.max_rd_atomic});
    sq.reset(new raw_qp(sender));
    if (!has_srq()) {
        rq.reset(new raw_qp(receiver));
    }
    fcntl(dev.ctx->async_fd, F_SETFL, O_NONBLOCK);
}

strict_bench::~strict_bench()
{
    take_events();
    destroy_sender();
    EXPECT_EQ(0, ibv_destroy_qp(receiver));
    if (srq != NULL) {
        EXPECT_EQ(0, ibv_destroy_srq(srq));
    }
    for (auto *mw : windows) {
        EXPECT_EQ(0, ibv_dealloc_mw(mw));
    }
    if (xrcd != NULL) {
        EXPECT_EQ(0, ibv_close_xrcd(xrcd));
    }
    EXPECT_EQ(0, ibv_destroy_ah(m_ah));
    kept.clear();
    m_regions.clear();
    src.reset();
    dst.reset();
    send_cq.reset();
    recv_cq.reset();
    EXPECT_EQ(0, ibv_dealloc_pd(other_pd));
}

struct ibv_srq *strict_bench::create_srq()
{
    struct ibv_srq_init_attr_ex attr = {};
    struct ibv_srq *result;

    attr.attr.max_wr  = 15;
    attr.attr.max_sge = 1;
    attr.comp_mask    = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
    attr.srq_type     = IBV_SRQT_BASIC;
    attr.pd           = dev.pd;
    if (m_service == SERVICE_XRC) {
        struct ibv_xrcd_init_attr xrcd_attr = {};

        xrcd_attr.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
        xrcd_attr.fd        = -1;
        xrcd_attr.oflags    = O_CREAT;
        HCA_CHECK_CALL((xrcd = ibv_open_xrcd(dev.ctx, &xrcd_attr)) != NULL);
        attr.comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
        attr.srq_type = IBV_SRQT_XRC;
        attr.xrcd     = xrcd;
        attr.cq       = recv_cq->cq;
    }
    if (m_service == SERVICE_TM) {
        attr.comp_mask |= IBV_SRQ_INIT_ATTR_TM | IBV_SRQ_INIT_ATTR_CQ;
        attr.srq_type = IBV_SRQT_TM;
        attr.cq       = recv_cq->cq;
        attr.tm_cap   = {tags - 1, 16};
    }
    HCA_CHECK_CALL((result = ibv_create_srq_ex(dev.ctx, &attr)) != NULL);
    return result;
}

struct ibv_qp *strict_bench::create_qp(bool is_sender)
{
    struct ibv_qp_init_attr_ex attr    = {};
    struct mlx5dv_qp_init_attr dv_attr = {};
    struct ibv_qp *qp;

    attr.qp_type   = qp_types[m_service][!is_sender];
    attr.comp_mask = IBV_QP_INIT_ATTR_PD;
    attr.pd        = dev.pd;
    attr.send_cq   = send_cq->cq;
    attr.recv_cq   = recv_cq->cq;
    attr.cap       = {.max_send_wr     = 16,
                      .max_recv_wr     = 16,
                      .max_send_sge    = 4,
                      .max_recv_sge    = 1,
                      .max_inline_data = 128};
    if (attr.qp_type == IBV_QPT_XRC_RECV) {
        attr.comp_mask = IBV_QP_INIT_ATTR_XRCD;
        attr.xrcd      = xrcd;
        attr.cap       = {};
        qp             = ibv_create_qp_ex(dev.ctx, &attr);
    } else if (m_service != SERVICE_DC) {
        attr.cap.max_recv_wr = has_srq() ? 0 : 16;
        attr.srq             = (m_service == SERVICE_TM) ? srq : NULL;
        qp                   = ibv_create_qp_ex(dev.ctx, &attr);
    } else {
        dv_attr.comp_mask                   = MLX5DV_QP_INIT_ATTR_MASK_DC;
        dv_attr.dc_init_attr.dc_type        = is_sender ? MLX5DV_DCTYPE_DCI :
                                                          MLX5DV_DCTYPE_DCT;
        dv_attr.dc_init_attr.dct_access_key = is_sender ? 0 : dc_key;
        attr.cap.max_recv_wr = attr.cap.max_recv_sge = 0;
        if (!is_sender) {
            attr.cap = {};
            attr.srq = srq;
        }
        qp = mlx5dv_create_qp(dev.ctx, &attr, &dv_attr);
    }
    HCA_CHECK_CALL(qp != NULL);
    return qp;
}

void strict_bench::connect(struct ibv_qp *qp, struct ibv_qp *peer,
                           const strict_options &options)
{
    struct ibv_qp_attr attr = hca_qp_attr(dev, peer->qp_num);
    const transition &masks = transitions[m_service][qp == receiver];

    attr.qp_access_flags = options.access;
    attr.path_mtu        = options.mtu;
    attr.max_rd_atomic   = options.max_rd_atomic;
    if (m_service != SERVICE_DC) {
        hca_modify(qp, attr, IBV_QPS_INIT, masks.init);
        hca_modify(qp, attr, IBV_QPS_RTR, masks.rtr);
        hca_modify(qp, attr, IBV_QPS_RTS, masks.rts);
    } else if (qp == sender) {
        hca_connect_dci(qp, attr);
    } else {
        hca_connect_dct(qp, dev, options.access);
    }
}

void strict_bench::destroy_sender()
{
    if (sender != NULL) {
        EXPECT_EQ(0, ibv_destroy_qp(sender));
        sender = NULL;
    }
}

void strict_bench::reconnect()
{
    hca_modify(sender, {}, IBV_QPS_RESET, 0);
    sq->pi = 0;
    connect(sender, receiver, {});
}

/* --- WQEs ----------------------------------------------------------------- */

raw_wqe strict_bench::wqe(uint8_t opcode, uint8_t opmod) const
{
    raw_wqe wqe(opcode, opmod);
    struct mlx5_wqe_av av = m_av;
    struct {
        __be32 srqn;
        uint8_t reserved[12];
    } xrc = {};

    switch (m_service) {
    case SERVICE_UD:
        av.key.qkey.qkey     = htobe32(qkey);
        av.key.qkey.reserved = 0;
        av.dqp_dct           = htobe32(receiver->qp_num | (1u << 31));
        wqe.at_av            = wqe.bytes.size();
        wqe.add(av);
        break;
    case SERVICE_DC:
        av.key.dc_key = htobe64(dc_key);
        av.dqp_dct    = htobe32(receiver->qp_num | (1u << 31));
        wqe.at_av     = wqe.bytes.size();
        wqe.add(av);
        break;
    case SERVICE_XRC:
        xrc.srqn   = htobe32(rsrq->srqn());
        wqe.at_xrc = wqe.bytes.size();
        wqe.add(xrc);
        break;
    default:
        break;
    }
    return wqe;
}

raw_wqe strict_bench::send(uint32_t length) const
{
    return wqe(MLX5_OPCODE_SEND).data(src->addr, length, src->mr->lkey);
}

raw_wqe strict_bench::write() const
{
    return wqe(MLX5_OPCODE_RDMA_WRITE)
        .raddr(dst->addr + 4096, dst->mr->rkey)
        .data(src->addr, 64, src->mr->lkey);
}

raw_wqe strict_bench::read() const
{
    return wqe(MLX5_OPCODE_RDMA_READ)
        .raddr(dst->addr + 4096, dst->mr->rkey)
        .data(src->addr, 64, src->mr->lkey);
}

raw_wqe strict_bench::fetch_add() const
{
    return wqe(MLX5_OPCODE_ATOMIC_FA)
        .raddr(dst->addr + 4096, dst->mr->rkey)
        .atomic(1, 0)
        .data(src->addr, 8, src->mr->lkey);
}

uint32_t strict_bench::bound_key(const struct ibv_mw *window)
{
    return (window->rkey & ~0xff) | ((window->rkey + 1) & 0xff);
}

/* set_bind_wr() in providers/mlx5/qp.c */
raw_wqe strict_bench::bind(const struct ibv_mw *window) const
{
    struct mlx5_wqe_umr_ctrl_seg umr      = {};
    struct mlx5_wqe_mkey_context_seg mkey = {};
    struct {
        struct mlx5_wqe_umr_klm_seg klm;
        uint8_t pad[48];
    } klm               = {};
    const uint64_t mask = MLX5_WQE_UMR_CTRL_MKEY_MASK_FREE |
                          MLX5_WQE_UMR_CTRL_MKEY_MASK_MKEY |
                          MLX5_WQE_UMR_CTRL_MKEY_MASK_QPN |
                          MLX5_WQE_UMR_CTRL_MKEY_MASK_LEN |
                          MLX5_WQE_UMR_CTRL_MKEY_MASK_START_ADDR |
                          MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_LOCAL_WRITE |
                          MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_READ |
                          MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_WRITE |
                          MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_ATOMIC;
    raw_wqe wqe(MLX5_OPCODE_UMR);

    umr.flags = MLX5_WQE_UMR_CTRL_FLAG_TRNSLATION_OFFSET |
                MLX5_WQE_UMR_CTRL_FLAG_INLINE |
                MLX5_WQE_UMR_CTRL_FLAG_CHECK_FREE;
    umr.klm_octowords = htobe16(4);
    umr.mkey_mask     = htobe64(mask);
    mkey.access_flags = MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_REMOTE_READ |
                        MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_REMOTE_WRITE;
    mkey.qpn_mkey = htobe32((sender->qp_num << 8) | (bound_key(window) & 0xff));
    mkey.start_addr    = htobe64((uintptr_t)dst->addr + 4096);
    mkey.len           = htobe64(4096);
    klm.klm.byte_count = htobe32(4096);
    klm.klm.mkey       = htobe32(dst->mr->lkey);
    klm.klm.address    = htobe64((uintptr_t)dst->addr + 4096);

    wqe.imm(window->rkey);
    wqe.at_umr  = 16;
    wqe.at_mkey = 16 + 48;
    wqe.at_klm  = 16 + 48 + 64;
    return wqe.add(umr).add(mkey).add(klm);
}

raw_wqe strict_bench::unbind(uint32_t rkey) const
{
    struct mlx5_wqe_umr_ctrl_seg umr      = {};
    struct mlx5_wqe_mkey_context_seg mkey = {};
    raw_wqe wqe(MLX5_OPCODE_UMR);

    umr.flags = MLX5_WQE_UMR_CTRL_FLAG_TRNSLATION_OFFSET |
                MLX5_WQE_UMR_CTRL_FLAG_INLINE |
                MLX5_WQE_UMR_CTRL_FLAG_CHECK_QPN;
    umr.mkey_mask = htobe64(MLX5_WQE_UMR_CTRL_MKEY_MASK_FREE |
                            MLX5_WQE_UMR_CTRL_MKEY_MASK_MKEY |
                            MLX5_WQE_UMR_CTRL_MKEY_MASK_QPN);
    mkey.free     = MLX5_WQE_MKEY_CONTEXT_FREE;
    mkey.qpn_mkey = htobe32(0xffffff00);

    wqe.imm(rkey);
    wqe.at_umr  = 16;
    wqe.at_mkey = 16 + 48;
    return wqe.add(umr).add(mkey);
}

/* --- use ------------------------------------------------------------------ */

/* The doorbell names the right queue even if the WQE does not. */
void strict_bench::post(const raw_wqe &wqe, unsigned num_bb)
{
    raw_wqe head = wqe;

    head.finish(sq->pi, sq->qpn);
    sq->write(wqe);
    sq->ring((num_bb != 0) ? num_bb : wqe.num_bb(), head.bytes.data());
}

void strict_bench::finish(raw_wqe &wqe) const
{
    wqe.finish(sq->pi, sq->qpn);
    if (m_wq_sig) {
        wqe.sign();
    }
}

void strict_bench::post_good(raw_wqe wqe)
{
    struct mlx5_err_cqe cqe = {};
    uint16_t index          = sq->pi;

    finish(wqe);
    post(wqe);
    ASSERT_TRUE(wait(*send_cq, &cqe)) << "no completion";
    EXPECT_EQ(MLX5_CQE_REQ, cqe.op_own >> 4)
        << "syndrome " << (int)cqe.syndrome << ", vendor syndrome 0x"
        << std::hex << (int)cqe.vendor_err_synd;
    EXPECT_EQ(index, be16toh(cqe.wqe_counter));
}

void strict_bench::post_recv(const void *addr, uint32_t length, uint32_t lkey)
{
    if (has_srq()) {
        rsrq->post_recv(addr, length, lkey);
    } else {
        rq->post_recv(addr, length, lkey);
    }
}

void strict_bench::post_recv(uint32_t length)
{
    post_recv(dst->addr, length + ((m_service == SERVICE_UD) ? 40 : 0),
              dst->mr->lkey);
}

bool strict_bench::wait(raw_cq &cq, struct mlx5_err_cqe *cqe)
{
    return hca_until([&] { return cq.poll(cqe); });
}

bool strict_bench::wait_error(struct ibv_qp *qp) const
{
    return hca_until([&] { return state(qp) == IBV_QPS_ERR; });
}

std::vector<uint8_t> strict_bench::memory() const
{
    std::vector<uint8_t> all = src->copy(), more = dst->copy();

    all.insert(all.end(), more.begin(), more.end());
    for (const auto &mem : m_regions) {
        more = mem->copy();
        all.insert(all.end(), more.begin(), more.end());
    }
    return all;
}

std::string strict_bench::take_events()
{
    struct ibv_async_event event;
    std::string text;

    while (ibv_get_async_event(dev.ctx, &event) == 0) {
        const void *element = event.element.qp;

        text += text.empty() ? "" : ", ";
        text += std::string(ibv_event_type_str(event.event_type)) + " of " +
                ((element == sender)      ? "sender" :
                 (element == receiver)    ? "receiver" :
                 (element == srq)         ? "srq" :
                 (element == send_cq->cq) ? "send cq" :
                 (element == recv_cq->cq) ? "recv cq" :
                                            "something else");
        ibv_ack_async_event(&event);
    }
    return text;
}

enum ibv_qp_state strict_bench::state(struct ibv_qp *qp) const
{
    struct ibv_qp_init_attr init_attr;
    struct ibv_qp_attr attr = {};

    HCA_CHECK_CALL(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init_attr) == 0);
    return attr.qp_state;
}

struct ibv_mw *strict_bench::window(struct ibv_pd *pd, enum ibv_mw_type type)
{
    struct ibv_mw *mw = ibv_alloc_mw(pd, type);

    HCA_CHECK_CALL(mw != NULL);
    windows.push_back(mw);
    return mw;
}

strict_mem &strict_bench::region(struct ibv_pd *pd, int access)
{
    m_regions.emplace_back(new strict_mem(pd, access, 0x33));
    return *m_regions.back();
}
