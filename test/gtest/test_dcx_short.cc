/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Opening an interface with an endpoint and memory, in a process that is short
 * of memory or of file descriptors: it succeeds, or a line of the log at the
 * default level names the cause. So does a line for an endpoint that fails.
 * Each trial is a child of its own.
 */
#include "dcx_loop.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/resource.h>

namespace {

/* Allocations of the transport: number @fail_at fails, from 1 */
uintptr_t module_begin, module_end;
unsigned num_allocs, fail_at;

bool is_failing(const void *caller)
{
    const uintptr_t at = (uintptr_t)caller;

    return (at >= module_begin) && (at < module_end) &&
           (++num_allocs == fail_at);
}

} /* namespace */

/* --- allocators in front of those of libc --------------------------------- */

extern "C" {
/* UCX that tracks memory calls these. */
void *ucs_malloc(size_t size, const char *name)
{
    static auto real = (__typeof__(&ucs_malloc))dlsym(RTLD_NEXT, "ucs_malloc");

    return is_failing(__builtin_return_address(0)) ? NULL : real(size, name);
}

void *ucs_calloc(size_t num, size_t size, const char *name)
{
    static auto real = (__typeof__(&ucs_calloc))dlsym(RTLD_NEXT, "ucs_calloc");

    return is_failing(__builtin_return_address(0)) ? NULL :
                                                     real(num, size, name);
}

int ucs_posix_memalign(void **mem_p, size_t align, size_t size,
                       const char *name)
{
    static auto real =
        (__typeof__(&ucs_posix_memalign))dlsym(RTLD_NEXT, "ucs_posix_memalign");

    return is_failing(__builtin_return_address(0)) ?
               ENOMEM :
               real(mem_p, align, size, name);
}

/* Others call these. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t num, size_t size);
void *__libc_memalign(size_t align, size_t size);

void *malloc(size_t size)
{
    return is_failing(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
}

void *calloc(size_t num, size_t size)
{
    return is_failing(__builtin_return_address(0)) ? NULL :
                                                     __libc_calloc(num, size);
}

int posix_memalign(void **mem_p, size_t align, size_t size)
{
    if (is_failing(__builtin_return_address(0))) {
        return ENOMEM;
    }
    *mem_p = __libc_memalign(align, size);
    return (*mem_p == NULL) ? ENOMEM : 0;
}
}

namespace {

class dcx_short : public testing::TestWithParam<int> {
protected:
    struct result {
        bool is_open;
        std::string log;
    };

    static int note_module(struct dl_phdr_info *info, size_t, void *)
    {
        if (strstr(info->dlpi_name, "libuct_dcx") == NULL) {
            return 0;
        }
        for (int i = 0; i < info->dlpi_phnum; i++) {
            const auto &header = info->dlpi_phdr[i];

            if ((header.p_type == PT_LOAD) && (header.p_flags & PF_X)) {
                module_begin = info->dlpi_addr + header.p_vaddr;
                module_end   = module_begin + header.p_memsz;
            }
        }
        return 1;
    }

    /* Opens all in a child, after `prepare`, and calls `use`. */
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
            dlopen(dcx_loop::module(), RTLD_NOW);
            dl_iterate_phdr(note_module, NULL);
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
            _exit(((fail_at != 0) && (num_allocs < fail_at)) ? 2 : 0);
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
        result res = open([&] {
            num_allocs = 0;
            fail_at    = nth;
        });

        num_failed += !res.is_open;
        EXPECT_TRUE(res.is_open ||
                    (res.log.find("memory") != std::string::npos))
            << "allocation " << nth << ": " << res.log;
    } while (!m_is_over && (nth < 1000));
    EXPECT_LT(10u, num_failed) << "it is no test";
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
    EXPECT_LT(3u, num_failed) << "it is no test";
}

class dcx_subnet_log : public dcx_short {};

/* The name of a port does not open it if its subnet is not the one. */
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

/* A peer does not answer: the log says which, and why, at the default level. */
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
