/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Sleep by the event descriptor: arming fails while there is work without an
 * event to come, and must succeed otherwise. m_b's peer makes no progress: when
 * its few receive buffers are used, messages to it stay outstanding.
 */
#include "dcx_shared_bench.h"
#include "ucx_log.h"

#include <poll.h>

/* Registration of memory fails while this is set. */
static bool has_no_more_memory;

/* Replaces the function of libibverbs that the macro ibv_reg_mr() calls if the
 * rights are not constant. */
extern "C" struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr,
                                           size_t length, uint64_t iova,
                                           unsigned access)
{
    static void *const libibverbs = dlopen("libibverbs.so.1", RTLD_NOW);
    static const auto next =
        (decltype(&ibv_reg_mr_iova2))dlsym(libibverbs, "ibv_reg_mr_iova2");

    if (has_no_more_memory) {
        errno = ENOMEM;
        return NULL;
    }
    return next(pd, addr, length, iova, access);
}

namespace {

class dcx_sleep : public dcx_shared {
protected:
    static constexpr unsigned num_buffers = 8; /* RX_QUEUE_LEN, in main() */

    ~dcx_sleep()
    {
        for (uct_ep_h ep : m_eps) {
            uct_ep_pending_purge(ep, NULL, NULL);
        }
    }

    ucs_status_t arm()
    {
        return uct_iface_event_arm(m_dcx->iface,
                                   UCT_EVENT_SEND_COMP | UCT_EVENT_RECV);
    }

    /* Arms; pending events are reported once. */
    ucs_status_t arm_again()
    {
        ucs_status_t status = arm();

        for (int i = 0; (i < 3) && (status == UCS_ERR_BUSY); i++) {
            status = arm();
        }
        return status;
    }

    bool is_woken() const
    {
        struct pollfd poll_fd = {};

        poll_fd.events = POLLIN;
        UCT_CALL(uct_iface_event_fd_get(m_dcx->iface, &poll_fd.fd));
        return poll(&poll_fd, 1, time_slow(TIME_WAIT)) == 1;
    }

    ucs_status_t put_short(uct_ep_h ep)
    {
        return uct_ep_put_short(ep, m_dcx->mem.data(), 16,
                                (uintptr_t)m_live_a.loop.mem.data() + 8192,
                                dcx_peek_rkey(m_live_a.loop.memh));
    }

    /* Polls all completions that have arrived. */
    void progress_all()
    {
        for (int i = 0; i < 100; i++) {
            uct_worker_progress(m_dcx->worker);
        }
    }

    /* Adds a pending put on @ep. Returns its request. */
    dcx_pending_call &add_put(uct_ep_h ep)
    {
        dcx_pending_call *call =
            &m_line.emplace_back([=, this] { return put_short(ep); });

        EXPECT_EQ(UCS_OK, uct_ep_pending_add(ep, &call->req, 0));
        return *call;
    }

    /* Fills m_b's queue with messages that its peer does not receive. */
    void fill()
    {
        dcx_deadline deadline;

        for (unsigned sent = 0; sent < num_buffers;) {
            deadline.check("resources for a message");
            if (uct_ep_am_short(m_b, 6, sent, NULL, 0) == UCS_OK) {
                sent++;
            }
            progress_all();
        }
        m_dcx->flush();
    }

    void fill_more()
    {
        while (uct_ep_am_short(m_b, 6, num_buffers, NULL, 0) == UCS_OK)
            ;
        progress_all();
    }

    std::list<dcx_pending_call> m_line;
};

/* Arming succeeds while an endpoint waits for the only initiator. */
TEST_P(dcx_sleep, if_none_is_idle)
{
    fill();
    fill_more();
    dcx_pending_call &put = add_put(m_a);

    progress_all();
    EXPECT_EQ(UCS_OK, arm_again());
    EXPECT_EQ(UCS_INPROGRESS, put.status);
    flush();
    EXPECT_EQ(UCS_OK, put.status);
}

/* --- receive buffers ------------------------------------------------------ */

class dcx_sleep_short : public dcx_sleep {
protected:
    static ucs_status_t keep(void *arg, void *data, size_t, unsigned flags)
    {
        EXPECT_TRUE(flags & UCT_CB_PARAM_FLAG_DESC);
        ((std::vector<void *> *)arg)->push_back(data);
        return UCS_INPROGRESS;
    }

    /* Sends messages until one does not arrive. They are too long for a
     * completion: each needs a buffer. */
    void use_up_buffers(uct_ep_h ep)
    {
        dcx_deadline deadline;
        size_t count = 0;

        do {
            deadline.check("a message without a buffer");
            EXPECT_EQ(count++, m_kept.size());
            EXPECT_EQ(UCS_OK,
                      uct_ep_am_short(ep, 7, 0, m_dcx->mem.data(), 100));
            m_live_a.progress();
            progress_all();
        } while (m_kept.size() == count);
    }

    void release()
    {
        for (void *data : m_kept) {
            uct_iface_release_desc(data);
        }
        m_kept.clear();
    }

    std::vector<void *> m_kept;
};

/* Memory is short, and the user keeps all buffers, but releases them before it
 * sleeps: the message that waits for a buffer arrives. */
TEST_P(dcx_sleep_short, with_buffers_that_were_given_back)
{
    uct_ep_h back = m_live_a.loop.make_ep(*m_dcx);

    ucx_log_reader log;

    UCT_CALL(uct_iface_set_am_handler(m_dcx->iface, 7, keep, &m_kept, 0));
    has_no_more_memory = true;
    use_up_buffers(back);
    has_no_more_memory = false;
    EXPECT_NE(std::string::npos, log.take().find("Cannot allocate memory"));
    release();
    if (arm_again() == UCS_OK) {
        EXPECT_TRUE(is_woken());
    }
    progress_all();
    EXPECT_EQ(1u, m_kept.size());
    release();
    uct_ep_destroy(back);
}

INSTANTIATE_TEST_SUITE_P(any, dcx_sleep, testing::Values("dcs"),
                         dcx_policy_name);
INSTANTIATE_TEST_SUITE_P(any, dcx_sleep_short, testing::Values("dcs_quota"),
                         dcx_policy_name);

} /* namespace */

int main(int argc, char **argv)
{
    auto env = dcx_shared_env();

    env.push_back({"UCX_DCX_TX_QUEUE_LEN", "4"});
    env.push_back({"UCX_DCX_RX_QUEUE_LEN", "8"});
    return hca_test_main(argc, argv, {{"any", env}});
}
