/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Two processes on a host that restricts them, or that ends or stops one of
 * them in the middle of a copy. Each test runs with memory that the other
 * process maps, and with memory that was touched before it was registered,
 * which only process_vm_readv() and process_vm_writev() reach.
 */
#include "deny_copies.h"
#include "verbs_peer.h"

#include <cstdio>
#include <random>
#include <sys/mman.h>
#include <sys/resource.h>
#include <thread>

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

/* Kind of the memory of a child that is forked later */
kind child_kind;

/* One end of a connection with another process */
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

/* If a peer's memory cannot be mapped, the data is copied. */
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

/* Peers notice an exec() as they notice a death. */
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

/* --- in the middle of a copy ---------------------------------------------- */

void own_until_the_end(int fd)
{
    host_end end(fd, child_kind, 'c');

    peer_wait_for_the_end(fd);
}

void write_until_the_end(int fd)
{
    host_end end(fd, child_kind, 'c');

    while (end.run(IBV_WR_RDMA_WRITE) == IBV_WC_SUCCESS) {
    }
    peer_wait_for_the_end(fd);
}

/* Waits for less than a copy takes, or little more. */
void wait_for_part_of_a_copy()
{
    static std::minstd_rand random(1);

    usleep(random() % 8000);
}

/* A pair in this process: one that ends or stops does not hold it up. */
class host_pair {
public:
    void check()
    {
        EXPECT_EQ(0, verbs_op(IBV_WR_RDMA_WRITE, 1)
                         .local(m_from, m_from.size)
                         .remote(m_to)
                         .post(m_pair.a.qp));
        verbs_expect_wcs(m_pair.a.send_cq, IBV_WC_SUCCESS, 1, 1);
        EXPECT_EQ(1, m_to.addr[m_to.size - 1]);
    }

private:
    hca_device m_dev;
    strict_mem m_from{m_dev.pd, ACCESS_ALL, 1}, m_to{m_dev.pd, ACCESS_ALL, 2};
    verbs_pair m_pair{m_dev};
};

TEST_P(verbs_host, owner_is_killed_in_a_copy)
{
    for (unsigned i = 0; i < 4; i++) {
        peer_process peer(own_until_the_end);
        host_end end(peer.fd, GetParam(), 'p');
        enum ibv_wc_status status = IBV_WC_SUCCESS;
        std::thread killer([&] {
            wait_for_part_of_a_copy();
            kill(peer.pid, SIGKILL);
        });

        EXPECT_TRUE(hca_until([&] {
            status = end.run(IBV_WR_RDMA_READ);
            return status != IBV_WC_SUCCESS;
        }));
        EXPECT_EQ(IBV_WC_RETRY_EXC_ERR, status);
        killer.join();
        EXPECT_EQ(SIGKILL, peer.wait());
        host_pair().check();
    }
}

TEST_P(verbs_host, writer_is_killed_in_a_copy)
{
    for (unsigned i = 0; i < 4; i++) {
        peer_process peer(write_until_the_end);
        host_end end(peer.fd, GetParam(), 'p');

        EXPECT_TRUE(hca_until(
            [&] { return *(volatile uint8_t *)end.mem.addr == 'c'; }));
        wait_for_part_of_a_copy();
        kill(peer.pid, SIGKILL);
        EXPECT_EQ(SIGKILL, peer.wait());
        memset(end.mem.addr, 'p', SIZE);
        host_pair().check();
        EXPECT_TRUE(end.mem.is_all('p')) << "a dead process has written";
    }
}

/* The owner stops: the copy goes on without it. */
TEST_P(verbs_host, owner_is_stopped_in_a_copy)
{
    peer_process peer(own_until_the_end);
    host_end end(peer.fd, GetParam(), 'p');

    for (unsigned i = 0; i < 4; i++) {
        end.post(IBV_WR_RDMA_WRITE, SIZE);
        kill(peer.pid, (i % 2) ? SIGCONT : SIGSTOP);
        EXPECT_EQ(IBV_WC_SUCCESS, verbs_wait(end.ep.send_cq).status);
        EXPECT_EQ(IBV_WC_SUCCESS, end.run(IBV_WR_RDMA_READ));
        EXPECT_TRUE(end.mem.is_all('p'));
    }
}

TEST_P(verbs_host, writer_is_stopped_in_a_copy)
{
    peer_process peer(write_until_the_end);
    host_end end(peer.fd, GetParam(), 'p');
    host_pair pair;

    for (unsigned i = 0; i < 4; i++) {
        volatile uint8_t *last = &end.mem.addr[SIZE - 1];

        wait_for_part_of_a_copy();
        EXPECT_EQ(0, kill(peer.pid, SIGSTOP));
        EXPECT_EQ(peer.pid, waitpid(peer.pid, NULL, WUNTRACED));
        pair.check();
        *last = 'x';
        EXPECT_EQ(0, kill(peer.pid, SIGCONT));
        EXPECT_TRUE(hca_until([&] { return *last == 'c'; }));
    }
}

/* --- many regions --------------------------------------------------------- */

unsigned num_mappings()
{
    std::ifstream maps("/proc/self/maps");

    return std::count(std::istreambuf_iterator<char>(maps), {}, '\n');
}

INSTANTIATE_TEST_SUITE_P(ib, verbs_host, testing::Values(SHARED, TOUCHED));

void register_many(int)
{
    constexpr unsigned COUNT = 100000, PIECE = 16384;
    const unsigned before = num_mappings();
    const size_t size     = (size_t)COUNT * PIECE;
    std::vector<struct ibv_mr *> mrs;
    hca_device dev;
    char *mem = (char *)mmap(NULL, size, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                             0);

    HCA_CHECK_CALL(mem != MAP_FAILED);
    for (size_t at = size; at > 0;) {
        at -= PIECE; /* each is looked up behind the mappings below it */
        mrs.push_back(ibv_reg_mr(dev.pd, mem + at, PIECE, ACCESS_ALL));
        HCA_CHECK_CALL(mrs.back() != NULL);
    }
    EXPECT_GT(before + 5000, num_mappings());
    for (struct ibv_mr *mr : mrs) {
        EXPECT_EQ(0, ibv_dereg_mr(mr));
    }
}

/* At most HCA_SHARE_RUNS regions are shared, as a process may have only 65,530
 * mappings (vm.max_map_count). The others stay private. */
TEST(verbs_regions, a_hundred_thousand)
{
    EXPECT_EQ(0, peer_process(register_many).wait());
}

} /* namespace */

int main(int argc, char **argv)
{
    if (getenv("HOST_NEXT_IMAGE") != NULL) {
        return next_image(getenv("HOST_NEXT_IMAGE"));
    }
    return hca_test_main(argc, argv, {{"ib", {}}});
}
