/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * An endpoint finds the initiator again that it used last: peers that take
 * turns make no connection while there are initiators for all.
 */
#include "dcx_shared_bench.h"

#include <fstream>
#include <ucs/datastruct/string_buffer.h>
#include <ucs/vfs/base/vfs_obj.h>

namespace {

class dcx_keep : public dcx_shared {
protected:
    ~dcx_keep()
    {
        for (uct_ep_h ep : m_eps) {
            uct_ep_pending_purge(ep, NULL, NULL);
        }
    }

    /* Creates @count peers. */
    void make_peers(unsigned count)
    {
        while (m_peers.size() < count) {
            m_peers.emplace_back();
            m_to.push_back({make_ep(m_peers.back().loop), &m_peers.back()});
        }
    }

    ucs_status_t try_put_to(unsigned peer, dcx_end &end)
    {
        return try_put(m_to[peer].first, *m_to[peer].second, end);
    }

    /* Puts to a peer, and waits for the end. */
    void put_to(unsigned peer)
    {
        dcx_deadline deadline;
        dcx_end end;

        put(m_to[peer].first, *m_to[peer].second, end);
        while (end.count == 0) {
            deadline.check("the end of a put");
            progress();
        }
        EXPECT_EQ(UCS_OK, end.status);
    }

    /* Puts to peers @first to @last in turn, one at a time. Returns the number
     * of connections. */
    uint64_t take_turns(unsigned first, unsigned last, unsigned rounds)
    {
        uint64_t before = connects();

        for (unsigned i = 0; i < rounds; i++) {
            for (unsigned peer = first; peer <= last; peer++) {
                put_to(peer);
            }
        }
        return connects() - before;
    }

    /* Puts to the first @count peers at once, so that each needs an initiator
     * of its own. */
    void put_at_once(unsigned count)
    {
        std::list<dcx_end> ends;

        for (unsigned peer = 0; peer < count; peer++) {
            ends.emplace_back();
            EXPECT_EQ(UCS_INPROGRESS, try_put_to(peer, ends.back()));
        }
        flush();
        EXPECT_EQ(count, num_created());
    }

    static uint64_t connects()
    {
        std::ifstream file("/sys/class/infiniband/mlx5_0/ports/1/hw_counters/"
                           "rx_dct_connect");
        uint64_t value = ~0ull;

        EXPECT_TRUE(file >> value);
        return value;
    }

    /* Returns the lines about initiators in UCX's virtual file system, which
     * has one for each that exists. */
    std::string initiators() const
    {
        ucs_string_buffer_t text = UCS_STRING_BUFFER_INITIALIZER;
        char path[256];

        snprintf(path, sizeof(path), "/uct/worker/%p/iface/%p", m_dcx->worker,
                 m_dcx->iface);
        /* UCX adds the files then. */
        ucs_vfs_path_list_dir(
            path, [](const char *, void *) {}, NULL);
        EXPECT_EQ(UCS_OK,
                  ucs_vfs_path_read_file(
                      (path + std::string("/initiators")).c_str(), &text));
        std::string result = ucs_string_buffer_cstr(&text);
        ucs_string_buffer_cleanup(&text);
        return result;
    }

    unsigned num_created() const
    {
        std::string text = initiators();
        unsigned count   = 0;

        for (size_t at = 0; (at = text.find("DCI ", at)) != std::string::npos;
             at++) {
            count++;
        }
        return count;
    }

    std::list<live_peer> m_peers;
    std::vector<std::pair<uct_ep_h, live_peer *>> m_to;
};

/* As many peers as initiators, in turn: each has one of its own. */
TEST_P(dcx_keep, one_each)
{
    make_peers(8);
    EXPECT_EQ(8u, take_turns(0, 7, 1));
    EXPECT_EQ(8u, num_created());
    EXPECT_EQ(0u, take_turns(0, 7, 20));
}

/* A peer needs no more than one initiator. */
TEST_P(dcx_keep, one_peer)
{
    make_peers(2);
    for (int i = 0; i < 20; i++) {
        std::list<dcx_end> ends(8);

        for (dcx_end &end : ends) {
            put(m_to[0].first, *m_to[0].second, end);
        }
        flush();
    }
    EXPECT_EQ(1u, num_created());
    EXPECT_EQ(1u, take_turns(1, 1, 20));
    EXPECT_EQ(2u, num_created());
}

/* A new peer takes the initiator that was assigned longest ago. The others keep
 * theirs. */
TEST_P(dcx_keep, oldest_changes_its_peer)
{
    make_peers(12);
    EXPECT_EQ(8u, take_turns(0, 7, 2));
    EXPECT_EQ(0u, take_turns(0, 0, 5)) << "used last, but assigned first";
    EXPECT_EQ(2u, take_turns(8, 9, 50));
    EXPECT_EQ(0u, take_turns(2, 9, 5));
    EXPECT_EQ(2u, take_turns(0, 1, 50)) << "from peers 2 and 3";
    EXPECT_EQ(0u, take_turns(4, 9, 5));
    EXPECT_EQ(8u, num_created());
}

/* Two peers take turns after more than there are initiators. */
TEST_P(dcx_keep, others_have_stopped)
{
    make_peers(12);
    EXPECT_EQ(100u, take_turns(0, 9, 10));
    EXPECT_EQ(2u, take_turns(10, 11, 50));
    EXPECT_EQ(0u, take_turns(10, 11, 50));
    EXPECT_EQ(8u, num_created());
}

/* An initiator in use is left out: a new peer takes the next one. */
TEST_P(dcx_keep, one_is_in_use)
{
    dcx_end end;

    make_peers(9);
    put_at_once(8);
    EXPECT_EQ(UCS_INPROGRESS, try_put_to(0, end));
    EXPECT_EQ(1u, take_turns(8, 8, 1));
    flush();
    EXPECT_EQ(0u, take_turns(0, 0, 1));
    EXPECT_EQ(0u, take_turns(2, 8, 5)) << "from peer 1";
}

/* No more initiators can be created: peers share those that exist. */
TEST_P(dcx_keep, no_more_can_be_created)
{
    make_peers(5);
    EXPECT_EQ(3u, take_turns(0, 2, 5));
    dcx_peek_no_more_dcis(m_dcx->iface);
    EXPECT_EQ(1u, take_turns(3, 3, 5));
    EXPECT_NE(std::string::npos,
              initiators().find(", 3 of 3, 3 idle, 0 lost\n"));
    EXPECT_EQ(0u, take_turns(1, 3, 5)) << "from peer 0";
    EXPECT_EQ(1u, take_turns(4, 4, 5));
    EXPECT_EQ(0u, take_turns(2, 4, 5)) << "from peer 1";
}

/* A flush with a completion leaves the endpoint its initiator. */
TEST_P(dcx_keep, flush)
{
    make_peers(2);
    put_at_once(2);

    uint64_t before = connects();
    for (int i = 0; i < 20; i++) {
        dcx_deadline deadline;
        dcx_end end, flushed;

        EXPECT_EQ(UCS_INPROGRESS, try_put_to(i % 2, end));
        EXPECT_EQ(UCS_INPROGRESS,
                  uct_ep_flush(m_to[i % 2].first, 0, &flushed.comp));
        while (flushed.count == 0) {
            deadline.check("the end of a flush");
            progress();
        }
        EXPECT_EQ(1u, end.count);
    }
    EXPECT_EQ(before, connects());
}

/* The callback of an endpoint, whose initiator is the next in turn, posts to
 * another peer; then to its own. */
TEST_P(dcx_keep, taken_in_callback)
{
    make_peers(10);
    put_at_once(8);

    ucs_status_t status = UCS_OK;
    dcx_end other, last;
    dcx_end first([&] {
        status = try_put_to(8, other);
        EXPECT_EQ(UCS_INPROGRESS, try_put_to(0, last));
    });
    EXPECT_EQ(UCS_INPROGRESS, try_put_to(0, first));
    flush();
    EXPECT_EQ(UCS_INPROGRESS, status);
    for (const dcx_end *end : {&first, &other, &last}) {
        EXPECT_EQ(UCS_OK, end->status);
        EXPECT_EQ(1u, end->count);
    }
    EXPECT_EQ(8u, num_created());
}

/* Endpoints are canceled and destroyed; new ones may be at their addresses. */
TEST_P(dcx_keep, destroyed)
{
    make_peers(8);
    put_at_once(8);
    for (unsigned peer = 0; peer < 4; peer++) {
        if (peer % 2) {
            EXPECT_EQ(UCS_OK, uct_ep_flush(m_to[peer].first,
                                           UCT_FLUSH_FLAG_CANCEL, NULL));
        }
        destroy_ep(m_to[peer].first);
    }
    EXPECT_NE(std::string::npos,
              initiators().find(", 8 of 8, 8 idle, 0 lost\n"));
    EXPECT_EQ(0u, take_turns(4, 7, 5));

    make_peers(12);
    EXPECT_EQ(4u, take_turns(8, 11, 20));
    EXPECT_EQ(0u, take_turns(4, 11, 20));
    EXPECT_EQ(8u, num_created());
}

INSTANTIATE_TEST_SUITE_P(keep, dcx_keep, testing::Values("dcs", "dcs_quota"),
                         dcx_policy_name);

/* --- more endpoints than initiators --------------------------------------- */

class dcx_keep_fair : public dcx_keep {};

/* Eight endpoints that never pause have all initiators, sixteen wait: these get
 * one in the order in which they came. */
TEST_P(dcx_keep_fair, served_in_turn)
{
    std::list<dcx_end> ends;
    std::list<dcx_pending_call> line;
    std::vector<unsigned> served, waiting;
    std::vector<std::function<void()>> again(8);
    dcx_deadline deadline;

    make_peers(24);
    for (unsigned peer = 0; peer < 8; peer++) {
        again[peer] = [&, peer] {
            if (served.size() < 16) {
                ends.emplace_back(again[peer]);
                try_put_to(peer, ends.back());
            }
        };
        again[peer]();
    }

    for (unsigned peer = 8; peer < 24; peer++) {
        waiting.push_back(peer);
        ends.emplace_back();
        dcx_end &end = ends.back();
        line.emplace_back([&, peer] {
            ucs_status_t status = try_put_to(peer, end);

            if (status == UCS_INPROGRESS) {
                served.push_back(peer);
            }
            return (status == UCS_INPROGRESS) ? UCS_OK : status;
        });
        EXPECT_EQ(UCS_OK,
                  uct_ep_pending_add(m_to[peer].first, &line.back().req, 0));
    }

    while (served.size() < 16) {
        deadline.check("all endpoints that wait");
        progress();
    }
    flush();
    EXPECT_EQ(waiting, served);
    EXPECT_EQ(8u, num_created());
}

INSTANTIATE_TEST_SUITE_P(fair, dcx_keep_fair, testing::Values("dcs_quota"),
                         dcx_policy_name);

} /* namespace */

int main(int argc, char **argv)
{
    auto env = dcx_shared_env();

    env[0].second = "8"; /* UCX_DCX_NUM_DCI */
    return hca_test_main(argc, argv, {{"keep", env}, {"fair", env}});
}
