/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Umems of softhca, which remaps private pages of the program into its arena:
 * they keep their content, neighbours lose no store, and memory that cannot be
 * remapped is refused. These refusals are limits of softhca, not of an adapter.
 * Part of the program of test_devx_objects.cc.
 */
#include "devx_qp.h"
#include "verbs_peer.h"

#include <atomic>
#include <fcntl.h>
#include <sys/time.h>
#include <thread>

namespace {

class devx_umems : public verbs_test {};

/* --- pages ---------------------------------------------------------------- */

TEST_P(devx_umems, keeps_what_is_in_its_pages)
{
    devx_pages pages(3);
    struct mlx5dv_devx_umem *umem;

    for (size_t i = 0; i < pages.size; i++) {
        pages.addr[i] = i * 7;
    }
    umem = mlx5dv_devx_umem_reg(dev.ctx, pages.addr + 100, 8000, 0);
    ASSERT_NE(nullptr, umem);
    pages.addr[5000] = 0x77;
    for (size_t i = 0; i < pages.size; i++) {
        ASSERT_EQ((i == 5000) ? 0x77 : (uint8_t)(i * 7), pages.addr[i]) << i;
    }
    EXPECT_EQ(0, mlx5dv_devx_umem_dereg(umem));
    EXPECT_EQ(0x77, pages.addr[5000]);
    EXPECT_EQ((uint8_t)(4999 * 7), pages.addr[4999]);
}

TEST_P(devx_umems, forked_child_has_pages_of_its_own)
{
    devx_pages pages(1);
    struct mlx5dv_devx_umem *umem;
    int status;
    pid_t pid;

    umem = mlx5dv_devx_umem_reg(dev.ctx, pages.addr, pages.size, 0);
    ASSERT_NE(nullptr, umem);
    pages.addr[0] = 1;
    pid           = fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
        bool same     = pages.addr[0] == 1;
        pages.addr[0] = 2;
        _exit(same ? 0 : 1);
    }
    ASSERT_EQ(pid, waitpid(pid, &status, 0));
    EXPECT_EQ(0, status);
    EXPECT_EQ(1, pages.addr[0]);
    EXPECT_EQ(0, mlx5dv_devx_umem_dereg(umem));
}

/* The writer checks each word before it overwrites it. */
TEST_P(devx_umems, neighbours_of_a_umem_lose_no_store)
{
    devx_pages pages(1);
    volatile uint64_t *beside = (uint64_t *)(pages.addr + 2048);
    std::atomic<bool> stop{false};
    uint64_t lost = 0;
    std::thread writer([&] {
        for (uint64_t i = 128; !stop; i++) {
            lost += (i >= 256) && (beside[i % 128] != i - 128);
            beside[i % 128] = i;
        }
    });

    for (unsigned i = 0; i < 500; i++) {
        struct mlx5dv_devx_umem *umem =
            mlx5dv_devx_umem_reg(dev.ctx, pages.addr, 2048, 0);

        EXPECT_NE(nullptr, umem);
        EXPECT_EQ(0, mlx5dv_devx_umem_dereg(umem));
    }
    stop = true;
    writer.join();
    EXPECT_EQ(0u, lost);
}

TEST_P(devx_umems, pages_that_were_unmapped_do_not_come_back)
{
    devx_pages pages(1);
    struct mlx5dv_devx_umem *umem = mlx5dv_devx_umem_reg(dev.ctx, pages.addr,
                                                         pages.size, 0);

    ASSERT_NE(nullptr, umem);
    ASSERT_EQ(pages.addr, mmap(pages.addr, pages.size, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
    pages.addr[9] = 9;
    EXPECT_EQ(0, mlx5dv_devx_umem_dereg(umem));
    EXPECT_EQ(9, pages.addr[9]);
}

TEST_P(devx_umems, refuses_what_cannot_be)
{
    devx_pages pages(3);
    struct mlx5dv_devx_umem *umem = mlx5dv_devx_umem_reg(dev.ctx, pages.addr,
                                                         4096, 0);
    struct {
        const char *what;
        uint8_t *addr;
        size_t size;
        uint32_t access;
        int error;
    } cases[] = {
        {"no bytes", pages.addr + 4096, 0, 0, EINVAL},
        {"atomics", pages.addr + 4096, 64, IBV_ACCESS_REMOTE_ATOMIC, EINVAL},
        {"remote without local", pages.addr + 4096, 64, IBV_ACCESS_REMOTE_WRITE,
         EINVAL},
        {"a hole", pages.addr + 4096, 8192, 0, EFAULT},
    };

    ASSERT_NE(nullptr, umem);
    munmap(pages.addr + 8192, 4096);
    for (const auto &c : cases) {
        EXPECT_EQ(nullptr,
                  mlx5dv_devx_umem_reg(dev.ctx, c.addr, c.size, c.access))
            << c.what;
        EXPECT_EQ(c.error, errno) << c.what;
    }
    pages.addr[4096] = 1; /* still writable */
    EXPECT_EQ(0, mlx5dv_devx_umem_dereg(umem));
}

/* Umems may overlap: a page is shared until its last umem is deregistered. */
TEST_P(devx_umems, have_pages_in_common)
{
    const struct {
        size_t offset, size;
    } places[] = {{4000, 8}, {0, 12288}, {4096, 64}, {8000, 4000}, {0, 100}};
    devx_pages pages(3);
    std::vector<struct mlx5dv_devx_umem *> umems;

    for (const auto &place : places) {
        umems.push_back(mlx5dv_devx_umem_reg(dev.ctx, pages.addr + place.offset,
                                             place.size, 0));
        ASSERT_NE(nullptr, umems.back()) << place.offset;
        pages.addr[4000 + umems.size()] = umems.size();
    }
    for (auto *umem : umems) {
        EXPECT_EQ(0, mlx5dv_devx_umem_dereg(umem));
    }
    for (uint8_t i = 1; i <= umems.size(); i++) {
        EXPECT_EQ(i, pages.addr[4000 + i]);
    }
}

/* As an allocator cuts a slab: each umem begins in the page in which the
 * previous one ends. */
TEST_P(devx_umems, of_a_slab_have_pages_in_common)
{
    constexpr size_t PIECE = 5 * 4096 + 64;
    devx_pages pages(512);
    std::vector<struct mlx5dv_devx_umem *> umems;

    for (size_t at = 0; at + PIECE <= pages.size; at += PIECE) {
        umems.push_back(mlx5dv_devx_umem_reg(dev.ctx, pages.addr + at, PIECE,
                                             IBV_ACCESS_LOCAL_WRITE));
        ASSERT_NE(nullptr, umems.back()) << at << ": " << strerror(errno);
    }
    for (auto *umem : umems) {
        EXPECT_EQ(0, mlx5dv_devx_umem_dereg(umem));
    }
}

/* With many distant umems, a few more pages beside them still fit. */
TEST_P(devx_umems, far_apart_have_room_beside_them)
{
    constexpr size_t FAR = 8 << 20, NUM = 1090;
    uint8_t *addr = (uint8_t *)mmap(NULL, NUM * FAR, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                                    -1, 0);
    std::vector<struct mlx5dv_devx_umem *> umems;

    ASSERT_NE(MAP_FAILED, addr);
    for (size_t i = 0; i < NUM; i++) {
        umems.push_back(mlx5dv_devx_umem_reg(dev.ctx, addr + i * FAR, 64, 0));
        ASSERT_NE(nullptr, umems.back()) << i << ": " << strerror(errno);
    }
    for (size_t i = 0; i < NUM; i += 99) { /* the same page and the next two */
        umems.push_back(
            mlx5dv_devx_umem_reg(dev.ctx, addr + i * FAR + 64, 8192, 0));
        ASSERT_NE(nullptr, umems.back()) << i << ": " << strerror(errno);
    }
    for (auto *umem : umems) {
        EXPECT_EQ(0, mlx5dv_devx_umem_dereg(umem));
    }
    munmap(addr, NUM * FAR);
}

/* The program has mapped other memory at the address of a umem that it has not
 * deregistered. */
TEST_P(devx_umems, of_pages_that_were_mapped_anew_is_refused)
{
    devx_pages pages(2);
    struct mlx5dv_devx_umem *umem = mlx5dv_devx_umem_reg(dev.ctx, pages.addr,
                                                         64, 0);

    ASSERT_NE(nullptr, umem);
    ASSERT_EQ(pages.addr, mmap(pages.addr, pages.size, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
    EXPECT_EQ(nullptr, mlx5dv_devx_umem_reg(dev.ctx, pages.addr, 8192, 0));
    EXPECT_EQ(EEXIST, errno);
    EXPECT_EQ(0, mlx5dv_devx_umem_dereg(umem));
}

/* --- accesses beside a umem ----------------------------------------------- */

/* Registers and deregisters the first bytes of a page until it is destroyed. */
class umem_maker {
public:
    umem_maker(const hca_device &dev, uint8_t *page) :
        m_thread([this, &dev, page] {
            while (!m_stop) {
                struct mlx5dv_devx_umem *umem =
                    mlx5dv_devx_umem_reg(dev.ctx, page, 64, 0);

                EXPECT_NE(nullptr, umem);
                EXPECT_EQ(0, mlx5dv_devx_umem_dereg(umem));
                count++;
            }
        })
    {
    }

    ~umem_maker()
    {
        m_stop = true;
        m_thread.join();
    }

    std::atomic<unsigned> count{0};

private:
    std::atomic<bool> m_stop{false};
    std::thread m_thread;
};

/* The device's writes and atomics beside a umem do not fail, and none is
 * lost. */
TEST_P(devx_umems, writes_and_atomics_to_their_neighbours)
{
    volatile uint64_t *beside = (uint64_t *)(dst.addr + 2048);
    uint64_t *from            = (uint64_t *)src.addr;
    verbs_pair pair(dev);
    verbs_op put(IBV_WR_RDMA_WRITE), add(IBV_WR_ATOMIC_FETCH_AND_ADD);
    umem_maker maker(dev, dst.addr);

    put.local(src, 64).remote((uintptr_t)beside, dst.mr->rkey);
    add.local((uintptr_t)src.addr + 64, 8, src.mr->lkey);
    add.wr.wr.atomic = {(uintptr_t)beside, 1, 0, dst.mr->rkey};
    for (*from = 1; (maker.count < 300) && !HasFailure(); ++*from) {
        EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, put));
        EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, add));
        EXPECT_EQ(*from + 1, *beside);
    }
}

/* Writes to the parent's memory and reads it back until the parent says so. */
void use_peers_memory(int fd)
{
    hca_device dev;
    strict_mem mem(dev.pd, ACCESS_ALL, 0x33);
    verbs_ep ep(dev);
    peer_card card = peer_exchange(fd, ep, mem);
    verbs_op put(IBV_WR_RDMA_WRITE), get(IBV_WR_RDMA_READ);
    char byte;

    put.local(mem, 64).remote(card.addr + 2048, card.rkey);
    get.local((uintptr_t)mem.addr + 2048, 64, mem.mr->lkey)
        .remote(card.addr + 2048, card.rkey);
    peer_connect(fd, ep, card);
    umem_maker maker(dev, mem.addr);
    while (recv(fd, &byte, 1, MSG_DONTWAIT) < 0) {
        ++*(uint64_t *)mem.addr;
        HCA_CHECK_CALL(put.post(ep.qp) == 0);
        HCA_CHECK_CALL(verbs_wait(ep.send_cq).status == IBV_WC_SUCCESS);
        HCA_CHECK_CALL(get.post(ep.qp) == 0);
        HCA_CHECK_CALL(verbs_wait(ep.send_cq).status == IBV_WC_SUCCESS);
        HCA_CHECK_CALL(memcmp(mem.addr, mem.addr + 2048, 64) == 0);
    }
}

TEST_P(devx_umems, peer_that_reaches_their_neighbours)
{
    peer_process peer(use_peers_memory);
    verbs_ep ep(dev);
    umem_maker maker(dev, dst.addr);

    peer_connect(peer.fd, ep, peer_exchange(peer.fd, ep, dst));
    EXPECT_TRUE(hca_until(
        [&] { return (maker.count >= 300) && (dst.addr[2048 + 63] == 0x33); }));
    EXPECT_EQ(1, ::write(peer.fd, "", 1));
    EXPECT_EQ(0, peer.wait());
}

volatile uint64_t *stored_by_handler;
std::atomic<uint64_t> handler_runs, handler_lost;

void store_beside(int)
{
    handler_lost += (*stored_by_handler != handler_runs);
    *stored_by_handler = ++handler_runs;
}

TEST_P(devx_umems, store_of_a_signal_handler_beside_them)
{
    const int us           = time_slow(SIGNAL_PERIOD);
    struct itimerval often = {{0, us}, {0, us}}, off = {};
    struct sigaction action = {}, saved;

    stored_by_handler  = (uint64_t *)(dst.addr + 2048);
    *stored_by_handler = 0;
    handler_runs       = 0;
    handler_lost       = 0;
    action.sa_handler  = store_beside;
    action.sa_flags    = SA_RESTART;
    sigaction(SIGALRM, &action, &saved);
    setitimer(ITIMER_REAL, &often, NULL);
    EXPECT_TRUE(hca_until([&] {
        struct mlx5dv_devx_umem *umem = mlx5dv_devx_umem_reg(dev.ctx, dst.addr,
                                                             64, 0);

        EXPECT_NE(nullptr, umem);
        EXPECT_EQ(0, mlx5dv_devx_umem_dereg(umem));
        return (handler_runs >= 500) || HasFailure();
    }));
    setitimer(ITIMER_REAL, &off, NULL);
    action.sa_handler = SIG_IGN; /* drops a pending one */
    sigaction(SIGALRM, &action, NULL);
    sigaction(SIGALRM, &saved, NULL);
    EXPECT_EQ(handler_runs, *stored_by_handler);
    EXPECT_EQ(0u, handler_lost);
}

/* --- refused -------------------------------------------------------------- */

TEST_P(devx_umems, shared_memory_is_refused_and_stays_shared)
{
    uint8_t *addr = (uint8_t *)mmap(NULL, 8192, PROT_READ | PROT_WRITE,
                                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    uint8_t *alias;
    hca_log_reader log;

    ASSERT_NE(MAP_FAILED, (void *)addr);
    alias = (uint8_t *)mremap(addr, 0, 8192, MREMAP_MAYMOVE);
    EXPECT_EQ(nullptr, mlx5dv_devx_umem_reg(dev.ctx, addr, 64, 0));
    EXPECT_EQ(EOPNOTSUPP, errno);
    EXPECT_NE(std::string::npos, log.take().find("shared"));
    addr[0] = 7;
    EXPECT_EQ(7, alias[0]);
    munmap(alias, 8192);
    munmap(addr, 8192);
}

TEST_P(devx_umems, memory_that_cannot_be_written_is_refused)
{
    const int zero = open("/dev/zero", O_RDONLY);
    devx_pages pages(3);
    struct {
        uint32_t access;
        int prot, error;
    } cases[] = {
        {IBV_ACCESS_LOCAL_WRITE, PROT_READ, EFAULT},
        {IBV_ACCESS_LOCAL_WRITE, PROT_NONE, EFAULT},
        {0, PROT_NONE, EFAULT},
        {0, PROT_READ, EOPNOTSUPP},
    };

    for (const auto &c : cases) {
        mprotect(pages.addr + 4096, 4096, c.prot);
        EXPECT_EQ(nullptr, mlx5dv_devx_umem_reg(dev.ctx, pages.addr, pages.size,
                                                c.access));
        EXPECT_EQ(c.error, errno);
        EXPECT_GT(0, read(zero, pages.addr + 4096, 1)) << "it became writable";
    }
    close(zero);
}

struct umem_on_stack {
    const hca_device &dev;
    devx_pages stack{64};
    struct mlx5dv_devx_umem *umem = NULL;
    int error                     = 0;
};

void *register_own_stack(void *arg)
{
    umem_on_stack *test = (umem_on_stack *)arg;

    test->umem  = mlx5dv_devx_umem_reg(test->dev.ctx, test->stack.addr,
                                       test->stack.size, 0);
    test->error = errno;
    return NULL;
}

TEST_P(devx_umems, stack_of_the_caller_is_refused)
{
    umem_on_stack test{dev};
    pthread_attr_t attr;
    pthread_t thread;

    pthread_attr_init(&attr);
    pthread_attr_setstack(&attr, test.stack.addr, test.stack.size);
    ASSERT_EQ(0, pthread_create(&thread, &attr, register_own_stack, &test));
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attr);
    EXPECT_EQ(nullptr, test.umem);
    EXPECT_EQ(EINVAL, test.error);
}

INSTANTIATE_TEST_SUITE_P(ib, devx_umems, testing::Values(0));

} /* namespace */
