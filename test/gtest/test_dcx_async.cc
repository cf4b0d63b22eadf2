/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Asynchronous events: each is logged in one line that names its object, and is
 * acknowledged, while the program does something else. The device raises those
 * that it can; all are also written to its event file, which is a pipe on the
 * software device. And the end of that file.
 */
#include "dcx_loop.h"

#include <condition_variable>
#include <fcntl.h>
#include <mutex>
#include <poll.h>
#include <rdma/ib_user_verbs.h>
#include <regex>
#include <sys/mman.h>
#include <ucs/async/async_fwd.h>
#include <ucs/debug/log_def.h>

extern "C" {
#include "uct/dcx/dev/dcx_async.h"

/* exported by libucs, declared in a header that is not for C++ */
ucs_status_t ucs_async_remove_handler(int id, int is_sync);
}

namespace {

/* Collects the log of all threads, with the level in front: "W mlx5_0: ..." */
class all_log {
public:
    all_log()
    {
        current = this;
        ucs_log_push_handler(note);
    }

    ~all_log()
    {
        ucs_log_pop_handler();
        current = NULL;
    }

    /* Waits for the next line, in order. */
    std::string next()
    {
        std::unique_lock<std::mutex> lock(m_mutex);

        if (!m_more.wait_for(lock,
                             std::chrono::milliseconds(time_slow(TIME_WAIT)),
                             [&] { return m_taken < m_lines.size(); })) {
            return "nothing was logged";
        }
        return m_lines[m_taken++];
    }

    size_t left()
    {
        std::lock_guard<std::mutex> lock(m_mutex);

        return m_lines.size() - m_taken;
    }

private:
    static ucs_log_func_rc_t note(const char *file, unsigned, const char *,
                                  ucs_log_level_t level,
                                  const ucs_log_component_config_t *,
                                  const char *message, va_list args)
    {
        static const char letters[] = "FEWD";
        char line[1024];

        /* UCX's thread for its virtual file system may complain about
         * folders */
        if ((level > UCS_LOG_LEVEL_DIAG) || (strstr(file, "vfs") != NULL)) {
            return UCS_LOG_FUNC_RC_CONTINUE;
        }
        vsnprintf(line, sizeof(line), message, args);
        std::lock_guard<std::mutex> lock(current->m_mutex);
        current->m_lines.push_back(std::string(1, letters[level]) + " " + line);
        current->m_more.notify_all();
        return UCS_LOG_FUNC_RC_STOP;
    }

    static all_log *current;

    std::mutex m_mutex;
    std::condition_variable m_more;
    std::vector<std::string> m_lines;
    size_t m_taken = 0;
};

all_log *all_log::current;

/* Writes an event to the file as the device does. */
void raise_event(int fd, enum ibv_event_type type, uint64_t element)
{
    const std::string path = "/proc/self/fd/" + std::to_string(fd);
    struct ib_uverbs_async_event_desc ev = {};
    int end                              = open(path.c_str(), O_WRONLY);

    ev.event_type = type;
    ev.element    = element;
    ASSERT_EQ((ssize_t)sizeof(ev), write(end, &ev, sizeof(ev)));
    close(end);
}

class dcx_async : public testing::Test {
protected:
    dcx_async()
    {
        uct_rkey_bundle_t bundle;

        m_packed.resize(64);
        UCT_CALL(uct_md_mkey_pack(m_dcx.md(), m_dcx.memh, m_packed.data()));
        UCT_CALL(uct_rkey_unpack(m_dcx.component(), m_packed.data(), &bundle));
        m_rkey = bundle;
    }

    ~dcx_async() { uct_rkey_release(m_dcx.component(), &m_rkey); }

    ucs_status_t put()
    {
        uint64_t value = 0x5a;

        return uct_ep_put_short(m_dcx.ep, &value, sizeof(value),
                                (uintptr_t)m_dcx.mem.data(), m_rkey.rkey);
    }

    struct ibv_qp *dci() { return dcx_peek_dci(m_dcx.iface); }

    struct ibv_qp *dct() { return dcx_peek_dct(m_dcx.iface); }

    void expect_line(const std::string &pattern)
    {
        std::string line = m_log.next();

        EXPECT_TRUE(std::regex_search(line, std::regex("^" + pattern)))
            << line << " is not " << pattern;
    }

    all_log m_log;
    dcx_loop m_dcx;
    std::vector<uint8_t> m_packed;
    uct_rkey_bundle_t m_rkey;
};

/* --- raised by the device ------------------------------------------------- */

class dcx_async_port : public dcx_async,
                       public testing::WithParamInterface<int> {};

/* The port goes down at the second put, which is repeated until it is up again,
 * at the fourth message. */
TEST_P(dcx_async_port, goes_down_and_comes_up)
{
    ASSERT_EQ(UCS_OK, put());
    m_dcx.flush();
    m_dcx.mem[0] = 0;
    ASSERT_EQ(UCS_OK, put());
    expect_line("W mlx5_0:1: the port is down: .*UCX_DCX_TIMEOUT");
    m_dcx.flush();
    expect_line("W mlx5_0:1: the port is up again$");
    EXPECT_EQ(0x5a, m_dcx.mem[0]);
    EXPECT_EQ(0u, m_log.left());
}

INSTANTIATE_TEST_SUITE_P(port, dcx_async_port, testing::Values(0));

class dcx_async_queues : public dcx_async,
                         public testing::WithParamInterface<int> {};

TEST_P(dcx_async_queues, completion_queue_overruns)
{
    struct mlx5dv_cq cq   = {};
    struct mlx5dv_obj obj = {};

    obj.cq.in  = dci()->send_cq;
    obj.cq.out = &cq;
    ASSERT_EQ(0, mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ));
    /* as if no entry of a whole round had been read */
    for (unsigned i = 0; (i <= cq.cqe_cnt) && (m_log.left() == 0); i++) {
        cq.dbrec[0] = 0;
        if (put() != UCS_OK) {
            break;
        }
        uct_iface_progress(m_dcx.iface);
    }
    char name[64];
    snprintf(name, sizeof(name),
             "E mlx5_0: completion queue 0x%x \\(sends\\): ", cq.cqn);
    expect_line(std::string(name) + "it has overrun, .* will not complete");
    snprintf(name, sizeof(name), "E mlx5_0: DCI 0, qp 0x%x: ", dci()->qp_num);
    expect_line(std::string(name) + "it has failed");
}

/* A record that counts more buffers than the queue has */
TEST_P(dcx_async_queues, receive_queue_cannot_be_read)
{
    struct mlx5dv_srq srq = {};
    struct mlx5dv_obj obj = {};
    uint32_t before;

    obj.srq.in  = dct()->srq;
    obj.srq.out = &srq;
    ASSERT_EQ(0, mlx5dv_init_obj(&obj, MLX5DV_OBJ_SRQ));
    before                = *srq.dbrec;
    *srq.dbrec            = htobe32((be32toh(before) + 0x8000) & 0xffff);
    m_dcx.survives_errors = true;
    ASSERT_EQ(UCS_OK, uct_ep_am_short(m_dcx.ep, 5, 1, NULL, 0));
    expect_line("E mlx5_0: the receive queue: .*no longer receives");
    *srq.dbrec = before;

    /* the sender gets an error of its own; no event names the DCT */
    dcx_deadline deadline;
    while (m_dcx.errors.empty() && !deadline.is_over()) {
        uct_worker_progress(m_dcx.worker);
    }
    EXPECT_EQ(1u, m_dcx.errors.size());
    raise_event(dci()->context->async_fd, IBV_EVENT_PORT_ERR, 1);
    std::string line;
    do {
        line = m_log.next();
        EXPECT_EQ(std::string::npos, line.find("the DCT")) << line;
    } while ((line.find(":1: the port is down") == std::string::npos) &&
             !HasFailure());
}

/* The doorbell record is further than the ring is long. */
TEST_P(dcx_async_queues, send_queue_is_fatal)
{
    struct mlx5dv_qp qp   = {};
    struct mlx5dv_obj obj = {};

    obj.qp.in  = dci();
    obj.qp.out = &qp;
    ASSERT_EQ(0, mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP));
    qp.dbrec[MLX5_SND_DBR]          = htobe32(0x7fff);
    *(volatile uint64_t *)qp.bf.reg = 0;
    char name[64];
    snprintf(name, sizeof(name), "E mlx5_0: DCI 0, qp 0x%x: ", dci()->qp_num);
    expect_line(std::string(name) + "it has failed");
}

/* --- every kind of event -------------------------------------------------- */

TEST_P(dcx_async_queues, every_kind)
{
    const int fd         = dci()->context->async_fd;
    const uint64_t queue = (uintptr_t)dci();
    struct {
        enum ibv_event_type type;
        uint64_t element;
        const char *line;
    } cases[] = {
        {IBV_EVENT_DEVICE_FATAL, 0,
         "E mlx5_0: the device has failed or was "
         "removed: .*restart the program"},
        {IBV_EVENT_PORT_ERR, 1, "W mlx5_0:1: the port is down"},
        {IBV_EVENT_PORT_ACTIVE, 1, "W mlx5_0:1: the port is up again"},
        {IBV_EVENT_LID_CHANGE, 1, "W mlx5_0:1: the LID"},
        {IBV_EVENT_PKEY_CHANGE, 1, "W mlx5_0:1: the partitions.*UCX_DCX_PKEY"},
        {IBV_EVENT_GID_CHANGE, 2, "W mlx5_0:2: GIDs.*UCX_DCX_GID_INDEX"},
        {IBV_EVENT_SM_CHANGE, 1, "D mlx5_0:1: .*subnet manager"},
        {IBV_EVENT_CLIENT_REREGISTER, 1, "D mlx5_0:1: .*register again"},
        {IBV_EVENT_QP_REQ_ERR, queue, "D mlx5_0: DCI 0, .*invalid request"},
        {IBV_EVENT_QP_ACCESS_ERR, (uintptr_t)dct(),
         "D mlx5_0: the DCT, qp 0x[0-9a-f]+: .*no access"},
        {(enum ibv_event_type)999, 0, "D mlx5_0: event 999: unknown"},
    };

    for (const auto &c : cases) {
        raise_event(fd, c.type, c.element);
        expect_line(c.line);
    }
    /* these are not logged; then an event that is */
    raise_event(fd, IBV_EVENT_PORT_ACTIVE, 1);
    raise_event(fd, IBV_EVENT_SRQ_LIMIT_REACHED, (uintptr_t)dct()->srq);
    raise_event(fd, IBV_EVENT_COMM_EST, queue);
    raise_event(fd, IBV_EVENT_SQ_DRAINED, queue);
    raise_event(fd, IBV_EVENT_QP_LAST_WQE_REACHED, queue);
    raise_event(fd, IBV_EVENT_PORT_ERR, 1);
    raise_event(fd, IBV_EVENT_PORT_ERR, 1); /* logged once */
    raise_event(fd, IBV_EVENT_PORT_ACTIVE, 1);
    expect_line("W mlx5_0:1: the port is down");
    expect_line("W mlx5_0:1: the port is up again");

    /* acknowledged, though the kernel does not count them */
    EXPECT_EQ(4u, dci()->events_completed);
    EXPECT_EQ(1u, dct()->events_completed);
    EXPECT_EQ(1u, dct()->srq->events_completed);
    dci()->events_completed      = 0;
    dct()->events_completed      = 0;
    dct()->srq->events_completed = 0;
}

INSTANTIATE_TEST_SUITE_P(queues, dcx_async_queues, testing::Values(0));

/* --- the file ------------------------------------------------------------- */

class dcx_async_off : public dcx_async,
                      public testing::WithParamInterface<int> {};

TEST_P(dcx_async_off, nobody_reads)
{
    struct ibv_async_event event;
    struct pollfd pfd = {dci()->context->async_fd, POLLIN, 0};

    EXPECT_EQ(UCS_ERR_NO_ELEM, ucs_async_remove_handler(pfd.fd, 1));
    raise_event(pfd.fd, IBV_EVENT_PORT_ERR, 1);
    ASSERT_EQ(1, poll(&pfd, 1, 0));
    ASSERT_EQ(0, ibv_get_async_event(dci()->context, &event));
    EXPECT_EQ(IBV_EVENT_PORT_ERR, event.event_type);
    EXPECT_EQ(0u, m_log.left());
}

INSTANTIATE_TEST_SUITE_P(off, dcx_async_off, testing::Values(0));

class dcx_async_file : public testing::TestWithParam<int> {
protected:
    hca_device m_dev;
    all_log m_log;
    uct_dcx_async_t m_async = {};
};

/* A context that is opened again has events of its own. */
TEST_P(dcx_async_file, is_of_a_context)
{
    hca_device other;
    uct_dcx_async_t async = {};

    uct_dcx_async_init(&m_async, m_dev.ctx);
    uct_dcx_async_init(&async, other.ctx);
    uct_dcx_async_cleanup(&m_async);
    raise_event(other.ctx->async_fd, IBV_EVENT_PORT_ERR, 1);
    EXPECT_EQ(0u, m_log.next().find("W mlx5_0:1: the port is down"));
    uct_dcx_async_cleanup(&async);
    EXPECT_EQ(UCS_ERR_NO_ELEM,
              ucs_async_remove_handler(other.ctx->async_fd, 1));
}

/* A file at its end would be readable forever: it is removed. */
TEST_P(dcx_async_file, that_ends_is_left)
{
    struct ibv_context broken = {};
    int fds[2];

    ASSERT_EQ(0, pipe(fds));
    broken.device   = m_dev.ctx->device;
    broken.async_fd = fds[0];
    uct_dcx_async_init(&m_async, &broken);
    close(fds[1]);
    EXPECT_EQ("D mlx5_0: failed to read events of the device: end of file; "
              "they are no longer reported",
              m_log.next());
    uct_dcx_async_cleanup(&m_async);
    EXPECT_EQ(UCS_ERR_NO_ELEM, ucs_async_remove_handler(fds[0], 1));
    EXPECT_EQ(0u, m_log.left());
    close(fds[0]);
}

TEST_P(dcx_async_file, that_cannot_be_read_is_told)
{
    struct ibv_context broken = {};

    broken.device   = m_dev.ctx->device;
    broken.async_fd = -1;
    uct_dcx_async_init(&m_async, &broken);
    EXPECT_EQ(NULL, m_async.ctx);
    while (m_log.left() > 1) {
        m_log.next(); /* UCX's message on the descriptor */
    }
    EXPECT_NE(std::string::npos, m_log.next().find("UCX_DCX_ASYNC_EVENTS=n"));
    uct_dcx_async_cleanup(&m_async);
}

/* A forked child closes its copy. It does not start with one of its own, which
 * would wake the parent's thread forever; the parent still gets events. */
TEST_P(dcx_async_file, stays_with_the_parent)
{
    int status;
    pid_t pid;

    uct_dcx_async_init(&m_async, m_dev.ctx);
    pid = fork();
    if (pid == 0) {
        uct_dcx_async_t again;

        uct_dcx_async_cleanup(&m_async);
        uct_dcx_async_init(&again, m_dev.ctx);
        _exit((m_async.ctx == m_dev.ctx) && (again.ctx == NULL) ? 0 : 1);
    }
    ASSERT_EQ(pid, waitpid(pid, &status, 0));
    EXPECT_EQ(0, status);
    raise_event(m_dev.ctx->async_fd, IBV_EVENT_PORT_ERR, 1);
    EXPECT_EQ(0u, m_log.next().find("W mlx5_0:1: the port is down"));
    uct_dcx_async_cleanup(&m_async);
}

INSTANTIATE_TEST_SUITE_P(file, dcx_async_file, testing::Values(0));

} /* namespace */

int main(int argc, char **argv)
{
    setenv("UCX_LOG_LEVEL", "diag", 1);
    return hca_test_main(
        argc, argv,
        {
            {"port",
             {{"SOFTHCA_FAULT", "port_down:op=write:nth=2:count=2"},
              {"UCX_DCX_TIMEOUT", "1ms"}}},
            {"queues", {}},
            {"off", {{"UCX_DCX_ASYNC_EVENTS", "n"}}},
            {"file", {}},
        });
}
