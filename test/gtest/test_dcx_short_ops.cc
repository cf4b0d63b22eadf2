/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Operations in a process that is short of memory: each allocation of a fixed
 * sequence fails once. The operation ends with UCS_ERR_NO_MEMORY and a line of
 * the log, or does without that memory; the same operation is successful after
 * that, and nothing remains when all is closed.
 */
#include "dcx_layouts.h"
#include "dcx_match_bench.h"
#include "failing_alloc.h"

#include <list>

namespace {

/* An interface whose operations are tried until they are successful */
class short_bench {
public:
    enum { SIZE = 1 << 18 };

    short_bench() :
        a(m_dcx, SIZE, 1), b(m_dcx, SIZE, 2), remote(m_dcx, SIZE, 3),
        recv(m_dcx, 1), rkey(dcx_peek_rkey(remote.memh))
    {
        m_dcx.survives_errors = true;
    }

    ~short_bench()
    {
        m_dcx.flush();
        EXPECT_EQ(0u, m_dcx.errors.size());
    }

    template <typename F> void progress_until(F done)
    {
        dcx_deadline deadline;

        while (!done()) {
            deadline.check("progress");
            uct_worker_progress(m_dcx.worker);
        }
    }

    /* Returns true if the operation has to be tried again, as memory was
     * short. */
    bool is_denied(const char *what, ucs_status_t status)
    {
        std::string text = m_log.take();

        if (status != UCS_ERR_NO_MEMORY) {
            EXPECT_EQ(UCS_OK, status) << what << ": " << text;
            EXPECT_TRUE(text.empty() ||
                        (text.find("memory") != std::string::npos))
                << what << ": " << text;
            return false;
        }
        EXPECT_NE(std::string::npos, text.find("memory"))
            << what << " says nothing";
        EXPECT_EQ(1u, ++m_num_denied) << what << " fails again";
        return m_num_denied == 1;
    }

    /* Runs an operation, which calls @end if it returns UCS_INPROGRESS. */
    template <typename F> void run(const char *what, F post)
    {
        ucs_status_t status;

        do {
            dcx_end end;

            progress_until([&] {
                status = post(end);
                return status != UCS_ERR_NO_RESOURCE;
            });
            if (status == UCS_INPROGRESS) {
                progress_until([&] { return end.count > 0; });
                status = end.status;
            }
        } while (is_denied(what, status));
    }

    /* Puts or gets, and compares both sides. */
    void move(const char *what, decltype(uct_ep_put_zcopy) *post,
              const iovs &iov)
    {
        run(what, [&](dcx_end &end) {
            return post(m_dcx.ep, iov.data(), iov.size(),
                        (uintptr_t)remote.bytes.data(), rkey, &end.comp);
        });
        EXPECT_EQ(gathered(iov),
                  std::vector<uint8_t>(remote.bytes.begin(),
                                       remote.bytes.begin() + length_of(iov)))
            << what;
    }

    void put(const char *what, const iovs &iov)
    {
        move(what, uct_ep_put_zcopy, iov);
    }

    void get(const char *what, const iovs &iov)
    {
        move(what, uct_ep_get_zcopy, iov);
    }

    static size_t length_of(const iovs &iov)
    {
        size_t length = 0;

        for (const uct_iov_t &e : iov) {
            length += e.length * e.count;
        }
        return length;
    }

    ucx_log_reader m_log;
    dcx_loop m_dcx;
    region a, b, remote;
    dcx_tag_recv recv;
    uct_rkey_t rkey;
    unsigned m_num_denied = 0;
};

size_t pack(void *dst, void *)
{
    memset(dst, 7, 1000);
    return 1000;
}

/* Pieces with one stride; in a list that fits into a UMR WQE; in a longer
 * one */
iovs strided(region &mem)
{
    return {mem.at(0, 64, 128, 256)};
}

iovs short_list(region &mem)
{
    iovs list;

    for (unsigned i = 0; i < 20; i++) {
        list.push_back(mem.at(i * 3000, 1000 + i));
    }
    return list;
}

iovs long_list(region &mem)
{
    return {mem.at(0, 200, 400, 100), mem.at(60000, 300, 600, 50)};
}

/* Blocks whose overlap is not ruled out by their order */
iovs interleaved(region &mem)
{
    return {mem.at(400, 300, 1000, 20), mem.at(0, 300, 1000, 20)};
}

void run_rma(short_bench &bench)
{
    uct_ep_h ep     = bench.m_dcx.ep;
    uint64_t remote = (uintptr_t)bench.remote.bytes.data();
    uint64_t old;

    bench.run("put_bcopy", [&](dcx_end &) {
        ssize_t length = uct_ep_put_bcopy(ep, pack, NULL, remote, bench.rkey);

        return (length < 0) ? (ucs_status_t)length : UCS_OK;
    });
    bench.run("get_bcopy", [&](dcx_end &end) {
        static uint8_t bytes[1000];

        return uct_ep_get_bcopy(
            ep,
            [](void *to, const void *from, size_t length) {
                memcpy(to, from, length);
            },
            bytes, sizeof(bytes), remote, bench.rkey, &end.comp);
    });
    bench.run("atomic", [&](dcx_end &end) {
        return uct_ep_atomic64_fetch(ep, UCT_ATOMIC_OP_ADD, 1, &old, remote,
                                     bench.rkey, &end.comp);
    });
    bench.put("put of pieces", {bench.a.at(0, 64, 128, 10)});
    bench.put("put of short pieces", {bench.a.at(0, 8, 64, 100)});
    bench.get("get of short pieces", {bench.a.at(0, 8, 64, 100)});
    bench.put("strided put", strided(bench.a));
    bench.put("put of a short list", short_list(bench.a));
    bench.put("put of a long list", long_list(bench.a));
    bench.get("strided get", strided(bench.a));
    bench.get("get of a list", short_list(bench.a));
    bench.get("interleaved get", interleaved(bench.a));
    bench.run("flush",
              [&](dcx_end &end) { return uct_ep_flush(ep, 0, &end.comp); });
}

void run_messages(short_bench &bench)
{
    uct_ep_h ep      = bench.m_dcx.ep;
    unsigned *num    = &bench.m_dcx.received;
    unsigned to_come = *num;

    auto am = [&](const char *what, const iovs &iov) {
        bench.run(what, [&](dcx_end &end) {
            return uct_ep_am_zcopy(ep, 5, "head", 4, iov.data(), iov.size(), 0,
                                   &end.comp);
        });
        to_come++;
    };

    for (unsigned i = 0; i < 100; i++, to_come++) { /* requests credits */
        bench.run("am_short", [&](dcx_end &) {
            return uct_ep_am_short(ep, 5, i, NULL, 0);
        });
    }
    bench.run("am_bcopy", [&](dcx_end &) {
        ssize_t length = uct_ep_am_bcopy(ep, 5, pack, NULL, 0);

        return (length < 0) ? (ucs_status_t)length : UCS_OK;
    });
    to_come++;
    am("am_zcopy", {bench.a.at(0, 1000)});
    am("am_zcopy of short pieces", {bench.a.at(0, 8, 64, 100)});
    am("am_zcopy of pieces", {bench.a.at(0, 500, 600, 12)});
    bench.progress_until([&] { return *num == to_come; });
}

void run_objects(short_bench &bench)
{
    const dcx_layouts &api = dcx_layouts();
    uct_mem_h memh         = UCT_MEM_HANDLE_NULL;
    std::vector<uint8_t> bytes(8192);
    uct_ep_h ep;

    bench.run("mem_reg", [&](dcx_end &) {
        return uct_md_mem_reg(bench.m_dcx.md(), bytes.data(), bytes.size(),
                              UCT_MD_MEM_ACCESS_ALL, &memh);
    });
    UCT_CALL(uct_md_mem_dereg(bench.m_dcx.md(), memh));
    bench.run("ep_create", [&](dcx_end &) {
        return bench.m_dcx.create_ep(bench.m_dcx.dev_addr(), 0, &ep);
    });
    uct_ep_destroy(ep);

    bench.run("layout_create", [&](dcx_end &) {
        return api.create(bench.m_dcx.iface, 4, &memh);
    });
    const uct_dcx_block_t blocks[] = {
        {(uintptr_t)bench.a.bytes.data() + 100, 64, 264, bench.a.memh},
        {(uintptr_t)bench.a.bytes.data(), 64, 264, bench.a.memh},
    };
    const uct_dcx_layout_params_t params = {UCT_MD_MEM_ACCESS_RMA, 100, 2,
                                            blocks};
    bench.run("layout_set", [&](dcx_end &) { return api.set(memh, &params); });
    bench.progress_until([&] { return api.test(memh) != UCS_INPROGRESS; });
    EXPECT_EQ(UCS_OK, api.test(memh));
    UCT_CALL(uct_md_mem_dereg(bench.m_dcx.md(), memh));
}

/* A tagged message to a posted receive. Both are tried again if either was
 * denied memory. */
template <typename F>
void run_tag(short_bench &bench, const char *what, dcx_tag_recv &recv,
             const iovs &to, F send)
{
    recv.iov = to;
    do {
        recv.num_consumed = recv.num_completed = recv.num_rndv = 0;
        bench.run("tag_recv", [&](dcx_end &) { return recv.post(5); });
        dcx_wait_told(bench.m_dcx);
        bench.run(what, send);
        bench.progress_until([&] { return recv.has_ended(); });
    } while (bench.is_denied(what, recv.status));
}

void run_tags(short_bench &bench)
{
    const iovs from = strided(bench.a);
    uct_ep_h ep     = bench.m_dcx.ep;
    std::vector<void *> ops;
    std::list<dcx_end> ends;

    auto rndv = [&](dcx_end &end, uct_tag_t tag, void **op) {
        *op = uct_ep_tag_rndv_zcopy(ep, tag, "header", 6, from.data(),
                                    from.size(), 0, &end.comp);
        return UCS_PTR_IS_ERR(*op) ? UCS_PTR_STATUS(*op) : UCS_INPROGRESS;
    };

    run_tag(bench, "tag_bcopy", bench.recv, strided(bench.b), [&](dcx_end &) {
        ssize_t length = uct_ep_tag_eager_bcopy(ep, 5, 0, pack, NULL, 0);

        return (length < 0) ? (ucs_status_t)length : UCS_OK;
    });
    run_tag(bench, "tag_zcopy", bench.recv, short_list(bench.b),
            [&](dcx_end &end) {
                const uct_iov_t iov = bench.a.at(0, 8, 64, 100);

                return uct_ep_tag_eager_zcopy(ep, 5, 0, &iov, 1, 0, &end.comp);
            });
    run_tag(bench, "tag_rndv", bench.recv, long_list(bench.b),
            [&](dcx_end &end) {
                void *op;

                return rndv(end, 5, &op);
            });
    run_tag(bench, "tag_rndv_request", bench.recv, strided(bench.b),
            [&](dcx_end &) {
                return uct_ep_tag_rndv_request(ep, 5, "header", 6, 0);
            });

    /* more at a time than the table of ids is made for */
    for (unsigned i = 0; i < 40; i++) {
        ends.emplace_back();
        bench.run("more rendezvous", [&](dcx_end &) {
            void *op;
            ucs_status_t status = rndv(ends.back(), 6, &op);

            if (status != UCS_INPROGRESS) {
                return status;
            }
            ops.push_back(op);
            return UCS_OK;
        });
    }
    for (void *op : ops) {
        UCT_CALL(uct_ep_tag_rndv_cancel(ep, op));
    }
}

class dcx_short_ops : public testing::TestWithParam<int> {
protected:
    using script = std::function<void(short_bench &)>;

    /* Returns true if allocation @nth failed. */
    static bool run(unsigned nth, const script &ops)
    {
        SCOPED_TRACE("allocation " + std::to_string(nth));
        bool has_failed;
        {
            short_bench bench;

            failing_alloc::arm(nth);
            ops(bench);
            has_failed             = failing_alloc::has_failed();
            failing_alloc::fail_at = 0;
        }
        return has_failed;
    }

    /* Compares the memory in use after each round with that after the first, in
     * which no allocation fails: the module keeps some memory until the process
     * ends. @least: minimum number of allocations that fail */
    static void sweep(unsigned least, const script &ops)
    {
        unsigned nth = 0;
        size_t live;

        run(UINT32_MAX, ops);
        live = failing_alloc::num_live;
        while (run(++nth, ops) && !HasFailure()) {
            ASSERT_EQ(live, failing_alloc::num_live) << "allocation " << nth;
        }
        EXPECT_LE(least, nth - 1) << "allocations that failed";
    }
};

TEST_P(dcx_short_ops, rma)
{
    sweep(20, run_rma);
}

TEST_P(dcx_short_ops, messages)
{
    sweep(8, run_messages);
}

TEST_P(dcx_short_ops, objects)
{
    sweep(8, run_objects);
}

/* Creates a second initiator. Without memory for it, the interface works with
 * the first. */
TEST_P(dcx_short_ops, second_initiator)
{
    unsigned num_failed = 0;
    bool has_failed;

    do {
        short_bench bench;
        uct_ep_h other  = bench.m_dcx.make_ep();
        uint64_t remote = (uintptr_t)bench.remote.bytes.data();
        auto put        = [&](uct_ep_h ep) {
            return uct_ep_put_short(ep, "x", 1, remote, bench.rkey);
        };

        EXPECT_EQ(UCS_OK, put(bench.m_dcx.ep));
        failing_alloc::arm(num_failed + 1);
        bench.progress_until([&] { return put(other) == UCS_OK; });
        has_failed             = failing_alloc::has_failed();
        failing_alloc::fail_at = 0;
        num_failed += has_failed;
        EXPECT_EQ(has_failed,
                  bench.m_log.take().find("memory") != std::string::npos)
            << "allocation " << num_failed;
        uct_ep_destroy(other);
    } while (has_failed && !HasFailure());
    EXPECT_LE(2u, num_failed);
}

INSTANTIATE_TEST_SUITE_P(plain, dcx_short_ops, testing::Values(0));

class dcx_short_tags : public dcx_short_ops {};

TEST_P(dcx_short_tags, tags)
{
    sweep(20, run_tags);
}

INSTANTIATE_TEST_SUITE_P(tags, dcx_short_tags, testing::Values(0));

} /* namespace */

int main(int argc, char **argv)
{
    /* without memory for a grant the peer's timer helps */
    return hca_test_main(
        argc, argv,
        {{"plain", {{"UCX_DCX_FC_RESEND_TIMEOUT", "5ms"}}},
         {"tags",
          {{"UCX_DCX_FC_RESEND_TIMEOUT", "5ms"}, {"UCX_DCX_TM_ENABLE", "y"}}}});
}
