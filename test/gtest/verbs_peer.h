/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Another process for tests of verbs, forked before it opens the device, and
 * their messages over a socket
 */
#ifndef DCX_TEST_VERBS_PEER_H
#define DCX_TEST_VERBS_PEER_H

#include "verbs_bench.h"

#include <atomic>
#include <csignal>
#include <functional>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <thread>

/* Data that two processes exchange */
struct peer_card {
    uint32_t qpn, rkey;
    uint64_t addr;
    uint32_t psn;
};

/* Sends our card to the peer and returns the peer's. */
inline peer_card peer_exchange(int fd, const verbs_ep &ep,
                               const strict_mem &mem)
{
    peer_card card = {ep.qp->qp_num, mem.mr->rkey, (uintptr_t)mem.addr, 0};

    HCA_CHECK_CALL(::write(fd, &card, sizeof(card)) == sizeof(card));
    HCA_CHECK_CALL(::read(fd, &card, sizeof(card)) == sizeof(card));
    return card;
}

/* Waits until the other process is at the same point. */
inline void peer_meet(int fd)
{
    char byte = 0;

    HCA_CHECK_CALL(::write(fd, &byte, 1) == 1);
    HCA_CHECK_CALL(::read(fd, &byte, 1) == 1);
}

/* Returns when both are connected. */
inline void peer_connect(int fd, verbs_ep &ep, const peer_card &card)
{
    ep.connect(ep.attr(card.qpn));
    peer_meet(fd);
}

/* A call in a thread of its own; expects that it waits for a lock. */
class peer_waiting_call {
public:
    explicit peer_waiting_call(const std::function<void()> &call) :
        m_thread([this, call] {
            m_is_going = true;
            call();
            m_is_done = true;
        })
    {
        EXPECT_TRUE(hca_until([this] { return m_is_going.load(); }));
        time_quiet(QUIET_LOCK);
        EXPECT_FALSE(m_is_done);
    }

    /* Returns when the call does. */
    ~peer_waiting_call() { m_thread.join(); }

private:
    std::atomic<bool> m_is_going{false}, m_is_done{false};
    std::thread m_thread;
};

/* Waits until the parent ends or sends a signal, and exits. */
[[noreturn]] inline void peer_wait_for_the_end(int fd)
{
    char byte;

    while (::read(fd, &byte, 1) > 0) {
    }
    _exit(1);
}

/* Runs main(fd) in a child. It exits with 1 if main threw or a check failed. */
class peer_process {
public:
    explicit peer_process(void (*main)(int fd))
    {
        int fds[2];

        HCA_CHECK_CALL(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
        fd = fds[0];
        HCA_CHECK_CALL((pid = fork()) >= 0); /* kill(-1) would kill all */
        if (pid == 0) {
            close(fds[0]); /* so that each process sees the end of the other */
            run(main, fds[1]);
        }
        close(fds[1]);
    }

    ~peer_process()
    {
        close(fd);
        if (pid != 0) {
            kill(pid, SIGKILL);
            wait();
        }
    }

    peer_process(const peer_process &) = delete;

    /* @return exit status */
    int wait()
    {
        int status = 0;

        EXPECT_EQ(pid, waitpid(pid, &status, 0));
        pid = 0;
        return status;
    }

    int fd;
    pid_t pid;

private:
    [[noreturn]] static void run(void (*main)(int fd), int fd)
    {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        try {
            main(fd);
        } catch (const std::exception &e) {
            ADD_FAILURE() << "peer: " << e.what();
        }
        _exit(testing::Test::HasFailure());
    }
};

#endif
