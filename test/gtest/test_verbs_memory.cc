/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Memory as peers access it: regions of each kind, their changes and their
 * errors, windows of both types and how they are closed, and masked atomics.
 * Part of the program of test_verbs_objects.cc.
 */
#include "no_descriptors.h"
#include "verbs_bench.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>

namespace {

class verbs_memory : public verbs_test {};

/* --- memory regions ------------------------------------------------------- */

TEST_P(verbs_memory, rereg_leads_a_key_to_other_memory)
{
    struct ibv_pd *other = ibv_alloc_pd(dev.ctx);
    std::vector<uint8_t> mem(4096);
    struct ibv_mr *mr = ibv_reg_mr(other, dst.addr, 4096, 0);

    ASSERT_NE(nullptr, mr);
    EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, write_to((uintptr_t)dst.addr, mr->rkey));
    ASSERT_EQ(0, ibv_rereg_mr(mr,
                              IBV_REREG_MR_CHANGE_TRANSLATION |
                                  IBV_REREG_MR_CHANGE_ACCESS |
                                  IBV_REREG_MR_CHANGE_PD,
                              dev.pd, mem.data(), mem.size(), ACCESS_ALL));
    EXPECT_EQ(0, ibv_dealloc_pd(other)) << "nothing is left on it";
    EXPECT_EQ(IBV_WC_SUCCESS, write_to((uintptr_t)mem.data(), mr->rkey));
    EXPECT_EQ(0x11, mem[63]);
    EXPECT_EQ(0, mem[64]);
    EXPECT_EQ(0, ibv_dereg_mr(mr));
}

TEST_P(verbs_memory, refused_rereg_leaves_the_region_as_it_was)
{
    EXPECT_EQ(IBV_REREG_MR_ERR_CMD,
              ibv_rereg_mr(dst.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
                           IBV_ACCESS_REMOTE_WRITE));
    EXPECT_EQ(IBV_WC_SUCCESS, write_to((uintptr_t)dst.addr, dst.mr->rkey));
}

TEST_P(verbs_memory, dereg_ends_the_key)
{
    struct ibv_mr *mr = ibv_reg_mr(dev.pd, dst.addr, 4096, ACCESS_ALL);
    uint32_t rkey     = mr->rkey;

    EXPECT_EQ(IBV_WC_SUCCESS, write_to((uintptr_t)dst.addr, rkey));
    EXPECT_EQ(0, ibv_dereg_mr(mr));
    EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, write_to((uintptr_t)dst.addr, rkey));
}

TEST_P(verbs_memory, iova_is_what_peers_name)
{
    const uint64_t iova = 0x123456000;
    struct ibv_mr *mr   = ibv_reg_mr_iova(dev.pd, dst.addr, 4096, iova,
                                          ACCESS_ALL);

    ASSERT_NE(nullptr, mr);
    EXPECT_EQ(IBV_WC_SUCCESS, write_to(iova + 8, mr->rkey));
    EXPECT_EQ(0x22, dst.addr[7]);
    EXPECT_EQ(0x11, dst.addr[8]);
    EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, write_to((uintptr_t)dst.addr, mr->rkey));
    EXPECT_EQ(0, ibv_dereg_mr(mr));
}

TEST_P(verbs_memory, registration_refuses_what_cannot_be)
{
    strict_mem guarded(dev.pd, 0, 0);
    void *hole = dst.addr + 4096;
    struct {
        const char *what;
        void *addr;
        size_t length;
        uint64_t iova;
        int access;
        int error;
    } cases[] = {
        {"remote write without local", src.addr, 64, (uintptr_t)src.addr,
         IBV_ACCESS_REMOTE_WRITE, EINVAL},
        {"no bytes", src.addr, 0, (uintptr_t)src.addr, 0, EINVAL},
        {"unknown access", src.addr, 64, (uintptr_t)src.addr, 1 << 12, EINVAL},
        {"another place in the page", src.addr, 64, 0x1001, 0, EINVAL},
        {"a hole", dst.addr, 3 * 4096, (uintptr_t)dst.addr, 0, EFAULT},
        {"a page inside that cannot be written", guarded.addr, 3 * 4096,
         (uintptr_t)guarded.addr, IBV_ACCESS_LOCAL_WRITE, EFAULT},
    };

    munmap(hole, 4096);
    mprotect(guarded.addr + 4096, 4096, PROT_READ);
    for (const auto &c : cases) {
        EXPECT_EQ(nullptr,
                  ibv_reg_mr_iova(dev.pd, c.addr, c.length, c.iova, c.access))
            << c.what;
        EXPECT_EQ(c.error, errno) << c.what;
    }
}

/* Registers @size bytes, one page of which is read-only, then missing. */
static void check_each_page(struct ibv_pd *pd, size_t size)
{
    uint8_t *mem      = (uint8_t *)mmap(NULL, size, PROT_READ | PROT_WRITE,
                                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint8_t *bad      = mem + 32768;
    struct ibv_mr *mr = ibv_reg_mr(pd, mem, size, ACCESS_ALL);

    HCA_CHECK_CALL((mr != NULL) && (ibv_dereg_mr(mr) == 0));
    mprotect(bad, 4096, PROT_READ);
    EXPECT_EQ(nullptr, ibv_reg_mr(pd, mem, size, IBV_ACCESS_LOCAL_WRITE));
    EXPECT_EQ(EFAULT, errno) << size;
    HCA_CHECK_CALL((mr = ibv_reg_mr(pd, mem, size, 0)) != NULL);
    HCA_CHECK_CALL(ibv_dereg_mr(mr) == 0);

    munmap(bad, 4096);
    EXPECT_EQ(nullptr, ibv_reg_mr(pd, mem, size, 0));
    EXPECT_EQ(EFAULT, errno) << size;
    munmap(mem, size);
}

/* As in the kernel, the check needs no free descriptor. */
TEST_P(verbs_memory, registration_looks_at_each_page)
{
    for (size_t size : {262144, 262144 + 4096, 1 << 20}) {
        check_each_page(dev.pd, size);
        no_descriptors fill(0);
        check_each_page(dev.pd, size);
    }
}

/* Makes PROCMAP_QUERY unknown to this thread from now on. */
static void be_before_linux_6_11()
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                 offsetof(struct seccomp_data, args[1])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0xc0686611, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOTTY),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof(filter) / sizeof(*filter), filter};

    EXPECT_EQ(0, prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    EXPECT_EQ(0, prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

TEST_P(verbs_memory, registration_looks_at_each_page_on_older_kernels)
{
    std::thread([&] {
        be_before_linux_6_11();
        check_each_page(dev.pd, 1 << 20);
    }).join();
}

TEST_P(verbs_memory, page_that_cannot_be_written_may_be_read)
{
    mprotect(dst.addr + 4096, 4096, PROT_READ);
    struct ibv_mr *mr = ibv_reg_mr(dev.pd, dst.addr, 3 * 4096,
                                   IBV_ACCESS_REMOTE_READ);

    ASSERT_NE(nullptr, mr);
    EXPECT_EQ(0, ibv_dereg_mr(mr));
}

TEST_P(verbs_memory, atomic_on_what_cannot_be_written_any_more)
{
    uint64_t *target = (uint64_t *)(dst.addr + 4096);
    verbs_op op(IBV_WR_ATOMIC_FETCH_AND_ADD);

    op.local(src, 8);
    op.wr.wr.atomic.remote_addr = (uintptr_t)target;
    op.wr.wr.atomic.rkey        = dst.mr->rkey;
    op.wr.wr.atomic.compare_add = 1;
    for (int prot : {PROT_READ, PROT_NONE}) {
        verbs_pair pair(dev);

        EXPECT_EQ(0, mprotect(target, 4096, prot));
        EXPECT_EQ(IBV_WC_REM_OP_ERR, run(pair.a, op));
        EXPECT_EQ(0, mprotect(target, 4096, PROT_READ | PROT_WRITE));
        EXPECT_EQ(0x2222222222222222u, *target);
    }
    verbs_pair pair(dev);
    EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, op));
    EXPECT_EQ(0x2222222222222223u, *target);
}

TEST_P(verbs_memory, on_demand_region_finds_memory_that_came_later)
{
    const size_t size = 8192;
    uint8_t *addr     = (uint8_t *)mmap(NULL, size, PROT_NONE,
                                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct ibv_mr *mr = ibv_reg_mr(dev.pd, addr, size,
                                   ACCESS_ALL | IBV_ACCESS_ON_DEMAND);

    ASSERT_NE(nullptr, mr);
    ASSERT_EQ(0, mprotect(addr, size, PROT_READ | PROT_WRITE));
    verbs_pair pair(dev, {.rnr_retry = 7}); /* the page is not there yet */
    EXPECT_EQ(IBV_WC_SUCCESS,
              run(pair.a, write().remote((uintptr_t)addr + 4096, mr->rkey)));
    EXPECT_EQ(0x11, addr[4096]);
    EXPECT_EQ(0, ibv_dereg_mr(mr));
    munmap(addr, size);
}

/* Data that is sent into a completion (scatter to CQE) */
TEST_P(verbs_memory, unmapped_data_for_a_completion_is_an_error)
{
    void *addr        = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct ibv_mr *mr = ibv_reg_mr(dev.pd, addr, 4096, 0);

    ASSERT_NE(nullptr, mr);
    setenv("MLX5_SCATTER_TO_CQE", "1", 1);
    verbs_pair pair(dev);
    setenv("MLX5_SCATTER_TO_CQE", "0", 1);
    ASSERT_EQ(0, verbs_recv(pair.b.qp, dst, 64));
    munmap(addr, 4096);
    EXPECT_EQ(
        IBV_WC_REM_OP_ERR,
        run(pair.a, verbs_op(IBV_WR_SEND).local((uintptr_t)addr, 8, mr->lkey)));
    EXPECT_EQ(0, ibv_dereg_mr(mr));
}

TEST_P(verbs_memory, implicit_region_is_all_memory)
{
    struct ibv_mr *all = ibv_reg_mr(dev.pd, NULL, SIZE_MAX,
                                    ACCESS_ALL | IBV_ACCESS_ON_DEMAND);
    std::vector<uint8_t> out(64, 0x33), in(64);
    verbs_pair pair(dev, {.rnr_retry = 7});

    ASSERT_NE(nullptr, all);
    EXPECT_EQ(IBV_WC_SUCCESS,
              run(pair.a, verbs_op(IBV_WR_RDMA_WRITE)
                              .local((uintptr_t)out.data(), 64, all->lkey)
                              .remote((uintptr_t)in.data(), all->rkey)));
    EXPECT_EQ(out, in);
    EXPECT_EQ(0, ibv_dereg_mr(all));
}

TEST_P(verbs_memory, prefetch_is_for_on_demand_regions)
{
    struct ibv_mr *mr  = ibv_reg_mr(dev.pd, dst.addr, 4096,
                                    ACCESS_ALL | IBV_ACCESS_ON_DEMAND);
    struct ibv_sge sge = {(uintptr_t)dst.addr, 4096, 0};
    struct {
        uint32_t lkey;
        int result;
    } cases[] = {
        {mr->lkey, 0},
        {dst.mr->lkey, EINVAL},
        {dst.mr->lkey ^ 1, ENOENT},
    };

    for (const auto &c : cases) {
        sge.lkey = c.lkey;
        EXPECT_EQ(c.result, ibv_advise_mr(dev.pd, IBV_ADVISE_MR_ADVICE_PREFETCH,
                                          IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1));
    }
    EXPECT_EQ(0, ibv_dereg_mr(mr));
}

TEST_P(verbs_memory, prefetch_that_is_waited_for_needs_its_pages)
{
    struct ibv_mr *mr  = ibv_reg_mr(dev.pd, dst.addr, dst.size,
                                    ACCESS_ALL | IBV_ACCESS_ON_DEMAND);
    struct ibv_mr *all = ibv_reg_mr(dev.pd, NULL, SIZE_MAX,
                                    ACCESS_ALL | IBV_ACCESS_ON_DEMAND);
    const auto advise  = [&](const struct ibv_mr *of, const void *addr,
                            uint32_t length, enum ibv_advise_mr_advice advice,
                            uint32_t flags = IBV_ADVISE_MR_FLAG_FLUSH) {
        struct ibv_sge sge = {(uintptr_t)addr, length, of->lkey};

        return ibv_advise_mr(dev.pd, advice, flags, &sge, 1);
    };
    void *gone = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                      0);

    ASSERT_EQ(0, munmap((char *)gone + 4096, 4096));
    for (auto advice : {IBV_ADVISE_MR_ADVICE_PREFETCH,
                        IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT}) {
        EXPECT_EQ(0, advise(mr, dst.addr, dst.size, advice));
        EXPECT_EQ(EFAULT, advise(mr, dst.addr, dst.size + 1, advice));
        EXPECT_EQ(EFAULT, advise(mr, dst.addr - 1, 1, advice));
        EXPECT_EQ(0, advise(mr, dst.addr, dst.size + 1, advice, 0)) << "later";
    }
    EXPECT_EQ(0, advise(all, gone, 4096, IBV_ADVISE_MR_ADVICE_PREFETCH));
    EXPECT_EQ(EFAULT,
              advise(all, gone, 4096, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE));
    EXPECT_EQ(EFAULT, advise(all, gone, 4097, IBV_ADVISE_MR_ADVICE_PREFETCH));
    EXPECT_EQ(0,
              advise(all, gone, 4097, IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT));
    EXPECT_EQ(EFAULT, advise(all, (void *)-4096l, 4095,
                             IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE));
    {
        no_descriptors none(0);

        EXPECT_EQ(0, advise(mr, dst.addr, dst.size,
                            IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE));
    }
    EXPECT_EQ(0, munmap(gone, 4096));
    EXPECT_EQ(0, ibv_dereg_mr(all));
    EXPECT_EQ(0, ibv_dereg_mr(mr));
}

/* Linux does so since 5.12, and reports it only by netlink. */
TEST_P(verbs_memory, fork_copies_registered_memory)
{
    int go[2], status;
    char byte = 0;
    pid_t pid;

    EXPECT_EQ(IBV_FORK_UNNEEDED, ibv_is_fork_initialized());
    ASSERT_EQ(0, pipe(go));
    pid = fork();
    if (pid == 0) {
        bool same = (::read(go[0], &byte, 1) == 1) && (dst.addr[0] == 0x22);

        memset(dst.addr, 0x33, 64);
        _exit(same ? 0 : 1);
    }
    EXPECT_EQ(IBV_WC_SUCCESS, write_to((uintptr_t)dst.addr, dst.mr->rkey));
    EXPECT_EQ(1, ::write(go[1], &byte, 1));
    ASSERT_EQ(pid, waitpid(pid, &status, 0));
    EXPECT_EQ(0, status) << "the child has what was there when it was forked";
    EXPECT_EQ(0x11, dst.addr[0]) << "the device's write is the parent's";
    close(go[0]);
    close(go[1]);
}

/* Allocators rely on it: they take memory that they have discarded as zero. */
TEST_P(verbs_memory, discarded_memory_is_zero)
{
    const size_t size = 16 * 4096;
    char *mem         = (char *)mmap(NULL, size, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct ibv_mr *mr;

    ASSERT_NE(MAP_FAILED, (void *)mem);
    mr = ibv_reg_mr(dev.pd, mem, size, ACCESS_ALL);
    ASSERT_NE(nullptr, mr);
    EXPECT_EQ(IBV_WC_SUCCESS, write_to((uintptr_t)mem + 8192, mr->rkey));
    EXPECT_EQ(0x11, mem[8192]);
    EXPECT_EQ(0, ibv_dereg_mr(mr));
    EXPECT_EQ(0x11, mem[8192]);
    EXPECT_EQ(0, madvise(mem, size, MADV_FREE));
    mem[4096] = 1;
    EXPECT_EQ(0, madvise(mem, size, MADV_DONTNEED));
    EXPECT_EQ(std::string(size, '\0'), std::string(mem, size));
    munmap(mem, size);
}

/* libmlx5 reads the variables for each new queue (mlx5_get_alloc_type()). */
TEST_P(verbs_memory, rings_in_huge_pages_need_some)
{
    struct ibv_srq_init_attr srq_attr = {NULL, {64, 1, 0}};
    struct ibv_qp_init_attr qp_attr   = {};
    int huge = shmget(IPC_PRIVATE, 1, SHM_HUGETLB | IPC_CREAT | 0600);

    if (huge >= 0) {
        shmctl(huge, IPC_RMID, NULL);
        GTEST_SKIP() << "this machine has huge pages";
    }
    raw_cq cq(dev.ctx, 63);
    qp_attr.send_cq = qp_attr.recv_cq = cq.cq;
    qp_attr.cap                       = {64, 64, 1, 1, 0};
    qp_attr.qp_type                   = IBV_QPT_RC;

    setenv("MLX_CQ_ALLOC_TYPE", "HUGE", 1);
    EXPECT_EQ(nullptr, ibv_create_cq(dev.ctx, 63, NULL, NULL, 0));
    unsetenv("MLX_CQ_ALLOC_TYPE");
    setenv("MLX_SRQ_ALLOC_TYPE", "huge", 1);
    EXPECT_EQ(nullptr, ibv_create_srq(dev.pd, &srq_attr));
    unsetenv("MLX_SRQ_ALLOC_TYPE");
    setenv("MLX_QP_ALLOC_TYPE", "HUGE", 1);
    EXPECT_EQ(nullptr, ibv_create_qp(dev.pd, &qp_attr));
    EXPECT_EQ(ENOMEM, errno);
    setenv("MLX_QP_ALLOC_TYPE", "PREFER_HUGE", 1);
    struct ibv_qp *qp = ibv_create_qp(dev.pd, &qp_attr);
    unsetenv("MLX_QP_ALLOC_TYPE");
    ASSERT_NE(nullptr, qp);
    EXPECT_EQ(0, ibv_destroy_qp(qp));
}

TEST_P(verbs_memory, null_region_reads_as_zeroes_and_swallows)
{
    struct ibv_mr *null = ibv_alloc_null_mr(dev.pd);
    verbs_pair pair(dev);
    verbs_op op(IBV_WR_RDMA_WRITE);

    ASSERT_NE(nullptr, null);
    op.local(src, 4).local(0, 8000, null->lkey).local(src, 4).remote(dst);
    EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, op));
    EXPECT_EQ(0x11, dst.addr[3]);
    EXPECT_EQ(0, dst.addr[4]);
    EXPECT_EQ(0, dst.addr[8003]);
    EXPECT_EQ(0x11, dst.addr[8004]);

    op.wr.opcode = IBV_WR_RDMA_READ;
    dst.addr[0]  = 0x44; /* to src[0..3], nowhere, and src[0..3] again */
    EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, op));
    EXPECT_EQ(0x11, src.addr[0]) << "not that of byte 8004";
    EXPECT_EQ(0x11, src.addr[4]);
    EXPECT_EQ(0, ibv_dereg_mr(null));
}

TEST_P(verbs_memory, device_memory_is_reached_by_copy_and_by_key)
{
    struct ibv_alloc_dm_attr attr = {5000, 0, 0};
    struct ibv_dm *dm             = ibv_alloc_dm(dev.ctx, &attr);
    uint8_t bytes[64]             = {};

    ASSERT_NE(nullptr, dm);
    EXPECT_EQ(0, ibv_memcpy_to_dm(dm, 4096, bytes, sizeof(bytes)));
    struct ibv_mr *mr = ibv_reg_dm_mr(dev.pd, dm, 4096, 904,
                                      IBV_ACCESS_ZERO_BASED |
                                          IBV_ACCESS_LOCAL_WRITE |
                                          IBV_ACCESS_REMOTE_WRITE);
    ASSERT_NE(nullptr, mr);
    EXPECT_EQ(IBV_WC_SUCCESS, write_to(0, mr->rkey));
    EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, write_to(904 - 63, mr->rkey));
    EXPECT_EQ(0, ibv_memcpy_from_dm(bytes, dm, 4096, sizeof(bytes)));
    EXPECT_EQ(0x11, bytes[63]);
    EXPECT_EQ(EBUSY, ibv_free_dm(dm));
    EXPECT_EQ(nullptr,
              ibv_reg_dm_mr(dev.pd, dm, 4096, 905, IBV_ACCESS_ZERO_BASED));
    EXPECT_EQ(0, ibv_dereg_mr(mr));
    EXPECT_EQ(0, ibv_free_dm(dm));
}

TEST_P(verbs_memory, device_memory_is_imported_beside_its_first_mapping)
{
    struct ibv_alloc_dm_attr attr = {4096, 0, 0};
    struct ibv_dm *dm             = ibv_alloc_dm(dev.ctx, &attr);
    uint64_t value = 0x1122334455667788, got = 0;

    ASSERT_NE(nullptr, dm);
    for (int i = 0; i < 2; i++) {
        struct ibv_dm *again = ibv_import_dm(dev.ctx, dm->handle);

        ASSERT_NE(nullptr, again);
        value++;
        EXPECT_EQ(0, ibv_memcpy_to_dm(again, 64, &value, sizeof(value)));
        EXPECT_EQ(0, ibv_memcpy_from_dm(&got, dm, 64, sizeof(got)));
        EXPECT_EQ(value, got);
        value++;
        EXPECT_EQ(0, ibv_memcpy_to_dm(dm, 64, &value, sizeof(value)));
        EXPECT_EQ(0, ibv_memcpy_from_dm(&got, again, 64, sizeof(got)));
        EXPECT_EQ(value, got);
        ibv_unimport_dm(again);
    }
    EXPECT_EQ(nullptr, ibv_import_dm(dev.ctx, dm->handle + 1000));
    EXPECT_EQ(0, ibv_free_dm(dm));
}

sigjmp_buf escape;

void jump_out(int)
{
    siglongjmp(escape, 1);
}

TEST_P(verbs_memory,
       load_from_a_uar_page_is_a_bus_error_also_with_device_memory)
{
    struct ibv_alloc_dm_attr attr = {4096, 0, 0};
    struct ibv_dm *dm             = ibv_alloc_dm(dev.ctx, &attr);
    struct mlx5dv_devx_uar *uar =
        mlx5dv_devx_alloc_uar(dev.ctx, MLX5DV_UAR_ALLOC_TYPE_NC);
    struct sigaction jump = {}, old;
    volatile bool is_read = false;

    ASSERT_NE(nullptr, dm);
    ASSERT_NE(nullptr, uar);
    /* a new CQ makes the device look up its mappings */
    EXPECT_EQ(0, ibv_destroy_cq(ibv_create_cq(dev.ctx, 1, NULL, NULL, 0)));
    jump.sa_handler = jump_out;
    ASSERT_EQ(0, sigaction(SIGBUS, &jump, &old));
    alarm(10); /* a load that is repeated never ends */
    if (sigsetjmp(escape, 1) == 0) {
        (void)*(volatile uint64_t *)uar->reg_addr;
        is_read = true;
    }
    alarm(0);
    EXPECT_FALSE(is_read);
    EXPECT_EQ(0, sigaction(SIGBUS, &old, NULL));
    mlx5dv_devx_free_uar(uar);
    EXPECT_EQ(0, ibv_free_dm(dm));
}

/* 128 KiB in all contexts together; each piece uses whole pages */
TEST_P(verbs_memory, device_memory_is_a_total)
{
    struct ibv_alloc_dm_attr half = {64 << 10, 0, 0}, byte = {1, 0, 0};
    hca_device other;
    struct ibv_dm *first  = ibv_alloc_dm(dev.ctx, &half);
    struct ibv_dm *second = ibv_alloc_dm(other.ctx, &half);

    ASSERT_NE(nullptr, first);
    ASSERT_NE(nullptr, second);
    EXPECT_EQ(nullptr, ibv_alloc_dm(dev.ctx, &byte));
    EXPECT_EQ(ENOMEM, errno);
    EXPECT_EQ(0, ibv_free_dm(second));
    for (int i = 0; i < 2; i++) {
        std::vector<struct ibv_dm *> pieces;
        struct ibv_dm *dm;

        while ((dm = ibv_alloc_dm(dev.ctx, &byte)) != NULL) {
            pieces.push_back(dm);
        }
        EXPECT_EQ(16u, pieces.size());
        for (auto *piece : pieces) {
            EXPECT_EQ(0, ibv_free_dm(piece));
        }
    }
    EXPECT_EQ(0, ibv_free_dm(first));
}

/* --- memory windows ------------------------------------------------------- */

TEST_P(verbs_memory, window_of_type_1_opens_its_range_only)
{
    struct ibv_mw *mw       = ibv_alloc_mw(dev.pd, IBV_MW_TYPE_1);
    struct ibv_mw_bind bind = {};
    uint64_t addr           = (uintptr_t)dst.addr + 2048;
    verbs_pair pair(dev);

    ASSERT_NE(nullptr, mw);
    bind.send_flags = IBV_SEND_SIGNALED;
    bind.bind_info  = {dst.mr, addr, 256, IBV_ACCESS_REMOTE_WRITE};
    ASSERT_EQ(0, ibv_bind_mw(pair.b.qp, mw, &bind));
    struct ibv_wc wc = verbs_wait(pair.b.send_cq);
    EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
    EXPECT_EQ(IBV_WC_BIND_MW, wc.opcode);
    EXPECT_EQ(IBV_WC_SUCCESS, write_to(addr + 256 - 64, mw->rkey));
    EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, write_to(addr + 256 - 63, mw->rkey));
    EXPECT_EQ(0, ibv_dealloc_mw(mw));
}

TEST_P(verbs_memory, region_stays_while_a_window_is_bound)
{
    struct ibv_mw *mw       = ibv_alloc_mw(dev.pd, IBV_MW_TYPE_1);
    struct ibv_mr *mr       = ibv_reg_mr(dev.pd, dst.addr, 4096,
                                         ACCESS_ALL | IBV_ACCESS_MW_BIND);
    struct ibv_mw_bind bind = {};
    verbs_pair pair(dev);

    ASSERT_NE(nullptr, mw);
    bind.send_flags = IBV_SEND_SIGNALED;
    for (unsigned length : {256, 0, 256}) {
        bind.bind_info = {mr, (uintptr_t)dst.addr, length,
                          IBV_ACCESS_REMOTE_WRITE};
        ASSERT_EQ(0, ibv_bind_mw(pair.b.qp, mw, &bind));
        EXPECT_EQ(IBV_WC_SUCCESS, verbs_wait(pair.b.send_cq).status);
        if (length == 0) { /* unbound */
            EXPECT_EQ(0, ibv_dereg_mr(mr));
            mr = ibv_reg_mr(dev.pd, dst.addr, 4096,
                            ACCESS_ALL | IBV_ACCESS_MW_BIND);
        } else {
            EXPECT_EQ(EBUSY, ibv_dereg_mr(mr));
            EXPECT_EQ(IBV_WC_SUCCESS, write_to((uintptr_t)dst.addr, mw->rkey));
        }
    }
    EXPECT_EQ(0, ibv_dealloc_mw(mw));
    EXPECT_EQ(0, ibv_dereg_mr(mr));
}

/* A window of type 2: bound to 512 bytes of dst by the receiver, for writes */
class verbs_windows : public verbs_memory {
protected:
    ~verbs_windows() { EXPECT_EQ(0, ibv_dealloc_mw(mw)); }

    enum ibv_wc_status bind(uint32_t new_key, struct ibv_mr *mr)
    {
        verbs_op op(IBV_WR_BIND_MW);

        op.wr.bind_mw = {
            mw,
            new_key,
            {mr, (uintptr_t)dst.addr, 512, IBV_ACCESS_REMOTE_WRITE}};
        return run(pair.b, op);
    }

    enum ibv_wc_status access(enum ibv_wr_opcode opcode, uint32_t rkey)
    {
        return run(pair.a, verbs_op(opcode).local(src, 64).remote(
                               (uintptr_t)dst.addr, rkey));
    }

    struct ibv_mw *mw = ibv_alloc_mw(dev.pd, IBV_MW_TYPE_2);
    uint32_t key      = ibv_inc_rkey(mw->rkey);
    verbs_pair pair{dev};
};

TEST_P(verbs_windows, is_closed_by_send_with_invalidate)
{
    verbs_op op = send();

    ASSERT_EQ(IBV_WC_SUCCESS, bind(key, dst.mr));
    EXPECT_EQ(IBV_WC_SUCCESS, access(IBV_WR_RDMA_WRITE, key));
    EXPECT_EQ(0x11, dst.addr[63]);
    ASSERT_EQ(0, verbs_recv(pair.b.qp, src, 64));
    op.wr.opcode          = IBV_WR_SEND_WITH_INV;
    op.wr.invalidate_rkey = key;
    EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, op));
    struct ibv_wc wc = verbs_wait(pair.b.recv_cq);
    EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
    EXPECT_TRUE(wc.wc_flags & IBV_WC_WITH_INV);
    EXPECT_EQ(key, wc.invalidated_rkey);
    EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, access(IBV_WR_RDMA_WRITE, key));
}

TEST_P(verbs_windows, is_closed_by_local_invalidate_and_bound_again)
{
    verbs_op op(IBV_WR_LOCAL_INV);

    ASSERT_EQ(IBV_WC_SUCCESS, bind(key, dst.mr));
    op.wr.invalidate_rkey = key;
    ASSERT_EQ(0, op.post(pair.b.qp));
    struct ibv_wc wc = verbs_wait(pair.b.send_cq);
    EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
    EXPECT_EQ(IBV_WC_LOCAL_INV, wc.opcode);
    ASSERT_EQ(IBV_WC_SUCCESS, bind(ibv_inc_rkey(key), dst.mr));
    EXPECT_EQ(IBV_WC_SUCCESS, access(IBV_WR_RDMA_WRITE, ibv_inc_rkey(key)));
    EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, access(IBV_WR_RDMA_WRITE, key));
}

TEST_P(verbs_windows, grants_no_more_than_it_was_bound_for)
{
    ASSERT_EQ(IBV_WC_SUCCESS, bind(key, dst.mr));
    EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, access(IBV_WR_RDMA_READ, key));
}

TEST_P(verbs_windows, is_not_bound_twice)
{
    ASSERT_EQ(IBV_WC_SUCCESS, bind(key, dst.mr));
    EXPECT_EQ(IBV_WC_MW_BIND_ERR, bind(ibv_inc_rkey(key), dst.mr));
}

TEST_P(verbs_windows, is_not_bound_to_a_region_without_the_right)
{
    strict_mem mem(dev.pd, ACCESS_QP_ALL | IBV_ACCESS_LOCAL_WRITE, 0);

    EXPECT_EQ(IBV_WC_MW_BIND_ERR, bind(key, mem.mr));
}


/* --- masked atomics ------------------------------------------------------- */

/* Layouts: UCX, src/uct/ib/mlx5/ib_mlx5_hw.h and PRM, "extended atomics" */
class verbs_masked : public verbs_memory {
protected:
    /* Runs one on dst; `words` are the contents of its segment. Results of 4
     * bytes are in wire order. */
    template <typename T> T masked(uint8_t opcode, const std::vector<T> &words)
    {
        raw_wqe wqe(opcode, MLX5_OPCODE_MOD_EXT | (sizeof(T) == 8));
        std::vector<uint8_t> segment;
        T result;

        wqe.raddr(dst.addr, dst.mr->rkey);
        for (T word : words) {
            for (int shift = sizeof(T) * 8 - 8; shift >= 0; shift -= 8) {
                segment.push_back(word >> shift);
            }
        }
        segment.resize((segment.size() + 15) / 16 * 16);
        wqe.bytes.insert(wqe.bytes.end(), segment.begin(), segment.end());
        wqe.data(src.addr, sizeof(T), src.mr->lkey);
        wqe.finish(queue.pi, queue.qpn);
        queue.write(wqe);
        queue.ring(wqe.num_bb(), wqe.bytes.data());
        EXPECT_EQ(IBV_WC_SUCCESS, verbs_wait(pair.a.send_cq).status);
        memcpy(&result, src.addr, sizeof(result));
        return (sizeof(T) == 4) ? be32toh(result) : result;
    }

    template <typename T> T swap_target(T value)
    {
        T was;

        memcpy(&was, dst.addr, sizeof(was));
        memcpy(dst.addr, &value, sizeof(value));
        return was;
    }

    static constexpr uint8_t MLX5_OPCODE_MOD_EXT = 8;

    verbs_pair pair{dev};
    raw_qp queue{pair.a.qp};
};

TEST_P(verbs_masked, compare_and_swap_of_8_bytes_looks_at_its_masks)
{
    /* swap, compare, mask of swap, mask of compare */
    const std::vector<uint64_t> words = {
        0xaaaaaaaaaaaaaaaa,
        0x55000000,
        0xff00ff00ff00ff00,
        0xff000000,
    };

    swap_target<uint64_t>(0x1122334455667788);
    EXPECT_EQ(0x1122334455667788u, masked(MLX5_OPCODE_ATOMIC_MASKED_CS, words));
    EXPECT_EQ(0xaa22aa44aa66aa88u, swap_target<uint64_t>(0x44000000));
    EXPECT_EQ(0x44000000u, masked(MLX5_OPCODE_ATOMIC_MASKED_CS, words));
    EXPECT_EQ(0x44000000u, swap_target<uint64_t>(0)) << "did not compare";
}

TEST_P(verbs_masked, add_of_8_bytes_stops_carries_at_its_boundaries)
{
    swap_target<uint64_t>(0xffff0001ffff0001);
    EXPECT_EQ(0xffff0001ffff0001u,
              masked<uint64_t>(MLX5_OPCODE_ATOMIC_MASKED_FA,
                               {0x00ff00ff00ff00ff, 0x8000800080008000}));
    EXPECT_EQ(0x00fe010000fe0100u, swap_target<uint64_t>(0));
}

TEST_P(verbs_masked, compare_and_swap_of_4_bytes_touches_no_more)
{
    swap_target<uint64_t>(0xdeadbeef11223344);
    EXPECT_EQ(0x11223344u, masked<uint32_t>(MLX5_OPCODE_ATOMIC_MASKED_CS,
                                            {0x55667788, 0, 0xffffffff, 0}));
    EXPECT_EQ(0xdeadbeef55667788u, swap_target<uint64_t>(0));
}

TEST_P(verbs_masked, operand_of_4_bytes_that_cannot_be_written)
{
    raw_wqe wqe(MLX5_OPCODE_ATOMIC_MASKED_FA, MLX5_OPCODE_MOD_EXT);

    wqe.raddr(dst.addr, dst.mr->rkey).add(__be64(1));
    wqe.data(src.addr, 4, src.mr->lkey).finish(queue.pi, queue.qpn);
    mprotect(dst.addr, 4096, PROT_READ);
    queue.write(wqe);
    queue.ring(wqe.num_bb(), wqe.bytes.data());
    EXPECT_EQ(IBV_WC_REM_OP_ERR, verbs_wait(pair.a.send_cq).status);
}

TEST_P(verbs_masked, add_of_4_bytes_with_all_boundaries_is_exclusive_or)
{
    swap_target<uint64_t>(0xdeadbeef55667788);
    EXPECT_EQ(0x55667788u, masked<uint32_t>(MLX5_OPCODE_ATOMIC_MASKED_FA,
                                            {0x0f0f0f0f, 0xffffffff}));
    EXPECT_EQ(0xdeadbeef5a697887u, swap_target<uint64_t>(0));
}

INSTANTIATE_TEST_SUITE_P(ib, verbs_memory, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(roce, verbs_memory, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(ib, verbs_windows, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(ib, verbs_masked, testing::Values(0));

} /* namespace */
