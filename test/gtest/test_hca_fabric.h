/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Base of tests of the fabric: a run-time folder of their own, and functions
 * that run in forked children, as each needs a process that has not attached.
 */
#ifndef DCX_TEST_HCA_FABRIC_H
#define DCX_TEST_HCA_FABRIC_H

#include "../times.h"

#include <infiniband/verbs.h>
#include <stdatomic.h>

/* C headers: a function may have the name of a structure */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
extern "C" {
#include "softhca/base/hca_log.h"
#include "softhca/fabric/hca_arena.h"
#include "softhca/fabric/hca_chan.h"
#include "softhca/fabric/hca_fabric.h"
#include "softhca/fabric/hca_helper.h"
#include "softhca/fabric/hca_mem.h"
#include "softhca/fabric/hca_port.h"
#include "softhca/fabric/hca_proc.h"
#include "softhca/fabric/hca_timer.h"
#include "softhca/obj/hca_cq.h"
#include "softhca/obj/hca_domain.h"
#include "softhca/obj/hca_mkey.h"
#include "softhca/obj/hca_srq.h"
#include "softhca/obj/hca_tm.h"
#include "softhca/exec/hca_nic.h"
}
#pragma GCC diagnostic pop

#include <dirent.h>
#include <functional>
#include <gtest/gtest.h>
#include <poll.h>
#include <cstring>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

/* Returns true if @done becomes true in time. Polls each millisecond: spinning
 * would slow down the other processes of the test. */
inline bool hca_eventually(const std::function<bool()> &done)
{
    const uint64_t end = time_now_us() + time_slow(TIME_WAIT) * 1000ull;

    while (!done()) {
        if (time_now_us() > end) {
            return false;
        }
        poll(NULL, 0, 1);
    }
    return true;
}

/* Forks, or throws: a signal to process -1 would reach all processes. */
static inline pid_t hca_fork()
{
    pid_t pid = fork();

    if (pid < 0) {
        throw std::runtime_error(std::string("fork() failed: ") +
                                 strerror(errno));
    }
    return pid;
}

class hca_fabric_test : public testing::Test {
protected:
    void SetUp() override
    {
        char dir[] = "/dev/shm/dcx-test-XXXXXX";

        ASSERT_NE(nullptr, mkdtemp(dir));
        m_dir = dir;
        setenv("SOFTHCA_DIR", (m_dir + "/run").c_str(), 1);
    }

    void TearDown() override
    {
        EXPECT_TRUE(entries(m_dir).empty()) << "left in the run-time folder";
        rmdir(m_dir.c_str());
    }

    static std::vector<std::string> entries(const std::string &path)
    {
        std::vector<std::string> names;
        DIR *dir = opendir(path.c_str());

        for (struct dirent *e; dir && (e = readdir(dir));) {
            if (e->d_name[0] != '.') {
                names.push_back(e->d_name);
            }
        }
        if (dir) {
            closedir(dir);
        }
        return names;
    }

    static pid_t spawn(const std::function<void()> &body)
    {
        pid_t pid = hca_fork();

        if (pid == 0) {
            body();
            _exit(testing::Test::HasFailure());
        }
        return pid;
    }

    /* Runs @body in a forked child; a failure there fails this test. */
    static void run(const std::function<void()> &body)
    {
        int status;
        pid_t pid = spawn(body);

        ASSERT_EQ(pid, waitpid(pid, &status, 0));
        ASSERT_TRUE(WIFEXITED(status));
        ASSERT_EQ(0, WEXITSTATUS(status));
    }

    static void attach()
    {
        ASSERT_EQ(0, hca_fabric_attach(hca_nic_kinds, nullptr));
        ASSERT_EQ(0, hca_helper_start());
        hca_nic_init();
    }

    std::string m_dir;
};

#endif
