/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Actions of a process on itself while it uses the device: it uses up, closes
 * or replaces descriptors, cancels threads, and rings in a signal handler. Also
 * doorbells that name no queue, and the device's time.
 */
#include "no_descriptors.h"
#include "verbs_peer.h"

#include <atomic>
#include <csignal>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <set>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <thread>
#include <time.h>

namespace {

class verbs_process : public verbs_test {};

/* --- cancellation --------------------------------------------------------- */

/* Neither posting nor a call of the control path is a cancellation point. */
TEST_P(verbs_process, cancelled_thread_leaves_the_device_in_order)
{
    struct ibv_comp_channel *channel = ibv_create_comp_channel(dev.ctx);
    bool has_posted = false, was_destroyed = false;
    verbs_options options;

    ASSERT_NE(nullptr, channel);
    options.send_cq = ibv_create_cq(dev.ctx, 63, NULL, channel, 0);
    ASSERT_NE(nullptr, options.send_cq);
    {
        verbs_pair pair(dev, options, {}), other(dev, options, {});

        ASSERT_EQ(0, ibv_req_notify_cq(options.send_cq, 0));
        std::thread thread([&] {
            pthread_cancel(pthread_self());
            EXPECT_EQ(0, write(1).post(pair.a.qp)); /* writes an event */
            EXPECT_EQ(0, write(2).remote(0, 0).post(pair.a.qp)); /* logs */
            has_posted = true;
            pair.a.destroy_qp();
            was_destroyed = true;
            pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
        });
        thread.join();
        EXPECT_TRUE(has_posted);
        EXPECT_TRUE(was_destroyed);
        verbs_expect_event(channel, options.send_cq);
        EXPECT_EQ(0, write(3).post(other.a.qp));
        verbs_expect_wcs(options.send_cq, IBV_WC_SUCCESS, 3, 3);
    }
    EXPECT_EQ(0, ibv_destroy_cq(options.send_cq));
    EXPECT_EQ(0, ibv_destroy_comp_channel(channel));
}

/* --- signals -------------------------------------------------------------- */

/* A domain whose queues have a UAR page, and locks of libmlx5, of their own */
class own_domain {
public:
    explicit own_domain(const hca_device &dev)
    {
        struct ibv_td_init_attr td_attr         = {};
        struct ibv_parent_domain_init_attr attr = {};

        HCA_CHECK_CALL((m_td = ibv_alloc_td(dev.ctx, &td_attr)) != NULL);
        attr.pd    = dev.pd;
        attr.td    = m_td;
        options.pd = ibv_alloc_parent_domain(dev.ctx, &attr);
        HCA_CHECK_CALL(options.pd != NULL);
    }

    ~own_domain()
    {
        EXPECT_EQ(0, ibv_dealloc_pd(options.pd));
        EXPECT_EQ(0, ibv_dealloc_td(m_td));
    }

    verbs_options options;

private:
    struct ibv_td *m_td;
};

/* Queue and request of the handler. They are of a domain of their own: the
 * interrupted call may hold a lock of libmlx5. */
struct {
    verbs_op *op;
    verbs_ep *ep;
    std::atomic<int> posted, failed;
} in_handler;

void post_once_in_handler(int)
{
    int saved_errno = errno;

    if (in_handler.op->post(in_handler.ep->qp) == 0) {
        in_handler.posted++;
    }
    errno = saved_errno;
}

void post_in_handler(int signal)
{
    struct ibv_wc wc;
    int saved_errno = errno;

    post_once_in_handler(signal);
    while (ibv_poll_cq(in_handler.ep->send_cq, 1, &wc) > 0) {
        in_handler.failed += (wc.status != IBV_WC_SUCCESS);
    }
    errno = saved_errno;
}

/* Sends SIGALRM to the process each SIGNAL_PERIOD while it lives. */
class alarm_clock {
public:
    alarm_clock()
    {
        struct sigevent event    = {};
        const long ns            = time_slow(SIGNAL_PERIOD) * 1000l;
        struct itimerspec period = {{0, ns}, {0, ns}};
        struct sigaction action  = {};

        action.sa_handler = post_in_handler;
        action.sa_flags   = SA_RESTART;
        sigaction(SIGALRM, &action, &m_saved);
        event.sigev_notify = SIGEV_SIGNAL;
        event.sigev_signo  = SIGALRM;
        HCA_CHECK_CALL(timer_create(CLOCK_MONOTONIC, &event, &m_timer) == 0);
        timer_settime(m_timer, 0, &period, NULL);
    }

    ~alarm_clock()
    {
        struct sigaction ignore = {};

        timer_delete(m_timer);
        ignore.sa_handler = SIG_IGN; /* drops a pending one */
        sigaction(SIGALRM, &ignore, NULL);
        sigaction(SIGALRM, &m_saved, NULL);
    }

private:
    timer_t m_timer;
    struct sigaction m_saved;
};

TEST_P(verbs_process, doorbells_ring_from_a_signal_handler)
{
    own_domain domain(dev);
    {
        verbs_pair inner(dev, domain.options, {}), outer(dev);
        verbs_op op = write(), mine = write(0, dst.size / 2);

        mine.remote((uintptr_t)dst.addr + dst.size / 2, dst.mr->rkey);
        in_handler.op     = &op;
        in_handler.ep     = &inner.a;
        in_handler.posted = 0;
        in_handler.failed = 0;
        alarm_clock clock;
        EXPECT_TRUE(hca_until([&] {
            EXPECT_EQ(IBV_WC_SUCCESS, run(outer.a, mine));
            return (in_handler.posted >= 500) || HasFailure();
        })) << in_handler.posted
            << " signals";
    }
    EXPECT_EQ(0, in_handler.failed);
    EXPECT_EQ(0x11, dst.addr[63]);
    EXPECT_EQ(0x11, dst.addr[dst.size - 1]);
}

/* A signal handler rings once while the thread is in another doorbell, near
 * one, or elsewhere. No later doorbell makes up for it if it is lost. */
TEST_P(verbs_process, doorbell_within_a_doorbell_is_not_lost)
{
    constexpr int TURNS         = 200;
    const struct itimerval soon = {{0, 0}, {0, time_slow(SIGNAL_PERIOD)}};
    struct sigaction action     = {}, saved;
    own_domain domain(dev);
    verbs_pair inner(dev, domain.options, {}), outer(dev);
    verbs_op op = write(), mine = write();

    in_handler.op     = &op;
    in_handler.ep     = &inner.a;
    in_handler.posted = 0;
    action.sa_handler = post_once_in_handler;
    action.sa_flags   = SA_RESTART;
    ASSERT_EQ(0, sigaction(SIGALRM, &action, &saved));
    for (int turn = 0; (turn < TURNS) && !HasFailure(); turn++) {
        setitimer(ITIMER_REAL, &soon, NULL);
        while (in_handler.posted == turn) {
            EXPECT_EQ(IBV_WC_SUCCESS, run(outer.a, mine));
        }
        EXPECT_EQ(IBV_WC_SUCCESS, verbs_wait(inner.a.send_cq).status);
    }
    sigaction(SIGALRM, &saved, NULL);
}

/* --- doorbells that name no queue ----------------------------------------- */

/* A doorbell that names no queue rings all queues of its page, and no queue of
 * another page. */
TEST_P(verbs_process, nameless_doorbell_is_of_its_page)
{
    own_domain domain(dev);
    verbs_pair near(dev, domain.options, {}), far(dev);
    raw_qp queues[] = {raw_qp(near.a.qp), raw_qp(far.a.qp)};

    for (raw_qp &queue : queues) {
        raw_wqe wqe(MLX5_OPCODE_RDMA_WRITE);

        wqe.raddr(dst.addr, dst.mr->rkey).data(src.addr, 64, src.mr->lkey);
        wqe.finish(queue.pi, queue.qpn);
        queue.write(wqe);
        queue.announce(wqe.num_bb());
    }
    queues[0].ring_nameless();
    EXPECT_EQ(IBV_WC_SUCCESS, verbs_wait(near.a.send_cq).status);
    EXPECT_TRUE(verbs_is_empty(far.a.send_cq));
    queues[1].ring_nameless();
    EXPECT_EQ(IBV_WC_SUCCESS, verbs_wait(far.a.send_cq).status);
}

/* --- descriptors ---------------------------------------------------------- */

/* Sends twice, the first time without a descriptor for the event. */
void send_without_descriptors(int fd)
{
    hca_device dev;
    strict_mem mem(dev.pd, ACCESS_ALL, 0x33);
    verbs_ep ep(dev);
    peer_card card = peer_exchange(fd, ep, mem);
    verbs_op op    = verbs_op(IBV_WR_SEND).local(mem, 64);
    verbs_op write =
        verbs_op(IBV_WR_RDMA_WRITE).local(mem, 64).remote(card.addr, card.rkey);

    peer_connect(fd, ep, card);
    HCA_CHECK_CALL(write.post(ep.qp) == 0); /* opens the connection */
    EXPECT_EQ(IBV_WC_SUCCESS, verbs_wait(ep.send_cq).status);
    {
        no_descriptors fill(0);

        HCA_CHECK_CALL(op.post(ep.qp) == 0);
        EXPECT_EQ(IBV_WC_SUCCESS, verbs_wait(ep.send_cq).status);
    }
    peer_meet(fd); /* the parent checks that there is no event */
    peer_meet(fd); /* it has checked */
    HCA_CHECK_CALL(op.post(ep.qp) == 0);
    EXPECT_EQ(IBV_WC_SUCCESS, verbs_wait(ep.send_cq).status);
    peer_meet(fd);
}

TEST_P(verbs_process, event_that_was_not_written_comes_with_the_next)
{
    struct ibv_comp_channel *channel = ibv_create_comp_channel(dev.ctx);
    verbs_options options;
    hca_log_reader log;

    ASSERT_NE(nullptr, channel);
    options.channel = channel;
    {
        peer_process peer(send_without_descriptors);
        verbs_ep ep(dev, options);
        peer_card card = peer_exchange(peer.fd, ep, dst);

        ep.connect(ep.attr(card.qpn));
        for (uint64_t wr_id = 1; wr_id <= 2; wr_id++) {
            ASSERT_EQ(0, verbs_recv(ep.qp, dst, 64, wr_id));
        }
        ASSERT_EQ(0, ibv_req_notify_cq(ep.recv_cq, 0));
        peer_meet(peer.fd); /* it now sends */
        peer_meet(peer.fd);
        EXPECT_FALSE(verbs_readable(channel->fd, 0));
        EXPECT_NE(std::string::npos,
                  log.take().find("events cannot be delivered"));
        peer_meet(peer.fd);
        peer_meet(peer.fd); /* it has sent again */
        verbs_expect_event(channel, ep.recv_cq);
        EXPECT_FALSE(verbs_readable(channel->fd, 0)) << "only one";
        verbs_expect_wcs(ep.recv_cq, IBV_WC_SUCCESS, 1, 2);
        EXPECT_EQ(0, peer.wait());
    }
    EXPECT_EQ(0, ibv_destroy_comp_channel(channel));
}

/* Opens a device, closes all descriptors but the first three and @fd, opens
 * another device. */
void close_everything(int fd)
{
    {
        hca_device dev;
        verbs_pair pair(dev);
    }
    EXPECT_EQ(0, close_range(3, fd - 1, 0));
    closefrom(fd + 1);
    for (int i = 3; i < 256; i++) {
        if (i != fd) {
            EXPECT_EQ(-1, close(i)) << i;
            EXPECT_EQ(EBADF, errno) << i;
        }
    }
    peer_meet(fd);
    peer_meet(fd);

    hca_device dev;
    strict_mem mem(dev.pd, ACCESS_ALL, 0);
    verbs_options options;
    options.rnr_retry = 3;
    verbs_pair pair(dev, options);
    HCA_CHECK_CALL(verbs_op(IBV_WR_SEND).local(mem, 64).post(pair.a.qp) == 0);
    EXPECT_EQ(IBV_WC_RNR_RETRY_EXC_ERR, verbs_wait(pair.a.send_cq).status);
}

void come_and_go(int)
{
    hca_device dev;
}

TEST_P(verbs_process, closing_everything_leaves_the_device_its_own)
{
    peer_process peer(close_everything);

    peer_meet(peer.fd);
    EXPECT_EQ(0,
              peer_process(come_and_go).wait()); /* would remove a dead one */
    peer_meet(peer.fd);
    EXPECT_EQ(0, peer.wait());
}

/* Replaces a descriptor that close() refuses; it is the program's then. */
void replace_a_descriptor(int socket)
{
    int fd = socket;

    hca_device *dev = new hca_device; /* never freed: it is not usable any
                                       * more */
    do {
        ++fd;
        ASSERT_LT(fd, 256);
    } while ((fcntl(fd, F_GETFD) < 0) || (fd == dev->ctx->cmd_fd) ||
             (fd == dev->ctx->async_fd) || (close(fd) == 0));
    EXPECT_EQ(fd, dup2(socket, fd));
    EXPECT_EQ(0, close(fd));
}

TEST_P(verbs_process, descriptor_of_the_device_can_be_replaced)
{
    EXPECT_EQ(0, peer_process(replace_a_descriptor).wait());
}

std::set<int> open_descriptors()
{
    std::set<int> fds;

    for (int fd = 0; fd < 256; fd++) {
        if (fcntl(fd, F_GETFD) >= 0) {
            fds.insert(fd);
        }
    }
    return fds;
}

/* Replaces the descriptors that the device has opened for a channel. They stay
 * open when the channel is destroyed, and another one created. */
void keep_a_replacement(int socket)
{
    hca_device *dev              = new hca_device; /* never freed */
    const std::set<int> before   = open_descriptors();
    struct ibv_comp_channel *one = ibv_create_comp_channel(dev->ctx);
    std::set<int> of_channel     = open_descriptors();
    struct stat is, at;

    for (int fd : before) {
        of_channel.erase(fd);
    }
    of_channel.erase(one->fd);
    for (int fd : of_channel) {
        ASSERT_EQ(fd, dup2(socket, fd));
    }
    EXPECT_FALSE(of_channel.empty());
    EXPECT_EQ(0, ibv_destroy_comp_channel(one));
    ASSERT_NE(nullptr, ibv_create_comp_channel(dev->ctx));
    ASSERT_EQ(0, fstat(socket, &is));
    for (int fd : of_channel) {
        ASSERT_EQ(0, fstat(fd, &at)) << fd;
        EXPECT_EQ(is.st_ino, at.st_ino) << fd;
    }
}

TEST_P(verbs_process, replaced_descriptor_stays_open)
{
    EXPECT_EQ(0, peer_process(keep_a_replacement).wait());
}

/* The program closes the device by a system call, and a file gets its
 * number. */
void reuse_the_number(int)
{
    hca_device *dev = new hca_device; /* never freed: it is not usable any
                                       * more */
    int fd = dev->ctx->cmd_fd, file = open("/proc/self/exe", O_RDONLY), bytes;
    struct stat is, st = {}, at = {};
    struct statx x = {};

    ASSERT_EQ(0, stat("/proc/self/exe", &is));
    ASSERT_EQ(fd, syscall(SYS_dup3, file, fd, 0));
    EXPECT_EQ(0, ioctl(fd, FIONREAD, &bytes));
    EXPECT_EQ(0, fstat(fd, &st));
    EXPECT_EQ(0, fstatat(fd, "", &at, AT_EMPTY_PATH));
    EXPECT_EQ(0, statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &x));
    for (const struct stat &each : {st, at}) {
        EXPECT_TRUE(S_ISREG(each.st_mode));
        EXPECT_EQ(is.st_size, each.st_size);
    }
    EXPECT_TRUE(S_ISREG(x.stx_mode));
}

TEST_P(verbs_process, number_of_a_closed_device_can_be_a_files)
{
    EXPECT_EQ(0, peer_process(reuse_the_number).wait());
}

void close_a_range(int)
{
    hca_device *dev = new hca_device; /* never freed: it is not usable any
                                       * more */
    unsigned fd     = dev->ctx->cmd_fd;
    const auto command_errno = [=] {
        EXPECT_EQ(-1, ioctl(fd, RDMA_VERBS_IOCTL, NULL));
        return errno;
    };

    EXPECT_EQ(-1, close_range(fd, fd, 1 << 30)) << "an unknown flag";
    EXPECT_EQ(EFAULT, command_errno());
    EXPECT_EQ(0, close_range(fd, fd, CLOSE_RANGE_CLOEXEC));
    EXPECT_EQ(EFAULT, command_errno());
    EXPECT_EQ(0, close_range(fd, fd, CLOSE_RANGE_UNSHARE));
    EXPECT_EQ(EBADF, command_errno());
}

TEST_P(verbs_process, range_of_descriptors_is_closed_or_not)
{
    EXPECT_EQ(0, peer_process(close_a_range).wait());
}

/* Returns the minimum time of a call. */
template <typename F> uint64_t least_ns(F call)
{
    uint64_t least = UINT64_MAX;

    for (int i = 0; i < 2000; i++) {
        uint64_t start = time_now_ns(CLOCK_MONOTONIC);

        call();
        least = std::min(least, time_now_ns(CLOCK_MONOTONIC) - start);
    }
    return least;
}

/* The preloaded recvmsg() does not check all possible descriptors. */
TEST_P(verbs_process, descriptor_is_received_in_no_time)
{
    int sockets[2];

    ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
    const auto pass = [&](bool is_raw) {
        alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
        char byte                                                     = 0;
        struct iovec iov  = {&byte, 1};
        struct msghdr msg = {NULL, 0, &iov, 1, control, sizeof(control), 0};
        auto cmsg         = (struct cmsghdr *)control;
        int fd;

        cmsg->cmsg_level = SOL_SOCKET;
        cmsg->cmsg_type  = SCM_RIGHTS;
        cmsg->cmsg_len   = CMSG_LEN(sizeof(fd));
        memcpy(CMSG_DATA(cmsg), sockets, sizeof(fd));
        ASSERT_EQ(1, sendmsg(sockets[0], &msg, 0));
        ASSERT_EQ(1, is_raw ? syscall(SYS_recvmsg, sockets[1], &msg, 0) :
                              recvmsg(sockets[1], &msg, 0));
        memcpy(&fd, CMSG_DATA(cmsg), sizeof(fd));
        ASSERT_EQ(0, close(fd));
    };
    EXPECT_LT(least_ns([&] { pass(false); }),
              RATIO_RECVMSG * least_ns([&] { pass(true); }));
    close(sockets[0]);
    close(sockets[1]);
}

void opens_and_waits(int fd)
{
    hca_device dev;

    HCA_CHECK_CALL(::write(fd, &dev.ctx->cmd_fd, sizeof(int)) == sizeof(int));
    peer_wait_for_the_end(fd);
}

/* This process opens the descriptor of another one by /proc. */
TEST_P(verbs_process, device_of_another_process_is_none)
{
    peer_process peer(opens_and_waits);
    hca_log_reader log;
    std::string path;
    int number, fd;

    ASSERT_EQ((ssize_t)sizeof(number),
              ::read(peer.fd, &number, sizeof(number)));
    path = "/proc/" + std::to_string(peer.pid) + "/fd/" +
           std::to_string(number);
    fd = open(path.c_str(), O_RDWR);
    ASSERT_LE(0, fd);
    EXPECT_EQ(nullptr, ibv_import_device(fd));
    EXPECT_EQ(EINVAL, errno);
    EXPECT_NE(std::string::npos, log.take().find("another process has opened"));
    close(fd);
}

/* --- memory --------------------------------------------------------------- */

constexpr int NO_PAGE_0 = 2;

/* Opens a device where address 0 is mapped, and errno is old. */
void open_with_page_0(int)
{
    if (mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
             0) == MAP_FAILED) {
        _exit(NO_PAGE_0);
    }
    errno = ENOENT;
    hca_device dev;
}

TEST_P(verbs_process, page_0_may_be_mapped)
{
    int status = peer_process(open_with_page_0).wait();

    if (status == NO_PAGE_0 << 8) {
        GTEST_SKIP() << "the system maps nothing at address 0";
    }
    EXPECT_EQ(0, status);
}

/* --- time ----------------------------------------------------------------- */

TEST_P(verbs_process, clock_is_the_only_value_of_now)
{
    for (uint32_t mask : {2u, 2u | IBV_VALUES_MASK_RAW_CLOCK}) {
        struct ibv_values_ex values = {mask, {}};

        EXPECT_EQ(EINVAL, ibv_query_rt_values_ex(dev.ctx, &values));
        EXPECT_EQ(mask, values.comp_mask);
    }
}

TEST_P(verbs_process, time_of_the_device_is_told_apart)
{
    auto ticks = (uint64_t(*)())dlsym(RTLD_DEFAULT, "softhca_ticks");
    std::vector<verbs_op> ops(16, write(1).flags(0));
    uint64_t start, least = UINT64_MAX;
    verbs_pair pair(dev);

    ASSERT_TRUE(ticks != NULL);
    for (int i = 0; i < 20; i++) {
        start = ticks();
        EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, write(2)));
        least = std::min(least, ticks() - start);
    }
    EXPECT_GT(least, 0u);

    for (size_t i = 0; i < ops.size(); i++) {
        ops[i].attach();
        ops[i].wr.next = (i + 1 < ops.size()) ? &ops[i + 1].wr : NULL;
    }
    ops.back().flags(IBV_SEND_SIGNALED);
    start = ticks();
    EXPECT_EQ(0, ops[0].post(pair.a.qp));
    EXPECT_GT(ticks() - start, 2 * least) << "16 writes at one doorbell";
    start = ticks();
    EXPECT_EQ(IBV_WC_SUCCESS, verbs_wait(pair.a.send_cq).status);
    EXPECT_EQ(start, ticks()) << "time of the program counts";
}

INSTANTIATE_TEST_SUITE_P(ib, verbs_process, testing::Values(0));

} /* namespace */

int main(int argc, char **argv)
{
    return hca_test_main(argc, argv, {{"ib", {}}});
}
