/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Queues by DEVX, with rings in memory of the test: receive memory pools, RC
 * queue pairs that receive from them, and a DCT. The test writes the WQEs.
 */
#ifndef DCX_TEST_DEVX_QP_H
#define DCX_TEST_DEVX_QP_H

#include "devx_bench.h"

/* Pages of memory */
struct devx_pages {
    explicit devx_pages(unsigned count) : size(count * 4096ul)
    {
        addr = (uint8_t *)mmap(NULL, size, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        HCA_CHECK_CALL(addr != MAP_FAILED);
    }

    ~devx_pages() { munmap(addr, size); }

    devx_pages(const devx_pages &) = delete;

    size_t size;
    uint8_t *addr;
};

/* Pages with a umem over all of them; the last 64 bytes are for a doorbell
 * record */
struct devx_ring : devx_pages {
    devx_ring(struct ibv_context *ctx, unsigned count) : devx_pages(count)
    {
        HCA_CHECK_CALL((umem = mlx5dv_devx_umem_reg(ctx, addr, size, 0)) !=
                       NULL);
    }

    ~devx_ring() { EXPECT_EQ(0, mlx5dv_devx_umem_dereg(umem)); }

    size_t dbr_offset() const { return size - 64; }
    uint32_t *dbr() const { return (uint32_t *)(addr + dbr_offset()); }

    struct mlx5dv_devx_umem *umem;
};

/* Parameters of a receive queue: wq_type, logarithm of the WQE's size and, for
 * striding queues, logarithms of the number and size of strides */
struct devx_wq {
    unsigned type;
    unsigned log_stride  = 5; /* next segment and one data segment */
    unsigned log_strides = 0, log_size = 0;

    bool is_list() const { return (type & 1) == 0; }
};

/* A shared receive queue of any type */
class devx_rq {
public:
    enum { LIST = 0, CYCLIC = 1, LIST_STRIDES = 2, CYCLIC_STRIDES = 3 };
    static constexpr unsigned count = 16;

    void post_recv(const std::vector<struct ibv_sge> &sges)
    {
        struct mlx5_wqe_data_seg *seg =
            (struct mlx5_wqe_data_seg *)(next_seg(m_pi % count) + 1);

        for (const auto &sge : sges) {
            *seg++ = {htobe32(sge.length), htobe32(sge.lkey),
                      htobe64(sge.addr)};
        }
        if ((uint8_t *)seg < (uint8_t *)next_seg(m_pi % count + 1)) {
            *seg = {0, htobe32(0x100), 0}; /* MLX5_INVALID_LKEY: the end */
        }
        __atomic_store_n(ring.dbr(), htobe32(++m_pi), __ATOMIC_RELEASE);
    }

    void post_recv(const void *addr, uint32_t length, uint32_t lkey)
    {
        post_recv({{(uintptr_t)addr, length, lkey}});
    }

    devx_ring ring;
    std::unique_ptr<devx_object> object;

protected:
    devx_rq(const hca_device &dev, const devx_wq &wq) :
        ring(dev.ctx, (count << wq.log_stride) / 4096 + 1), m_wq(wq)
    {
        for (unsigned i = 0; i < count; i++) { /* ignored by a cyclic queue */
            next_seg(i)->next_wqe_index =
                htobe16(wq.is_list() ? (i + 1) % count : 0xffff);
        }
    }

    /* Writes the context of the queue at `at`. */
    void put_wq(const hca_device &dev, devx_mailbox &in, size_t at) const
    {
        in.set(at, 31, 28, m_wq.type).put(at + 0x08, devx_pdn(dev.pd));
        in.put64(at + 0x10, ring.dbr_offset());
        in.set(at + 0x20, 19, 16, m_wq.log_stride).set(at + 0x20, 4, 0, 4);
        in.put(at + 0x28, ring.umem->umem_id);
        in.put(at + 0x2c, ring.umem->umem_id);
        if (m_wq.log_strides > 0) {
            in.set(at + 0x24, 11, 8, m_wq.log_strides - 9);
            in.set(at + 0x24, 2, 0, m_wq.log_size - 6);
        }
    }

private:
    struct mlx5_wqe_srq_next_seg *next_seg(unsigned i) const
    {
        return (struct mlx5_wqe_srq_next_seg *)(ring.addr +
                                                (i << m_wq.log_stride));
    }

    const devx_wq m_wq;
    uint16_t m_pi = 0;
};

class devx_rmp : public devx_rq {
public:
    devx_rmp(const hca_device &dev, unsigned wq_type) :
        devx_rq(dev, {.type = wq_type}), good(0x110, 0x90c)
    {
        good.set(0x20, 23, 20, 1); /* RDY */
        put_wq(dev, good, WQ);
        object = std::make_unique<devx_object>(dev.ctx, good);
        HCA_CHECK_CALL(object->obj != NULL);
    }

    static constexpr size_t WQ = 0x50;

    devx_mailbox good;
};

/* Parameters of the transitions to RTR and RTS, apart from the peer */
struct devx_rtr {
    unsigned log_msg_max = 30;
    unsigned atomic_mode = 3; /* operands of up to 8 bytes */
    unsigned retry_cnt   = 1;
    unsigned rnr_retry   = 0; /* 7: without limit, each after 10 us */
    unsigned rts_port    = 0; /* of RTR2RTS, where it is optional */
    unsigned dp_ordering = 0; /* 1: of reads and writes; 2: also of messages */
    bool dp_force        = false;
    unsigned sl          = 0;
};

class devx_qp {
public:
    static constexpr size_t CTX = 0x18, PATH = CTX + 0x18;
    static constexpr uint32_t uidx = 0x4321;

    /* @param cqn  queue of its completions, 0: `cq`
     * @param uar  type of the page of its doorbell */
    devx_qp(const hca_device &dev, const devx_rq &rmp, uint32_t cqn = 0,
            uint32_t uar = MLX5DV_UAR_ALLOC_TYPE_BF) :
        cq(dev.ctx, 63),
        ring(dev.ctx, 2), m_dev(dev), m_cqn(cqn)
    {
        m_uar = mlx5dv_devx_alloc_uar(dev.ctx, uar);
        HCA_CHECK_CALL(m_uar != NULL);
        object = std::make_unique<devx_object>(dev.ctx, create_in(rmp));
        HCA_CHECK_CALL(object->obj != NULL);
        qpn = object->out.number();
    }

    ~devx_qp()
    {
        object.reset();
        mlx5dv_devx_free_uar(m_uar);
    }

    /* CREATE_QP: RC, 64 blocks */
    devx_mailbox create_in(const devx_rq &rmp) const
    {
        devx_mailbox in(0x110, 0x500);

        in.put(CTX + 0x04, devx_pdn(m_dev.pd));
        in.set(CTX + 0x08, 14, 11, 6).put(CTX + 0x0c, m_uar->page_id);
        in.put(CTX + 0x10, uidx);
        in.put(CTX + 0x7c, cqn()).put(CTX + 0x9c, cqn());
        in.put64(CTX + 0xa0, ring.dbr_offset());
        in.put(CTX + 0xac, (1u << 24) | rmp.object->out.number());
        in.put(CTX + 0xe4, ring.umem->umem_id);
        in.put(0x108, ring.umem->umem_id);
        return in;
    }

    devx_mailbox to_rtr(const devx_qp &peer, const devx_rtr &rtr = {}) const
    {
        devx_mailbox in(0x110, 0x503);
        const bool roce = m_dev.is_roce();

        in.put(8, qpn).put(0x10, 0xe); /* rre, rae, rwe */
        in.set(CTX + 0x08, 31, 29, IBV_MTU_1024);
        in.set(CTX + 0x08, 28, 24, rtr.log_msg_max);
        in.set(CTX + 0x90, 19, 16, rtr.atomic_mode);
        in.put(CTX + 0x14, peer.qpn).set(CTX + 0x90, 23, 21, 4);
        in.set(CTX + 0x90, 15, 13, 7).set(CTX + 0x94, 28, 24, 1);
        in.set(CTX + 0x04, 25, 25, rtr.dp_ordering & 1);
        in.set(CTX + 0x04, 24, 24, rtr.dp_force);
        in.set(CTX + 0x90, 3, 3, rtr.dp_ordering >> 1);
        in.set(PATH + 0x24, 27, 24, rtr.sl);
        in.set(PATH + 0x04, 15, 0, m_dev.port.lid);
        in.set(PATH + 0x08, 23, 16, m_dev.sgid_index());
        in.set(PATH + 0x08, 7, 0, 64).set(PATH + 0x24, 23, 16, 1);
        if (roce) {
            set_peer(in);
        }
        return in;
    }

    void connect(const devx_qp &peer, const devx_rtr &rtr = {})
    {
        devx_mailbox init(0x110, 0x502), rts(0x110, 0x504), out(16);

        init.put(8, qpn).set(PATH + 0x24, 23, 16, 1);
        init.set(CTX + 0x90, 15, 13, 7);
        rts.put(8, qpn).set(CTX + 0x70, 23, 21, 4);
        rts.set(CTX + 0x70, 18, 16, rtr.retry_cnt);
        rts.set(CTX + 0x70, 15, 13, rtr.rnr_retry);
        rts.set(PATH + 0x08, 31, 27, 1);
        rts.set(PATH + 0x24, 23, 16, rtr.rts_port);
        EXPECT_EQ(0, modify(init, &out)) << out.syndrome();
        EXPECT_EQ(0, modify(to_rtr(peer, rtr), &out)) << out.syndrome();
        EXPECT_EQ(0, modify(rts, &out)) << out.syndrome();
    }

    int modify(const devx_mailbox &in, devx_mailbox *out)
    {
        return mlx5dv_devx_obj_modify(object->obj, in.bytes.data(),
                                      in.bytes.size(), out->bytes.data(),
                                      out->bytes.size());
    }

    int query(devx_mailbox *out)
    {
        devx_mailbox in = devx_mailbox(16, 0x50b).put(8, qpn);

        return mlx5dv_devx_obj_query(object->obj, in.bytes.data(), 16,
                                     out->bytes.data(), out->bytes.size());
    }

    void post(raw_wqe wqe)
    {
        uint64_t head;

        announce(wqe);
        memcpy(&head, wqe.bytes.data(), sizeof(head));
        *(volatile uint64_t *)m_uar->reg_addr = head;
    }

    /* Posts both with one doorbell. */
    void post(raw_wqe first, const raw_wqe &second)
    {
        announce(first);
        post(second);
    }

    /* Posts by a push to the register, in words or blocks of `width` bytes. */
    void push(raw_wqe wqe, unsigned width)
    {
        announce(wqe);
        wqe.bytes.resize(wqe.num_bb() * 64);
        raw_store(m_uar->reg_addr, wqe.bytes, width);
    }

    /* Resets the QP and restarts its ring. As with UCX, the doorbell record
     * keeps its value. */
    void restart()
    {
        devx_mailbox out(16);

        EXPECT_EQ(0, modify(devx_mailbox(16, 0x50a).put(8, qpn), &out));
        memset(ring.addr, 0, 4096);
        m_pi = 0;
    }

    /* Writes a doorbell that names another queue, number 0. */
    void touch_doorbell() { *(volatile uint64_t *)m_uar->reg_addr = 0; }

    bool wait(struct mlx5_err_cqe *cqe)
    {
        return hca_until([&] { return cq.poll(cqe); });
    }

    uint32_t cqn() const { return (m_cqn != 0) ? m_cqn : devx_cqn(cq.cq); }

    static uint32_t devx_cqn(struct ibv_cq *cq)
    {
        struct mlx5dv_cq out  = {};
        struct mlx5dv_obj obj = {};

        obj.cq.in  = cq;
        obj.cq.out = &out;
        HCA_CHECK_CALL(mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ) == 0);
        return out.cqn;
    }

    raw_cq cq;
    devx_ring ring;
    std::unique_ptr<devx_object> object;
    uint32_t qpn;

private:
    void announce(raw_wqe &wqe)
    {
        wqe.finish(m_pi, qpn);
        for (size_t i = 0; i < wqe.bytes.size(); i++) {
            ring.addr[(m_pi % 64 * 64 + i) % 4096] = wqe.bytes[i];
        }
        m_pi += wqe.num_bb();
        __atomic_store_n(ring.dbr() + MLX5_SND_DBR, htobe32(m_pi),
                         __ATOMIC_SEQ_CST);
    }

    /* Sets the peer's GID and MAC to those of this device, where the peer
     * is. */
    void set_peer(devx_mailbox &in) const
    {
        const uint8_t *gid = m_dev.gid.raw;

        for (unsigned i = 0; i < 16; i++) {
            in.bytes[PATH + 0x10 + i] = gid[i];
        }
        /* an EUI-64 of the MAC, with its second bit inverted */
        in.set(PATH + 0x24, 15, 0, ((gid[8] ^ 2) << 8) | gid[9]);
        in.put(PATH + 0x28, ((uint32_t)gid[10] << 24) | (gid[13] << 16) |
                                (gid[14] << 8) | gid[15]);
    }

    const hca_device &m_dev;
    const uint32_t m_cqn;
    struct mlx5dv_devx_uar *m_uar;
    uint16_t m_pi = 0;
};

/* CREATE_DCT for any peer */
inline devx_mailbox devx_dct_in(const hca_device &dev, struct ibv_cq *cq,
                                uint32_t srqn)
{
    devx_mailbox in(128, 0x710);

    in.put(0x18, devx_qp::devx_cqn(cq)).set(0x1c, 19, 17, 7);
    in.put(0x24, srqn).put(0x28, devx_pdn(dev.pd));
    in.put64(0x30, 0x1122334455667788);
    in.set(0x38, 26, 24, IBV_MTU_1024).set(0x38, 23, 16, 1);
    in.set(0x3c, 23, 16, dev.sgid_index());
    return in;
}

#endif
