/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Opening an interface with an endpoint and memory, in a process that is short
 * of memory or of file descriptors: it succeeds, or a line of the log at the
 * default level names the cause. Such lines also for a port of another subnet,
 * and for an endpoint that fails. Each trial is a child of its own.
 */
#include "failing_alloc.h"

#include <sys/resource.h>

namespace {

class dcx_short : public testing::TestWithParam<int> {
protected:
    struct result {
        bool is_open;
        std::string log;
    };

    /* Opens all in a child, after @prepare, and calls @use. */
    static result open(const std::function<void()> &prepare,
                       const std::function<void(dcx_loop &)> &use = nullptr)
    {
        FILE *out = tmpfile();
        char text[4096];
        result res;
        int status;
        size_t size;

        pid_t pid = fork();
        if (pid == 0) {
            dup2(fileno(out), 2);
            dup2(fileno(out), 1);
            prepare();
            try {
                dcx_loop loop;

                if (use) {
                    use(loop);
                    fflush(NULL); /* UCX flushes errors only */
                }
            } catch (...) {
                _exit(1);
            }
            _exit(failing_alloc::has_failed() ? 0 : 2);
        }
        EXPECT_EQ(pid, waitpid(pid, &status, 0));
        rewind(out);
        size = fread(text, 1, sizeof(text), out);
        fclose(out);
        res.log = std::string(text, size);
        EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status) << "\n"
                                       << res.log;
        res.is_open = (WEXITSTATUS(status) != 1);
        m_is_over   = (WEXITSTATUS(status) == 2);
        return res;
    }

    static bool m_is_over; /* there are no more allocations */
};

bool dcx_short::m_is_over;

/* Each allocation fails once. */
TEST_P(dcx_short, of_memory)
{
    unsigned nth = 0, num_failed = 0;

    do {
        ++nth;
        result res = open([&] { failing_alloc::arm(nth); });

        num_failed += !res.is_open;
        EXPECT_TRUE(res.is_open ||
                    (res.log.find("memory") != std::string::npos))
            << "allocation " << nth << ": " << res.log;
    } while (!m_is_over && (nth < 1000));
    EXPECT_TRUE(m_is_over) << "there are more allocations";
    EXPECT_LT(10u, num_failed) << "trials that failed";
}

TEST_P(dcx_short, of_descriptors)
{
    unsigned num_failed = 0;
    rlim_t limit;

    for (limit = 8; limit < 40; limit++) {
        result res = open([&] {
            const struct rlimit files = {limit, limit};

            setrlimit(RLIMIT_NOFILE, &files);
        });

        num_failed += !res.is_open;
        EXPECT_TRUE(
            res.is_open ||
            (res.log.find("Too many open files") != std::string::npos) ||
            (res.log.find("cannot list the RDMA devices") != std::string::npos))
            << "ulimit -n " << limit << ": " << res.log;
        EXPECT_EQ(std::string::npos, res.log.find("PKEY"))
            << "ulimit -n " << limit << ": " << res.log;
    }
    EXPECT_LT(3u, num_failed) << "trials that failed";
}

class dcx_subnet_log : public dcx_short {};

/* A port of another subnet is not opened, although its name is given. */
TEST_P(dcx_subnet_log, port_of_another_subnet)
{
    result res = open([] {});

    EXPECT_FALSE(res.is_open);
    EXPECT_NE(std::string::npos,
              res.log.find("mlx5_0:1 is in another subnet than "
                           "UCX_DCX_SUBNET_PREFIX"))
        << res.log;
}

INSTANTIATE_TEST_SUITE_P(subnet, dcx_subnet_log, testing::Values(0));

class dcx_lost_log : public dcx_short {};

/* A peer does not answer: the log names it and the cause, at the default
 * level. */
TEST_P(dcx_lost_log, names_peer_and_cause)
{
    auto lose = [](dcx_loop &loop) {
        dcx_deadline deadline;

        loop.survives_errors = true;
        uct_ep_check(loop.ep, 0, NULL);
        while (loop.errors.empty()) {
            deadline.check("an error");
            uct_worker_progress(loop.worker);
        }
    };
    result res = open([] {}, lose);

    EXPECT_TRUE(res.is_open);
    EXPECT_NE(std::string::npos, res.log.find("WARN")) << res.log;
    EXPECT_NE(std::string::npos, res.log.find("operation to DCT 0x"));
    EXPECT_NE(std::string::npos, res.log.find("the peer does not answer"));
}

INSTANTIATE_TEST_SUITE_P(lost, dcx_lost_log, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(plain, dcx_short, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(tags, dcx_short, testing::Values(0));

} /* namespace */

int main(int argc, char **argv)
{
    return hca_test_main(
        argc, argv,
        {{"lost",
          {{"SOFTHCA_FAULT", "drop:count=0"},
           {"UCX_DCX_TIMEOUT", "1ms"},
           {"UCX_DCX_RETRY_COUNT", "1"}}},
         {"subnet", {{"UCX_DCX_SUBNET_PREFIX", "fec0:0:0:1"}}},
         {"plain", {}},
         {"tags",
          {{"UCX_DCX_TM_ENABLE", "y"}, {"UCX_DCX_TX_POLICY", "rand"}}}});
}
