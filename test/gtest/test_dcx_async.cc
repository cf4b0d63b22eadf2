/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Asynchronous events: a thread logs each in one line that names its object,
 * and acknowledges it. Some events are raised by the device, others are written
 * to its event file, a pipe on the software device. Then failures of queues and
 * of the device, with operations outstanding; and event files that end or
 * cannot be read.
 */
#include "dcx_layouts.h"

#include <algorithm>
#include <condition_variable>
#include <fcntl.h>
#include <list>
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

/* No QP leaves the state RESET while this is set. */
static bool refuses_init;

extern "C" int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr,
                             int attr_mask)
{
    static void *const lib = dlopen("libibverbs.so.1", RTLD_NOW);
    static const auto next = (decltype(&ibv_modify_qp))dlsym(lib,
                                                             "ibv_modify_qp");

    if (refuses_init && (attr->qp_state == IBV_QPS_INIT)) {
        errno = EIO;
        return EIO;
    }
    return next(qp, attr, attr_mask);
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

/* Rules of SOFTHCA_FAULT */
const char LOSES[] = "drop:op=write:count=0";
const char DIES[]  = "device_fatal:op=write";

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

    static enum ibv_qp_state state(struct ibv_qp *qp)
    {
        struct ibv_qp_init_attr init;
        struct ibv_qp_attr attr = {};

        EXPECT_EQ(0, ibv_query_qp(qp, &attr, IBV_QP_STATE, &init));
        return attr.qp_state;
    }

    /* Progresses until @is_done; false after a second. */
    bool wait_until(const std::function<bool()> &is_done)
    {
        const uint64_t end = time_now_us() + time_slow(TIME_FATAL) * 1000;

        while (!is_done() && (time_now_us() < end)) {
            uct_worker_progress(m_dcx.worker);
        }
        return is_done();
    }

    /* Rings the doorbell of the first initiator for more than its ring has. */
    void break_dci()
    {
        struct mlx5dv_qp qp   = {};
        struct mlx5dv_obj obj = {};

        obj.qp.in  = dci();
        obj.qp.out = &qp;
        ASSERT_EQ(0, mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP));
        qp.dbrec[MLX5_SND_DBR]          = htobe32(0x7fff);
        *(volatile uint64_t *)qp.bf.reg = 0;
    }

    /* Checks that @num_eps endpoints have failed within a second, and that the
     * interface refuses all calls. */
    void expect_closed(size_t num_eps = 1)
    {
        EXPECT_TRUE(wait_until([&] { return m_dcx.errors.size() >= num_eps; }));
        EXPECT_EQ(std::vector<ucs_status_t>(num_eps, UCS_ERR_IO_ERROR),
                  m_dcx.errors);
        EXPECT_EQ(1, std::count(m_dcx.failed_eps.begin(),
                                m_dcx.failed_eps.end(), m_dcx.ep));
        EXPECT_EQ(UCS_ERR_IO_ERROR, put());
        EXPECT_EQ(UCS_ERR_IO_ERROR, uct_ep_flush(m_dcx.ep, 0, NULL));
        EXPECT_EQ(UCS_ERR_IO_ERROR, uct_iface_flush(m_dcx.iface, 0, NULL));
    }

    struct ibv_qp *dci() { return dcx_peek_dci(m_dcx.iface); }

    struct ibv_qp *dct() { return dcx_peek_dct(m_dcx.iface); }

    /* Checks the next line; skips those on operations that have failed. */
    void expect_line(const std::string &pattern)
    {
        std::string line;

        do {
            line = m_log.next();
        } while (line.find(": operation to ") != std::string::npos);
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

/* The port goes down at the second put. Its retries count as messages: at the
 * fourth message the port is up again. */
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
    m_dcx.survives_errors = true;
    /* the device sees a consumer index of 0: the queue fills up */
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
    expect_line(std::string(name) + "it has overrun, .* interface fail");
    snprintf(name, sizeof(name), "E mlx5_0: DCI 0, qp 0x%x: ", dci()->qp_num);
    expect_line(std::string(name) + "it has failed");
    expect_closed();
}

/* The doorbell record counts more buffers than the queue has. */
TEST_P(dcx_async_queues, receive_queue_cannot_be_read)
{
    struct mlx5dv_srq srq = {};
    struct mlx5dv_obj obj = {};
    uct_ep_h idle         = m_dcx.make_ep();
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

    /* The endpoint that sends has an error of its own; no event names the
     * DCT. */
    EXPECT_TRUE(wait_until([&] { return m_dcx.errors.size() == 2; }));
    EXPECT_EQ((std::vector<uct_ep_h>{m_dcx.ep, idle}), m_dcx.failed_eps);
    EXPECT_EQ(UCS_ERR_IO_ERROR, m_dcx.errors.back());
    EXPECT_EQ(UCS_ERR_IO_ERROR, uct_iface_flush(m_dcx.iface, 0, NULL));
    uct_ep_destroy(idle);
    raise_event(dci()->context->async_fd, IBV_EVENT_PORT_ERR, 1);
    std::string line;
    do {
        line = m_log.next();
        EXPECT_EQ(std::string::npos, line.find("the DCT")) << line;
    } while ((line.find(":1: the port is down") == std::string::npos) &&
             !HasFailure());
}

/* The doorbell record counts more blocks than the ring has. */
TEST_P(dcx_async_queues, send_queue_is_fatal)
{
    char name[64];

    ASSERT_NO_FATAL_FAILURE(break_dci());
    snprintf(name, sizeof(name), "E mlx5_0: DCI 0, qp 0x%x: ", dci()->qp_num);
    expect_line(std::string(name) + "it has failed");
    /* it works again, and no endpoint fails, as nothing was outstanding */
    EXPECT_TRUE(wait_until([&] { return state(dci()) == IBV_QPS_RTS; }));
    m_dcx.mem[0] = 0;
    ASSERT_EQ(UCS_OK, put());
    m_dcx.flush();
    EXPECT_EQ(0x5a, m_dcx.mem[0]);
    EXPECT_TRUE(m_dcx.errors.empty());
}

/* UCP has its worker's lock while it calls progress, and while it closes an
 * interface: the thread of events must not wait for that. */
TEST_P(dcx_async_queues, send_queue_is_fatal_while_the_worker_is_locked)
{
    dcx_peek_block(m_dcx.worker);
    EXPECT_NO_FATAL_FAILURE(break_dci());
    expect_line("E mlx5_0: DCI 0, .*: it has failed");
    EXPECT_TRUE(wait_until([&] { return state(dci()) == IBV_QPS_RTS; }));
    dcx_peek_unblock(m_dcx.worker);
    EXPECT_TRUE(m_dcx.errors.empty());
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
    /* not logged: the next line is of the port */
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

/* --- outstanding operations ---------------------------------------------- */

class dcx_async_open : public dcx_async,
                       public testing::WithParamInterface<int> {
protected:
    struct completion {
        uct_completion_t super;
        unsigned *count;
    };

    static void completed(uct_completion_t *self)
    {
        ++*((completion *)self)->count;
    }

    static ucs_status_t resume(uct_pending_req_t *req)
    {
        waiting *self = (waiting *)req;

        self->status = uct_ep_put_short(self->ep, "", 1,
                                        (uintptr_t)self->test->m_dcx.mem.data(),
                                        self->test->m_rkey.rkey);
        return (self->status == UCS_ERR_NO_RESOURCE) ? self->status : UCS_OK;
    }

    struct waiting {
        uct_pending_req_t req;
        dcx_async_open *test;
        uct_ep_h ep;
        ucs_status_t status;
    };

    /* Posts puts with a completion each until there is no room. */
    void fill()
    {
        uct_iov_t iov = {m_dcx.mem.data(), 64, m_dcx.memh, 0, 1};
        ucs_status_t status;

        do {
            m_comps.push_back({{completed, 1, UCS_OK}, &m_count});
            status = uct_ep_put_zcopy(m_dcx.ep, &iov, 1,
                                      (uintptr_t)m_dcx.mem.data() + 64,
                                      m_rkey.rkey, &m_comps.back().super);
        } while (status == UCS_INPROGRESS);
        m_comps.pop_back();
        EXPECT_EQ(UCS_ERR_NO_RESOURCE, status);
        EXPECT_FALSE(m_comps.empty());
    }

    void add_waiting()
    {
        m_waiting.req.func = resume;
        m_waiting.test     = this;
        m_waiting.ep       = m_dcx.ep;
        m_waiting.status   = UCS_ERR_NO_RESOURCE;
        ASSERT_EQ(UCS_OK, uct_ep_pending_add(m_dcx.ep, &m_waiting.req, 0));
    }

    /* Checks that all puts of fill() end with an error, and that the pending
     * request is called. */
    void expect_ended()
    {
        EXPECT_TRUE(wait_until([&] {
            return (m_count == m_comps.size()) &&
                   (m_waiting.status != UCS_ERR_NO_RESOURCE);
        }));
        for (const auto &comp : m_comps) {
            EXPECT_EQ(UCS_ERR_IO_ERROR, comp.super.status);
        }
    }

    std::list<completion> m_comps;
    unsigned m_count = 0;
    waiting m_waiting;
};

/* A queue that has failed and writes no completion: its operations end, its
 * endpoint fails, and others continue. */
TEST_P(dcx_async_open, send_queue_is_fatal)
{
    uct_ep_h other = m_dcx.make_ep();

    m_dcx.survives_errors = true;
    fill();
    add_waiting();
    ASSERT_NO_FATAL_FAILURE(break_dci());
    expect_ended();
    EXPECT_EQ(UCS_ERR_IO_ERROR, m_waiting.status);
    EXPECT_EQ(std::vector<ucs_status_t>{UCS_ERR_IO_ERROR}, m_dcx.errors);
    EXPECT_EQ(std::vector<uct_ep_h>{m_dcx.ep}, m_dcx.failed_eps);
    EXPECT_EQ(IBV_QPS_RTS, state(dci()));
    EXPECT_EQ(UCS_OK, uct_ep_am_short(other, 5, 1, NULL, 0));
    EXPECT_TRUE(wait_until([&] { return m_dcx.received == 1; }));
    uct_ep_destroy(other);
    m_dcx.flush();
}

/* A queue that can be reset, but does not work again: the interface fails. */
TEST_P(dcx_async_open, send_queue_does_not_work_again)
{
    m_dcx.survives_errors = true;
    m_waiting.status      = UCS_OK;
    fill();
    refuses_init = true;
    EXPECT_NO_FATAL_FAILURE(break_dci());
    expect_ended();
    refuses_init = false;
    expect_closed();
}

INSTANTIATE_TEST_SUITE_P(open, dcx_async_open, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(shared, dcx_async_open, testing::Values(0));

class dcx_async_dead : public dcx_async_open {};

/* Operations, pending requests and idle endpoints all fail, and so do new
 * endpoints. All can be destroyed. */
TEST_P(dcx_async_dead, device_is_fatal)
{
    std::vector<uct_ep_h> idle;
    uct_ep_h late;

    for (int i = 0; i < 500; i++) { /* more than a chunk of the slab */
        idle.push_back(m_dcx.make_ep());
    }
    uct_ep_destroy(idle.back());
    idle.pop_back();
    m_dcx.survives_errors = true;
    fill();
    add_waiting();
    expect_ended();
    expect_line("E mlx5_0: the device has failed or was removed: all of its "
                "endpoints and operations fail; restart the program");
    expect_closed(idle.size() + 1);
    std::sort(m_dcx.failed_eps.begin(), m_dcx.failed_eps.end());
    EXPECT_EQ(
        m_dcx.failed_eps.end(),
        std::adjacent_find(m_dcx.failed_eps.begin(), m_dcx.failed_eps.end()));
    late = m_dcx.make_ep();
    EXPECT_EQ(UCS_ERR_IO_ERROR, uct_ep_am_short(late, 5, 1, NULL, 0));
    uct_ep_destroy(late);
    for (auto ep : idle) {
        uct_ep_destroy(ep);
    }
}

class dcx_async_layout : public dcx_async_open {
protected:
    const uct_dcx_block_t block    = {(uintptr_t)m_dcx.mem.data(), 8, 8,
                                      m_dcx.memh};
    uct_dcx_layout_params_t layout = {0, 2, 1, &block};
    dcx_layouts layouts;
};

/* Destroying a layout does not wait for a device that has failed. */
TEST_P(dcx_async_layout, is_destroyed)
{
    uct_mem_h memh;

    ASSERT_EQ(UCS_OK, layouts.create(m_dcx.iface, 2, &memh));
    ASSERT_EQ(UCS_OK, layouts.set(memh, &layout));
    EXPECT_TRUE(wait_until([&] { return layouts.test(memh) == UCS_OK; }));
    m_dcx.survives_errors = true;
    m_waiting.status      = UCS_OK;
    fill();
    expect_ended();

    uint64_t start = time_now_us();
    UCT_CALL(uct_md_mem_dereg(m_dcx.md(), memh));
    EXPECT_LT(time_now_us() - start, time_slow(TIME_FATAL) * 1000u);
    expect_line("E mlx5_0: the device has failed or was removed");
    while (m_log.left() > 0) {
        m_log.next();
    }
    expect_closed();
}

/* The completion queue of layouts fails: they end at once, and so do those that
 * follow. The interface does not need it. */
class dcx_async_umr : public dcx_async_layout {
protected:
    /* Checks that the next lines are errors of the device with these texts, in
     * any order, as threads log them. */
    void expect_lines(const std::vector<std::string> &patterns)
    {
        std::string lines;

        for (size_t i = 0; i < patterns.size(); i++) {
            lines += m_log.next() + "\n";
        }
        for (const auto &pattern : patterns) {
            EXPECT_TRUE(
                std::regex_search(lines, std::regex("E mlx5_0: " + pattern)))
                << lines << " has no " << pattern;
        }
    }
};

TEST_P(dcx_async_umr, completion_queue_overruns)
{
    uct_mem_h memh, other;

    ASSERT_EQ(UCS_OK, layouts.create(m_dcx.iface, 2, &memh));
    ASSERT_EQ(UCS_OK, layouts.create(m_dcx.iface, 2, &other));
    ASSERT_EQ(UCS_OK, layouts.set(memh, &layout));
    EXPECT_TRUE(wait_until([&] { return layouts.test(memh) < 0; }));
    EXPECT_EQ(UCS_ERR_IO_ERROR, layouts.test(memh));
    expect_line("E mlx5_0: completion queue 0x[0-9a-f]+ \\(UMR\\): it has "
                "overrun");
    expect_lines({"UMR QP 0x[0-9a-f]+: it has failed",
                  "the UMR queue has failed: layouts can no longer"});
    EXPECT_EQ(UCS_ERR_IO_ERROR, layouts.set(other, &layout));

    uint64_t start = time_now_us();
    UCT_CALL(uct_md_mem_dereg(m_dcx.md(), memh));
    UCT_CALL(uct_md_mem_dereg(m_dcx.md(), other));
    EXPECT_LT(time_now_us() - start, time_slow(TIME_FATAL) * 1000u);
    m_dcx.mem[0] = 0;
    ASSERT_EQ(UCS_OK, put());
    m_dcx.flush();
    EXPECT_EQ(0x5a, m_dcx.mem[0]);
    EXPECT_TRUE(m_dcx.errors.empty());
    while (m_log.left() > 0) {
        m_log.next();
    }
}

/* The queue of layouts fails, and is restarted: the next layout succeeds,
 * although the report may come late. */
class dcx_async_umr_qp : public dcx_async_umr {};

TEST_P(dcx_async_umr_qp, fails)
{
    uct_mem_h memh;

    ASSERT_EQ(UCS_OK, layouts.create(m_dcx.iface, 2, &memh));
    for (ucs_status_t status : {UCS_ERR_IO_ERROR, UCS_OK}) {
        ASSERT_EQ(UCS_OK, layouts.set(memh, &layout));
        EXPECT_TRUE(
            wait_until([&] { return layouts.test(memh) != UCS_INPROGRESS; }));
        EXPECT_EQ(status, layouts.test(memh));
    }
    expect_lines({"UMR QP 0x[0-9a-f]+: it has failed", "UMR of mkey"});
    UCT_CALL(uct_md_mem_dereg(m_dcx.md(), memh));
    ASSERT_EQ(UCS_OK, put());
    m_dcx.flush();
    EXPECT_TRUE(m_dcx.errors.empty());
}

/* As the interface fails, the completion of an operation calls functions of
 * other endpoints, which have not failed yet. */
class dcx_async_closing : public dcx_async_open {
protected:
    struct acting {
        completion super;
        dcx_async_closing *test;
    };

    static void acted(uct_completion_t *self)
    {
        acting *comp = (acting *)self;

        completed(self);
        comp->test->m_act();
    }

    void put(uct_ep_h ep, uct_completion_t *comp)
    {
        uct_iov_t iov = {m_dcx.mem.data(), 64, m_dcx.memh, 0, 1};

        ASSERT_EQ(UCS_INPROGRESS,
                  uct_ep_put_zcopy(ep, &iov, 1,
                                   (uintptr_t)m_dcx.mem.data() + 64,
                                   m_rkey.rkey, comp));
    }

    static bool is_shared() { return getenv("UCX_DCX_TX_POLICY") != NULL; }

    /* Makes the device fail while two endpoints have operations and a third has
     * none; the first completion calls @act. */
    void close(std::function<void()> act)
    {
        m_act                 = act;
        m_acting              = {{{acted, 1, UCS_OK}, &m_count}, this};
        m_comps               = {{{completed, 1, UCS_OK}, &m_count}};
        m_dcx.survives_errors = true;
        m_waiting.status      = UCS_OK;
        ASSERT_NO_FATAL_FAILURE(put(m_dcx.ep, &m_acting.super.super));
        ASSERT_NO_FATAL_FAILURE(put(m_busy, &m_comps.back().super));
        raise_event(dci()->context->async_fd, IBV_EVENT_DEVICE_FATAL, 0);
        EXPECT_TRUE(wait_until([&] { return m_count == 2; }));
        EXPECT_EQ(UCS_ERR_IO_ERROR, m_acting.super.super.status);
    }

    /* Counts the reports of an endpoint's error. */
    unsigned reports(uct_ep_h ep)
    {
        EXPECT_TRUE(wait_until([&] { return !m_dcx.errors.empty(); }));
        return std::count(m_dcx.failed_eps.begin(), m_dcx.failed_eps.end(), ep);
    }

    void TearDown() override
    {
        for (auto ep : {m_busy, m_idle}) {
            if (ep != NULL) {
                uct_ep_destroy(ep);
            }
        }
    }

    std::function<void()> m_act;
    acting m_acting;
    uct_ep_h m_busy = m_dcx.make_ep();
    uct_ep_h m_idle = m_dcx.make_ep();
};

TEST_P(dcx_async_closing, canceled)
{
    ucs_status_t status = UCS_OK;

    close([&] { status = uct_ep_flush(m_busy, UCT_FLUSH_FLAG_CANCEL, NULL); });
    EXPECT_EQ(is_shared() ? UCS_ERR_IO_ERROR : UCS_INPROGRESS, status);
    EXPECT_EQ(1u, reports(m_idle));
    /* no error of an endpoint that was canceled is reported */
    EXPECT_EQ(is_shared() ? 1u : 0u, reports(m_busy));
    expect_closed(m_dcx.errors.size());
}

TEST_P(dcx_async_closing, invalidated)
{
    close([&] {
        for (auto ep : {m_busy, m_idle}) {
            EXPECT_EQ(is_shared() ? UCS_ERR_IO_ERROR : UCS_OK,
                      uct_ep_invalidate(ep, 0));
        }
    });
    EXPECT_EQ(1u, reports(m_busy));
    EXPECT_EQ(1u, reports(m_idle));
    expect_closed(3);
}

TEST_P(dcx_async_closing, destroyed)
{
    close([&] {
        uct_ep_destroy(m_busy);
        m_busy = NULL;
        uct_ep_destroy(m_idle);
        m_idle = NULL;
    });
    expect_closed(1);
    for (std::string line; m_log.left() > 0;) {
        line = m_log.next(); /* an initiator is reset once */
        EXPECT_EQ(std::string::npos, line.find("failed to reset")) << line;
    }
    m_idle = m_dcx.make_ep();
    EXPECT_EQ(UCS_ERR_IO_ERROR, uct_ep_am_short(m_idle, 5, 1, NULL, 0));
}

TEST_P(dcx_async_closing, used)
{
    close([&] {
        for (auto ep : {m_busy, m_idle}) {
            EXPECT_EQ(UCS_ERR_IO_ERROR, uct_ep_am_short(ep, 5, 1, NULL, 0));
        }
        EXPECT_EQ(UCS_ERR_IO_ERROR, uct_ep_flush(m_busy, 0, NULL));
    });
    EXPECT_EQ(1u, reports(m_busy));
    EXPECT_EQ(1u, reports(m_idle));
    expect_closed(3);
}

/* Progress handles one completion at a time in this mode. */
class dcx_async_polls : public dcx_async_open {};

/* Operations that have completed, but were not polled when the device failed,
 * end without an error. */
TEST_P(dcx_async_polls, completed_operations_succeed)
{
    std::vector<uct_ep_h> eps;
    uct_iov_t iov = {m_dcx.mem.data(), 64, m_dcx.memh, 0, 1};

    m_dcx.survives_errors = true;
    for (unsigned i = 0; i < 4; i++) {
        eps.push_back(m_dcx.make_ep());
        m_comps.push_back({{completed, 1, UCS_OK}, &m_count});
        ASSERT_EQ(UCS_INPROGRESS,
                  uct_ep_put_zcopy(eps.back(), &iov, 1,
                                   (uintptr_t)m_dcx.mem.data() + 64,
                                   m_rkey.rkey, &m_comps.back().super));
    }
    raise_event(dci()->context->async_fd, IBV_EVENT_DEVICE_FATAL, 0);
    expect_line("E mlx5_0: the device has failed");
    EXPECT_TRUE(wait_until([&] { return m_count == m_comps.size(); }));
    for (const auto &comp : m_comps) {
        EXPECT_EQ(UCS_OK, comp.super.status);
    }
    expect_closed(eps.size() + 1);
    for (auto ep : eps) {
        uct_ep_destroy(ep);
    }
}

class dcx_async_asleep : public dcx_async_open {};

/* A program that sleeps on the descriptor is woken. */
TEST_P(dcx_async_asleep, device_is_fatal_while_the_user_sleeps)
{
    struct pollfd pfd = {-1, POLLIN, 0};

    m_dcx.survives_errors = true;
    UCT_CALL(uct_iface_event_fd_get(m_dcx.iface, &pfd.fd));
    fill();
    EXPECT_EQ(1, poll(&pfd, 1, time_slow(TIME_FATAL)));
    EXPECT_EQ(UCS_ERR_BUSY,
              uct_iface_event_arm(m_dcx.iface, UCT_EVENT_SEND_COMP));
    m_waiting.status = UCS_OK;
    expect_ended();
    expect_closed();

    /* it is woken once */
    dcx_deadline deadline;
    while (uct_iface_event_arm(m_dcx.iface, UCT_EVENT_SEND_COMP) ==
           UCS_ERR_BUSY) {
        deadline.check("an armed interface");
        uct_worker_progress(m_dcx.worker);
    }
    EXPECT_EQ(0, poll(&pfd, 1, 0));
}

class dcx_async_tags : public dcx_async_open {
protected:
    struct receive {
        uct_tag_context_t super;
        ucs_status_t status;
    };

    static void consumed(uct_tag_context_t *) {}

    static void ended(uct_tag_context_t *self, uct_tag_t, uint64_t, size_t,
                      void *, ucs_status_t status)
    {
        ((receive *)self)->status = status;
    }
};

/* Receives in the tag list, one of which is canceled, and a rendezvous that no
 * peer fetches */
TEST_P(dcx_async_tags, device_is_fatal)
{
    uct_iov_t iov   = {m_dcx.mem.data(), 64, m_dcx.memh, 0, 1};
    receive posted  = {{consumed, ended, NULL, {}}, UCS_INPROGRESS};
    receive leaving = posted;
    completion comp = {{completed, 1, UCS_OK}, &m_count};
    void *rndv;

    m_dcx.survives_errors = true;
    ASSERT_EQ(UCS_OK, uct_iface_tag_recv_zcopy(m_dcx.iface, 1, ~0ull, &iov, 1,
                                               &posted.super));
    rndv = uct_ep_tag_rndv_zcopy(m_dcx.ep, 3, "", 0, &iov, 1, 0, &comp.super);
    ASSERT_FALSE(UCS_PTR_IS_ERR(rndv));
    ASSERT_EQ(UCS_OK, put()); /* the device fails */
    iov.buffer = m_dcx.mem.data() + 64;
    ASSERT_EQ(UCS_OK, uct_iface_tag_recv_zcopy(m_dcx.iface, 2, ~0ull, &iov, 1,
                                               &leaving.super));
    ASSERT_EQ(UCS_OK,
              uct_iface_tag_recv_cancel(m_dcx.iface, &leaving.super, 0));
    expect_closed();
    EXPECT_EQ(UCS_ERR_IO_ERROR, posted.status);
    EXPECT_EQ(UCS_ERR_CANCELED, leaving.status);
    EXPECT_EQ(1u, m_count);
    EXPECT_EQ(UCS_ERR_IO_ERROR, comp.super.status);
    EXPECT_EQ(UCS_ERR_EXCEEDS_LIMIT,
              uct_iface_tag_recv_zcopy(m_dcx.iface, 1, ~0ull, &iov, 1,
                                       &posted.super));
}

/* Objects by DEVX. The receive queue refuses a message, or the second buffer
 * that is posted stops the command queue. All posted buffers end, and endpoints
 * that do nothing fail. */
class dcx_async_devx : public dcx_async_tags {
protected:
    void expect_dead(const char *name, const std::function<void()> &fail)
    {
        uct_iov_t iov   = {m_dcx.mem.data(), 64, m_dcx.memh, 0, 1};
        receive posted  = {{consumed, ended, NULL, {}}, UCS_INPROGRESS};
        receive another = posted;
        uct_ep_h idle   = m_dcx.make_ep();

        m_dcx.survives_errors = true;
        m_waiting.status      = UCS_OK;
        ASSERT_EQ(UCS_OK, uct_iface_tag_recv_zcopy(m_dcx.iface, 1, ~0ull, &iov,
                                                   1, &posted.super));
        iov.buffer = m_dcx.mem.data() + 64;
        ASSERT_EQ(UCS_OK, uct_iface_tag_recv_zcopy(m_dcx.iface, 2, ~0ull, &iov,
                                                   1, &another.super));
        fail();
        expect_line(std::string("E mlx5_0: ") + name + " 0x[0-9a-f]+: it ");
        EXPECT_TRUE(wait_until([&] { return m_dcx.errors.size() == 2; }));
        EXPECT_EQ(UCS_ERR_IO_ERROR, m_dcx.errors.back());
        EXPECT_EQ(1, std::count(m_dcx.failed_eps.begin(),
                                m_dcx.failed_eps.end(), idle));
        EXPECT_EQ(UCS_ERR_IO_ERROR, posted.status);
        EXPECT_EQ(UCS_ERR_IO_ERROR, another.status);
        EXPECT_EQ(UCS_ERR_IO_ERROR, uct_iface_flush(m_dcx.iface, 0, NULL));
        uct_ep_destroy(idle);
        while (m_log.left() > 0) {
            m_log.next();
        }
    }
};

TEST_P(dcx_async_devx, receive_queue_fails)
{
    expect_dead("XRQ", [&] {
        ASSERT_EQ(UCS_OK, uct_ep_am_short(m_dcx.ep, 5, 1, NULL, 0));
    });
}

class dcx_async_list : public dcx_async_devx {};

TEST_P(dcx_async_list, command_queue_fails)
{
    expect_dead("command QP", [] {});
}

INSTANTIATE_TEST_SUITE_P(tags, dcx_async_tags, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(xrq, dcx_async_devx, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(list, dcx_async_list, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(umr, dcx_async_umr, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(umr_qp, dcx_async_umr_qp, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(asleep, dcx_async_asleep, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(dead, dcx_async_dead, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(layout, dcx_async_layout, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(dead_shared, dcx_async_dead, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(polls, dcx_async_polls, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(closing, dcx_async_closing, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(closing_shared, dcx_async_closing, testing::Values(0));

/* --- the file ------------------------------------------------------------- */

class dcx_async_off : public dcx_async,
                      public testing::WithParamInterface<int> {};

/* Without UCX_DCX_ASYNC_EVENTS, the program can read the events itself. */
TEST_P(dcx_async_off, no_thread_reads)
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

/* Two contexts of one device have their own events: cleaning up one leaves the
 * other's handler. */
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
TEST_P(dcx_async_file, file_that_ends_is_removed)
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

TEST_P(dcx_async_file, unreadable_file_is_reported)
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

/* In a forked child, cleaning up does nothing, and a new handler is refused:
 * the child has no thread for it. The parent still gets events. */
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
    ASSERT_LT(0, pid);
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
            {"open", {{"SOFTHCA_FAULT", LOSES}, {"UCX_DCX_TIMEOUT", "20ms"}}},
            {"shared",
             {{"SOFTHCA_FAULT", LOSES},
              {"UCX_DCX_TIMEOUT", "20ms"},
              {"UCX_DCX_TX_POLICY", "rand"},
              {"UCX_DCX_RAND_SEED", "1"},
              {"UCX_DCX_NUM_DCI", "1"}}},
            {"tags", {{"SOFTHCA_FAULT", DIES}, {"UCX_DCX_TM_ENABLE", "y"}}},
            {"xrq",
             {{"SOFTHCA_FAULT", "srq_error:op=send"},
              {"UCX_DCX_TM_ENABLE", "y"}}},
            {"list",
             {{"SOFTHCA_FAULT", "qp_fatal:op=tag:nth=2"},
              {"UCX_DCX_TM_ENABLE", "y"}}},
            {"umr", {{"SOFTHCA_FAULT", "cq_overrun:op=umr"}}},
            {"umr_qp", {{"SOFTHCA_FAULT", "qp_fatal:op=umr"}}},
            {"asleep", {{"SOFTHCA_FAULT", DIES}}},
            {"dead", {{"SOFTHCA_FAULT", DIES}}},
            {"layout", {{"SOFTHCA_FAULT", DIES}}},
            {"dead_shared",
             {{"SOFTHCA_FAULT", DIES}, {"UCX_DCX_TX_POLICY", "rand"}}},
            {"polls", {{"UCX_DCX_TX_MAX_POLL", "1"}}},
            {"closing", {{"SOFTHCA_FAULT", LOSES}}},
            {"closing_shared",
             {{"SOFTHCA_FAULT", LOSES},
              {"UCX_DCX_TX_POLICY", "rand"},
              {"UCX_DCX_RAND_SEED", "1"}}},
            {"off", {{"UCX_DCX_ASYNC_EVENTS", "n"}}},
            {"file", {}},
        });
}
