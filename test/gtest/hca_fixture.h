/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Base of tests that use the device through libibverbs and libmlx5. A program
 * starts itself again under the preloaded device, once for each mode (a set of
 * environment variables), with a run-time folder of its own: the device reads
 * variables once per process. Names of tests begin with the name of their mode.
 * The log of the device is a file that tests read.
 */
#ifndef DCX_TEST_HCA_FIXTURE_H
#define DCX_TEST_HCA_FIXTURE_H

#include "../times.h"

#include <gtest/gtest.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sched.h>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

struct hca_mode {
    const char *name;
    std::vector<std::pair<const char *, const char *>> env;
};

/* --- the program and its modes ------------------------------------------- */

/* Returns the user's filter without the tests of other modes. */
inline std::string hca_mode_filter(const std::string &user,
                                   const hca_mode &mode,
                                   const std::vector<hca_mode> &modes)
{
    std::string filter = user;

    for (const auto &other : modes) {
        if (strcmp(other.name, mode.name)) {
            filter += (filter.find('-') == std::string::npos) ? "-" : ":";
            filter += std::string(other.name) + "/*";
        }
    }
    return filter;
}

inline void hca_mode_set_env(const hca_mode &mode, const std::string &dir)
{
    const char *preload = getenv("DCX_TEST_PRELOAD");

    setenv("LD_PRELOAD", preload ? preload : HCA_TEST_PRELOAD, 1);
    setenv("SOFTHCA_DIR", (dir + "/run").c_str(), 1);
    setenv("SOFTHCA_LOG_FILE", (dir + "/log").c_str(), 1);
    setenv("SOFTHCA_LOG", "warn", 0);
    /* data goes to memory, where tests read it */
    setenv("MLX5_SCATTER_TO_CQE", "0", 1);
    setenv("DCX_TEST_MODE", mode.name, 1);
    for (const auto &var : mode.env) {
        setenv(var.first, var.second, 1);
    }
}

/* Runs the program in one mode. Returns its exit status. */
inline int hca_mode_run(char **argv, const hca_mode &mode,
                        const std::string &filter)
{
    char dir[]      = "/dev/shm/dcx-test-XXXXXX";
    std::string arg = "--gtest_filter=" + filter;
    /* not the link itself: under valgrind it leads to valgrind */
    std::string exe = std::filesystem::read_symlink("/proc/self/exe");
    int status      = 0;
    std::vector<char *> args;
    pid_t pid;

    if (mkdtemp(dir) == NULL) {
        perror(dir);
        return 1;
    }
    for (; *argv != NULL; argv++) {
        args.push_back(*argv);
    }
    args.push_back(&arg[0]);
    args.push_back(NULL);

    printf("mode %s\n", mode.name);
    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        hca_mode_set_env(mode, dir);
        execv(exe.c_str(), args.data());
        _exit(127);
    }
    if ((pid < 0) || (waitpid(pid, &status, 0) != pid)) {
        perror(exe.c_str());
        status = 1 << 8; /* exit status 1 */
    }
    std::filesystem::remove_all(dir);
    if (WIFSIGNALED(status)) {
        printf("mode %s: killed by signal %d\n", mode.name, WTERMSIG(status));
        return 128 + WTERMSIG(status);
    }
    return WEXITSTATUS(status);
}

inline int hca_test_main(int argc, char **argv,
                         const std::vector<hca_mode> &modes)
{
    int result = 0;

    testing::InitGoogleTest(&argc, argv);
    if ((getenv("DCX_TEST_MODE") != NULL) || testing::GTEST_FLAG(list_tests)) {
        return RUN_ALL_TESTS();
    }
    for (const auto &mode : modes) {
        int ret = hca_mode_run(
            argv, mode,
            hca_mode_filter(testing::GTEST_FLAG(filter), mode, modes));

        result = (ret != 0) ? ret : result;
    }
    return result;
}

/* Limit of a wait, in ms. It is a time, not a number of calls, as the cost of
 * calls changes with the code and the machine. */
class dcx_deadline {
public:
    explicit dcx_deadline(int limit = TIME_WAIT) :
        m_end(time_now_us() + time_slow(limit) * 1000ull)
    {
    }

    bool is_over() const { return time_now_us() > m_end; }

    /* Ends the test if it has waited for `what` for too long. */
    void check(const char *what) const
    {
        if (is_over()) {
            throw std::runtime_error(std::string("waited for too long for ") +
                                     what);
        }
    }

private:
    const uint64_t m_end;
};

/* Returns true if @done becomes true in time. */
template <typename F> bool hca_until(F done, int limit = TIME_WAIT)
{
    const dcx_deadline deadline(limit);

    while (!done()) {
        if (deadline.is_over()) {
            return false;
        }
        sched_yield();
    }
    return true;
}

/* --- the log of the device ------------------------------------------------ */

class hca_log_reader {
public:
    hca_log_reader() : m_in(getenv("SOFTHCA_LOG_FILE"))
    {
        m_in.seekg(0, std::ios::end);
    }

    /* Returns the lines that were logged since the last call. */
    std::string take()
    {
        std::string text, line;

        if (!m_in.is_open()) {
            m_in.open(getenv("SOFTHCA_LOG_FILE"));
        }
        while (std::getline(m_in, line)) {
            text += line + "\n";
        }
        m_in.clear();
        return text;
    }

private:
    std::ifstream m_in;
};

/* --- a device, opened ----------------------------------------------------- */

/* Throws if the expression is false, with its text and errno: a test without
 * its set-up must not continue. */
#define HCA_CHECK_CALL(_expr) \
    do { \
        if (!(_expr)) { \
            throw std::runtime_error(std::string(#_expr " failed: ") + \
                                     strerror(errno)); \
        } \
    } while (0)

class hca_device {
public:
    explicit hca_device(int index = 0)
    {
        int count                = 0;
        struct ibv_device **list = ibv_get_device_list(&count);

        HCA_CHECK_CALL((list != NULL) && (index < count));
        struct mlx5dv_context_attr attr = {};

        attr.flags = MLX5DV_CONTEXT_FLAGS_DEVX;
        ctx        = mlx5dv_open_device(list[index], &attr);
        ibv_free_device_list(list);
        init();
    }

    /* Takes over an opened or imported context: closes it at the end. */
    explicit hca_device(struct ibv_context *opened) : ctx(opened) { init(); }

    ~hca_device()
    {
        EXPECT_EQ(0, ibv_dealloc_pd(pd)) << "something was left on the pd";
        EXPECT_EQ(0, ibv_close_device(ctx));
    }

    hca_device(const hca_device &) = delete;

    bool is_roce() const { return port.link_layer == IBV_LINK_LAYER_ETHERNET; }

    /* RoCE: index of the first address with v2 */
    unsigned sgid_index() const { return is_roce() ? 1 : 0; }

    /* Returns the path to this port itself. */
    struct ibv_ah_attr ah_attr(bool is_global) const
    {
        struct ibv_ah_attr attr = {};

        attr.port_num  = 1;
        attr.dlid      = port.lid;
        attr.is_global = is_global;
        if (is_global) {
            attr.grh.dgid       = gid;
            attr.grh.sgid_index = sgid_index();
            attr.grh.hop_limit  = 64;
        }
        return attr;
    }

    struct ibv_context *ctx   = NULL;
    struct ibv_pd *pd         = NULL;
    struct ibv_port_attr port = {};
    union ibv_gid gid         = {};

private:
    void init()
    {
        HCA_CHECK_CALL(ctx != NULL);
        HCA_CHECK_CALL((pd = ibv_alloc_pd(ctx)) != NULL);
        HCA_CHECK_CALL(ibv_query_port(ctx, 1, &port) == 0);
        HCA_CHECK_CALL(ibv_query_gid(ctx, 1, sgid_index(), &gid) == 0);
    }
};

/* --- states of queue pairs ------------------------------------------------ */

inline void hca_modify(struct ibv_qp *qp, struct ibv_qp_attr attr,
                       enum ibv_qp_state state, int mask)
{
    int ret;

    attr.qp_state = state;
    ret           = ibv_modify_qp(qp, &attr, mask | IBV_QP_STATE);
    if (ret != 0) {
        errno = ret;
        HCA_CHECK_CALL(!"ibv_modify_qp");
    }
}

/* Returns the attributes that transitions of all services need; each transition
 * uses some of them. */
inline struct ibv_qp_attr hca_qp_attr(const hca_device &dev, uint32_t dest_qpn)
{
    struct ibv_qp_attr attr = {};

    attr.port_num        = 1;
    attr.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
                           IBV_ACCESS_REMOTE_ATOMIC;
    attr.path_mtu           = IBV_MTU_1024;
    attr.dest_qp_num        = dest_qpn;
    attr.ah_attr            = dev.ah_attr(dev.is_roce());
    attr.max_rd_atomic      = 1;
    attr.max_dest_rd_atomic = 1;
    attr.min_rnr_timer      = 1; /* 10 us */
    attr.timeout            = 1; /* 8 us */
    attr.retry_cnt          = 1;
    attr.rnr_retry          = 0;
    attr.qkey               = 0x11223344;
    return attr;
}

/* Moves an initiator of DC from RESET to RTS. */
inline void hca_connect_dci(struct ibv_qp *qp, const struct ibv_qp_attr &attr)
{
    hca_modify(qp, attr, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT);
    hca_modify(qp, attr, IBV_QPS_RTR, IBV_QP_PATH_MTU | IBV_QP_AV);
    hca_modify(qp, attr, IBV_QPS_RTS,
               IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                   IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

inline void hca_connect_dci(struct ibv_qp *qp, const hca_device &dev)
{
    hca_connect_dci(qp, hca_qp_attr(dev, 0));
}

/* Moves a target of DC from RESET to RTR. */
inline void hca_connect_dct(struct ibv_qp *qp, const hca_device &dev,
                            int access)
{
    struct ibv_qp_attr attr = hca_qp_attr(dev, 0);

    attr.qp_access_flags = access;
    hca_modify(qp, attr, IBV_QPS_INIT,
               IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    hca_modify(qp, attr, IBV_QPS_RTR,
               IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_MIN_RNR_TIMER);
}

/* Creates an initiator of DC, in RESET; the caller destroys it. Stores the
 * actual limits in @cap. Returns NULL on failure, with errno.
 * @param ops  IBV_QP_EX_WITH_* */
inline struct ibv_qp *
hca_create_dci(const hca_device &dev, struct ibv_cq *cq, uint64_t ops,
               struct ibv_qp_cap &cap,
               const struct mlx5dv_dci_streams *streams = NULL)
{
    struct ibv_qp_init_attr_ex attr    = {};
    struct mlx5dv_qp_init_attr dv_attr = {};
    struct ibv_qp *qp;

    attr.qp_type        = IBV_QPT_DRIVER;
    attr.comp_mask      = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    attr.pd             = dev.pd;
    attr.send_cq        = cq;
    attr.recv_cq        = cq;
    attr.send_ops_flags = ops;
    attr.cap            = cap;
    dv_attr.comp_mask   = MLX5DV_QP_INIT_ATTR_MASK_DC;
    dv_attr.dc_init_attr.dc_type = MLX5DV_DCTYPE_DCI;
    if (streams != NULL) {
        dv_attr.comp_mask |= MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS;
        dv_attr.dc_init_attr.dci_streams = *streams;
    }
    qp  = mlx5dv_create_qp(dev.ctx, &attr, &dv_attr);
    cap = attr.cap;
    return qp;
}

/* Creates a target of DC, in RESET; the caller destroys it. Throws on
 * failure. */
inline struct ibv_qp *hca_create_dct(const hca_device &dev, struct ibv_cq *cq,
                                     struct ibv_srq *srq, uint64_t key)
{
    struct ibv_qp_init_attr_ex attr    = {};
    struct mlx5dv_qp_init_attr dv_attr = {};
    struct ibv_qp *qp;

    attr.qp_type                        = IBV_QPT_DRIVER;
    attr.comp_mask                      = IBV_QP_INIT_ATTR_PD;
    attr.pd                             = dev.pd;
    attr.send_cq                        = cq;
    attr.recv_cq                        = cq;
    attr.srq                            = srq;
    dv_attr.comp_mask                   = MLX5DV_QP_INIT_ATTR_MASK_DC;
    dv_attr.dc_init_attr.dc_type        = MLX5DV_DCTYPE_DCT;
    dv_attr.dc_init_attr.dct_access_key = key;
    HCA_CHECK_CALL((qp = mlx5dv_create_qp(dev.ctx, &attr, &dv_attr)));
    return qp;
}

/* Creates a target of DC in RTR. */
inline struct ibv_qp *hca_create_dct(const hca_device &dev, struct ibv_cq *cq,
                                     struct ibv_srq *srq, uint64_t key,
                                     int access)
{
    struct ibv_qp *qp = hca_create_dct(dev, cq, srq, key);

    hca_connect_dct(qp, dev, access);
    return qp;
}

#endif
