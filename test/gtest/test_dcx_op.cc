/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Operations that wait for events, not only for their WQE: cancel, destroy and
 * failure of their endpoint end them, but a flush waits only for the WQE. dcx
 * is linked into the program, which starts such operations itself.
 */
#include "dcx_ep_bench.h"

extern "C" {
#include "dcx_op_driver.h"
}

namespace {

class dcx_op : public dcx_ep_bench {
protected:
    ~dcx_op()
    {
        if (m_ep != NULL) {
            flush_all();
        }
    }

    void flush_all()
    {
        progress_until(
            [&] { return uct_iface_flush(m_dcx.iface, 0, NULL) == UCS_OK; });
    }

    /* Makes progress while nothing is outstanding on a queue. */
    void progress_while_idle()
    {
        for (unsigned i = 0; i < 1000; i++) {
            uct_worker_progress(m_dcx.worker);
        }
    }

    void *begin(dcx_end &end, unsigned events = 1, bool wqe = false)
    {
        return dcx_op_begin(m_ep, events, wqe, &end.comp);
    }

    void *m_other = NULL;
};

/* An operation may wait for a receive that the peer posts only after our
 * flush. */
TEST_P(dcx_op, no_flush_waits_for_events)
{
    dcx_end end, flushed;
    void *op = begin(end, 2);

    EXPECT_EQ(UCS_OK, flush(0));
    EXPECT_EQ(UCS_OK, flush(0, &flushed));
    EXPECT_EQ(UCS_OK, uct_iface_flush(m_dcx.iface, 0, NULL));
    dcx_op_event(op, UCS_OK);
    progress_while_idle();
    EXPECT_EQ(0u, end.count + flushed.count);

    dcx_op_event(op, UCS_OK);
    EXPECT_EQ(1u, end.count);
    EXPECT_EQ(UCS_OK, end.status);
}

/* The WQE and the event, in either order; a flush waits for the WQE. */
TEST_P(dcx_op, wqe_and_event)
{
    for (bool is_wqe_first : {true, false}) {
        dcx_end end, flushed;
        void *op;

        EXPECT_EQ(UCS_OK, put_short());
        op = begin(end, 1, true);
        EXPECT_EQ(UCS_INPROGRESS, flush(0, &flushed));
        if (is_wqe_first) {
            progress_until([&] { return flushed.count > 0; });
            flush_all();
        }
        EXPECT_EQ(0u, end.count);
        dcx_op_event(op, UCS_OK);
        EXPECT_EQ(is_wqe_first ? 1u : 0u, end.count);
        flush_all();
        EXPECT_EQ(1u, flushed.count);
        EXPECT_EQ(1u, end.count);
        EXPECT_EQ(UCS_OK, end.status);
    }
}

/* The completion of a removed operation is not called, with or without events
 * and a WQE that it waits for. */
TEST_P(dcx_op, taken_out)
{
    for (unsigned events : {0, 1}) {
        for (bool wqe : {false, true}) {
            dcx_end end;

            EXPECT_EQ(UCS_OK, put_short());
            dcx_op_cancel(begin(end, events, wqe));
            EXPECT_EQ(UCS_OK, put_short());
            flush_all();
            EXPECT_EQ(0u, end.count);
        }
    }
}

/* An operation is removed in the completion of another, while both are being
 * purged. */
TEST_P(dcx_op, taken_out_while_purged)
{
    dcx_end second, first([&] { dcx_op_cancel(m_other); }), canceled;

    begin(first);
    m_other = begin(second);
    EXPECT_EQ(UCS_OK, cancel(&canceled));
    EXPECT_EQ(1u, first.count);
    EXPECT_EQ(0u, second.count);
}

TEST_P(dcx_op, event_with_error)
{
    dcx_end end;
    void *op = begin(end, 2);

    dcx_op_event(op, UCS_ERR_IO_ERROR);
    EXPECT_EQ(1u, end.count);
    EXPECT_EQ(UCS_ERR_IO_ERROR, end.status);
}

/* A cancel ends only operations of its endpoint. */
TEST_P(dcx_op, canceled)
{
    uct_ep_h other = m_dcx.make_ep();
    dcx_end end, later, canceled;
    void *op;

    begin(end);
    op = dcx_op_begin(other, 1, 0, &later.comp);
    EXPECT_EQ(UCS_OK, cancel(&canceled));
    EXPECT_EQ(1u, end.count);
    EXPECT_EQ(UCS_ERR_CANCELED, end.status);
    EXPECT_EQ(0u, m_dcx.errors.size());
    EXPECT_EQ(0u, later.count);
    dcx_op_event(op, UCS_OK);
    EXPECT_EQ(1u, later.count);
    EXPECT_EQ(UCS_OK, later.status);
    uct_ep_destroy(other);
}

/* A canceled operation whose WQE is outstanding ends with the WQE. */
TEST_P(dcx_op, canceled_with_wqe)
{
    dcx_end end, canceled;

    EXPECT_EQ(UCS_OK, put_short());
    begin(end, 1, true);
    EXPECT_EQ(UCS_INPROGRESS, cancel(&canceled));
    progress_until([&] { return canceled.count > 0; });
    EXPECT_EQ(1u, end.count);
    EXPECT_EQ(UCS_ERR_CANCELED, end.status);
}

TEST_P(dcx_op, invalidated)
{
    dcx_end end;

    begin(end);
    EXPECT_EQ(UCS_OK, uct_ep_invalidate(m_ep, 0));
    wait_for_error(UCS_ERR_CANCELED);
    EXPECT_EQ(1u, end.count);
    EXPECT_EQ(UCS_ERR_CANCELED, end.status);
}

/* Completions of operations come before the error handler of the endpoint. */
TEST_P(dcx_op, failed)
{
    dcx_end end([&] { EXPECT_EQ(0u, m_dcx.errors.size()); });

    begin(end);
    fail();
    EXPECT_EQ(1u, end.count);
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, end.status);
}

TEST_P(dcx_op, failed_and_destroyed)
{
    dcx_end end([&] {
        uct_ep_destroy(m_ep);
        m_ep = NULL;
    }),
        failed;

    begin(end);
    EXPECT_EQ(UCS_INPROGRESS, put_zcopy(failed, false));
    progress_until([&] { return end.count > 0; });
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, end.status);
    EXPECT_EQ(0u, m_dcx.errors.size()) << "the endpoint is gone";
    m_log.take();
}

/* The completion destroys the failed endpoint and creates another, which gets
 * the same pointer. Operations of the new endpoint do not fail. */
TEST_P(dcx_op, failed_and_another_is_in_its_place)
{
    uct_ep_h first = m_ep;
    dcx_end other, failed, end([&] {
        uct_ep_destroy(m_ep);
        m_ep    = m_dcx.make_ep();
        m_other = begin(other);
    });

    begin(end);
    EXPECT_EQ(UCS_INPROGRESS, put_zcopy(failed, false));
    progress_until([&] { return end.count > 0; });
    ASSERT_EQ(first, m_ep) << "another address";
    EXPECT_EQ(0u, other.count);
    if (other.count == 0) {
        dcx_op_event(m_other, UCS_OK);
    }
    EXPECT_EQ(UCS_OK, other.status);
    EXPECT_EQ(1u, other.count);
    m_log.take();
}

/* While the endpoint is being destroyed, in a completion, calls on it fail. */
TEST_P(dcx_op, destroyed_and_used)
{
    dcx_end more, end([&] {
        EXPECT_EQ(UCS_ERR_CANCELED, put_short());
        EXPECT_EQ(UCS_ERR_CANCELED, put_zcopy(more, true));
        EXPECT_EQ(UCS_ERR_CANCELED, flush(0));
    });

    begin(end);
    uct_ep_destroy(m_ep);
    m_ep = NULL;
    EXPECT_EQ(1u, end.count);
    flush_all();
    EXPECT_EQ(0u, more.count);
}

TEST_P(dcx_op, destroyed)
{
    dcx_end end;

    begin(end);
    uct_ep_destroy(m_ep);
    m_ep = NULL;
    EXPECT_EQ(1u, end.count);
    EXPECT_EQ(UCS_ERR_CANCELED, end.status);
    EXPECT_EQ(UCS_OK, uct_iface_flush(m_dcx.iface, 0, NULL));
}

TEST_P(dcx_op, destroyed_with_wqe)
{
    dcx_end end;

    EXPECT_EQ(UCS_OK, put_short());
    begin(end, 1, true);
    uct_ep_destroy(m_ep);
    m_ep = NULL;
    EXPECT_EQ(1u, end.count);
    flush_all();
    EXPECT_EQ(1u, end.count);
    EXPECT_EQ(UCS_ERR_CANCELED, end.status);
}

/* The endpoint is destroyed in the completion of an operation. The error
 * completion of a later WQE reports that operation as complete. */
TEST_P(dcx_op, destroyed_before_an_error)
{
    dcx_end failed, end([&] {
        uct_ep_destroy(m_ep);
        m_ep = NULL;
        EXPECT_EQ(GetParam() ? 0u : 1u, failed.count);
    });

    EXPECT_EQ(UCS_OK, put_short());
    EXPECT_EQ(UCS_OK, put_short()); /* unsignaled, if possible */
    begin(end, 0, true);
    EXPECT_EQ(UCS_INPROGRESS, put_zcopy(failed, false));
    progress_until([&] { return failed.count > 0; });
    flush_all();
    EXPECT_EQ(UCS_OK, end.status);
    EXPECT_EQ(UCS_ERR_CANCELED, failed.status);
    EXPECT_EQ(1u, failed.count);
    EXPECT_EQ(0u, m_dcx.errors.size());
}

INSTANTIATE_TEST_SUITE_P(exclusive, dcx_op, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(shared, dcx_op, testing::Values(true));

} /* namespace */

int main(int argc, char **argv)
{
    std::vector<std::pair<const char *, const char *>> env = {
        {"UCX_DCX_FAILURE", "error"},
        {"SOFTHCA_LOG", "error"},
    };
    auto shared = env;

    shared.push_back({"UCX_DCX_TX_POLICY", "rand"});
    shared.push_back({"UCX_DCX_NUM_DCI", "1"});
    return hca_test_main(argc, argv, {{"exclusive", env}, {"shared", shared}});
}
