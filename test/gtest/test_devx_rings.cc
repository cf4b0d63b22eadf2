/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Rings and doorbell records of verbs in memory of the program: a parent domain
 * with allocators. Part of the program of test_devx_objects.cc.
 */
#include "devx_qp.h"
#include "verbs_peer.h"

#include <set>

namespace {

/* Allocates from a slab, each piece right after the last one: they share
 * pages. */
class ring_domain {
public:
    explicit ring_domain(const hca_device &dev)
    {
        struct ibv_parent_domain_init_attr attr = {};

        attr.pd        = dev.pd;
        attr.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
                         IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
        attr.alloc      = alloc;
        attr.free       = free;
        attr.pd_context = this;
        pd              = ibv_alloc_parent_domain(dev.ctx, &attr);
        HCA_CHECK_CALL(pd != NULL);
    }

    ~ring_domain()
    {
        EXPECT_EQ(0, ibv_dealloc_pd(pd));
        EXPECT_TRUE(m_taken.empty()) << "not given back";
    }

    struct ibv_cq *cq(const hca_device &dev, unsigned cqe) const
    {
        struct ibv_cq_init_attr_ex attr = {};
        struct ibv_cq_ex *cq;

        attr.cqe           = cqe;
        attr.comp_mask     = IBV_CQ_INIT_ATTR_MASK_PD;
        attr.parent_domain = pd;
        cq                 = ibv_create_cq_ex(dev.ctx, &attr);
        return (cq == NULL) ? NULL : ibv_cq_ex_to_cq(cq);
    }

    devx_pages slab{48};
    struct ibv_pd *pd;
    unsigned count = 0;
    bool by_lib    = false; /* leave it to the library */

private:
    static void *alloc(struct ibv_pd *, void *context, size_t size,
                       size_t alignment, uint64_t)
    {
        ring_domain *self = (ring_domain *)context;
        size_t at;

        self->count++;
        if (self->by_lib) {
            return IBV_ALLOCATOR_USE_DEFAULT;
        }
        alignment    = std::max(alignment, (size_t)64);
        at           = (self->m_used + alignment - 1) / alignment * alignment;
        self->m_used = at + size;
        HCA_CHECK_CALL(self->m_used <= self->slab.size);
        self->m_taken.insert(self->slab.addr + at);
        return self->slab.addr + at;
    }

    static void free(struct ibv_pd *, void *context, void *ptr, uint64_t)
    {
        EXPECT_EQ(1u, ((ring_domain *)context)->m_taken.erase(ptr));
    }

    size_t m_used = 64;
    std::set<void *> m_taken;
};

struct ibv_srq *ring_srq(struct ibv_pd *pd)
{
    struct ibv_srq_init_attr attr = {};

    attr.attr.max_wr  = 40;
    attr.attr.max_sge = 1;
    return ibv_create_srq(pd, &attr);
}

class devx_rings : public verbs_test {
protected:
    /* Sends messages, more than once around all rings. */
    void exchange(verbs_ep &from, verbs_ep &to)
    {
        for (unsigned i = 0; i < 300; i++) {
            *(volatile unsigned *)src.addr = i;
            ASSERT_EQ(0, verbs_recv(to.qp, dst, 64, i));
            ASSERT_EQ(IBV_WC_SUCCESS, run(from, send(i)));
            ASSERT_EQ(i, verbs_wait(to.recv_cq).wr_id);
            ASSERT_EQ(i, *(volatile unsigned *)dst.addr);
        }
    }
};

TEST_P(devx_rings, of_the_program_serve_all_kinds_of_queues)
{
    ring_domain domain(dev);
    struct ibv_cq *cq   = domain.cq(dev, 100);
    struct ibv_srq *srq = ring_srq(domain.pd);

    ASSERT_NE(nullptr, cq) << strerror(errno);
    ASSERT_NE(nullptr, srq) << strerror(errno);
    {
        verbs_options options = {.pd = domain.pd, .send_cq = cq};
        verbs_options shared  = {.pd = domain.pd, .send_cq = cq, .srq = srq};
        verbs_pair pair(dev, options), more(dev, options, shared);

        EXPECT_EQ(12u, domain.count) << "six queues";
        exchange(pair.a, pair.b);
        exchange(more.a, more.b);
        exchange(pair.b, pair.a);
    }
    EXPECT_EQ(0, ibv_destroy_srq(srq));
    EXPECT_EQ(0, ibv_destroy_cq(cq));
}

TEST_P(devx_rings, of_the_program_move_with_resize)
{
    ring_domain domain(dev);
    struct ibv_cq *cq = domain.cq(dev, 60);

    ASSERT_NE(nullptr, cq);
    {
        verbs_pair pair(dev, {.pd = domain.pd, .send_cq = cq});

        exchange(pair.a, pair.b);
        ASSERT_EQ(0, write(77).post(pair.a.qp)); /* copied to the new one */
        ASSERT_EQ(0, ibv_resize_cq(cq, 200));
        EXPECT_EQ(77u, verbs_wait(cq).wr_id);
        exchange(pair.a, pair.b);
    }
    EXPECT_EQ(0, ibv_destroy_cq(cq));
}

TEST_P(devx_rings, are_the_librarys_where_the_allocator_says_so)
{
    ring_domain domain(dev);
    struct ibv_cq *cq;

    domain.by_lib = true;
    cq            = domain.cq(dev, 100);
    ASSERT_NE(nullptr, cq);
    {
        verbs_pair pair(dev, {.pd = domain.pd, .send_cq = cq});

        EXPECT_EQ(6u, domain.count);
        exchange(pair.a, pair.b);
    }
    EXPECT_EQ(0, ibv_destroy_cq(cq));
}

/* The software device replaces the pages of a ring: pages that other processes
 * share would be private afterwards. */
TEST_P(devx_rings, in_shared_memory_are_refused)
{
    ring_domain domain(dev);
    hca_log_reader log;

    ASSERT_NE(MAP_FAILED,
              mmap(domain.slab.addr, domain.slab.size, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
    EXPECT_EQ(nullptr, domain.cq(dev, 100));
    EXPECT_EQ(EOPNOTSUPP, errno);
    EXPECT_NE(std::string::npos, log.take().find("cq buffer"));
}

/* Child: receives from its parent, and sends the same bytes back, by rings of
 * its own. */
void answer_from_own_rings(int fd)
{
    hca_device dev;
    strict_mem mem(dev.pd, ACCESS_ALL, 0x44);
    ring_domain domain(dev);
    struct ibv_cq *cq = domain.cq(dev, 100);

    HCA_CHECK_CALL(cq != NULL);
    {
        verbs_ep ep(dev, {.pd = domain.pd, .send_cq = cq});
        peer_card card = peer_exchange(fd, ep, mem);

        peer_connect(fd, ep, card);
        HCA_CHECK_CALL(verbs_recv(ep.qp, mem, 64, 5) == 0);
        peer_meet(fd);
        HCA_CHECK_CALL(verbs_wait(ep.recv_cq).wr_id == 5);
        verbs_op op(IBV_WR_SEND, 6);
        op.local(mem, 64);
        HCA_CHECK_CALL(op.post(ep.qp) == 0);
        HCA_CHECK_CALL(verbs_wait(cq).status == IBV_WC_SUCCESS);
        peer_meet(fd);
    }
    HCA_CHECK_CALL(ibv_destroy_cq(cq) == 0);
}

TEST_P(devx_rings, of_the_program_are_reached_by_peers)
{
    peer_process peer(answer_from_own_rings);
    verbs_ep ep(dev);

    peer_card card = peer_exchange(peer.fd, ep, dst);
    peer_connect(peer.fd, ep, card);
    ASSERT_EQ(0, verbs_recv(ep.qp, dst, 64, 7));
    peer_meet(peer.fd);
    EXPECT_EQ(IBV_WC_SUCCESS, run(ep, send(8)));
    EXPECT_EQ(7u, verbs_wait(ep.recv_cq).wr_id);
    EXPECT_EQ(0x11, dst.addr[63]) << "what was sent there came back";
    peer_meet(peer.fd);
    EXPECT_EQ(0, peer.wait());
}

INSTANTIATE_TEST_SUITE_P(ib, devx_rings, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(roce, devx_rings, testing::Values(0));

} /* namespace */
