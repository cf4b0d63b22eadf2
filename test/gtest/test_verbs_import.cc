/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A device that two programs share: one opens it; the other gets the
 * descriptor, by a message or by inheritance, and imports device, domain,
 * region and device memory (ibv_import_device(3) and related functions). The
 * other is this program again, started with the name of its task.
 */
#include "verbs_peer.h"

#include <atomic>
#include <climits>
#include <fcntl.h>
#include <functional>
#include <map>
#include <sys/stat.h>
#include <thread>

namespace {

/* Data for the other program, besides the descriptor */
struct import_card {
    uint32_t pd = 0, mr = 0, dm = 0; /* handles */
    uint32_t key = 0, qpn = 0;
    uint64_t addr = 0;
};

void import_send(int sock, int fd, const import_card &card)
{
    char control[CMSG_SPACE(sizeof(fd))] = {};
    struct iovec iov                     = {(void *)&card, sizeof(card)};
    struct msghdr msg                    = {};

    msg.msg_iov          = &iov;
    msg.msg_iovlen       = 1;
    msg.msg_control      = control;
    msg.msg_controllen   = sizeof(control);
    struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
    cmsg->cmsg_level     = SOL_SOCKET;
    cmsg->cmsg_type      = SCM_RIGHTS;
    cmsg->cmsg_len       = CMSG_LEN(sizeof(fd));
    memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
    HCA_CHECK_CALL(sendmsg(sock, &msg, 0) == sizeof(card));
}

int import_receive(int sock, import_card &card)
{
    int fd = -1;
    char control[CMSG_SPACE(sizeof(fd))];
    struct iovec iov  = {&card, sizeof(card)};
    struct msghdr msg = {};

    msg.msg_iov        = &iov;
    msg.msg_iovlen     = 1;
    msg.msg_control    = control;
    msg.msg_controllen = sizeof(control);
    HCA_CHECK_CALL(recvmsg(sock, &msg, 0) == sizeof(card));
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
    return fd;
}

void import_tell(int sock, const import_card &card)
{
    HCA_CHECK_CALL(::write(sock, &card, sizeof(card)) == sizeof(card));
}

import_card import_hear(int sock)
{
    import_card card;

    HCA_CHECK_CALL(::read(sock, &card, sizeof(card)) == sizeof(card));
    return card;
}

/* --- the other program ---------------------------------------------------- */

/* The device of a descriptor, and the domain of a card */
class import_device {
public:
    import_device(int fd, const import_card &card) :
        m_ctx(ibv_import_device(fd)), dev(m_ctx)
    {
        HCA_CHECK_CALL((pd = ibv_import_pd(dev.ctx, card.pd)) != NULL);
        options.pd = pd;
    }

    ~import_device() { ibv_unimport_pd(pd); }

private:
    struct ibv_context *m_ctx;

public:
    hca_device dev;
    struct ibv_pd *pd;
    verbs_options options;
};

class import_region {
public:
    import_region(struct ibv_pd *pd, uint32_t handle) :
        mr(ibv_import_mr(pd, handle))
    {
        HCA_CHECK_CALL(mr != NULL);
    }

    ~import_region() { ibv_unimport_mr(mr); }

    struct ibv_mr *mr;
};

/* Returns true if the region is destroyed, at once or soon. */
bool import_loses(struct ibv_pd *pd, uint32_t handle)
{
    return hca_until([&] {
        struct ibv_mr *mr = ibv_import_mr(pd, handle);

        if (mr != NULL) {
            ibv_unimport_mr(mr);
        }
        return mr == NULL;
    });
}

enum ibv_wc_status import_run(verbs_ep &ep, verbs_op op)
{
    EXPECT_EQ(0, op.post(ep.qp));
    return verbs_wait(ep.send_cq).status;
}

/* Bytes of the card's region: one half to read, one to write */
constexpr unsigned IMPORT_HALF = 8192;

/* Both sides of messages in the other program's region. Its halves begin with
 * 0x11 and 0x22, and end as check_messages() expects. */
void peer_messages(int sock)
{
    import_card card;
    import_device shared(import_receive(sock, card), card);
    import_region region(shared.pd, card.mr);
    strict_mem mine(shared.pd, ACCESS_ALL, 0x33);
    verbs_pair pair(shared.dev, shared.options);
    uint32_t key   = region.mr->lkey;
    uint64_t first = card.addr, second = card.addr + IMPORT_HALF;

    EXPECT_EQ(card.key, key);
    EXPECT_EQ(key, region.mr->rkey);
    EXPECT_EQ(2 * IMPORT_HALF, region.mr->length);
    /* to a receive of ours */
    ASSERT_EQ(0, verbs_recv(pair.b.qp, mine, 64));
    EXPECT_EQ(IBV_WC_SUCCESS,
              import_run(pair.a, verbs_op(IBV_WR_SEND).local(first, 64, key)));
    EXPECT_EQ(IBV_WC_SUCCESS, verbs_wait(pair.b.recv_cq).status);
    EXPECT_EQ(0x11, mine.addr[63]);
    EXPECT_EQ(0x33, mine.addr[64]);
    /* from our memory, in two pieces, one of them theirs */
    EXPECT_EQ(IBV_WC_SUCCESS,
              import_run(pair.a, verbs_op(IBV_WR_RDMA_WRITE)
                                     .local((uintptr_t)mine.addr + 64, 100,
                                            mine.mr->lkey)
                                     .local(first, 28, key)
                                     .remote(second, key)));
    /* all of it theirs, and longer than one transfer carries */
    EXPECT_EQ(IBV_WC_SUCCESS,
              import_run(pair.a, verbs_op(IBV_WR_RDMA_WRITE)
                                     .local(first, 5000, key)
                                     .remote(second + 128, key)));
    EXPECT_EQ(IBV_WC_SUCCESS,
              import_run(pair.a, verbs_op(IBV_WR_RDMA_READ)
                                     .local(second + 6000, 64, key)
                                     .remote(first, key)));
    /* beyond it */
    {
        verbs_pair other(shared.dev, shared.options);
        EXPECT_EQ(IBV_WC_LOC_PROT_ERR,
                  import_run(other.a, verbs_op(IBV_WR_RDMA_WRITE)
                                          .local(second, IMPORT_HALF + 1, key)
                                          .remote(first, key)));
    }
    /* our key works there, too; and their queue pair sends to ours */
    import_tell(sock, {.key  = mine.mr->rkey,
                       .qpn  = pair.b.qp->qp_num,
                       .addr = (uintptr_t)mine.addr});
    verbs_ep ep(shared.dev, shared.options);
    struct ibv_sge sge    = {second + 7000, 64, key};
    struct ibv_recv_wr wr = {}, *bad;

    wr.sg_list = &sge;
    wr.num_sge = 1;
    import_tell(sock, {.qpn = ep.qp->qp_num});
    ep.connect(ep.attr(import_hear(sock).qpn));
    ASSERT_EQ(0, ibv_post_recv(ep.qp, &wr, &bad));
    peer_meet(sock);
    EXPECT_EQ(IBV_WC_SUCCESS, verbs_wait(ep.recv_cq).status);
    peer_meet(sock);
    EXPECT_EQ(0x11, mine.addr[0]);
}

void peer_atomics(int sock)
{
    import_card card;
    import_device shared(import_receive(sock, card), card);
    strict_mem mine(shared.pd, ACCESS_ALL, 0);
    verbs_pair pair(shared.dev, shared.options);
    verbs_op op(IBV_WR_ATOMIC_FETCH_AND_ADD);

    op.local(mine, 8);
    op.wr.wr.atomic.remote_addr = card.addr;
    op.wr.wr.atomic.rkey        = card.key;
    op.wr.wr.atomic.compare_add = 1;
    EXPECT_EQ(IBV_WC_SUCCESS, import_run(pair.a, op));
    EXPECT_EQ(0x1111111111111111u, *(uint64_t *)mine.addr);
}

void peer_destroys(int sock)
{
    import_card card;
    import_device shared(import_receive(sock, card), card);
    struct ibv_mr *mr = ibv_import_mr(shared.pd, card.mr);
    struct ibv_pd *pd = ibv_import_pd(shared.dev.ctx, card.pd);
    struct ibv_dm *dm = ibv_import_dm(shared.dev.ctx, card.dm);

    ASSERT_TRUE((mr != NULL) && (pd != NULL) && (dm != NULL));
    EXPECT_EQ(nullptr, ibv_import_mr(shared.pd, card.mr + 1000));
    EXPECT_EQ(ENOENT, errno);
    EXPECT_EQ(nullptr, ibv_import_pd(shared.dev.ctx, card.mr));
    EXPECT_EQ(EBUSY, ibv_dealloc_pd(pd)) << "a region of the other is in it";
    EXPECT_EQ(0, ibv_dereg_mr(mr));
    EXPECT_EQ(nullptr, ibv_import_mr(shared.pd, card.mr));
    peer_meet(sock);
    peer_meet(sock);
    EXPECT_EQ(0, ibv_dealloc_pd(pd));
    EXPECT_EQ(nullptr, ibv_import_pd(shared.dev.ctx, card.pd));
    EXPECT_EQ(0, ibv_free_dm(dm));
}

/* Objects are destroyed only when the other program no longer uses them. */
void import_frees(int sock, const char *why_not, std::function<int()> destroy)
{
    EXPECT_EQ(EBUSY, destroy()) << why_not;
    peer_meet(sock);
    peer_meet(sock);
    EXPECT_EQ(0, destroy());
}

void peer_frees_device_memory(int sock)
{
    import_card card;
    import_device shared(import_receive(sock, card), card);
    struct ibv_dm *dm = ibv_import_dm(shared.dev.ctx, card.dm);

    ASSERT_NE(nullptr, dm);
    import_frees(sock, "a region of the other is in it",
                 [&] { return ibv_free_dm(dm); });
}

void peer_frees_region(int sock)
{
    import_card card;
    import_device shared(import_receive(sock, card), card);
    struct ibv_mr *mr = ibv_import_mr(shared.pd, card.mr);

    ASSERT_NE(nullptr, mr);
    import_frees(sock, "a window of the other is bound",
                 [&] { return ibv_dereg_mr(mr); });
}

void peer_frees_domain(int sock)
{
    import_card card;
    import_device shared(import_receive(sock, card), card);
    struct ibv_pd *pd = ibv_import_pd(shared.dev.ctx, card.pd);

    ASSERT_NE(nullptr, pd);
    import_frees(sock, "the other has an address in it",
                 [&] { return ibv_dealloc_pd(pd); });
}

void peer_uses_domain(int sock)
{
    import_card card;
    import_device shared(import_receive(sock, card), card);

    {
        strict_mem mine(shared.pd, ACCESS_ALL, 0x33);
        peer_meet(sock);
        peer_meet(sock);
    }
    {
        verbs_ep ep(shared.dev, shared.options);
        peer_meet(sock);
        peer_meet(sock);
    }
    peer_meet(sock);
    {
        verbs_ep ep(shared.dev, shared.options);
        strict_mem mine(shared.pd, ACCESS_ALL, 0x33);
        peer_meet(sock);
        peer_wait_for_the_end(sock);
    }
}

void peer_has_device_memory(int sock)
{
    import_card card;
    import_device shared(import_receive(sock, card), card);
    struct ibv_alloc_dm_attr attr = {4096, 0, 0};
    struct ibv_dm *dm             = ibv_import_dm(shared.dev.ctx, card.dm);
    struct ibv_dm *mine           = ibv_alloc_dm(shared.dev.ctx, &attr);
    uint64_t value                = 0;

    ASSERT_NE(nullptr, dm);
    ASSERT_NE(nullptr, mine);
    EXPECT_EQ(0, ibv_memcpy_to_dm(mine, 64, &value, sizeof(value)));
    EXPECT_EQ(0, ibv_memcpy_from_dm(&value, dm, 64, sizeof(value)));
    EXPECT_EQ(0x1122334455667788u, value);
    value++;
    EXPECT_EQ(0, ibv_memcpy_to_dm(dm, 64, &value, sizeof(value)));
    EXPECT_EQ(nullptr,
              ibv_reg_dm_mr(shared.dev.pd, dm, 0, 4096, IBV_ACCESS_ZERO_BASED));
    EXPECT_EQ(EOPNOTSUPP, errno);
    ibv_unimport_dm(dm);
    EXPECT_EQ(0, ibv_free_dm(mine));
}

/* The descriptor was open when this program started. */
void peer_inherits(int sock)
{
    import_card card = import_hear(sock);
    import_device shared(card.qpn, card);
    strict_mem mine(shared.pd, ACCESS_ALL, 0x33);
    verbs_pair pair(shared.dev, shared.options);

    EXPECT_EQ(IBV_WC_SUCCESS,
              import_run(pair.a, verbs_op(IBV_WR_RDMA_WRITE)
                                     .local(mine, 64)
                                     .remote(card.addr, card.key)));
}

void peer_is_elsewhere(int sock)
{
    hca_log_reader log;
    import_card card;

    EXPECT_EQ(nullptr, ibv_import_device(import_receive(sock, card)));
    EXPECT_NE(std::string::npos, log.take().find("another fabric or node"));
}

/* Two threads import at once: it is one device. */
void peer_asks_in_threads(int sock)
{
    import_card card;
    unsigned count = 0;
    struct stat st;

    for (unsigned i = 0; i < 200; i++) {
        int fd = import_receive(sock, card);
        std::atomic<int> late{2};
        hca_log_reader log;
        std::string text;
        std::thread other([&] {
            struct stat theirs;

            for (late--; late > 0;) {
            }
            EXPECT_EQ(0, fstat(fd, &theirs));
        });

        for (late--; late > 0;) {
        }
        EXPECT_EQ(0, fstat(fd, &st));
        other.join();
        EXPECT_EQ(0, close(fd));
        text = log.take();
        for (size_t at = 0; (at = text.find("mkey", at)) != text.npos; at++) {
            count += (text.compare(text.find(':', at), 9, ": created") == 0);
            count -= (text.compare(text.find(':', at), 11, ": destroyed") == 0);
        }
        peer_meet(sock);
    }
    EXPECT_EQ(0u, count) << "devices that nobody closes";
}

/* Opens a device and lives until it is killed. */
void peer_owns(int sock)
{
    hca_device dev;
    strict_mem mem(dev.pd, ACCESS_ALL, 0x11);

    struct ibv_alloc_dm_attr attr = {4096, 0, 0};
    struct ibv_dm *dm             = ibv_alloc_dm(dev.ctx, &attr);
    uint64_t value                = 0x22;

    HCA_CHECK_CALL(dm != NULL);
    HCA_CHECK_CALL(ibv_memcpy_to_dm(dm, 0, &value, sizeof(value)) == 0);
    import_send(sock, dev.ctx->cmd_fd,
                {.pd   = dev.pd->handle,
                 .mr   = mem.mr->handle,
                 .dm   = dm->handle,
                 .key  = mem.mr->rkey,
                 .addr = (uintptr_t)mem.addr});
    peer_wait_for_the_end(sock);
}

/* Closes the descriptor that it has sent, and continues. */
void peer_hands_over(int sock)
{
    for (unsigned i = 0; i < 2; i++) {
        hca_device dev;
        struct ibv_alloc_dm_attr attr = {4096, 0, 0};
        struct ibv_dm *dm             = ibv_alloc_dm(dev.ctx, &attr);
        uint64_t value                = 0x22;

        ASSERT_NE(nullptr, dm);
        EXPECT_EQ(0, ibv_memcpy_to_dm(dm, 0, &value, sizeof(value)));
        import_send(sock, dev.ctx->cmd_fd, {.dm = dm->handle});
        peer_meet(sock);
        EXPECT_EQ(0, ibv_memcpy_from_dm(&value, dm, 0, sizeof(value)));
        EXPECT_EQ(0x22u, value) << "written to by way of what was closed";
        ibv_unimport_dm(dm); /* frees libibverbs' own objects */
    }
}

const std::map<std::string, void (*)(int)> import_peers = {
    {"messages", peer_messages},
    {"atomics", peer_atomics},
    {"destroys", peer_destroys},
    {"frees_device_memory", peer_frees_device_memory},
    {"uses_domain", peer_uses_domain},
    {"has_device_memory", peer_has_device_memory},
    {"inherits", peer_inherits},
    {"is_elsewhere", peer_is_elsewhere},
    {"asks_in_threads", peer_asks_in_threads},
    {"frees_domain", peer_frees_domain},
    {"frees_region", peer_frees_region},
    {"owns", peer_owns},
    {"hands_over", peer_hands_over},
};

/* This program, started again */
class import_program {
public:
    explicit import_program(const char *what, const char *fabric = NULL)
    {
        std::string exe = std::filesystem::read_symlink("/proc/self/exe");
        int fds[2];

        HCA_CHECK_CALL(
            socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
        sock = fds[0];
        pid  = fork();
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (fabric != NULL) {
                setenv("SOFTHCA_FABRIC", fabric, 1);
            }
            dup2(fds[1], 100);
            execl(exe.c_str(), exe.c_str(), "--peer", what, NULL);
            _exit(127);
        }
        close(fds[1]);
    }

    ~import_program()
    {
        if (pid != 0) {
            end();
        }
        close(sock);
    }

    int wait()
    {
        int status = -1;

        EXPECT_EQ(pid, waitpid(pid, &status, 0));
        pid = 0;
        return status;
    }

    void end()
    {
        kill(pid, SIGKILL);
        wait();
    }

    int sock;
    pid_t pid;
};

int import_peer_main(const char *what)
{
    try {
        import_peers.at(what)(100);
    } catch (const std::exception &e) {
        ADD_FAILURE() << "peer: " << e.what();
    }
    return testing::Test::HasFailure();
}

/* --- the tests ------------------------------------------------------------ */

class verbs_import : public verbs_test {
protected:
    void start(import_program &peer, const import_card &given)
    {
        import_send(peer.sock, dev.ctx->cmd_fd, given);
    }

    void start(import_program &peer) { start(peer, card()); }

    import_card card() const
    {
        return {.pd   = dev.pd->handle,
                .mr   = dst.mr->handle,
                .key  = dst.mr->rkey,
                .addr = (uintptr_t)dst.addr};
    }

    /* The peer destroys the object as soon as it is not in use here. */
    void expect_freed(import_program &peer, const import_card &given,
                      const std::function<int()> &destroy,
                      const std::function<int()> &end_use)
    {
        start(peer, given);
        peer_meet(peer.sock);
        EXPECT_EQ(EBUSY, destroy());
        EXPECT_EQ(0, end_use());
        peer_meet(peer.sock);
        EXPECT_EQ(0, peer.wait());
        EXPECT_EQ(ENOENT, destroy());
    }

    void expect_bytes(unsigned at, unsigned count, uint8_t value) const
    {
        for (unsigned i = at; i < at + count; i++) {
            ASSERT_EQ(value, dst.addr[i]) << "byte " << i;
        }
    }
};

TEST_P(verbs_import, region_is_each_side_of_a_message)
{
    constexpr unsigned second = IMPORT_HALF;
    import_program peer("messages");

    memset(dst.addr, 0x11, IMPORT_HALF);
    start(peer);
    import_card theirs = import_hear(peer.sock);
    EXPECT_EQ(IBV_WC_SUCCESS, write_to(theirs.addr, theirs.key));
    {
        verbs_ep ep(dev);
        import_tell(peer.sock, {.qpn = ep.qp->qp_num});
        ep.connect(ep.attr(import_hear(peer.sock).qpn));
        peer_meet(peer.sock);
        EXPECT_EQ(IBV_WC_SUCCESS, run(ep, send()));
        peer_meet(peer.sock);
    }
    EXPECT_EQ(0, peer.wait());
    expect_bytes(second, 100, 0x33);
    expect_bytes(second + 100, 28, 0x11);
    expect_bytes(second + 128, 5000, 0x11);
    expect_bytes(second + 5128, 6000 - 5128, 0x22);
    expect_bytes(second + 6000, 64, 0x11);
    expect_bytes(second + 6064, 7000 - 6064, 0x22);
    expect_bytes(second + 7000, 64, 0x11);
    expect_bytes(second + 7064, IMPORT_HALF - 7064, 0x22);
}

TEST_P(verbs_import, region_takes_atomics)
{
    import_program peer("atomics");

    memset(dst.addr, 0x11, 8);
    start(peer);
    EXPECT_EQ(0, peer.wait());
    EXPECT_EQ(0x1111111111111112u, *(uint64_t *)dst.addr);
}

/* Destroys the objects once, for both: only libibverbs' own objects are left
 * here. */
TEST_P(verbs_import, objects_are_destroyed_by_either)
{
    struct ibv_alloc_dm_attr all = {128 << 10, 0, 0};
    struct ibv_pd *pd            = ibv_alloc_pd(dev.ctx);
    struct ibv_dm *dm            = ibv_alloc_dm(dev.ctx, &all);
    struct ibv_mr *mr = ibv_reg_mr(pd, dst.addr, dst.size, ACCESS_ALL);
    import_program peer("destroys");
    verbs_options options;

    ASSERT_TRUE((pd != NULL) && (dm != NULL) && (mr != NULL));
    start(peer, {.pd = pd->handle, .mr = mr->handle, .dm = dm->handle});
    peer_meet(peer.sock);
    options.pd = pd;
    {
        verbs_pair pair(dev, options);
        verbs_op op(IBV_WR_RDMA_WRITE);
        struct ibv_mr *own = ibv_reg_mr(pd, src.addr, 64, ACCESS_ALL);

        op.local((uintptr_t)src.addr, 64, own->lkey);
        op.remote((uintptr_t)dst.addr, mr->rkey);
        EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, run(pair.a, op));
        EXPECT_EQ(0, ibv_dereg_mr(own));
    }
    EXPECT_EQ(ENOENT, ibv_dereg_mr(mr));
    peer_meet(peer.sock);
    EXPECT_EQ(0, peer.wait());
    EXPECT_EQ(ENOENT, ibv_dealloc_pd(pd));
    EXPECT_EQ(ENOENT, ibv_free_dm(dm));
    struct ibv_dm *again = ibv_alloc_dm(dev.ctx, &all);
    ASSERT_NE(nullptr, again) << "there is no more than that of it";
    EXPECT_EQ(0, ibv_free_dm(again));
    ibv_unimport_mr(mr);
    ibv_unimport_pd(pd);
    ibv_unimport_dm(dm);
}

/* Also if its user is killed */
TEST_P(verbs_import, domain_is_busy_as_long_as_it_is_used)
{
    struct ibv_pd *pd = ibv_alloc_pd(dev.ctx);
    import_program peer("uses_domain");

    ASSERT_NE(nullptr, pd);
    start(peer, {.pd = pd->handle});
    for (int i = 0; i < 2; i++) { /* a region, a queue pair */
        peer_meet(peer.sock);
        EXPECT_EQ(EBUSY, ibv_dealloc_pd(pd));
        peer_meet(peer.sock);
    }
    peer_meet(peer.sock);
    peer_meet(peer.sock);
    EXPECT_EQ(EBUSY, ibv_dealloc_pd(pd));
    peer.end();
    EXPECT_EQ(0, ibv_dealloc_pd(pd));
}

TEST_P(verbs_import, device_memory_is_shared)
{
    struct ibv_alloc_dm_attr attr = {4096, 0, 0};
    struct ibv_dm *dm             = ibv_alloc_dm(dev.ctx, &attr);
    uint64_t value                = 0x1122334455667788;
    import_program peer("has_device_memory");

    ASSERT_NE(nullptr, dm);
    EXPECT_EQ(0, ibv_memcpy_to_dm(dm, 64, &value, sizeof(value)));
    start(peer, {.pd = dev.pd->handle, .dm = dm->handle});
    EXPECT_EQ(0, peer.wait());
    EXPECT_EQ(0, ibv_memcpy_from_dm(&value, dm, 64, sizeof(value)));
    EXPECT_EQ(0x1122334455667789u, value);
    EXPECT_EQ(0, ibv_free_dm(dm));
}

TEST_P(verbs_import, device_memory_is_busy_as_long_as_it_has_regions)
{
    struct ibv_alloc_dm_attr all = {128 << 10, 0, 0};
    struct ibv_dm *dm            = ibv_alloc_dm(dev.ctx, &all);
    import_program peer("frees_device_memory");

    ASSERT_NE(nullptr, dm);
    struct ibv_mr *mr = ibv_reg_dm_mr(dev.pd, dm, 0, 4096,
                                      IBV_ACCESS_ZERO_BASED);
    ASSERT_NE(nullptr, mr);
    expect_freed(
        peer, {.pd = dev.pd->handle, .dm = dm->handle},
        [&] { return ibv_free_dm(dm); }, [&] { return ibv_dereg_mr(mr); });
    struct ibv_dm *again = ibv_alloc_dm(dev.ctx, &all);
    ASSERT_NE(nullptr, again) << "there is no more than that of it";
    EXPECT_EQ(0, ibv_free_dm(again));
    ibv_unimport_dm(dm);
}

TEST_P(verbs_import, region_is_busy_as_long_as_a_window_is_bound)
{
    struct ibv_mw *mw       = ibv_alloc_mw(dev.pd, IBV_MW_TYPE_1);
    struct ibv_mr *mr       = ibv_reg_mr(dev.pd, dst.addr, 4096,
                                         ACCESS_ALL | IBV_ACCESS_MW_BIND);
    struct ibv_mw_bind bind = {};
    import_program peer("frees_region");
    verbs_pair pair(dev);

    ASSERT_TRUE((mw != NULL) && (mr != NULL));
    bind.send_flags = IBV_SEND_SIGNALED;
    bind.bind_info  = {mr, (uintptr_t)dst.addr, 256, IBV_ACCESS_REMOTE_WRITE};
    ASSERT_EQ(0, ibv_bind_mw(pair.b.qp, mw, &bind));
    EXPECT_EQ(IBV_WC_SUCCESS, verbs_wait(pair.b.send_cq).status);
    expect_freed(
        peer, {.pd = dev.pd->handle, .mr = mr->handle},
        [&] { return ibv_dereg_mr(mr); }, [&] { return ibv_dealloc_mw(mw); });
    ibv_unimport_mr(mr);
}

TEST_P(verbs_import, descriptor_stays_a_device_for_the_next_program)
{
    import_card to_peer = card();

    to_peer.qpn = dup(dev.ctx->cmd_fd); /* without FD_CLOEXEC */
    {
        import_program peer("inherits");
        import_tell(peer.sock, to_peer);
        EXPECT_EQ(0, peer.wait());
    }
    expect_bytes(0, 64, 0x33);
    close(to_peer.qpn);
}

TEST_P(verbs_import, device_of_another_fabric_is_none)
{
    import_program peer("is_elsewhere", "elsewhere");

    start(peer);
    EXPECT_EQ(0, peer.wait());
}

TEST_P(verbs_import, device_is_one_for_all_threads)
{
    setenv("SOFTHCA_LOG", "info", 1);
    import_program peer("asks_in_threads");
    setenv("SOFTHCA_LOG", "warn", 1);

    for (unsigned i = 0; i < 200; i++) {
        start(peer);
        peer_meet(peer.sock);
    }
    EXPECT_EQ(0, peer.wait());
}

/* Its objects are destroyed; objects of this process still work. */
TEST_P(verbs_import, owner_may_be_killed)
{
    import_program owner("owns");
    import_card theirs;
    int fd = import_receive(owner.sock, theirs);
    import_device shared(fd, theirs);
    strict_mem mine(shared.pd, ACCESS_ALL, 0x33);
    verbs_pair pair(shared.dev, shared.options),
        late(shared.dev, shared.options);
    verbs_op to_us   = verbs_op(IBV_WR_RDMA_WRITE).local(mine, 64).remote(mine);
    verbs_op to_them = verbs_op(IBV_WR_RDMA_WRITE)
                           .local(mine, 64)
                           .remote(theirs.addr, theirs.key);

    EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, to_them));
    owner.end();
    EXPECT_NE(IBV_WC_SUCCESS, run(pair.a, to_them));
    EXPECT_EQ(IBV_WC_SUCCESS, run(late.a, to_us));
    EXPECT_TRUE(import_loses(shared.pd, theirs.mr));
    strict_mem more(shared.dev.pd, ACCESS_ALL, 0x33);
}

/* The importer still has it mapped: it is not allocated again. */
TEST_P(verbs_import, device_memory_outlives_a_killed_owner)
{
    import_program *owner = new import_program("owns");
    import_card theirs, others;
    uint64_t value = 0x33;

    import_device shared(import_receive(owner->sock, theirs), theirs);
    struct ibv_dm *dm = ibv_import_dm(shared.dev.ctx, theirs.dm);
    ASSERT_NE(nullptr, dm);
    EXPECT_EQ(0, ibv_memcpy_to_dm(dm, 0, &value, sizeof(value)));
    delete owner;
    EXPECT_TRUE(import_loses(shared.pd, theirs.mr));
    import_program other("owns");
    import_device next(import_receive(other.sock, others), others);
    struct ibv_dm *its = ibv_import_dm(next.dev.ctx, others.dm);
    ASSERT_NE(nullptr, its);
    EXPECT_EQ(0, ibv_memcpy_to_dm(dm, 0, &value, sizeof(value)));
    EXPECT_EQ(0, ibv_memcpy_from_dm(&value, its, 0, sizeof(value)));
    EXPECT_EQ(0x22u, value) << "written to by way of what is dead";
    EXPECT_EQ(0, ibv_memcpy_from_dm(&value, dm, 0, sizeof(value)));
    EXPECT_EQ(0x33u, value);
    ibv_unimport_dm(its);
    ibv_unimport_dm(dm);
}

TEST_P(verbs_import, device_memory_outlives_its_context)
{
    import_program peer("hands_over");
    import_card first, second;
    uint64_t value = 0x33;
    struct ibv_context *ctx =
        ibv_import_device(import_receive(peer.sock, first));
    ASSERT_NE(nullptr, ctx);
    struct ibv_dm *dm = ibv_import_dm(ctx, first.dm);
    ASSERT_NE(nullptr, dm);
    peer_meet(peer.sock);
    close(import_receive(peer.sock, second));
    EXPECT_EQ(0, ibv_memcpy_to_dm(dm, 0, &value, sizeof(value)));
    peer_meet(peer.sock);
    EXPECT_EQ(0, peer.wait());
    ibv_unimport_dm(dm);
    ibv_close_device(ctx);
}

/* --- forked --------------------------------------------------------------- */

const hca_device *import_inherited;

void child_registers(int sock)
{
    strict_mem mem(import_inherited->pd, ACCESS_ALL, 0x33);

    import_tell(sock, {.key = mem.mr->rkey, .addr = (uintptr_t)mem.addr});
    peer_meet(sock);
    EXPECT_EQ(0x11, mem.addr[63]);
}

TEST_P(verbs_import, region_of_a_forked_child_is_of_its_parents_domain)
{
    import_inherited = &dev;
    peer_process child(child_registers);
    import_card theirs = import_hear(child.fd);

    EXPECT_EQ(IBV_WC_SUCCESS, write_to(theirs.addr, theirs.key));
    peer_meet(child.fd);
    EXPECT_EQ(0, child.wait());
}

INSTANTIATE_TEST_SUITE_P(ib, verbs_import, testing::Values(0));

/* On RoCE address handles are objects of the kernel. */
class verbs_import_roce : public verbs_import {};

TEST_P(verbs_import_roce, domain_is_busy_as_long_as_it_has_addresses)
{
    struct ibv_ah_attr attr = dev.ah_attr(true);
    struct ibv_pd *pd       = ibv_alloc_pd(dev.ctx);
    struct ibv_ah *ah       = ibv_create_ah(pd, &attr);
    import_program peer("frees_domain");

    ASSERT_NE(nullptr, ah);
    start(peer, {.pd = pd->handle});
    peer_meet(peer.sock);
    EXPECT_EQ(0, ibv_destroy_ah(ah));
    peer_meet(peer.sock);
    EXPECT_EQ(0, peer.wait());
    EXPECT_EQ(ENOENT, ibv_dealloc_pd(pd));
    ibv_unimport_pd(pd);
}

INSTANTIATE_TEST_SUITE_P(roce, verbs_import_roce, testing::Values(0));

} /* namespace */

int main(int argc, char **argv)
{
    if ((argc == 3) && !strcmp(argv[1], "--peer")) {
        testing::InitGoogleTest();
        return import_peer_main(argv[2]);
    }
    return hca_test_main(argc, argv,
                         {{"ib", {}}, {"roce", {{"SOFTHCA_LINK", "roce"}}}});
}
