/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Two processes on a host that restricts them. Each test runs with memory that the other
 * process maps, and with memory that was touched before it was registered,
 * which only process_vm_readv() and process_vm_writev() reach.
 */
#include "deny_copies.h"
#include "verbs_peer.h"

#include <cstdio>
#include <sys/mman.h>
#include <sys/resource.h>

namespace {

constexpr size_t SIZE = 32 << 20;

enum kind { SHARED, TOUCHED };

/* A region of SIZE bytes */
class host_mem {
public:
    host_mem(struct ibv_pd *pd, kind k, int fill)
    {
        addr = (uint8_t *)mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        HCA_CHECK_CALL(addr != MAP_FAILED);
        if (k == TOUCHED) {
            memset(addr, fill, SIZE);
        }
        HCA_CHECK_CALL((mr = ibv_reg_mr(pd, addr, SIZE, ACCESS_ALL)) != NULL);
        memset(addr, fill, SIZE);
    }

    ~host_mem()
    {
        EXPECT_EQ(0, ibv_dereg_mr(mr));
        munmap(addr, SIZE);
    }

    host_mem(const host_mem &) = delete;

    bool is_all(int fill) const
    {
        return (addr[0] == fill) && (memcmp(addr, addr + 1, SIZE - 1) == 0);
    }

    uint8_t *addr;
    struct ibv_mr *mr;
};

/* Memory of the child; it is forked later. */
kind child_kind;

/* An end of a connection, whose other one is in another process */
class host_end {
public:
    host_end(int fd, kind k, int fill) : mem(dev.pd, k, fill), m_fd(fd)
    {
        peer_card own = {ep.qp->qp_num, mem.mr->rkey, (uintptr_t)mem.addr, 0};

        HCA_CHECK_CALL(::write(fd, &own, sizeof(own)) == sizeof(own));
        HCA_CHECK_CALL(::read(fd, &card, sizeof(card)) == sizeof(card));
        peer_connect(fd, ep, card);
    }

    void post(enum ibv_wr_opcode opcode, size_t size)
    {
        EXPECT_EQ(0, verbs_op(opcode)
                         .local((uintptr_t)mem.addr, size, mem.mr->lkey)
                         .remote(card.addr, card.rkey)
                         .post(ep.qp));
    }

    enum ibv_wc_status run(enum ibv_wr_opcode opcode, size_t size = SIZE)
    {
        post(opcode, size);
        return verbs_wait(ep.send_cq).status;
    }

    /* Connects the queue pair again after an error. */
    void reset()
    {
        hca_modify(ep.qp, {}, IBV_QPS_RESET, 0);
        ep.connect(ep.attr(card.qpn));
    }

    void meet() { peer_meet(m_fd); }

    hca_device dev;
    host_mem mem;
    verbs_ep ep{dev};
    peer_card card;

private:
    int m_fd;
};

class verbs_host : public testing::TestWithParam<kind> {
protected:
    verbs_host() { child_kind = GetParam(); }
};

/* --- copies are forbidden ------------------------------------------------- */

void write_without_copies(int fd)
{
    deny_copies(EPERM);
    host_end end(fd, child_kind, 'c');

    end.meet();
    for (enum ibv_wr_opcode opcode : {IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE}) {
        memset(end.mem.addr, 'd', SIZE);
        if (child_kind == SHARED) {
            EXPECT_EQ(IBV_WC_SUCCESS, end.run(opcode));
            EXPECT_TRUE(end.mem.is_all(opcode == IBV_WR_RDMA_READ ? 'p' : 'd'));
        } else {
            EXPECT_EQ(IBV_WC_REM_OP_ERR, end.run(opcode));
            EXPECT_TRUE(end.mem.is_all('d'));
            end.meet();
            end.reset();
            end.meet();
        }
    }
    end.meet();
}

/* Memory that is shared needs no copies; an access to other memory fails, and
 * the cause is logged once. */
TEST_P(verbs_host, container_forbids_copies)
{
    hca_log_reader log;
    peer_process peer(write_without_copies);
    host_end end(peer.fd, GetParam(), 'p');

    end.meet();
    if (GetParam() == TOUCHED) {
        for (unsigned i = 0; i < 2; i++) {
            end.meet();
            end.reset();
            end.meet();
        }
    }
    end.meet();
    EXPECT_EQ(0, peer.wait());
    EXPECT_TRUE(end.mem.is_all((GetParam() == SHARED) ? 'd' : 'p'));

    std::string text = log.take();
    size_t cause     = text.find("seccomp forbids it");

    EXPECT_EQ(GetParam() == SHARED, text.empty()) << text;
    EXPECT_EQ(GetParam() == SHARED, cause == std::string::npos) << text;
    EXPECT_EQ(text.rfind("seccomp forbids it"), cause) << text;
}

void open_without_copies(int)
{
    deny_copies((child_kind == SHARED) ? EPERM : ENOSYS);
    setenv("SOFTHCA_SHARE", "n", 1);
    EXPECT_THROW(hca_device(), std::runtime_error);
}

TEST_P(verbs_host, without_copies_or_sharing_no_device_opens)
{
    hca_log_reader log;
    std::string text;

    EXPECT_EQ(0, peer_process(open_without_copies).wait());
    text = log.take();
    EXPECT_NE(std::string::npos, text.find((GetParam() == SHARED) ?
                                               "seccomp forbids it" :
                                               "the system has no process_vm"))
        << text;
}

/* --- address space -------------------------------------------------------- */

/* Leaves no room for a mapping of SIZE bytes. */
void limit_address_space()
{
    FILE *file = fopen("/proc/self/statm", "r");
    size_t pages;

    HCA_CHECK_CALL((file != NULL) && (fscanf(file, "%zu", &pages) == 1));
    fclose(file);
    struct rlimit limit = {pages * 4096 + SIZE / 2, RLIM_INFINITY};
    HCA_CHECK_CALL(setrlimit(RLIMIT_AS, &limit) == 0);
}

void write_without_room(int fd)
{
    host_end end(fd, child_kind, 'c');

    limit_address_space();
    end.meet();
    EXPECT_EQ(IBV_WC_SUCCESS, end.run(IBV_WR_RDMA_WRITE));
    EXPECT_EQ(IBV_WC_SUCCESS, end.run(IBV_WR_RDMA_READ));
    end.meet();
}

/* Memory of a peer that cannot be mapped is copied. */
TEST_P(verbs_host, no_address_space_for_memory_of_a_peer)
{
    hca_log_reader log;
    peer_process peer(write_without_room);
    host_end end(peer.fd, GetParam(), 'p');

    end.meet();
    end.meet();
    EXPECT_TRUE(end.mem.is_all('c'));
    EXPECT_EQ(0, peer.wait());
    EXPECT_EQ("", log.take());
}

/* --- exec() --------------------------------------------------------------- */

/* The program that a child becomes has other memory where the region was. It
 * exits with 0 if that does not change. */
int next_image(const char *args)
{
    uint8_t *addr, *mem;
    char byte = 0;
    int fd;

    if (sscanf(args, "%p %d", (void **)&addr, &fd) != 2) {
        return 2;
    }
    mem = (uint8_t *)mmap(addr, SIZE, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
                          0);
    if (mem != addr) {
        return 3;
    }
    memset(mem, 'n', SIZE);
    if ((write(fd, &byte, 1) != 1) || (read(fd, &byte, 1) != 1)) {
        return 4;
    }
    return (mem[0] != 'n') || (memcmp(mem, mem + 1, SIZE - 1) != 0);
}

void become_another(int fd)
{
    host_end end(fd, child_kind, 'c');
    char args[64];

    snprintf(args, sizeof(args), "%p %d", end.mem.addr, fd);
    setenv("HOST_NEXT_IMAGE", args, 1);
    execl("/proc/self/exe", "next", NULL);
}

/* Peers notice it as they notice a death. */
TEST_P(verbs_host, process_executes_another_program)
{
    peer_process peer(become_another);
    host_end end(peer.fd, GetParam(), 'p');
    char byte = 0;

    ASSERT_EQ(1, read(peer.fd, &byte, 1));
    ASSERT_TRUE(hca_until(
        [&] { return end.run(IBV_WR_RDMA_WRITE, 0) == IBV_WC_RETRY_EXC_ERR; }));
    end.reset();
    EXPECT_EQ(IBV_WC_RETRY_EXC_ERR, end.run(IBV_WR_RDMA_WRITE));
    ASSERT_EQ(1, write(peer.fd, &byte, 1));
    EXPECT_EQ(0, peer.wait());
}

INSTANTIATE_TEST_SUITE_P(ib, verbs_host, testing::Values(SHARED, TOUCHED));

} /* namespace */

int main(int argc, char **argv)
{
    if (getenv("HOST_NEXT_IMAGE") != NULL) {
        return next_image(getenv("HOST_NEXT_IMAGE"));
    }
    return hca_test_main(argc, argv, {{"ib", {}}});
}
