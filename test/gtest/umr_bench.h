/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Base of tests of layouts: keys made by libmlx5, a queue pair whose UMR WQEs
 * its builders write, and layouts with a plain loop over their bytes for
 * comparison. One thread.
 */
#ifndef DCX_TEST_UMR_BENCH_H
#define DCX_TEST_UMR_BENCH_H

#include "verbs_bench.h"

constexpr uint32_t UMR_ACCESS_ALL = IBV_ACCESS_LOCAL_WRITE |
                                    IBV_ACCESS_REMOTE_WRITE |
                                    IBV_ACCESS_REMOTE_READ |
                                    IBV_ACCESS_REMOTE_ATOMIC;

class umr_key {
public:
    explicit umr_key(struct ibv_pd *pd, uint16_t entries = 56,
                     uint32_t flags = 0)
    {
        struct mlx5dv_mkey_init_attr attr = {};

        attr.pd           = pd;
        attr.create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT | flags;
        attr.max_entries  = entries;
        HCA_CHECK_CALL((mkey = mlx5dv_create_mkey(&attr)) != NULL);
    }

    ~umr_key() { EXPECT_EQ(0, mlx5dv_destroy_mkey(mkey)); }

    umr_key(const umr_key &) = delete;

    uint32_t lkey() const { return mkey->lkey; }
    uint32_t rkey() const { return mkey->rkey; }

    struct mlx5dv_mkey *mkey;
};

/* --- layouts -------------------------------------------------------------- */

/* Target of a key: rows of blocks, or ranges */
struct umr_layout {
    uint32_t repeat = 0; /* 0: a list */
    std::vector<struct mlx5dv_mr_interleaved> blocks;
    std::vector<struct ibv_sge> ranges;

    umr_layout &block(const void *addr, uint32_t lkey, uint32_t bytes,
                      uint32_t skip)
    {
        blocks.push_back({(uintptr_t)addr, bytes, skip, lkey});
        return *this;
    }

    umr_layout &range(const void *addr, uint32_t length, uint32_t lkey)
    {
        ranges.push_back({(uintptr_t)addr, length, lkey});
        return *this;
    }

    static umr_layout rows(uint32_t repeat)
    {
        umr_layout layout;

        layout.repeat = repeat;
        return layout;
    }

    /* Returns the place of each byte, in order, by a plain loop. */
    std::vector<uint8_t *> bytes() const
    {
        std::vector<uint8_t *> all;

        for (const auto &range : ranges) {
            add(&all, range.addr, range.length);
        }
        for (uint64_t row = 0; row < repeat; row++) {
            for (const auto &block : blocks) {
                add(&all,
                    block.addr + row * (block.bytes_count + block.bytes_skip),
                    block.bytes_count);
            }
        }
        return all;
    }

private:
    static void add(std::vector<uint8_t *> *all, uint64_t addr, uint64_t length)
    {
        for (uint64_t i = 0; i < length; i++) {
            all->push_back((uint8_t *)addr + i);
        }
    }
};

/* --- WQEs as the builders write them (providers/mlx5/qp.c) ---------------- */

/* A translation of 16 bytes */
using umr_octoword = struct mlx5_wqe_umr_klm_seg;

/* Returns the translations of a list, padded to a multiple of 64 bytes. */
inline std::vector<umr_octoword>
umr_list(const std::vector<struct ibv_sge> &ranges)
{
    std::vector<umr_octoword> list;

    for (const auto &range : ranges) {
        list.push_back(
            {htobe32(range.length), htobe32(range.lkey), htobe64(range.addr)});
    }
    list.resize((list.size() + 3) / 4 * 4);
    return list;
}

/* Returns the translations of rows: struct mlx5_wqe_umr_repeat_block_seg and
 * mlx5_wqe_umr_repeat_ent_seg */
inline std::vector<umr_octoword>
umr_rows(uint32_t repeat,
         const std::vector<struct mlx5dv_mr_interleaved> &blocks)
{
    std::vector<umr_octoword> list(1);
    uint32_t bytes = 0;

    for (const auto &block : blocks) {
        bytes += block.bytes_count;
        list.push_back({htobe32(((block.bytes_count + block.bytes_skip) << 16) |
                                block.bytes_count),
                        htobe32(block.lkey), htobe64(block.addr)});
    }
    list[0] = {htobe32(bytes), htobe32(0x400),
               htobe64(((uint64_t)repeat << 32) | blocks.size())};
    list.resize((list.size() + 3) / 4 * 4);
    return list;
}

/* A UMR without translations */
inline raw_wqe umr_head(uint32_t key, uint64_t length, size_t octowords,
                        uint32_t access)
{
    const uint64_t mask = MLX5_WQE_UMR_CTRL_MKEY_MASK_FREE |
                          MLX5_WQE_UMR_CTRL_MKEY_MASK_MKEY |
                          MLX5_WQE_UMR_CTRL_MKEY_MASK_LEN |
                          MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_LOCAL_WRITE |
                          MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_READ |
                          MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_WRITE |
                          MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_ATOMIC;
    struct mlx5_wqe_umr_ctrl_seg ctrl     = {};
    struct mlx5_wqe_mkey_context_seg mkey = {};
    raw_wqe wqe(MLX5_OPCODE_UMR);

    ctrl.klm_octowords = htobe16(octowords);
    ctrl.mkey_mask     = htobe64(mask);
    if (access & IBV_ACCESS_LOCAL_WRITE) {
        mkey.access_flags |= MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_LOCAL_WRITE;
    }
    if (access & IBV_ACCESS_REMOTE_READ) {
        mkey.access_flags |= MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_REMOTE_READ;
    }
    if (access & IBV_ACCESS_REMOTE_WRITE) {
        mkey.access_flags |= MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_REMOTE_WRITE;
    }
    mkey.qpn_mkey = htobe32(0xffffff00 | (key & 0xff));
    mkey.len      = htobe64(length);
    wqe.imm(key);
    wqe.at_umr  = 16;
    wqe.at_mkey = wqe.at_umr + sizeof(ctrl);
    wqe.at_klm  = wqe.at_mkey + sizeof(mkey);
    return wqe.add(ctrl).add(mkey);
}

inline raw_wqe umr_wqe(uint32_t key, uint64_t length,
                       const std::vector<umr_octoword> &translations,
                       uint32_t access = UMR_ACCESS_ALL)
{
    raw_wqe wqe = umr_head(key, length, translations.size(), access);

    wqe.flip(wqe.at_umr, MLX5_WQE_UMR_CTRL_FLAG_INLINE);
    for (const auto &octoword : translations) {
        wqe.add(octoword);
    }
    return wqe;
}

/* A UMR whose translations are in memory. libmlx5 has no builder for it; see
 * Linux, drivers/infiniband/hw/mlx5/umr.h, struct mlx5r_umr_wqe. */
inline raw_wqe umr_wqe_by_reference(uint32_t key, uint64_t length,
                                    size_t octowords, const void *addr,
                                    uint32_t lkey)
{
    return umr_head(key, length, octowords, UMR_ACCESS_ALL)
        .data(addr, octowords * 16, lkey);
}

/* --- the sender ----------------------------------------------------------- */

/* Two RC queue pairs; the first one has the builders. */
class umr_pair {
public:
    static constexpr uint64_t ops = IBV_QP_EX_WITH_SEND |
                                    IBV_QP_EX_WITH_RDMA_WRITE |
                                    IBV_QP_EX_WITH_LOCAL_INV |
                                    IBV_QP_EX_WITH_SEND_WITH_INV;

    /* @param srq  of the second QP, NULL: its own receives
     * @param rnr_retry  7: the first QP waits for a receive */
    explicit umr_pair(const hca_device &dev, struct ibv_srq *srq = NULL,
                      uint8_t rnr_retry = 0) :
        m_dev(dev),
        m_rnr_retry(rnr_retry)
    {
        HCA_CHECK_CALL((cq = ibv_create_cq(dev.ctx, 255, NULL, NULL, 0)));
        HCA_CHECK_CALL((peer_cq = ibv_create_cq(dev.ctx, 255, NULL, NULL, 0)));
        qp   = create(cq, NULL);
        peer = create(peer_cq, srq);
        connect(qp, peer->qp_num);
        connect(peer, qp->qp_num);
        qpx = ibv_qp_to_qp_ex(qp);
        dvx = mlx5dv_qp_ex_from_ibv_qp_ex(qpx);
    }

    ~umr_pair()
    {
        EXPECT_EQ(0, ibv_destroy_qp(qp));
        EXPECT_EQ(0, ibv_destroy_qp(peer));
        EXPECT_EQ(0, ibv_destroy_cq(cq));
        EXPECT_EQ(0, ibv_destroy_cq(peer_cq));
    }

    umr_pair(const umr_pair &) = delete;

    void start(unsigned flags)
    {
        ibv_wr_start(qpx);
        qpx->wr_id    = 1;
        qpx->wr_flags = IBV_SEND_SIGNALED | flags;
    }

    enum ibv_wc_status finish()
    {
        HCA_CHECK_CALL(ibv_wr_complete(qpx) == 0);
        last = verbs_wait(cq);
        return last.status;
    }

    /* Posts the UMR of a layout, by the builder for its form. */
    enum ibv_wc_status set(const umr_key &key, umr_layout layout,
                           uint32_t access = UMR_ACCESS_ALL)
    {
        start(IBV_SEND_INLINE);
        if (layout.repeat == 0) {
            mlx5dv_wr_mr_list(dvx, key.mkey, access, layout.ranges.size(),
                              layout.ranges.data());
        } else {
            mlx5dv_wr_mr_interleaved(dvx, key.mkey, access, layout.repeat,
                                     layout.blocks.size(),
                                     layout.blocks.data());
        }
        return finish();
    }

    /* Posts a WQE that no builder of libmlx5 has written. */
    enum ibv_wc_status raw(raw_wqe wqe)
    {
        wqe.finish(0, qp->qp_num);
        start(0);
        mlx5dv_wr_raw_wqe(dvx, wqe.bytes.data());
        return finish();
    }

    enum ibv_wc_status local_inv(uint32_t key)
    {
        start(0);
        ibv_wr_local_inv(qpx, key);
        return finish();
    }

    enum ibv_wc_status run(verbs_op op)
    {
        HCA_CHECK_CALL(op.post(qp) == 0);
        last = verbs_wait(cq);
        return last.status;
    }

    /* Resets and connects the queue pairs, after an error. */
    void reconnect()
    {
        struct ibv_wc wc;

        for (struct ibv_qp *each : {qp, peer}) {
            hca_modify(each, {}, IBV_QPS_RESET, 0);
        }
        while ((ibv_poll_cq(cq, 1, &wc) > 0) ||
               (ibv_poll_cq(peer_cq, 1, &wc) > 0)) {
        }
        connect(qp, peer->qp_num);
        connect(peer, qp->qp_num);
    }

    struct ibv_cq *cq, *peer_cq;
    struct ibv_qp *qp, *peer;
    struct ibv_qp_ex *qpx;
    struct mlx5dv_qp_ex *dvx;
    struct ibv_wc last = {}; /* completion of the last call */

private:
    struct ibv_qp *create(struct ibv_cq *its_cq, struct ibv_srq *srq)
    {
        struct ibv_qp_init_attr_ex attr    = {};
        struct mlx5dv_qp_init_attr dv_attr = {};
        struct ibv_qp *its_qp;

        attr.qp_type   = IBV_QPT_RC;
        attr.send_cq   = its_cq;
        attr.recv_cq   = its_cq;
        attr.srq       = srq;
        attr.pd        = m_dev.pd;
        attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
        attr.send_ops_flags      = ops;
        attr.cap.max_send_wr     = 16;
        attr.cap.max_send_sge    = 3;
        attr.cap.max_recv_wr     = (srq == NULL) ? 16 : 0;
        attr.cap.max_recv_sge    = 1;
        attr.cap.max_inline_data = 828; /* 52 octowords of translations */
        dv_attr.comp_mask        = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS;
        dv_attr.send_ops_flags   = MLX5DV_QP_EX_WITH_MR_INTERLEAVED |
                                 MLX5DV_QP_EX_WITH_MR_LIST |
                                 MLX5DV_QP_EX_WITH_MKEY_CONFIGURE |
                                 MLX5DV_QP_EX_WITH_RAW_WQE;
        its_qp = mlx5dv_create_qp(m_dev.ctx, &attr, &dv_attr);
        HCA_CHECK_CALL(its_qp != NULL);
        return its_qp;
    }

    void connect(struct ibv_qp *each, uint32_t dest_qpn)
    {
        struct ibv_qp_attr attr = hca_qp_attr(m_dev, dest_qpn);

        attr.rnr_retry = m_rnr_retry;
        hca_modify(each, attr, IBV_QPS_INIT,
                   IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
        hca_modify(each, attr, IBV_QPS_RTR, verbs_ep::rtr_mask);
        hca_modify(each, attr, IBV_QPS_RTS, verbs_ep::rts_mask);
    }

    const hca_device &m_dev;
    const uint8_t m_rnr_retry;
};

#endif
