/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A peer that can be killed: a child process with a dcx interface, which it
 * never progresses. Start it before the test opens the device: it is forked.
 */
#ifndef DCX_TEST_DCX_CHILD_H
#define DCX_TEST_DCX_CHILD_H

#include "dcx_loop.h"

#include <signal.h>
#include <sys/prctl.h>

class dcx_child {
public:
    /* @node: SOFTHCA_NODE of the child, its node in the fabric */
    explicit dcx_child(const char *node = "0")
    {
        int fds[2];

        HCA_CHECK_CALL(pipe(fds) == 0);
        HCA_CHECK_CALL((pid = fork()) >= 0);
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            setenv("SOFTHCA_NODE", node, 1);
            run(fds[1]);
        }
        close(fds[1]);
        dev_addr.resize(read_byte(fds[0]));
        iface_addr.resize(read_byte(fds[0]));
        read_all(fds[0], dev_addr);
        read_all(fds[0], iface_addr);
        close(fds[0]);
    }

    ~dcx_child() { kill(); }

    dcx_child(const dcx_child &) = delete;

    void kill()
    {
        if (!m_killed) {
            ::kill(pid, SIGKILL);
            waitpid(pid, NULL, 0);
            m_killed = true;
        }
    }

    pid_t pid;
    std::vector<uint8_t> dev_addr, iface_addr;

private:
    [[noreturn]] static void run(int fd)
    {
        dcx_loop loop;
        auto dev_addr = loop.dev_addr(), iface_addr = loop.iface_addr();
        uint8_t sizes[] = {(uint8_t)dev_addr.size(),
                           (uint8_t)iface_addr.size()};

        HCA_CHECK_CALL(write(fd, sizes, 2) == 2);
        HCA_CHECK_CALL(write(fd, dev_addr.data(), sizes[0]) == sizes[0]);
        HCA_CHECK_CALL(write(fd, iface_addr.data(), sizes[1]) == sizes[1]);
        for (;;) {
            pause();
        }
    }

    static void read_all(int fd, std::vector<uint8_t> &bytes)
    {
        HCA_CHECK_CALL(read(fd, bytes.data(), bytes.size()) ==
                       (ssize_t)bytes.size());
    }

    static uint8_t read_byte(int fd)
    {
        std::vector<uint8_t> byte(1);

        read_all(fd, byte);
        return byte[0];
    }

    bool m_killed = false;
};

#endif
