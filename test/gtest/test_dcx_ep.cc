/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The end of an endpoint's life: its behaviour after it has failed, or after
 * the user has canceled it, on an initiator of its own and on a shared one.
 * Drawing: docs/dcx.md, "The life of an endpoint". test_dcx_ep_input.cc has
 * input that is rejected from the start.
 */
#include "dcx_ep_bench.h"

namespace {

class dcx_ep : public dcx_ep_bench {
protected:
    struct request {
        explicit request(dcx_ep *owner) : test(owner) { req.func = called; }

        static ucs_status_t called(uct_pending_req_t *req)
        {
            request *self = (request *)req; /* its first member */

            self->status = self->test->put_short();
            return (self->status == UCS_ERR_NO_RESOURCE) ? self->status :
                                                           UCS_OK;
        }

        uct_pending_req_t req = {};
        dcx_ep *test;
        ucs_status_t status = UCS_INPROGRESS;
    };

    static void purged(uct_pending_req_t *, void *arg) { ++*(unsigned *)arg; }

    /* Expects UCS_ERR_CANCELED; of an initiator that is not shared also UCS_OK:
     * its queue is stopped, but the device may have been faster. */
    static void expect_canceled(const dcx_end &end)
    {
        EXPECT_TRUE((end.status == UCS_ERR_CANCELED) ||
                    (!GetParam() && (end.status == UCS_OK)));
    }

    void expect_refused(ucs_status_t status);
    void expect_gone(ucs_status_t status);
    void expect_end(const std::vector<request> &reqs, ucs_status_t status);
};

/* Expects that every operation returns the error, and calls no callback. */
void dcx_ep::expect_refused(ucs_status_t status)
{
    void *mem = m_dcx.mem.data();
    uint64_t result;
    dcx_end end;

    EXPECT_EQ(status, uct_ep_am_short(m_ep, 5, 0, NULL, 0));
    EXPECT_EQ(status, uct_ep_am_short_iov(m_ep, 5, &m_iov, 1));
    EXPECT_EQ(status, uct_ep_am_bcopy(m_ep, 5, pack, NULL, 0));
    EXPECT_EQ(status,
              uct_ep_am_zcopy(m_ep, 5, NULL, 0, &m_iov, 1, 0, &end.comp));
    EXPECT_EQ(status, put_short());
    EXPECT_EQ(status, uct_ep_put_bcopy(m_ep, pack, NULL, m_remote, m_rkey));
    EXPECT_EQ(status, put_zcopy(end, true));
    EXPECT_EQ(status, uct_ep_get_bcopy(m_ep, unpack, mem, 8, m_remote, m_rkey,
                                       &end.comp));
    EXPECT_EQ(status,
              uct_ep_get_zcopy(m_ep, &m_iov, 1, m_remote, m_rkey, &end.comp));
    EXPECT_EQ(status, uct_ep_atomic64_post(m_ep, UCT_ATOMIC_OP_ADD, 1, m_remote,
                                           m_rkey));
    EXPECT_EQ(status, uct_ep_atomic64_fetch(m_ep, UCT_ATOMIC_OP_ADD, 1, &result,
                                            m_remote, m_rkey, &end.comp));
    EXPECT_EQ(status, uct_ep_atomic_cswap64(m_ep, 1, 2, m_remote, m_rkey,
                                            &result, &end.comp));
    EXPECT_EQ(status, uct_ep_check(m_ep, 0, NULL));
    EXPECT_EQ(status, uct_ep_check(m_ep, 0, &end.comp));
    EXPECT_EQ(status, flush(0, &end));
    EXPECT_EQ(0u, end.count);
}

/* Expects that operations return the error, and that the user can still fence,
 * invalidate and cancel, repeatedly. */
void dcx_ep::expect_gone(ucs_status_t status)
{
    request req(this);

    expect_refused(status);
    EXPECT_EQ(UCS_ERR_BUSY, uct_ep_pending_add(m_ep, &req.req, 0));
    EXPECT_EQ(UCS_OK, uct_ep_fence(m_ep, 0));
    for (unsigned i = 0; i < 2; i++) {
        EXPECT_EQ(UCS_OK, uct_ep_invalidate(m_ep, 0));
        EXPECT_EQ(UCS_OK, cancel());
    }
    EXPECT_EQ(status, put_short());
    m_dcx.flush();
}

/* Waits until all pending requests have ended, and expects their status. */
void dcx_ep::expect_end(const std::vector<request> &reqs, ucs_status_t status)
{
    progress_until([&] {
        return (reqs.back().status != UCS_INPROGRESS) &&
               (reqs.back().status != UCS_ERR_NO_RESOURCE);
    });
    for (const auto &req : reqs) {
        EXPECT_EQ(status, req.status);
    }
}

/* --- operations on a failed endpoint -------------------------------------- */

TEST_P(dcx_ep, fails)
{
    fail();
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, put_short());

    /* the first refused operation logs the peer's name, once */
    std::string text = m_log.take();
    char name[64];
    auto addr = m_dcx.iface_addr();

    snprintf(name, sizeof(name), "operation to DCT 0x%x at lid 1, process %d",
             (addr[2] << 16) | (addr[3] << 8) | addr[4], getpid());
    EXPECT_NE(std::string::npos, text.find(name)) << text;
    EXPECT_NE(std::string::npos, text.find("is rejected")) << text;
    EXPECT_EQ(1, std::count(text.begin(), text.end(), '\n')) << text;

    expect_gone(UCS_ERR_CONNECTION_RESET);
    EXPECT_EQ(1u, m_dcx.errors.size());
}

/* Calls functions of the endpoint in the completion of a failed operation,
 * while others have not ended. */
TEST_P(dcx_ep, in_callback)
{
    dcx_end flushed([&] { EXPECT_EQ(UCS_OK, cancel()); }), behind;
    dcx_end first([&] {
        EXPECT_EQ(UCS_ERR_CONNECTION_RESET, put_short());
        EXPECT_EQ(UCS_OK, uct_ep_invalidate(m_ep, 0));
        EXPECT_EQ(0u, behind.count);
        EXPECT_EQ(UCS_INPROGRESS, cancel());
        EXPECT_EQ(UCS_INPROGRESS, cancel(&flushed));
    });

    EXPECT_EQ(UCS_INPROGRESS, put_zcopy(first, false));
    EXPECT_EQ(UCS_INPROGRESS, put_zcopy(behind, true));
    progress_until([&] { return flushed.count > 0; });
    EXPECT_EQ(1u, behind.count);
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, behind.status);
    m_log.take();
    expect_gone(UCS_ERR_CONNECTION_RESET);
}

TEST_P(dcx_ep, destroyed_in_callback)
{
    dcx_end behind, first([&] {
        uct_ep_destroy(m_ep);
        m_ep = NULL;
        EXPECT_EQ(GetParam() ? 0u : 1u, behind.count);
    });

    EXPECT_EQ(UCS_INPROGRESS, put_zcopy(first, false));
    EXPECT_EQ(UCS_INPROGRESS, put_zcopy(behind, true));
    progress_until([&] { return behind.count > 0; });
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, behind.status);
    m_dcx.flush();
    EXPECT_EQ(1u, behind.count);
    EXPECT_EQ(0u, m_dcx.errors.size());
}

/* Pending requests are called, and get the error. */
TEST_P(dcx_ep, pending_fails)
{
    std::vector<request> reqs(5, request(this));
    dcx_end end;

    EXPECT_EQ(UCS_INPROGRESS, put_zcopy(end, false));
    fill();
    for (auto &req : reqs) {
        EXPECT_EQ(UCS_OK, uct_ep_pending_add(m_ep, &req.req, 0));
    }
    expect_end(reqs, UCS_ERR_CONNECTION_RESET);
    m_log.take();
}

/* Pending requests that wait for credits are called when the endpoint is
 * invalidated. */
TEST_P(dcx_ep, pending_fails_without_credits)
{
    std::vector<request> reqs(3, request(this));

    while (uct_ep_am_short(m_ep, 5, 0, NULL, 0) == UCS_OK) {
    }
    for (auto &req : reqs) {
        ASSERT_EQ(UCS_OK, uct_ep_pending_add(m_ep, &req.req, 0));
    }
    EXPECT_EQ(UCS_OK, uct_ep_invalidate(m_ep, 0));
    expect_end(reqs, UCS_ERR_CANCELED);
    m_dcx.flush();
}

/* --- canceled ------------------------------------------------------------- */

TEST_P(dcx_ep, invalidated)
{
    EXPECT_EQ(UCS_OK, uct_ep_invalidate(m_ep, 0));
    EXPECT_EQ(UCS_OK, uct_ep_invalidate(m_ep, 0));
    EXPECT_EQ(UCS_OK, put_short()); /* the error handler has not been called */
    wait_for_error(UCS_ERR_CANCELED);
    m_dcx.flush();
    expect_gone(UCS_ERR_CANCELED);
    EXPECT_EQ(1u, m_dcx.errors.size());
}

TEST_P(dcx_ep, invalidated_with_operations)
{
    dcx_end ends[3];

    for (auto &end : ends) {
        EXPECT_EQ(UCS_INPROGRESS, put_zcopy(end, true));
    }
    EXPECT_EQ(UCS_OK, uct_ep_invalidate(m_ep, 0));
    EXPECT_EQ(UCS_OK, uct_ep_invalidate(m_ep, 0));
    wait_for_error(UCS_ERR_CANCELED);
    for (auto &end : ends) {
        EXPECT_EQ(1u, end.count);
    }
    expect_canceled(ends[2]);
    expect_gone(UCS_ERR_CANCELED);
}

TEST_P(dcx_ep, invalidated_and_destroyed)
{
    dcx_end end;

    EXPECT_EQ(UCS_INPROGRESS, put_zcopy(end, true));
    EXPECT_EQ(UCS_OK, uct_ep_invalidate(m_ep, 0));
    EXPECT_EQ(UCS_OK, put_short());
    uct_ep_destroy(m_ep);
    m_ep = NULL;
    EXPECT_EQ(GetParam() ? 0u : 1u, end.count);
    m_dcx.flush();
    EXPECT_EQ(1u, end.count);
    EXPECT_EQ(UCS_ERR_CANCELED, end.status);
    EXPECT_EQ(0u, m_dcx.errors.size());
}

TEST_P(dcx_ep, canceled)
{
    EXPECT_EQ(UCS_OK, cancel());
    expect_gone(UCS_ERR_CANCELED);
    EXPECT_EQ(0u, m_dcx.errors.size());
}

TEST_P(dcx_ep, canceled_with_operations)
{
    dcx_end end, flushed[2];

    EXPECT_EQ(UCS_INPROGRESS, put_zcopy(end, true));
    EXPECT_EQ(UCS_INPROGRESS, cancel(&flushed[0]));
    EXPECT_EQ(UCS_INPROGRESS, cancel(&flushed[1]));
    progress_until([&] { return cancel() != UCS_INPROGRESS; });
    EXPECT_EQ(1u, end.count);
    expect_canceled(end);
    EXPECT_EQ(1u, flushed[0].count);
    EXPECT_EQ(1u, flushed[1].count);
    expect_gone(UCS_ERR_CANCELED);
    EXPECT_EQ(0u, m_dcx.errors.size());
}

TEST_P(dcx_ep, canceled_in_callback)
{
    dcx_end behind, flushed,
        first([&] { EXPECT_EQ(UCS_INPROGRESS, cancel(&flushed)); });

    EXPECT_EQ(UCS_INPROGRESS, put_zcopy(first, true));
    EXPECT_EQ(UCS_INPROGRESS, put_zcopy(behind, true));
    progress_until([&] { return flushed.count > 0; });
    EXPECT_EQ(1u, behind.count);
    expect_gone(UCS_ERR_CANCELED);
}

/* Pending requests are purged before the endpoint is canceled, as UCP does. */
TEST_P(dcx_ep, canceled_with_pending)
{
    std::vector<request> reqs(3, request(this));
    unsigned num_purged = 0;

    fill();
    for (auto &req : reqs) {
        EXPECT_EQ(UCS_OK, uct_ep_pending_add(m_ep, &req.req, 0));
    }
    uct_ep_pending_purge(m_ep, purged, &num_purged);
    EXPECT_EQ(3u, num_purged);
    progress_until([&] {
        ucs_status_t status = cancel();

        return (status != UCS_INPROGRESS) && (status != UCS_ERR_NO_RESOURCE);
    });
    expect_gone(UCS_ERR_CANCELED);
}

/* Pending requests that are not purged are called: on a shared initiator before
 * the endpoint has failed, as its queue is not stopped. */
TEST_P(dcx_ep, canceled_before_pending)
{
    std::vector<request> reqs(3, request(this));

    fill();
    for (auto &req : reqs) {
        EXPECT_EQ(UCS_OK, uct_ep_pending_add(m_ep, &req.req, 0));
    }
    EXPECT_EQ(UCS_INPROGRESS, cancel());
    expect_end(reqs, GetParam() ? UCS_OK : UCS_ERR_CANCELED);
    m_dcx.flush();
    expect_gone(UCS_ERR_CANCELED);
}

TEST_P(dcx_ep, invalidated_then_canceled)
{
    dcx_end end, flushed;

    EXPECT_EQ(UCS_INPROGRESS, put_zcopy(end, true));
    EXPECT_EQ(UCS_OK, uct_ep_invalidate(m_ep, 0));
    EXPECT_EQ(UCS_INPROGRESS, cancel(&flushed));
    progress_until([&] { return flushed.count > 0; });
    EXPECT_EQ(1u, end.count);
    expect_gone(UCS_ERR_CANCELED);
    EXPECT_EQ(0u, m_dcx.errors.size());
}

TEST_P(dcx_ep, checked)
{
    for (unsigned i = 0; i < 2; i++) {
        EXPECT_EQ(UCS_OK, uct_ep_check(m_ep, 0, NULL));
        EXPECT_EQ(UCS_OK, uct_ep_check(m_ep, 0, NULL));
        EXPECT_EQ(UCS_OK, put_short());
        EXPECT_EQ(UCS_OK, uct_ep_check(m_ep, 0, NULL));
        m_dcx.flush();
    }
    EXPECT_EQ(UCS_OK, uct_ep_invalidate(m_ep, 0));
    EXPECT_EQ(UCS_OK, uct_ep_check(m_ep, 0, NULL));
    wait_for_error(UCS_ERR_CANCELED);
    m_dcx.flush();
}

/* The completion of a check is called while other operations are outstanding,
 * and if the endpoint is invalidated. */
TEST_P(dcx_ep, checked_by_completion)
{
    dcx_end idle, busy, canceled;

    EXPECT_EQ(UCS_INPROGRESS, uct_ep_check(m_ep, 0, &idle.comp));
    EXPECT_EQ(UCS_OK, put_short());
    EXPECT_EQ(UCS_INPROGRESS, uct_ep_check(m_ep, 0, &busy.comp));
    progress_until([&] { return busy.count > 0; });
    EXPECT_EQ(1u, idle.count);
    EXPECT_EQ(UCS_OK, idle.comp.status);
    EXPECT_EQ(UCS_OK, busy.comp.status);

    EXPECT_EQ(UCS_INPROGRESS, uct_ep_check(m_ep, 0, &canceled.comp));
    EXPECT_EQ(UCS_OK, uct_ep_invalidate(m_ep, 0));
    wait_for_error(UCS_ERR_CANCELED);
    m_dcx.flush();
    EXPECT_EQ(1u, canceled.count);
    expect_canceled(canceled);
}

INSTANTIATE_TEST_SUITE_P(exclusive, dcx_ep, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(one_dci, dcx_ep, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(shared, dcx_ep, testing::Values(true));

} /* namespace */

int main(int argc, char **argv)
{
    std::vector<std::pair<const char *, const char *>> env = {
        {"UCX_DCX_RX_QUEUE_LEN", "64"}, {"UCX_DCX_TX_QUEUE_LEN", "16"},
        {"UCX_DCX_SEG_SIZE", "512"},    {"UCX_DCX_FAILURE", "error"},
        {"UCX_DCX_TIMEOUT", "1ms"},     {"UCX_DCX_RETRY_COUNT", "2"},
        {"SOFTHCA_LOG", "error"},
    };
    auto one_dci = env, shared = env;

    one_dci.push_back({"UCX_DCX_NUM_DCI", "1"});
    shared.push_back({"UCX_DCX_TX_POLICY", "rand"});
    shared.push_back({"UCX_DCX_NUM_DCI", "1"});
    return hca_test_main(
        argc, argv,
        {{"exclusive", env}, {"one_dci", one_dci}, {"shared", shared}});
}
