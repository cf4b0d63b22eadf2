/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The objects of verbs: each is made with libibverbs as a program does, used
 * for a message, changed, and destroyed. Objects in use are busy; invalid
 * requests are refused with the errors of the kernel's uverbs. Completion
 * queues (test_verbs_cq.cc) and memory (test_verbs_memory.cc) have their own
 * files.
 */
#include "tm_bench.h"
#include "verbs_peer.h"

#include <algorithm>
#include <fcntl.h>
#include <fstream>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

namespace {

class verbs_objects : public verbs_test {
protected:
    struct ibv_srq *create_srq()
    {
        struct ibv_srq_init_attr attr = {NULL, {16, 1, 0}};
        struct ibv_srq *srq           = ibv_create_srq(dev.pd, &attr);

        HCA_CHECK_CALL(srq != NULL);
        return srq;
    }
};

/* --- domains -------------------------------------------------------------- */

TEST_P(verbs_objects, parent_domain_with_thread_domain_carries_messages)
{
    struct ibv_td_init_attr td_attr         = {};
    struct ibv_parent_domain_init_attr attr = {};
    struct ibv_td *td                       = ibv_alloc_td(dev.ctx, &td_attr);
    verbs_options options;

    ASSERT_NE(nullptr, td);
    attr.pd    = dev.pd;
    attr.td    = td;
    options.pd = ibv_alloc_parent_domain(dev.ctx, &attr);
    ASSERT_NE(nullptr, options.pd);
    {
        verbs_pair pair(dev, options);
        EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, write()));
        EXPECT_EQ(0x11, dst.addr[63]);
        EXPECT_EQ(EBUSY, ibv_dealloc_td(td));
    }
    EXPECT_EQ(0, ibv_dealloc_pd(options.pd));
    EXPECT_EQ(0, ibv_dealloc_td(td));
}

/* libmlx5 takes a page of registers for each two domains, and dcx a domain for
 * each interface. The last one carries messages. */
TEST_P(verbs_objects, thread_domains_of_many_interfaces)
{
    struct ibv_td_init_attr td_attr         = {};
    struct ibv_parent_domain_init_attr attr = {};
    std::vector<struct ibv_td *> tds;
    verbs_options options;

    for (unsigned i = 0; i < 2100; i++) {
        tds.push_back(ibv_alloc_td(dev.ctx, &td_attr));
        ASSERT_NE(nullptr, tds.back()) << i << ": " << strerror(errno);
    }
    attr.pd    = dev.pd;
    attr.td    = tds.back();
    options.pd = ibv_alloc_parent_domain(dev.ctx, &attr);
    ASSERT_NE(nullptr, options.pd);
    {
        verbs_pair pair(dev, options);
        EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, write()));
        EXPECT_EQ(0x11, dst.addr[63]);
    }
    EXPECT_EQ(0, ibv_dealloc_pd(options.pd));
    for (struct ibv_td *td : tds) {
        EXPECT_EQ(0, ibv_dealloc_td(td));
    }
}

/* A bad address of a command or of its answer does not fault in the driver. */
TEST_P(verbs_objects, command_at_a_bad_address_is_refused)
{
    alignas(8) char cmd[sizeof(struct ib_uverbs_ioctl_hdr) +
                        sizeof(struct ib_uverbs_attr)] = {};
    auto hdr         = (struct ib_uverbs_ioctl_hdr *)cmd;
    char answer[128] = {};

    hdr->length           = sizeof(cmd);
    hdr->driver_id        = RDMA_DRIVER_MLX5;
    hdr->object_id        = UVERBS_OBJECT_DEVICE;
    hdr->method_id        = UVERBS_METHOD_QUERY_CONTEXT;
    hdr->num_attrs        = 1;
    hdr->attrs[0].attr_id = MLX5_IB_ATTR_QUERY_CONTEXT_RESP_UCTX;
    hdr->attrs[0].flags   = UVERBS_ATTR_F_MANDATORY;
    hdr->attrs[0].len     = sizeof(answer);
    hdr->attrs[0].data    = (uintptr_t)answer;
    EXPECT_EQ(0, ioctl(dev.ctx->cmd_fd, RDMA_VERBS_IOCTL, cmd));
    EXPECT_NE(std::string(sizeof(answer), 0),
              std::string(answer, sizeof(answer)));

    hdr->attrs[0].data = 64;
    EXPECT_EQ(-1, ioctl(dev.ctx->cmd_fd, RDMA_VERBS_IOCTL, cmd));
    EXPECT_EQ(EFAULT, errno);
    EXPECT_EQ(-1, ioctl(dev.ctx->cmd_fd, RDMA_VERBS_IOCTL, (void *)64));
    EXPECT_EQ(EFAULT, errno);
}

TEST_P(verbs_objects, contexts_do_not_see_each_other)
{
    hca_device other;
    struct ibv_cq *cq            = ibv_create_cq(other.ctx, 16, NULL, NULL, 0);
    struct ibv_qp_init_attr attr = {};

    ASSERT_NE(nullptr, cq);
    attr.send_cq         = cq;
    attr.recv_cq         = cq;
    attr.qp_type         = IBV_QPT_RC;
    attr.cap.max_send_wr = 4;
    /* here its handle is that of another object, or of none */
    EXPECT_EQ(nullptr, ibv_create_qp(dev.pd, &attr));
    EXPECT_TRUE((errno == EINVAL) || (errno == ENOENT));
    EXPECT_EQ(0, ibv_destroy_cq(cq));
}

/* Another descriptor of the device, in each possible way */
int by_dup(int fd)
{
    return dup(fd);
}

int by_dup2(int fd)
{
    return dup2(fd, open("/dev/null", O_RDWR));
}

int by_fcntl(int fd)
{
    return fcntl(fd, F_DUPFD, 100);
}

int by_fcntl_cloexec(int fd)
{
    return fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

/* With another descriptor before it, which is not the device's */
int by_message(int fd)
{
    char byte = 0, control[CMSG_SPACE(2 * sizeof(int))] = {};
    struct iovec iov  = {&byte, 1};
    struct msghdr msg = {};
    int got[2]        = {0, fd}, pair[2];

    msg.msg_iov        = &iov;
    msg.msg_iovlen     = 1;
    msg.msg_control    = control;
    msg.msg_controllen = sizeof(control);
    HCA_CHECK_CALL(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
    cmsg->cmsg_level     = SOL_SOCKET;
    cmsg->cmsg_type      = SCM_RIGHTS;
    cmsg->cmsg_len       = CMSG_LEN(sizeof(got));
    memcpy(CMSG_DATA(cmsg), got, sizeof(got));
    HCA_CHECK_CALL(sendmsg(pair[0], &msg, 0) == 1);
    HCA_CHECK_CALL(recvmsg(pair[1], &msg, 0) == 1);
    memcpy(got, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(got));
    close(pair[0]);
    close(pair[1]);
    close(got[0]);
    return got[1];
}

TEST_P(verbs_objects, imported_domain_registers_memory)
{
    for (int (*again)(int) :
         {by_dup, by_dup2, by_fcntl, by_fcntl_cloexec, by_message}) {
        struct ibv_context *second = ibv_import_device(again(dev.ctx->cmd_fd));

        ASSERT_NE(nullptr, second);
        struct ibv_pd *pd = ibv_import_pd(second, dev.pd->handle);
        ASSERT_NE(nullptr, pd);
        {
            strict_mem mem(pd, ACCESS_ALL, 0);
            EXPECT_EQ(IBV_WC_SUCCESS,
                      write_to((uintptr_t)mem.addr, mem.mr->rkey));
            EXPECT_EQ(0x11, mem.addr[63]);
        }
        ibv_unimport_pd(pd);
        EXPECT_EQ(0, ibv_close_device(second));
    }
}

/* The last descriptor ends the context, not the first. */
TEST_P(verbs_objects, context_lives_as_long_as_a_duplicate)
{
    struct ibv_context *second;

    {
        hca_device first;

        second = ibv_import_device(by_fcntl(first.ctx->cmd_fd));
    }
    ASSERT_NE(nullptr, second);
    struct ibv_pd *pd = ibv_alloc_pd(second);
    ASSERT_NE(nullptr, pd);
    {
        strict_mem mem(pd, ACCESS_ALL, 0);
    }
    EXPECT_EQ(0, ibv_dealloc_pd(pd));
    EXPECT_EQ(0, ibv_close_device(second));
}

/* A region of a closed context is imported by way of its duplicate. */
TEST_P(verbs_objects, region_lives_as_long_as_a_duplicate)
{
    for (int (*again)(int) :
         {by_dup, by_dup2, by_fcntl, by_fcntl_cloexec, by_message}) {
        struct ibv_context *ctx = ibv_open_device(dev.ctx->device);
        ASSERT_NE(nullptr, ctx);
        struct ibv_pd *pd = ibv_alloc_pd(ctx);
        ASSERT_NE(nullptr, pd);
        struct ibv_mr *mr = ibv_reg_mr(pd, dst.addr, dst.size, ACCESS_ALL);
        ASSERT_NE(nullptr, mr);
        uint32_t handles[] = {pd->handle, mr->handle};
        int fd             = again(ctx->cmd_fd);
        ibv_unimport_mr(mr);
        ibv_unimport_pd(pd);
        EXPECT_EQ(0, ibv_close_device(ctx));
        ctx = ibv_import_device(fd);
        ASSERT_NE(nullptr, ctx);
        pd = ibv_import_pd(ctx, handles[0]);
        ASSERT_NE(nullptr, pd);
        mr = ibv_import_mr(pd, handles[1]);
        ASSERT_NE(nullptr, mr);
        EXPECT_EQ(0, ibv_dereg_mr(mr));
        EXPECT_EQ(0, ibv_dealloc_pd(pd));
        EXPECT_EQ(0, ibv_close_device(ctx));
    }
}

TEST_P(verbs_objects, what_is_in_use_is_busy)
{
    struct ibv_srq *srq              = create_srq();
    struct ibv_comp_channel *channel = ibv_create_comp_channel(dev.ctx);
    verbs_options options;

    ASSERT_NE(nullptr, channel);
    options.srq     = srq;
    options.channel = channel;
    {
        verbs_ep ep(dev, options);
        EXPECT_EQ(EBUSY, ibv_destroy_cq(ep.send_cq));
        EXPECT_EQ(EBUSY, ibv_destroy_cq(ep.recv_cq));
        EXPECT_EQ(EBUSY, ibv_destroy_srq(srq));
        EXPECT_EQ(EBUSY, ibv_dealloc_pd(dev.pd));
        EXPECT_EQ(EBUSY, ibv_destroy_comp_channel(channel));
    }
    EXPECT_EQ(EBUSY, ibv_dealloc_pd(dev.pd)) << "memory is registered";
    EXPECT_EQ(0, ibv_destroy_srq(srq));
    EXPECT_EQ(0, ibv_destroy_comp_channel(channel));
}

/* Runs a function in a forked child, with the inherited objects. */
template <typename F> int in_child(F run)
{
    int status = -1;
    pid_t pid  = fork();

    if (pid == 0) {
        run();
        _exit(testing::Test::HasFailure());
    }
    EXPECT_EQ(pid, waitpid(pid, &status, 0));
    return status;
}

TEST_P(verbs_objects, forked_child_opens_a_device_of_its_own)
{
    verbs_pair pair(dev);

    EXPECT_EQ(0, in_child([&] {
                  struct ibv_qp_attr attr = {};
                  struct ibv_device_attr info;

                  attr.qp_state = IBV_QPS_ERR;
                  EXPECT_EQ(EIO, ibv_modify_qp(pair.a.qp, &attr, IBV_QP_STATE));
                  EXPECT_EQ(nullptr, ibv_create_cq(dev.ctx, 1, NULL, NULL, 0));
                  EXPECT_EQ(EIO, errno);
                  EXPECT_EQ(EIO, ibv_dereg_mr(src.mr));
                  EXPECT_EQ(nullptr,
                            ibv_reg_mr(dev.pd, dst.addr, 64, ACCESS_ALL));
                  EXPECT_EQ(EIO, errno);
                  EXPECT_EQ(EIO, ibv_query_device(dev.ctx, &info));
                  EXPECT_EQ(EIO, ibv_dealloc_pd(dev.pd));
                  close(dev.ctx->cmd_fd);
                  hca_device own;
                  verbs_pair others(own);
                  EXPECT_EQ(0, ibv_query_device(own.ctx, &info));
              }));
    EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, write()));
}

/* --- two devices ---------------------------------------------------------- */

class verbs_two : public verbs_test {};

TEST_P(verbs_two, imported_device_is_the_one_of_its_descriptor)
{
    hca_device other(1);

    for (const hca_device *each : {&dev, &other}) {
        struct ibv_context *again = ibv_import_device(dup(each->ctx->cmd_fd));

        ASSERT_NE(nullptr, again);
        EXPECT_STREQ(ibv_get_device_name(each->ctx->device),
                     ibv_get_device_name(again->device));
        EXPECT_EQ(0, ibv_close_device(again));
    }
}

/* As the kernel's nodes: character devices, with numbers of their own */
TEST_P(verbs_two, nodes_have_numbers)
{
    for (unsigned minor = 0; minor < 2; minor++) {
        std::string path    = "/dev/infiniband/uverbs" + std::to_string(minor);
        int fd              = open(path.c_str(), O_RDWR);
        struct stat by_path = {}, by_fd = {}, by_empty = {};
        struct statx x = {};

        ASSERT_GE(fd, 0);
        EXPECT_EQ(0, stat(path.c_str(), &by_path));
        EXPECT_EQ(0, fstat(fd, &by_fd));
        EXPECT_EQ(0, fstatat(fd, "", &by_empty, AT_EMPTY_PATH));
        EXPECT_EQ(0, statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &x));
        for (const struct stat &st : {by_path, by_fd, by_empty}) {
            EXPECT_TRUE(S_ISCHR(st.st_mode));
            EXPECT_EQ(makedev(231, 192 + minor), st.st_rdev);
        }
        EXPECT_EQ(231u, x.stx_rdev_major);
        EXPECT_EQ(192u + minor, x.stx_rdev_minor);
        EXPECT_EQ(0, close(fd));
        EXPECT_EQ(-1, fstat(fd, &by_fd));
    }
}

INSTANTIATE_TEST_SUITE_P(two, verbs_two, testing::Values(0));

/* --- shared receive queues ------------------------------------------------ */

TEST_P(verbs_objects, srq_tells_once_when_it_runs_low)
{
    struct ibv_srq_attr limit = {};
    verbs_options options;

    options.srq = create_srq();
    {
        verbs_pair pair(dev, {}, options);
        for (uint64_t i = 0; i < 8; i++) {
            ASSERT_EQ(0, verbs_recv(pair.b.qp, dst, 64, i));
        }
        limit.srq_limit = 6;
        ASSERT_EQ(0, ibv_modify_srq(options.srq, &limit, IBV_SRQ_LIMIT));
        for (int i = 0; i < 2; i++) {
            EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, send()));
        }
        EXPECT_FALSE(verbs_readable(dev.ctx->async_fd, 0)) << "six are left";
        EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, send()));
        struct ibv_async_event event = verbs_event(dev.ctx);
        EXPECT_EQ(IBV_EVENT_SRQ_LIMIT_REACHED, event.event_type);
        EXPECT_EQ(options.srq, event.element.srq);
        EXPECT_EQ(0, ibv_query_srq(options.srq, &limit));
        EXPECT_EQ(0u, limit.srq_limit) << "to be armed again";
    }
    EXPECT_EQ(0, ibv_destroy_srq(options.srq));
}

/* mlx5_ib_create_srq() ignores srq_limit. */
TEST_P(verbs_objects, srq_is_created_without_a_limit)
{
    struct ibv_srq_init_attr init = {NULL, {16, 1, 8}};
    struct ibv_srq_attr attr      = {};
    verbs_options options;

    options.srq = ibv_create_srq(dev.pd, &init);
    ASSERT_NE(nullptr, options.srq);
    EXPECT_EQ(0, ibv_query_srq(options.srq, &attr));
    EXPECT_EQ(0u, attr.srq_limit);
    {
        verbs_pair pair(dev, {}, options);
        ASSERT_EQ(0, verbs_recv(pair.b.qp, dst, 64));
        EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, send()));
        EXPECT_FALSE(verbs_readable(dev.ctx->async_fd, 0));
    }
    EXPECT_EQ(0, ibv_destroy_srq(options.srq));
}

TEST_P(verbs_objects, srq_refuses_what_it_cannot_be)
{
    struct ibv_srq *srq      = create_srq();
    struct ibv_srq_attr attr = {};

    EXPECT_EQ(EINVAL, ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR));
    attr.srq_limit = 1 << 14;
    EXPECT_EQ(EINVAL, ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT));
    EXPECT_EQ(0, ibv_destroy_srq(srq));
}

/* --- XRC ------------------------------------------------------------------ */

/* An XRC domain of a file, opened in a context */
class xrc_domain {
public:
    xrc_domain(const hca_device &dev, int fd, int oflags)
    {
        struct ibv_xrcd_init_attr attr = {};

        attr.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
        attr.fd        = fd;
        attr.oflags    = oflags;
        HCA_CHECK_CALL((xrcd = ibv_open_xrcd(dev.ctx, &attr)) != NULL);
    }

    ~xrc_domain() { EXPECT_EQ(0, ibv_close_xrcd(xrcd)); }

    struct ibv_xrcd *xrcd;
};

struct ibv_srq *xrc_create_srq(const hca_device &dev, struct ibv_xrcd *xrcd,
                               struct ibv_cq *cq)
{
    struct ibv_srq_init_attr_ex attr = {};

    attr.attr      = {16, 1, 0};
    attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
                     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
    attr.srq_type = IBV_SRQT_XRC;
    attr.pd       = dev.pd;
    attr.xrcd     = xrcd;
    attr.cq       = cq;
    return ibv_create_srq_ex(dev.ctx, &attr);
}

/* Creates a sender (domain NULL) or a receiver, in RESET. */
struct ibv_qp *xrc_create_qp(const hca_device &dev, struct ibv_xrcd *xrcd,
                             struct ibv_cq *cq)
{
    struct ibv_qp_init_attr_ex attr = {};

    if (xrcd != NULL) {
        attr.qp_type   = IBV_QPT_XRC_RECV;
        attr.comp_mask = IBV_QP_INIT_ATTR_XRCD;
        attr.xrcd      = xrcd;
    } else {
        attr.qp_type          = IBV_QPT_XRC_SEND;
        attr.comp_mask        = IBV_QP_INIT_ATTR_PD;
        attr.pd               = dev.pd;
        attr.send_cq          = cq;
        attr.cap.max_send_wr  = 4;
        attr.cap.max_send_sge = 1;
    }
    return ibv_create_qp_ex(dev.ctx, &attr);
}

void xrc_connect(const hca_device &dev, struct ibv_qp *sender,
                 struct ibv_qp *receiver)
{
    constexpr int init = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    constexpr int rtr  = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                        IBV_QP_RQ_PSN;
    struct ibv_qp_attr to_sender   = hca_qp_attr(dev, sender->qp_num);
    struct ibv_qp_attr to_receiver = hca_qp_attr(dev, receiver->qp_num);

    hca_modify(receiver, to_sender, IBV_QPS_INIT, init);
    hca_modify(receiver, to_sender, IBV_QPS_RTR,
               rtr | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    hca_modify(sender, to_receiver, IBV_QPS_INIT, init);
    hca_modify(sender, to_receiver, IBV_QPS_RTR, rtr);
    hca_modify(sender, to_receiver, IBV_QPS_RTS, verbs_ep::rts_mask);
}

TEST_P(verbs_objects, xrc_domain_of_a_file_is_shared_by_contexts)
{
    char path[] = "/dev/shm/dcx-test-xrc-XXXXXX";
    int fd      = mkstemp(path);
    hca_device other;

    ASSERT_LE(0, fd);
    unlink(path);
    EXPECT_THROW(xrc_domain(dev, fd, 0), std::runtime_error) << "no O_CREAT";
    {
        xrc_domain mine(dev, fd, O_CREAT), theirs(other, fd, 0);
        EXPECT_THROW(xrc_domain(dev, fd, O_CREAT | O_EXCL), std::runtime_error);
        /* our receiver delivers to a queue of the other context */
        struct ibv_cq *send_cq  = ibv_create_cq(dev.ctx, 16, NULL, NULL, 0);
        struct ibv_cq *recv_cq  = ibv_create_cq(other.ctx, 16, NULL, NULL, 0);
        struct ibv_srq *srq     = xrc_create_srq(other, theirs.xrcd, recv_cq);
        struct ibv_qp *receiver = xrc_create_qp(dev, mine.xrcd, NULL);
        struct ibv_qp *sender   = xrc_create_qp(dev, NULL, send_cq);
        strict_mem mem(other.pd, ACCESS_ALL, 0);
        verbs_op op           = send();
        struct ibv_sge sge    = {(uintptr_t)mem.addr, 64, mem.mr->lkey};
        struct ibv_recv_wr wr = {9, NULL, &sge, 1}, *bad;

        ASSERT_TRUE(srq && receiver && sender);
        xrc_connect(dev, sender, receiver);
        ASSERT_EQ(0, ibv_post_srq_recv(srq, &wr, &bad));
        ASSERT_EQ(0, ibv_get_srq_num(srq, &op.wr.qp_type.xrc.remote_srqn));
        ASSERT_EQ(0, op.post(sender));
        verbs_expect_wcs(send_cq, IBV_WC_SUCCESS, 0, 0);
        verbs_expect_wcs(recv_cq, IBV_WC_SUCCESS, 9, 9);
        EXPECT_EQ(0x11, mem.addr[63]);
        EXPECT_EQ(EBUSY, ibv_close_xrcd(mine.xrcd));
        EXPECT_EQ(EBUSY, ibv_close_xrcd(theirs.xrcd));
        EXPECT_EQ(0, ibv_destroy_qp(sender));
        EXPECT_EQ(0, ibv_destroy_qp(receiver));
        EXPECT_EQ(0, ibv_destroy_srq(srq));
        EXPECT_EQ(0, ibv_destroy_cq(recv_cq));
        EXPECT_EQ(0, ibv_destroy_cq(send_cq));
    }
    close(fd);
}

int xrc_fd; /* the file of the domain, in both processes */

void xrc_become_another(int fd)
{
    hca_device dev;
    xrc_domain domain(dev, xrc_fd, O_CREAT);
    struct ibv_cq *cq   = ibv_create_cq(dev.ctx, 16, NULL, NULL, 0);
    struct ibv_srq *srq = xrc_create_srq(dev, domain.xrcd, cq);
    strict_mem mem(dev.pd, ACCESS_ALL, 0);
    struct ibv_sge sge    = {(uintptr_t)mem.addr, 64, mem.mr->lkey};
    struct ibv_recv_wr wr = {9, NULL, &sge, 1}, *bad;
    uint32_t num;

    EXPECT_EQ(0, ibv_post_srq_recv(srq, &wr, &bad));
    EXPECT_EQ(0, ibv_get_srq_num(srq, &num));
    EXPECT_EQ((ssize_t)sizeof(num), ::write(fd, &num, sizeof(num)));
    EXPECT_EQ((ssize_t)sizeof(num), ::read(fd, &num, sizeof(num)));
    execlp("sleep", "sleep", "1000", NULL);
}

/* The process that owns the SRQ has become another program; the one of the QP
 * lives. */
TEST_P(verbs_objects, xrc_message_to_a_process_that_ended_by_exec)
{
    char path[] = "/dev/shm/dcx-test-xrc-XXXXXX";
    verbs_op op = send();

    xrc_fd = mkstemp(path);
    ASSERT_LE(0, xrc_fd);
    unlink(path);
    peer_process peer(xrc_become_another);
    uint32_t *num = &op.wr.qp_type.xrc.remote_srqn;
    ASSERT_EQ((ssize_t)sizeof(*num), ::read(peer.fd, num, sizeof(*num)));
    {
        xrc_domain domain(dev, xrc_fd, O_CREAT);
        struct ibv_cq *cq       = ibv_create_cq(dev.ctx, 16, NULL, NULL, 0);
        struct ibv_qp *receiver = xrc_create_qp(dev, domain.xrcd, NULL);
        struct ibv_qp *sender   = xrc_create_qp(dev, NULL, cq);

        ASSERT_TRUE(receiver && sender);
        xrc_connect(dev, sender, receiver);
        ASSERT_EQ((ssize_t)sizeof(*num), ::write(peer.fd, num, sizeof(*num)));
        std::string name = "/proc/" + std::to_string(peer.pid) + "/comm";
        ASSERT_TRUE(hca_until([&] {
            std::ifstream file(name);
            std::string comm;
            return std::getline(file, comm) && (comm == "sleep");
        }));
        ASSERT_EQ(0, op.post(sender));
        EXPECT_EQ(IBV_WC_REM_INV_REQ_ERR, verbs_wait(cq).status)
            << "there is no such SRQ any more";
        EXPECT_EQ(0, ibv_destroy_qp(sender));
        EXPECT_EQ(0, ibv_destroy_qp(receiver));
        EXPECT_EQ(0, ibv_destroy_cq(cq));
    }
    close(xrc_fd);
}

/* --- tags ----------------------------------------------------------------- */

/* libmlx5 connects its command queue pair without a global route, which the
 * kernel refuses on RoCE. DEVX makes such an SRQ there, too. */
TEST_P(verbs_objects, srq_with_tags_is_for_infiniband)
{
    struct ibv_cq_ex *cq = tm_srq::create_cq(dev, {});
    struct ibv_srq *srq;

    ASSERT_NE(nullptr, cq);
    srq = tm_srq::create(dev, cq, {});
    EXPECT_EQ(dev.is_roce(), srq == NULL);
    if (srq != NULL) {
        EXPECT_EQ(0, ibv_destroy_srq(srq));
    }
    EXPECT_EQ(0, ibv_destroy_cq(ibv_cq_ex_to_cq(cq))) << "something is left";
}

/* It is in no XRC domain: a message that names it is refused. */
TEST_P(verbs_objects, srq_with_tags_takes_no_xrc_message)
{
    if (dev.is_roce()) {
        return; /* there is none, see above */
    }
    tm_srq tm(dev);
    char path[] = "/dev/shm/dcx-test-xrc-XXXXXX";
    int fd      = mkstemp(path);
    xrc_domain domain(dev, fd, O_CREAT);
    struct ibv_cq *cq       = ibv_create_cq(dev.ctx, 16, NULL, NULL, 0);
    struct ibv_qp *receiver = xrc_create_qp(dev, domain.xrcd, NULL);
    struct ibv_qp *sender   = xrc_create_qp(dev, NULL, cq);
    hca_log_reader log;
    verbs_op op = send();

    unlink(path);
    ASSERT_TRUE(receiver && sender);
    xrc_connect(dev, sender, receiver);
    tm.recv(3);
    tm.add({.wr_id = 1, .mask = 0});
    src.addr[0] = IBV_TMH_EAGER;
    ASSERT_EQ(0, ibv_get_srq_num(tm.srq, &op.wr.qp_type.xrc.remote_srqn));
    ASSERT_EQ(0, op.post(sender));
    EXPECT_EQ(IBV_WC_REM_INV_REQ_ERR, verbs_wait(cq).status);
    EXPECT_NE(std::string::npos, log.take().find("xrc srqn is"));
    EXPECT_TRUE(tm.is_empty());
    EXPECT_EQ(0, ibv_destroy_qp(sender));
    EXPECT_EQ(0, ibv_destroy_qp(receiver));
    EXPECT_EQ(0, ibv_destroy_cq(cq));
    close(fd);
}

/* --- address handles ------------------------------------------------------ */

TEST_P(verbs_objects, datagram_brings_the_way_back_to_its_sender)
{
    struct ibv_ah_attr attr = dev.ah_attr(true);
    struct ibv_ah *ah       = ibv_create_ah(dev.pd, &attr);
    verbs_op op             = send();
    verbs_options options;

    ASSERT_NE(nullptr, ah);
    options.type = IBV_QPT_UD;
    {
        verbs_ep a(dev, options), b(dev, options);
        a.connect(a.attr(0));
        b.connect(b.attr(0));
        ASSERT_EQ(0, verbs_recv(b.qp, dst, 128));
        op.wr.wr.ud = {ah, b.qp->qp_num, 0x11223344};
        EXPECT_EQ(IBV_WC_SUCCESS, run(a, op));
        struct ibv_wc wc = verbs_wait(b.recv_cq);
        EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
        EXPECT_EQ(64u + 40u, wc.byte_len);
        EXPECT_EQ(a.qp->qp_num, wc.src_qp);
        EXPECT_TRUE(wc.wc_flags & IBV_WC_GRH);
        EXPECT_EQ(0x11, dst.addr[40]);
        struct ibv_ah *back =
            ibv_create_ah_from_wc(dev.pd, &wc, (struct ibv_grh *)dst.addr, 1);
        ASSERT_NE(nullptr, back);
        ASSERT_EQ(0, verbs_recv(a.qp, dst, 128));
        op.wr.wr.ud = {back, wc.src_qp, 0x11223344};
        EXPECT_EQ(IBV_WC_SUCCESS, run(b, op));
        EXPECT_EQ(IBV_WC_SUCCESS, verbs_wait(a.recv_cq).status);
        EXPECT_EQ(0, ibv_destroy_ah(back));
    }
    EXPECT_EQ(0, ibv_destroy_ah(ah));
}

INSTANTIATE_TEST_SUITE_P(ib, verbs_objects, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(roce, verbs_objects, testing::Values(0));

} /* namespace */

int main(int argc, char **argv)
{
    return hca_test_main(argc, argv,
                         {
                             {"ib", {}},
                             {"roce", {{"SOFTHCA_LINK", "roce"}}},
                             {"two", {{"SOFTHCA_DEVICES", "2"}}},
                         });
}
