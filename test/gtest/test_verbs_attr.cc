/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Attributes that the device reports of itself and of its objects: the actual
 * ones, which may differ from the requested ones
 */
#include "dmabuf_file.h"
#include "verbs_peer.h"

#include <dirent.h>
#include <fcntl.h>
#include <functional>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

/* Address of the next mapping of a dma-buf; NULL: any */
static void *attr_place;

/* Replaces libc's function, too. */
extern "C" void *mmap(void *addr, size_t length, int prot, int flags, int fd,
                      off_t offset) noexcept
{
    if (dmabuf_file::is(fd)) {
        addr = attr_place;
    }
    return (void *)syscall(SYS_mmap, addr, length, prot, flags, fd, offset);
}

namespace {

class verbs_attr : public verbs_test {
protected:
    static struct ibv_qp_attr query(struct ibv_qp *qp,
                                    struct ibv_qp_init_attr *init = NULL)
    {
        const int all = (IBV_QP_DEST_QPN << 1) - 1;
        struct ibv_qp_init_attr unused;
        struct ibv_qp_attr attr;

        HCA_CHECK_CALL(
            ibv_query_qp(qp, &attr, all, (init != NULL) ? init : &unused) == 0);
        return attr;
    }
};

/* --- queue pairs ---------------------------------------------------------- */

TEST_P(verbs_attr, receive_queue_is_as_large_as_its_ring)
{
    struct {
        uint32_t wr, sge, ring_wr, ring_sge;
    } cases[] = {{1, 1, 4, 1}, {3, 1, 4, 1}, {4, 1, 4, 1}, {5, 3, 8, 4}};

    for (const auto &c : cases) {
        struct ibv_cq *cq = ibv_create_cq(dev.ctx, 15, NULL, NULL, 0);
        struct ibv_qp_init_attr init = {}, got;

        init.send_cq = init.recv_cq = cq;
        init.qp_type                = IBV_QPT_RC;
        init.cap                    = {4, c.wr, 1, c.sge, 0};
        struct ibv_qp *qp           = ibv_create_qp(dev.pd, &init);
        ASSERT_NE(nullptr, qp);
        EXPECT_EQ(c.ring_wr, query(qp, &got).cap.max_recv_wr);
        EXPECT_EQ(c.ring_wr, got.cap.max_recv_wr);
        EXPECT_EQ(c.ring_sge, got.cap.max_recv_sge);
        EXPECT_EQ(init.cap.max_recv_wr, got.cap.max_recv_wr) << "as created";
        EXPECT_EQ(0, ibv_destroy_qp(qp));
        EXPECT_EQ(0, ibv_destroy_cq(cq));
    }
}

TEST_P(verbs_attr, reads_under_way_are_a_power_of_two)
{
    verbs_ep a(dev), b(dev);
    struct ibv_qp_attr attr = a.attr(b.qp->qp_num);

    attr.max_rd_atomic      = 3;
    attr.max_dest_rd_atomic = 5;
    a.connect(attr);
    EXPECT_EQ(4, query(a.qp).max_rd_atomic);
    EXPECT_EQ(8, query(a.qp).max_dest_rd_atomic);

    attr.dest_qp_num   = a.qp->qp_num;
    attr.max_rd_atomic = attr.max_dest_rd_atomic = 0;
    b.connect(attr);
    EXPECT_EQ(1, query(b.qp).max_rd_atomic);
    EXPECT_EQ(1, query(b.qp).max_dest_rd_atomic);
}

TEST_P(verbs_attr, access_flags_are_those_of_the_context)
{
    verbs_ep a(dev), b(dev);
    struct ibv_qp_attr attr = a.attr(b.qp->qp_num);

    attr.qp_access_flags = ACCESS_ALL;
    a.connect(attr);
    EXPECT_EQ((unsigned)(IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
                         IBV_ACCESS_REMOTE_ATOMIC),
              query(a.qp).qp_access_flags);

    attr.dest_qp_num        = a.qp->qp_num;
    attr.max_dest_rd_atomic = 0; /* disables reads and atomics */
    b.connect(attr);
    EXPECT_EQ((unsigned)IBV_ACCESS_REMOTE_WRITE, query(b.qp).qp_access_flags);
}

TEST_P(verbs_attr, psns_are_those_of_the_next_message)
{
    verbs_ep a(dev), b(dev);
    struct ibv_qp_attr attr = a.attr(b.qp->qp_num);

    attr.sq_psn = 0xfffffe;
    attr.rq_psn = 7;
    a.connect(attr);
    attr        = b.attr(a.qp->qp_num);
    attr.sq_psn = 7;
    attr.rq_psn = 0xfffffe;
    b.connect(attr);
    EXPECT_EQ(0xfffffeu, query(a.qp).sq_psn);
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(IBV_WC_SUCCESS, run(a, write()));
    }
    EXPECT_EQ(1u, query(a.qp).sq_psn) << "of 24 bits";
    EXPECT_EQ(1u, query(b.qp).rq_psn);
    EXPECT_EQ(7u, query(a.qp).rq_psn);
    EXPECT_EQ(7u, query(b.qp).sq_psn);
}

TEST_P(verbs_attr, datagrams_have_the_mtu_of_the_port)
{
    verbs_options options;

    options.type = IBV_QPT_UD;
    verbs_ep ep(dev, options);
    ep.connect(ep.attr(0));
    EXPECT_EQ(IBV_MTU_4096, query(ep.qp).path_mtu);
    EXPECT_EQ(0, query(ep.qp).ah_attr.dlid);
}

/* --- the port ------------------------------------------------------------- */

constexpr uint32_t CAP_CM = 1u << 16, CAP_IP_GIDS = 1u << 26; /* IBTA, uverbs */

TEST_P(verbs_attr, ethernet_port_has_no_capabilities_of_infiniband)
{
    std::ifstream file("/sys/class/infiniband/mlx5_0/ports/1/cap_mask");
    uint32_t in_sysfs = 0;

    file >> std::hex >> in_sysfs;
    if (dev.is_roce()) {
        EXPECT_EQ(CAP_CM | CAP_IP_GIDS, dev.port.port_cap_flags);
        EXPECT_EQ(CAP_CM, in_sysfs) << "which is no flag of PortInfo";
    } else {
        EXPECT_NE(0u, dev.port.port_cap_flags & 2u) << "an SM may be there";
        EXPECT_EQ(dev.port.port_cap_flags, in_sysfs);
    }
}

TEST_P(verbs_attr, port_has_no_switch_behind_it)
{
    struct mlx5dv_port port = {};

    port.flags = ~0ull;
    EXPECT_EQ(0, mlx5dv_query_port(dev.ctx, 1, &port));
    EXPECT_EQ(0u, port.flags);
    EXPECT_EQ(EINVAL, mlx5dv_query_port(dev.ctx, 2, &port));
}

/* --- the clock ------------------------------------------------------------ */

static uint64_t nanoseconds(clockid_t clock)
{
    struct timespec ts;

    HCA_CHECK_CALL(clock_gettime(clock, &ts) == 0);
    return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

TEST_P(verbs_attr, clock_page_gives_the_time_of_a_stamp)
{
    struct mlx5dv_clock_info info = {};
    struct ibv_values_ex values   = {};
    const uint64_t second         = 1000000000;

    values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
    ASSERT_EQ(0, mlx5dv_get_clock_info(dev.ctx, &info));
    const uint64_t before = nanoseconds(CLOCK_REALTIME);
    ASSERT_EQ(0, ibv_query_rt_values_ex(dev.ctx, &values));
    const uint64_t stamp = values.raw_clock.tv_nsec;
    const uint64_t now   = mlx5dv_ts_to_ns(&info, stamp);
    EXPECT_GT(now, before - second);
    EXPECT_LT(now, nanoseconds(CLOCK_REALTIME) + second);
    EXPECT_EQ(now + 5, mlx5dv_ts_to_ns(&info, stamp + 5));
    EXPECT_EQ(info.nsec - 7, mlx5dv_ts_to_ns(&info, info.last_cycles - 7))
        << "from before the page was written";
    /* hours later, as if it had not been updated */
    EXPECT_EQ(info.nsec + 86400 * second,
              mlx5dv_ts_to_ns(&info, info.last_cycles + 86400 * second));
}

/* --- regions over dma-bufs ------------------------------------------------ */

class verbs_dmabuf : public verbs_attr {
protected:
    static constexpr size_t SIZE = 16384;
    static constexpr int ACCESS  = IBV_ACCESS_LOCAL_WRITE |
                                  IBV_ACCESS_REMOTE_READ |
                                  IBV_ACCESS_REMOTE_WRITE;

    verbs_dmabuf() : m_file(memfd_create("dmabuf", MFD_ALLOW_SEALING))
    {
        HCA_CHECK_CALL((m_file >= 0) && (ftruncate(m_file, SIZE) == 0));
    }

    ~verbs_dmabuf() { close(m_file); }

    int error(uint64_t offset, size_t length, uint64_t iova, int fd,
              int access) const
    {
        struct ibv_mr *mr = ibv_reg_dmabuf_mr(dev.pd, offset, length, iova, fd,
                                              access);
        int err           = (mr == NULL) ? errno : 0;

        EXPECT_TRUE((mr == NULL) || (ibv_dereg_mr(mr) == 0));
        return err;
    }

    /* @param fd  dma-buf of the file's memory
     * @return false if its pages have no access */
    bool expect_region(int fd)
    {
        EXPECT_EQ(EINVAL, error(4096, SIZE, 4096, fd, ACCESS)) << "its end";
        struct ibv_mr *mr = ibv_reg_dmabuf_mr(dev.pd, 4160, 4096, 0x10040, fd,
                                              ACCESS);
        if ((mr == NULL) && (errno == EOPNOTSUPP)) {
            return false;
        }
        HCA_CHECK_CALL(mr != NULL);
        {
            verbs_pair pair(dev);
            uint8_t byte = 0;

            EXPECT_EQ(IBV_WC_SUCCESS,
                      run(pair.a, write().remote(0x10040, mr->rkey)));
            EXPECT_EQ(1, pread(m_file, &byte, 1, 4160));
            EXPECT_EQ(src.addr[0], byte);
        }
        {
            verbs_pair pair(dev);

            EXPECT_EQ(IBV_WC_REM_ACCESS_ERR,
                      run(pair.a, write().remote(0x11040, mr->rkey)));
        }
        EXPECT_EQ(0, ibv_dereg_mr(mr));
        return true;
    }

    const int m_file;
};

TEST_P(verbs_dmabuf, what_is_none_is_refused)
{
    EXPECT_EQ(EBADF, error(0, 4096, 0, 1 << 20, ACCESS));
    EXPECT_EQ(EBADF, error(0, 4096, 0, -1, ACCESS));
    EXPECT_EQ(EINVAL, error(0, 4096, 0, m_file, ACCESS)) << "a file";
    EXPECT_EQ(EINVAL, error(0, 4096, 0, dev.ctx->cmd_fd, ACCESS));
    EXPECT_EQ(EINVAL, error(64, 4096, 0, -1, ACCESS)) << "bits of the iova";
    EXPECT_EQ(EINVAL, error(4096, SIZE_MAX, 0, -1, ACCESS));
    EXPECT_EQ(EINVAL, error(0, 4096, 0, -1, IBV_ACCESS_REMOTE_WRITE));
    EXPECT_EQ(EINVAL, error(0, 4096, 0, -1, IBV_ACCESS_MW_BIND));
}

/* Linux' udmabuf device makes a dma-buf of the file. */
TEST_P(verbs_dmabuf, is_a_region_like_others)
{
    struct udmabuf_create create = {};
    int udmabuf                  = open("/dev/udmabuf", O_RDWR);

    if (udmabuf < 0) {
        GTEST_SKIP() << "/dev/udmabuf: " << strerror(errno);
    }
    ASSERT_EQ(0, fcntl(m_file, F_ADD_SEALS, F_SEAL_SHRINK));
    create.memfd = m_file;
    create.size  = SIZE;
    int fd       = ioctl(udmabuf, UDMABUF_CREATE, &create);
    ASSERT_LE(0, fd) << strerror(errno);

    bool is_reached = expect_region(fd);
    close(fd);
    close(udmabuf);
    if (!is_reached) {
        GTEST_SKIP() << "this kernel does not let pages of udmabuf be reached";
    }
}

TEST_P(verbs_dmabuf, is_mapped_and_used)
{
    {
        dmabuf_file buf(m_file);

        EXPECT_TRUE(expect_region(m_file));
    }
    EXPECT_EQ(EINVAL, error(4096, 4096, 4096, m_file, ACCESS))
        << "a file again";
}

/* An exporter may take the memory away while regions have it: the error of
 * memory on demand that is no longer mapped. */
TEST_P(verbs_dmabuf, is_revoked)
{
    dmabuf_file buf(m_file);
    struct ibv_mr *mr = ibv_reg_dmabuf_mr(dev.pd, 0, SIZE, 0x10000, m_file,
                                          ACCESS);

    HCA_CHECK_CALL(mr != NULL);
    ASSERT_EQ(0, ftruncate(m_file, 0));
    {
        verbs_pair pair(dev);

        EXPECT_EQ(IBV_WC_REM_OP_ERR,
                  run(pair.a, write().remote(0x10000, mr->rkey)));
    }
    {
        verbs_pair pair(dev);

        EXPECT_EQ(IBV_WC_REM_OP_ERR,
                  run(pair.a, verbs_op(IBV_WR_RDMA_WRITE)
                                  .local(0x10000, 64, mr->lkey)
                                  .remote(dst)));
    }
    EXPECT_EQ(0, ibv_dereg_mr(mr));
}

INSTANTIATE_TEST_SUITE_P(ib, verbs_dmabuf, testing::Values(0));

/* --- other memory at an address ------------------------------------------- */

/* Memory is unmapped before its region ends, and another region is made at its
 * address. A peer has mapped the first region. */
constexpr size_t OTHER_SIZE = 65536;

using other_region = std::function<struct ibv_mr *(const hca_device &, void *)>;

/* Lets the peer write to a region, and to the one that @make puts at its
 * address. */
void other_owner(int fd, const other_region &make)
{
    hca_device dev;
    verbs_ep ep(dev);
    void *mem         = mmap(NULL, OTHER_SIZE, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct ibv_mr *mr = ibv_reg_mr(dev.pd, mem, OTHER_SIZE, ACCESS_ALL);
    peer_card card = {ep.qp->qp_num, mr->rkey, (uintptr_t)mem, 0}, peers = {};

    HCA_CHECK_CALL(::write(fd, &card, sizeof(card)) == sizeof(card));
    HCA_CHECK_CALL(::read(fd, &peers, sizeof(peers)) == sizeof(peers));
    peer_connect(fd, ep, peers);
    peer_meet(fd);
    EXPECT_EQ('1', *(char *)mem);
    EXPECT_EQ(0, munmap(mem, OTHER_SIZE));
    struct ibv_mr *other = make(dev, mem);
    HCA_CHECK_CALL(other != NULL);
    card.rkey = other->rkey;
    HCA_CHECK_CALL(::write(fd, &card, sizeof(card)) == sizeof(card));
    peer_meet(fd);
    EXPECT_EQ('2', *(char *)mem);
    EXPECT_EQ(0, ibv_dereg_mr(other));
    EXPECT_EQ(0, ibv_dereg_mr(mr));
}

void on_demand_owner(int fd)
{
    other_owner(fd, [](const hca_device &dev, void *mem) {
        EXPECT_EQ(mem, mmap(mem, OTHER_SIZE, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
        return ibv_reg_mr(dev.pd, mem, OTHER_SIZE,
                          ACCESS_ALL | IBV_ACCESS_ON_DEMAND);
    });
}

/* The device maps the dma-buf at the address, which the kernel may choose. */
void dmabuf_owner(int fd)
{
    other_owner(fd, [](const hca_device &dev, void *mem) {
        int file = memfd_create("dmabuf", 0);
        dmabuf_file buf(file);

        attr_place = mem;
        EXPECT_EQ(0, ftruncate(file, OTHER_SIZE));
        EXPECT_EQ(1, pwrite(file, "d", 1, 0));
        struct ibv_mr *mr =
            ibv_reg_dmabuf_mr(dev.pd, 0, OTHER_SIZE, (uintptr_t)mem, file,
                              IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
        EXPECT_EQ('d', *(char *)mem);
        return mr;
    });
}

class verbs_other : public testing::TestWithParam<void (*)(int fd)> {};

TEST_P(verbs_other, region_is_written)
{
    peer_process owner(GetParam());
    hca_device dev;
    verbs_ep ep(dev, {.rnr_retry = 7}); /* for a page fault */
    strict_mem mem(dev.pd, ACCESS_ALL, 0);
    const peer_card card = peer_exchange(owner.fd, ep, mem);

    peer_connect(owner.fd, ep, card);
    for (peer_card to = card; mem.addr[0] != '2';) {
        mem.addr[0]            = (mem.addr[0] == 0) ? '1' : '2';
        struct ibv_sge sge     = {(uintptr_t)mem.addr, 64, mem.mr->lkey};
        struct ibv_send_wr wr  = {}, *bad;
        wr.sg_list             = &sge;
        wr.num_sge             = 1;
        wr.opcode              = IBV_WR_RDMA_WRITE;
        wr.send_flags          = IBV_SEND_SIGNALED;
        wr.wr.rdma.remote_addr = to.addr;
        wr.wr.rdma.rkey        = to.rkey;
        ASSERT_EQ(0, ibv_post_send(ep.qp, &wr, &bad));
        verbs_expect_wcs(ep.send_cq, IBV_WC_SUCCESS, 0, 0);
        peer_meet(owner.fd);
        if (mem.addr[0] == '1') {
            ASSERT_EQ((ssize_t)sizeof(to), ::read(owner.fd, &to, sizeof(to)));
        }
    }
    EXPECT_EQ(0, owner.wait());
}

INSTANTIATE_TEST_SUITE_P(ib, verbs_other,
                         testing::Values(on_demand_owner, dmabuf_owner));

/* --- datagrams ------------------------------------------------------------ */

/* Two datagram queue pairs, and a message between them */
class verbs_datagrams : public verbs_attr {
protected:
    verbs_datagrams()
    {
        struct ibv_ah_attr attr = dev.ah_attr(true);

        m_options.type = IBV_QPT_UD;
        a              = std::make_unique<verbs_ep>(dev, m_options);
        b              = std::make_unique<verbs_ep>(dev, m_options);
        a->connect(a->attr(0));
        b->connect(b->attr(0));
        m_ah = ibv_create_ah(dev.pd, &attr);
        HCA_CHECK_CALL(m_ah != NULL);
    }

    ~verbs_datagrams() { EXPECT_EQ(0, ibv_destroy_ah(m_ah)); }

    enum ibv_wc_status send_to_b(enum ibv_wr_opcode opcode, uint32_t qkey)
    {
        verbs_op op(opcode);

        op.local(src, 64);
        op.wr.wr.ud = {m_ah, b->qp->qp_num, qkey};
        return run(*a, op);
    }

    std::unique_ptr<verbs_ep> a, b;

private:
    verbs_options m_options;
    struct ibv_ah *m_ah;
};

TEST_P(verbs_datagrams, of_another_qkey_are_counted)
{
    struct ibv_port_attr before, after;

    ASSERT_EQ(0, ibv_query_port(dev.ctx, 1, &before));
    ASSERT_EQ(0, verbs_recv(b->qp, dst, 128));
    EXPECT_EQ(IBV_WC_SUCCESS, send_to_b(IBV_WR_SEND, 0x11223345));
    EXPECT_EQ(IBV_WC_SUCCESS, send_to_b(IBV_WR_SEND, 0x11223344));
    EXPECT_EQ(IBV_WC_SUCCESS, verbs_wait(b->recv_cq).status);
    EXPECT_TRUE(verbs_is_empty(b->recv_cq));
    ASSERT_EQ(0, ibv_query_port(dev.ctx, 1, &after));
    EXPECT_EQ(before.qkey_viol_cntr + 1, after.qkey_viol_cntr);
}

/* The length in the GRH has UDP on RoCE, BTH, DETH, immediate data, payload and
 * ICRC. */
TEST_P(verbs_datagrams, route_header_counts_the_immediate_data)
{
    unsigned udp = dev.is_roce() ? 8 : 0;

    ASSERT_EQ(0, verbs_recv(b->qp, dst, 128));
    EXPECT_EQ(IBV_WC_SUCCESS, send_to_b(IBV_WR_SEND, 0x11223344));
    EXPECT_EQ(IBV_WC_SUCCESS, verbs_wait(b->recv_cq).status);
    EXPECT_EQ(12u + 8 + 64 + 4 + udp, dst.addr[4] * 256u + dst.addr[5]);

    ASSERT_EQ(0, verbs_recv(b->qp, dst, 128));
    EXPECT_EQ(IBV_WC_SUCCESS, send_to_b(IBV_WR_SEND_WITH_IMM, 0x11223344));
    EXPECT_EQ(IBV_WC_SUCCESS, verbs_wait(b->recv_cq).status);
    EXPECT_EQ(12u + 8 + 4 + 64 + 4 + udp, dst.addr[4] * 256u + dst.addr[5]);
}

/* --- counters ------------------------------------------------------------- */

class verbs_counters : public verbs_attr {
protected:
    verbs_op fetch() const
    {
        return verbs_op(IBV_WR_RDMA_READ).local(src, 64).remote(dst);
    }

    void write_out_of_order()
    {
        verbs_ep a(dev), b(dev);

        verbs_connect_ahead(a, b);
        EXPECT_EQ(IBV_WC_RETRY_EXC_ERR, run(a, write()));
    }

    static uint64_t count(const std::string &name,
                          const std::string &folder = "hw_counters")
    {
        std::ifstream file("/sys/class/infiniband/mlx5_0/ports/1/" + folder +
                           "/" + name);
        uint64_t value = ~0ull;

        EXPECT_TRUE(file >> value) << name;
        return value;
    }
};

TEST_P(verbs_counters, tell_what_went_wrong)
{
    struct {
        const char *name;
        unsigned more;
        std::function<void(verbs_pair &)> go;
    } cases[] = {
        {"out_of_buffer", 1,
         [this](verbs_pair &pair) {
             EXPECT_EQ(IBV_WC_RNR_RETRY_EXC_ERR, run(pair.a, send()));
         }},
        {"req_rnr_retries_exceeded", 1,
         [this](verbs_pair &pair) {
             EXPECT_EQ(IBV_WC_RNR_RETRY_EXC_ERR, run(pair.a, send()));
         }},
        {"req_remote_access_errors", 1,
         [this](verbs_pair &pair) {
             EXPECT_EQ(IBV_WC_REM_ACCESS_ERR,
                       run(pair.a, write().remote(0, 0)));
         }},
        {"resp_remote_access_errors", 1,
         [this](verbs_pair &pair) {
             EXPECT_EQ(IBV_WC_REM_ACCESS_ERR,
                       run(pair.a, write().remote(0, 0)));
         }},
        {"resp_local_length_error", 1,
         [this](verbs_pair &pair) {
             ASSERT_EQ(0, verbs_recv(pair.b.qp, dst, 63));
             EXPECT_EQ(IBV_WC_REM_INV_REQ_ERR, run(pair.a, send()));
         }},
        {"local_ack_timeout_err", 2,
         [this](verbs_pair &pair) {
             pair.b.destroy_qp();
             EXPECT_EQ(IBV_WC_RETRY_EXC_ERR, run(pair.a, send()));
         }},
        {"req_cqe_error", 0,
         [this](verbs_pair &pair) {
             EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, write()));
         }},
        {"packet_seq_err", 2, [this](verbs_pair &) { write_out_of_order(); }},
        {"out_of_sequence", 2, [this](verbs_pair &) { write_out_of_order(); }},
        {"rx_write_requests", 1,
         [this](verbs_pair &pair) {
             EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, write()));
             EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, fetch()));
         }},
        {"rx_read_requests", 1,
         [this](verbs_pair &pair) {
             EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, write()));
             EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, fetch()));
         }},
    };

    for (const auto &c : cases) {
        unsigned before = count(c.name);
        verbs_pair pair(dev);

        c.go(pair);
        EXPECT_EQ(before + c.more, count(c.name)) << c.name;
    }
}

/* Counters can also be opened relative to their folder. */
TEST_P(verbs_counters, are_read_from_their_folder)
{
    const char *path = "/sys/class/infiniband/mlx5_0/ports/1/hw_counters";
    verbs_pair pair(dev);
    char text[32] = "";

    EXPECT_EQ(IBV_WC_RNR_RETRY_EXC_ERR, run(pair.a, send()));
    DIR *dir = opendir(path);
    ASSERT_NE(nullptr, dir);
    int fd = openat(dirfd(dir), "out_of_buffer", O_RDONLY);
    EXPECT_LT(0, read(fd, text, sizeof(text) - 1));
    EXPECT_EQ(count("out_of_buffer"), strtoull(text, NULL, 0));
    while (struct dirent *entry = readdir(dir)) {
        EXPECT_EQ(NULL, strpbrk(entry->d_name, "0123456789"))
            << entry->d_name << " is temporary";
    }
    close(fd);
    closedir(dir);
}

/* Packets, and payload in words of 4 bytes, of a device that sends to itself.
 * The counters have six more words a packet (LRH, BTH, ICRC). */
struct verbs_traffic {
    uint64_t packets, words;
};

class verbs_port_counters : public verbs_counters {
protected:
    static verbs_traffic traffic(const std::string &way)
    {
        verbs_traffic t = {count("port_" + way + "_packets", "counters"), 0};

        EXPECT_EQ(t.packets, count("unicast_" + way + "_packets", "counters"));
        t.words = count("port_" + way + "_data", "counters") - 6 * t.packets;
        return t;
    }

    static void expect(const verbs_traffic &before, const std::string &way,
                       uint64_t packets, uint64_t words)
    {
        verbs_traffic after = traffic(way);

        EXPECT_EQ(before.packets + packets, after.packets) << way;
        EXPECT_EQ(before.words + words, after.words) << way;
    }

    static void check(uint64_t packets, uint64_t words,
                      const std::function<void()> &go)
    {
        verbs_traffic out = traffic("xmit"), in = traffic("rcv");

        go();
        expect(out, "xmit", packets, words);
        expect(in, "rcv", packets, words);
    }
};

TEST_P(verbs_port_counters, tell_packets_and_words)
{
    auto pair               = std::make_unique<verbs_pair>(dev);
    struct ibv_qp_attr attr = {};

    check(1, 16, [&] { EXPECT_EQ(IBV_WC_SUCCESS, run(pair->a, write())); });
    check(2, 16, [&] {
        EXPECT_EQ(IBV_WC_SUCCESS,
                  run(pair->a, verbs_op(IBV_WR_RDMA_READ)
                                   .local(src, 61)
                                   .remote((uintptr_t)dst.addr, dst.mr->rkey)));
    });
    check(1, 16, [&] {
        EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, run(pair->a, write().remote(0, 0)));
    });
    attr = query(pair->a.qp);
    check(0, 0, [&] { pair.reset(); });

    pair               = std::make_unique<verbs_pair>(dev);
    const unsigned mtu = 128u << attr.path_mtu;
    check(3, (2 * mtu + 4) / 4, [&] {
        EXPECT_EQ(IBV_WC_SUCCESS,
                  run(pair->a, verbs_op(IBV_WR_RDMA_WRITE)
                                   .local(src, 2 * mtu + 1)
                                   .remote((uintptr_t)dst.addr, dst.mr->rkey)));
    });
    for (const char *name : {"symbol_error", "link_downed", "VL15_dropped",
                             "port_xmit_wait", "port_rcv_errors"}) {
        EXPECT_EQ(0u, count(name, "counters")) << name;
    }
}

INSTANTIATE_TEST_SUITE_P(ib, verbs_port_counters, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(roce, verbs_port_counters, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(ib, verbs_counters, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(roce, verbs_counters, testing::Values(0));

/* --- partitions ----------------------------------------------------------- */

TEST_P(verbs_attr, table_of_pkeys_is_that_of_the_link)
{
    const int length = dev.is_roce() ? 1 : 128;
    __be16 pkey;

    EXPECT_EQ(length, dev.port.pkey_tbl_len);
    ASSERT_EQ(0, ibv_query_pkey(dev.ctx, 1, 0, &pkey));
    EXPECT_EQ(htobe16(0xffff), pkey);
    EXPECT_EQ(-1, ibv_query_pkey(dev.ctx, 1, length, &pkey));
    verbs_ep ep(dev);
    struct ibv_qp_attr attr = ep.attr(0);
    attr.qp_state           = IBV_QPS_INIT;
    attr.pkey_index         = length;
    EXPECT_EQ(EINVAL, ibv_modify_qp(ep.qp, &attr,
                                    IBV_QP_STATE | IBV_QP_PKEY_INDEX |
                                        IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
}

/* The kernel creates a DC target in RTR: until then it stores the attributes
 * and checks only the port. */
TEST_P(verbs_attr, values_of_a_dc_target_are_refused_when_it_is_made)
{
    constexpr int init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                         IBV_QP_ACCESS_FLAGS;
    constexpr int rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
                        IBV_QP_MIN_RNR_TIMER;
    struct ibv_srq_init_attr srq_attr = {NULL, {4, 1, 0}};
    struct ibv_qp_attr attr           = hca_qp_attr(dev, 0);
    struct ibv_cq *cq   = ibv_create_cq(dev.ctx, 4, NULL, NULL, 0);
    struct ibv_srq *srq = ibv_create_srq(dev.pd, &srq_attr);
    struct ibv_qp *qp   = hca_create_dct(dev, cq, srq, 0);

    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 2;
    EXPECT_EQ(EINVAL, ibv_modify_qp(qp, &attr, init));
    attr.port_num   = 1;
    attr.pkey_index = dev.port.pkey_tbl_len;
    EXPECT_EQ(0, ibv_modify_qp(qp, &attr, init));
    attr.qp_state = IBV_QPS_RTR;
    EXPECT_EQ(EINVAL, ibv_modify_qp(qp, &attr, rtr));
    EXPECT_EQ(0, ibv_destroy_qp(qp));
    EXPECT_EQ(0, ibv_destroy_srq(srq));
    EXPECT_EQ(0, ibv_destroy_cq(cq));
}

/* P_Keys of the table: 0 is the default partition, 1 and 2 are partition 1 as a
 * full and as a limited member, 3 is partition 2, 4 is empty. */
class verbs_partitions : public verbs_attr {
protected:
    bool reaches(uint16_t from, uint16_t to)
    {
        verbs_ep a(dev), b(dev);
        struct ibv_qp_attr attr = a.attr(b.qp->qp_num);

        attr.pkey_index = from;
        a.connect(attr);
        attr            = b.attr(a.qp->qp_num);
        attr.pkey_index = to;
        b.connect(attr);

        enum ibv_wc_status status = run(a, write());
        EXPECT_TRUE((status == IBV_WC_SUCCESS) ||
                    (status == IBV_WC_RETRY_EXC_ERR));
        return status == IBV_WC_SUCCESS;
    }

    unsigned violations() const
    {
        struct ibv_port_attr attr;

        HCA_CHECK_CALL(ibv_query_port(dev.ctx, 1, &attr) == 0);
        return attr.bad_pkey_cntr;
    }
};

TEST_P(verbs_partitions, are_apart)
{
    const uint16_t table[] = {0xffff, 0x8001, 0x0001, 0x8002, 0};
    const unsigned before  = violations();
    __be16 pkey;

    for (unsigned i = 0; i < 5; i++) {
        ASSERT_EQ(0, ibv_query_pkey(dev.ctx, 1, i, &pkey));
        EXPECT_EQ(htobe16(table[i]), pkey);
        EXPECT_EQ(i != 2 && i != 4, reaches(i, i)) << "entry " << i;
    }
    EXPECT_EQ(before + 4, violations()) << "two entries, each tried twice";
    EXPECT_TRUE(reaches(1, 2));
    EXPECT_TRUE(reaches(2, 1));
    EXPECT_FALSE(reaches(0, 1));
    EXPECT_FALSE(reaches(1, 3));
}

TEST_P(verbs_partitions, are_apart_for_each_datagram)
{
    struct ibv_ah_attr ah_attr = dev.ah_attr(false);
    struct ibv_ah *ah          = ibv_create_ah(dev.pd, &ah_attr);
    verbs_options options;

    options.type = IBV_QPT_UD;
    {
        verbs_ep a(dev, options), same(dev, options), other(dev, options);
        struct ibv_qp_attr attr = a.attr(0);

        attr.pkey_index = 1;
        a.connect(attr);
        other.connect(other.attr(0));
        attr.pkey_index = 2;
        same.connect(attr);
        for (auto *ep : {&other, &same}) {
            ASSERT_EQ(0, verbs_recv(ep->qp, dst, 128));
            verbs_op op = send();
            op.wr.wr.ud = {ah, ep->qp->qp_num, 0x11223344};
            EXPECT_EQ(IBV_WC_SUCCESS, run(a, op));
        }
        EXPECT_EQ(IBV_WC_SUCCESS, verbs_wait(same.recv_cq).status);
        EXPECT_TRUE(verbs_is_empty(other.recv_cq));
    }
    EXPECT_EQ(0, ibv_destroy_ah(ah));
}

class verbs_steps : public verbs_attr {};

/* The log says which of the two is wrong: the state that the program expects,
 * or the step from there. */
TEST_P(verbs_steps, refused_ones_are_in_the_log)
{
    struct ibv_qp_attr attr = {};
    verbs_pair pair(dev);
    hca_log_reader log;

    attr.qp_state     = IBV_QPS_RTS;
    attr.cur_qp_state = IBV_QPS_RTR;
    EXPECT_EQ(EINVAL,
              ibv_modify_qp(pair.a.qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE));
    std::string text = log.take();
    EXPECT_NE(std::string::npos,
              text.find("no change: its state is 3, expected 2"))
        << text;

    attr.qp_state = IBV_QPS_INIT;
    EXPECT_EQ(EINVAL, ibv_modify_qp(pair.a.qp, &attr, IBV_QP_STATE));
    text = log.take();
    EXPECT_NE(std::string::npos, text.find("no change from state 3 to 1"))
        << text;
}

INSTANTIATE_TEST_SUITE_P(info, verbs_steps, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(pkeys, verbs_partitions, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(ib, verbs_datagrams, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(roce, verbs_datagrams, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(ib, verbs_attr, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(roce, verbs_attr, testing::Values(0));

} /* namespace */

int main(int argc, char **argv)
{
    return hca_test_main(
        argc, argv,
        {
            {"ib", {}},
            {"roce", {{"SOFTHCA_LINK", "roce"}}},
            {"pkeys", {{"SOFTHCA_PKEYS", "0xffff,0x8001,0x1,0x8002"}}},
            {"info", {{"SOFTHCA_LOG", "info"}}},
        });
}
