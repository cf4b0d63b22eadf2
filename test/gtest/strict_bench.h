/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A sender and a receiver of one transport service, on one device. libibverbs
 * and libmlx5 create the objects; the test itself writes WQEs, receive WQEs and
 * doorbell records, so that one of their fields can be wrong, and reads CQEs.
 */
#ifndef DCX_TEST_STRICT_BENCH_H
#define DCX_TEST_STRICT_BENCH_H

#include "hca_fixture.h"
#include "raw_wqe.h"

#include <emmintrin.h>
#include <functional>
#include <poll.h>
#include <sys/mman.h>
#include <time.h>

/* TM: both are RC queue pairs of one SRQ with tag matching, whose list the
 * sender can change. */
enum strict_service {
    SERVICE_RC,
    SERVICE_UC,
    SERVICE_UD,
    SERVICE_XRC,
    SERVICE_DC,
    SERVICE_TM
};

constexpr int ACCESS_ALL = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                           IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
                           IBV_ACCESS_MW_BIND;

constexpr int ACCESS_QP_ALL = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                              IBV_ACCESS_REMOTE_ATOMIC;

/* --- memory --------------------------------------------------------------- */

/* Registered pages */
class strict_mem {
public:
    static constexpr size_t size = 16384;

    strict_mem(struct ibv_pd *pd, int access, uint8_t fill)
    {
        addr = (uint8_t *)mmap(NULL, size, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        HCA_CHECK_CALL(addr != MAP_FAILED);
        memset(addr, fill, size);
        HCA_CHECK_CALL((mr = ibv_reg_mr(pd, addr, size, access)) != NULL);
    }

    ~strict_mem()
    {
        EXPECT_EQ(0, ibv_dereg_mr(mr));
        if (addr != NULL) {
            munmap(addr, size);
        }
    }

    /* Unmaps the memory; the registration stays. */
    uint8_t *unmap()
    {
        uint8_t *was = addr;

        munmap(addr, size);
        addr = NULL;
        return was;
    }

    std::vector<uint8_t> copy() const
    {
        return (addr == NULL) ? std::vector<uint8_t>() :
                                std::vector<uint8_t>(addr, addr + size);
    }

    uint8_t *addr;
    struct ibv_mr *mr;
};

/* --- queues as the device sees them --------------------------------------- */

class raw_cq {
public:
    raw_cq(struct ibv_context *ctx, unsigned cqe)
    {
        struct mlx5dv_obj obj = {};

        HCA_CHECK_CALL((cq = create(ctx, cqe)) != NULL);
        obj.cq.in  = cq;
        obj.cq.out = &m_dv;
        HCA_CHECK_CALL(mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ) == 0);
    }

    ~raw_cq() { EXPECT_EQ(0, ibv_destroy_cq(cq)); }

    /* Polls the next entry, if there is one. Error entries have the same layout
     * in the fields used here (struct mlx5_err_cqe). */
    bool poll(struct mlx5_err_cqe *cqe)
    {
        const uint8_t *entry = (const uint8_t *)m_dv.buf +
                               (m_ci & (m_dv.cqe_cnt - 1)) * m_dv.cqe_size +
                               m_dv.cqe_size - 64;
        uint8_t op_own = __atomic_load_n(entry + 63, __ATOMIC_ACQUIRE);

        if (((op_own >> 4) == MLX5_CQE_INVALID) ||
            ((op_own & 1) != !!(m_ci & m_dv.cqe_cnt))) {
            return false;
        }
        memcpy(cqe, entry, sizeof(*cqe));
        m_ci++;
        __atomic_store_n(&m_dv.dbrec[0], htobe32(m_ci & 0xffffff),
                         __ATOMIC_RELEASE);
        return true;
    }

    unsigned capacity() const { return m_dv.cqe_cnt; }

    struct ibv_cq *cq;

private:
    /* Creates an extended CQ, as libmlx5 requires for tag matching. */
    static struct ibv_cq *create(struct ibv_context *ctx, unsigned cqe)
    {
        struct ibv_cq_init_attr_ex attr = {};

        attr.cqe = cqe;
        return ibv_cq_ex_to_cq(ibv_create_cq_ex(ctx, &attr));
    }

    struct mlx5dv_cq m_dv = {};
    uint32_t m_ci         = 0;
};

/* Stores to a register, in words of 8 or 16 bytes, or in blocks of 64, each a
 * row of stores from vectors. */
inline void raw_store(void *reg, const std::vector<uint8_t> &bytes,
                      unsigned width)
{
    for (size_t i = 0; i < bytes.size(); i += width) {
        uint8_t *to = (uint8_t *)reg + i;

        if (width == 8) {
            uint64_t word;

            memcpy(&word, &bytes[i], sizeof(word));
            *(volatile uint64_t *)to = word;
        } else if (width == 64) {
            __asm__ volatile("movups (%1), %%xmm0\nmovups 16(%1), %%xmm1\n"
                             "movups 32(%1), %%xmm2\nmovups 48(%1), %%xmm3\n"
                             "movaps %%xmm0, (%0)\nmovaps %%xmm1, 16(%0)\n"
                             "movaps %%xmm2, 32(%0)\nmovaps %%xmm3, 48(%0)"
                             :
                             : "r"(to), "r"(&bytes[i])
                             : "xmm0", "xmm1", "xmm2", "xmm3", "memory");
        } else {
            __m128i word = _mm_loadu_si128((const __m128i *)&bytes[i]);

            _mm_store_si128((__m128i *)to, word);
        }
    }
}

/* A send queue, and the receive queue of a QP that has one */
class raw_qp {
public:
    explicit raw_qp(struct ibv_qp *qp) : qpn(qp->qp_num)
    {
        struct mlx5dv_obj obj = {};

        obj.qp.in  = qp;
        obj.qp.out = &m_dv;
        HCA_CHECK_CALL(mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP) == 0);
    }

    void write(const raw_wqe &wqe)
    {
        uint8_t *ring = (uint8_t *)m_dv.sq.buf;
        size_t size   = m_dv.sq.wqe_cnt * 64;

        for (size_t i = 0; i < wqe.bytes.size(); i++) {
            ring[(pi * 64 + i) % size] = wqe.bytes[i];
        }
    }

    /* Announces num_bb more blocks; `head` is written to the register. */
    void ring(unsigned num_bb, const uint8_t *head)
    {
        uint64_t value;

        announce(num_bb);
        memcpy(&value, head, sizeof(value));
        *(volatile uint64_t *)m_dv.bf.reg = value;
    }

    /* Announces num_bb more blocks in the doorbell record, but rings no
     * doorbell. */
    void announce(unsigned num_bb)
    {
        pi += num_bb;
        __atomic_store_n(&m_dv.dbrec[MLX5_SND_DBR], htobe32(pi),
                         __ATOMIC_SEQ_CST);
    }

    /* Writes 4 bytes to the register: too few to name a queue */
    void ring_nameless() const { *(volatile uint32_t *)m_dv.bf.reg = 0; }

    /* Announces num_bb more blocks, and pushes all of `bytes` to the register,
     * in words or blocks of `width` bytes. */
    void push(unsigned num_bb, const std::vector<uint8_t> &bytes,
              unsigned width = 8)
    {
        announce(num_bb);
        raw_store(m_dv.bf.reg, bytes, width);
    }

    /* Returns a half of a register of the page: 0 and 1 are those of the
     * register that the queue uses, 2 and 3 those of the other one. */
    uint8_t *half(unsigned index) const
    {
        return (uint8_t *)((uintptr_t)m_dv.bf.reg ^ (index * 0x100));
    }

    unsigned num_bb() const { return m_dv.sq.wqe_cnt; }

    void post_recv(const void *addr, uint32_t length, uint32_t lkey)
    {
        unsigned slot = rq_pi & (m_dv.rq.wqe_cnt - 1);
        struct mlx5_wqe_data_seg *seg =
            (struct mlx5_wqe_data_seg *)((uint8_t *)m_dv.rq.buf +
                                         slot * m_dv.rq.stride);

        seg[0].byte_count = htobe32(length);
        seg[0].lkey       = htobe32(lkey);
        seg[0].addr       = htobe64((uintptr_t)addr);
        if (m_dv.rq.stride > 16) {
            seg[1] = {0, htobe32(0x100), 0}; /* MLX5_INVALID_LKEY: the end */
        }
        ring_rq(1);
    }

    void ring_rq(unsigned count)
    {
        rq_pi += count;
        __atomic_store_n(&m_dv.dbrec[MLX5_RCV_DBR], htobe32(rq_pi),
                         __ATOMIC_RELEASE);
    }

    unsigned rq_size() const { return m_dv.rq.wqe_cnt; }

    uint32_t qpn;
    uint16_t pi = 0, rq_pi = 0;

private:
    struct mlx5dv_qp m_dv = {};
};

class raw_srq {
public:
    explicit raw_srq(struct ibv_srq *srq)
    {
        struct mlx5dv_obj obj = {};

        m_dv.comp_mask = MLX5DV_SRQ_MASK_SRQN;
        obj.srq.in     = srq;
        obj.srq.out    = &m_dv;
        HCA_CHECK_CALL(mlx5dv_init_obj(&obj, MLX5DV_OBJ_SRQ) == 0);
    }

    /* Posts the next WQE: libmlx5 has linked them in order. Uses none twice. */
    void post_recv(const void *addr, uint32_t length, uint32_t lkey)
    {
        struct mlx5_wqe_data_seg *seg =
            (struct mlx5_wqe_data_seg *)(next_seg() + 1);

        HCA_CHECK_CALL(pi < m_dv.tail);
        seg[0].byte_count = htobe32(length);
        seg[0].lkey       = htobe32(lkey);
        seg[0].addr       = htobe64((uintptr_t)addr);
        if (m_dv.stride > 32) {
            seg[1] = {0, htobe32(0x100), 0};
        }
        ring(1);
    }

    void ring(unsigned count)
    {
        pi += count;
        __atomic_store_n(m_dv.dbrec, htobe32(pi), __ATOMIC_RELEASE);
    }

    /* Returns the next segment of the WQE that is posted next. */
    struct mlx5_wqe_srq_next_seg *next_seg() const
    {
        return (struct mlx5_wqe_srq_next_seg *)((uint8_t *)m_dv.buf +
                                                pi * m_dv.stride);
    }

    uint32_t srqn() const { return m_dv.srqn; }

    uint16_t pi = 0;

private:
    struct mlx5dv_srq m_dv = {};
};

/* --- the bench ------------------------------------------------------------ */

struct strict_options {
    int access        = ACCESS_QP_ALL; /* access rights of the receiving QP */
    bool wq_sig       = false;
    bool to_cqe       = false; /* short received data goes to the CQE */
    unsigned recv_cqe = 63;
    bool grh          = false;        /* with a GRH in the address vector */
    enum ibv_mtu mtu  = IBV_MTU_1024; /* MTU of the sending QP */
    uint8_t max_rd_atomic = 1;        /* limit of the sending QP */
};

class strict_bench {
public:
    static constexpr uint64_t dc_key = 0x1122334455667788;
    static constexpr uint32_t qkey   = 0x11223344;
    static constexpr uint32_t tags   = 16; /* entries of the list */

    strict_bench(strict_service service, const strict_options &options);
    ~strict_bench();

    /* Begins a WQE: control segment and, if the service has one, the segment
     * that names the receiver. */
    raw_wqe wqe(uint8_t opcode, uint8_t opmod = 0) const;

    /* Complete WQEs between src and dst */
    raw_wqe send(uint32_t length = 64) const;
    raw_wqe write() const;
    raw_wqe read() const;
    raw_wqe fetch_add() const;

    /* WQEs as libmlx5 writes them: bind `window` (type 2) to part of dst, which
     * gives it its next key, and unbind it by that key */
    raw_wqe bind(const struct ibv_mw *window) const;
    raw_wqe unbind(uint32_t rkey) const;
    static uint32_t bound_key(const struct ibv_mw *window);

    /* Writes the WQE unchanged and rings for num_bb blocks, 0: all of it. */
    void post(const raw_wqe &wqe, unsigned num_bb = 0);

    /* Sets index, QP and, if the QP has them, signature. */
    void finish(raw_wqe &wqe) const;

    /* Finishes the WQE, posts it, and expects success. */
    void post_good(raw_wqe wqe);

    void post_recv(uint32_t length = 64);
    void post_recv(const void *addr, uint32_t length, uint32_t lkey);

    /* Waits for the next entry of the send or receive CQ. */
    bool wait(raw_cq &cq, struct mlx5_err_cqe *cqe);

    /* Waits until a QP is in the error state. */
    bool wait_error(struct ibv_qp *qp) const;

    /* Returns the contents of all memory of the bench. */
    std::vector<uint8_t> memory() const;

    /* Returns the async events that have arrived, as text. */
    std::string take_events();

    enum ibv_qp_state state(struct ibv_qp *qp) const;

    bool has_srq() const
    {
        return (m_service == SERVICE_DC) || (m_service == SERVICE_XRC) ||
               (m_service == SERVICE_TM);
    }

    /* Resets and connects the sender again. */
    void reconnect();

    /* Destroys the sender before the destructor does. */
    void destroy_sender();

    hca_device dev;
    struct ibv_pd *other_pd;
    std::unique_ptr<raw_cq> send_cq, recv_cq;
    std::unique_ptr<strict_mem> src, dst;
    struct ibv_xrcd *xrcd = NULL;
    struct ibv_srq *srq   = NULL;
    struct ibv_qp *sender, *receiver;
    std::unique_ptr<raw_qp> sq, rq;
    std::unique_ptr<raw_srq> rsrq;
    std::vector<struct ibv_mw *> windows;

    /* Creates a window; it lives as long as the bench. */
    struct ibv_mw *window(struct ibv_pd *pd, enum ibv_mw_type type);

    /* Objects of a row that live as long as the bench */
    std::vector<std::shared_ptr<void>> kept;

    /* Registers another region, which lives as long as the bench. */
    strict_mem &region(struct ibv_pd *pd, int access);

private:
    struct ibv_srq *create_srq();
    struct ibv_qp *create_qp(bool is_sender);
    void connect(struct ibv_qp *qp, struct ibv_qp *peer,
                 const strict_options &options);

    strict_service m_service;
    bool m_wq_sig;
    struct mlx5_wqe_av m_av = {};
    struct ibv_ah *m_ah;
    std::vector<std::unique_ptr<strict_mem>> m_regions;
};

#endif
