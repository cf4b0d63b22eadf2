/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Puts and gets of lists: any pieces, with the result of a plain loop; work
 * requests, doorbells and completions; wrong lists; a full send queue, also one
 * that others share; keys and peers that fail in the middle. On exclusive and
 * shared initiators, with and without a global route header, and on a fabric
 * that loses and reorders packets.
 */
#include "dcx_list_bench.h"
#include "dcx_list_memory.h"

namespace {

/* End of the log of a list that is too long */
#define TOO_LONG \
    " does not fit into the send queue: divide the list, or increase " \
    "UCX_DCX_TX_QUEUE_LEN\n"

class dcx_list : public dcx_list_bench {
protected:
    /* Adds pieces that are adjacent on the remote side, and blocks. */
    void add_random(std::mt19937 &random, unsigned count)
    {
        size_t near = 0, far = 0, blocks, length, stride;

        for (unsigned i = 0; i < count; i++) {
            blocks = (random() % 8 == 0) ? random() % 4 : 1;
            length = (random() % 8 == 0) ? 0 : 1 + (random() % 700);
            stride = length + (random() % 3) * 8;
            add(near, length, far, blocks, stride);
            near += (blocks * stride) + (random() % 3) * 16;
            far += (blocks * stride) + (random() % 4 == 0) * 16;
        }
    }

    /* Expects that the list is refused, and nothing is posted. Returns what is
     * logged. */
    std::string refuse(ucs_status_t status)
    {
        const auto near = m_near.bytes, far = m_far.bytes;
        uint32_t pi = m_dcx.view().pi;
        dcx_end end;

        EXPECT_EQ(status, post(m_list, &end.comp));
        std::string logged = m_log.take();
        EXPECT_EQ(pi, m_dcx.view().pi);
        m_dcx.flush();
        EXPECT_EQ(0u, end.count);
        EXPECT_TRUE(near == m_near.bytes) << "local memory";
        EXPECT_TRUE(far == m_far.bytes) << "remote memory";
        return logged;
    }

    /* Expects that the list is refused because of piece @at. */
    void expect_refused(size_t at, const std::string &reason)
    {
        char place[128];

        snprintf(place, sizeof(place),
                 ": piece %zu of %zu (buffer %p, length %zu, remote address "
                 "0x%lx): ",
                 at, m_list.lengths.size(), m_list.buffers[at],
                 m_list.lengths[at], (long)m_list.remotes[at]);
        EXPECT_EQ(name() + place + reason + "\n",
                  refuse(UCS_ERR_INVALID_PARAM));
    }

    static std::string name()
    {
        return GetParam() ? "get_sgl_zcopy" : "put_sgl_zcopy";
    }
};

TEST_P(dcx_list, any_pieces)
{
    const unsigned rounds = 200;
    std::mt19937 random(5);

    for (unsigned i = 0; (i < rounds) && !HasFailure(); i++) {
        SCOPED_TRACE(i);
        begin();
        add(SIZE - 100, 64, SIZE - 200);
        add_random(random, random() % std::min<size_t>(m_max / 4, 100));
        run();
    }
}

TEST_P(dcx_list, as_many_as_always_fit)
{
    for (size_t length : {1, 8, 1000}) {
        begin();
        add_apart(m_max, length);
        run();
    }
}

/* Local and remote handles are those of layouts; addresses are offsets. */
TEST_P(dcx_list, of_layouts)
{
    dcx_layouts api;
    uct_mem_h memh[2];
    dcx_region *region[] = {&m_near, &m_far};
    dcx_list_args list;
    dcx_end end;

    begin();
    for (unsigned i = 0; i < 2; i++) {
        uct_dcx_block_t block = {(uintptr_t)region[i]->bytes.data(), 8, 8,
                                 region[i]->memh};
        uct_dcx_layout_params_t params = {UCT_MD_MEM_ACCESS_RMA, 64, 1, &block};

        ASSERT_EQ(UCS_OK, api.create(m_dcx.iface, 2, &memh[i]));
        ASSERT_EQ(UCS_OK, api.set(memh[i], &params));
        while (api.test(memh[i]) == UCS_INPROGRESS) {
        }
    }
    for (unsigned i = 0; i < 48; i++) {
        add(16 * i, 8, 16 * (47 - i));
        list.add((uint8_t *)(uintptr_t)(8 * i), 8, memh[0], 8 * (47 - i),
                 dcx_peek_rkey(memh[1]));
    }
    ASSERT_EQ(UCS_INPROGRESS, post(list, &end.comp));
    m_dcx.flush();
    EXPECT_EQ(UCS_OK, end.status);
    expect_bytes();
    for (uct_mem_h layout : memh) {
        EXPECT_EQ(UCS_OK, uct_md_mem_dereg(m_dcx.md(), layout));
    }
}

/* --- pieces that are longer than a WQE may be ----------------------------- */

class dcx_list_long : public dcx_list_bench {};

TEST_P(dcx_list_long, has_two_wqes)
{
    const size_t behind = 1000, last = dcx_list_memory::NEAR - 8;
    dcx_list_memory near, far;
    dcx_list_memory &from = GetParam() ? far : near;
    dcx_list_memory &to   = GetParam() ? near : far;
    uint32_t pi           = m_dcx.view().pi;
    uct_mem_h memh[2];
    dcx_end end;

    ASSERT_EQ(+dcx_list_memory::EDGE, m_dcx.attr.cap.put.max_zcopy);
    UCT_CALL(uct_md_mem_reg(m_dcx.md(), near.start(), near.SIZE,
                            UCT_MD_MEM_ACCESS_ALL, &memh[0]));
    UCT_CALL(uct_md_mem_reg(m_dcx.md(), far.start(), far.SIZE,
                            UCT_MD_MEM_ACCESS_ALL, &memh[1]));
    uct_rkey_t rkey = dcx_peek_rkey(memh[1]);
    from.fill();
    auto want = from.bytes();
    std::fill(want.begin() + dcx_list_memory::NEAR + behind, want.end(), 0);
    memcpy(&want[dcx_list_memory::NEAR + last], from.edge() + last, 8);

    m_list.add(near.start(), dcx_list_memory::EDGE + behind, memh[0],
               (uintptr_t)far.start(), rkey);
    m_list.add(near.edge() + last, 8, memh[0], (uintptr_t)far.edge() + last,
               rkey);
    ASSERT_EQ(UCS_INPROGRESS, post(m_list, &end.comp));
    m_dcx.flush();
    EXPECT_EQ(UCS_OK, end.status);
    EXPECT_EQ(1u, end.count);
    EXPECT_EQ(pi + 3, m_dcx.view().pi);
    EXPECT_TRUE(want == to.bytes());
    for (uct_mem_h handle : memh) {
        EXPECT_EQ(UCS_OK, uct_md_mem_dereg(m_dcx.md(), handle));
    }
}

INSTANTIATE_TEST_SUITE_P(exclusive, dcx_list_long, testing::Bool());
INSTANTIATE_TEST_SUITE_P(shared, dcx_list_long, testing::Bool());

/* --- lists that are wrong ------------------------------------------------- */

TEST_P(dcx_list, nothing)
{
    dcx_end end;

    begin();
    EXPECT_EQ(UCS_OK, post(m_list, &end.comp));
    add(0, 0, 0);
    EXPECT_EQ(UCS_OK, post(m_list, &end.comp));
    add(0, 8, 0, 0, 8);
    EXPECT_EQ(UCS_OK, post(m_list, &end.comp));
    m_list.memhs.assign(2, NULL);
    EXPECT_EQ(UCS_OK, post(m_list, &end.comp));
    EXPECT_EQ(0u, end.count);

    /* the initiator is not kept */
    EXPECT_EQ(UCS_OK, put_short(m_dcx.ep));
}

/* The first wrong piece is named. The WQEs of pieces before it are written, but
 * the next list replaces them. */
TEST_P(dcx_list, wrong_piece)
{
    const std::string too_far = "address, length, stride and count exceed 64 "
                                "bits";
    dcx_list_args good;

    for (size_t at : {0, 3, 4}) {
        begin();
        add_apart(5, 8);
        good = m_list;
        for (size_t i = at; i < 5; i++) {
            m_list.lengths[i] = SIZE_MAX - 64;
        }
        expect_refused(at, too_far);

        m_list             = good;
        m_list.has_counts  = true;
        m_list.counts[at]  = 2;
        m_list.strides[at] = 7;
        expect_refused(at, "stride is smaller than length");

        m_list.strides[at] = SIZE_MAX - 64;
        expect_refused(at, too_far);

        m_list = good;
        run();
    }
}

TEST_P(dcx_list, blocks_without_strides)
{
    auto call = GetParam() ? m_get : m_put;

    add(0, 8, 0, 2, 8);
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              call(m_ep, m_list.buffers.data(), m_list.lengths.data(),
                   m_list.memhs.data(), m_list.remotes.data(),
                   m_list.rkeys.data(), m_list.counts.data(), NULL, 1, NULL));
    EXPECT_NE(std::string::npos, m_log.take().find("strides is NULL"));
}

TEST_P(dcx_list, endpoint_of_another_transport)
{
    auto call       = GetParam() ? m_get : m_put;
    uct_iface iface = {};
    uct_ep ep       = {&iface};

    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              call(&ep, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL));
    EXPECT_NE(std::string::npos, m_log.take().find("ep is not of dcx"));
}

/* The first piece without room is named: those before it have room. */
TEST_P(dcx_list, too_many)
{
    const unsigned num = m_dcx.view().num_bb;
    size_t at;

    begin();
    add_apart(num, 8);
    std::string logged = refuse(UCS_ERR_EXCEEDS_LIMIT);
    ASSERT_EQ(0u, logged.find(name() + ": piece ")) << logged;
    at = std::stoul(logged.substr(name().size() + sizeof(": piece")));
    EXPECT_EQ(name() + ": piece " + std::to_string(at) + " of " +
                  std::to_string(num) + TOO_LONG,
              logged);
    ASSERT_LE(m_max, at);
    begin();
    add_apart(at, 8);
    run();

    begin();
    add(0, 1, 0, 1);
    m_list.add(m_near.bytes.data(), 1, m_near.memh,
               (uintptr_t)m_far.bytes.data(), m_rkey, SIZE_MAX / 8, 2);
    EXPECT_EQ(name() + ": piece 1 of 2" + TOO_LONG,
              refuse(UCS_ERR_EXCEEDS_LIMIT));
}

/* --- a full queue --------------------------------------------------------- */

TEST_P(dcx_list, waits_for_room)
{
    dcx_end first, second;
    dcx_list_request wait([&] { return post(m_list, &second.comp); });

    begin();
    add_apart(m_max / 2, 8);
    post_soon(m_list, &first.comp, m_ep);
    begin();
    add_apart(m_max, 8);
    ASSERT_EQ(UCS_ERR_NO_RESOURCE, post(m_list, &second.comp));
    ASSERT_EQ(UCS_OK, uct_ep_pending_add(m_ep, &wait.req, 0));
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, put_short(m_ep));
    m_dcx.flush();
    hca_until([&] {
        uct_worker_progress(m_dcx.worker);
        return second.count > 0;
    });
    EXPECT_EQ(UCS_OK, first.status);
    EXPECT_EQ(UCS_OK, second.status);
    EXPECT_EQ(1u, second.count);
    expect_bytes();
}

/* An endpoint that always has more to send does not keep a list away from the
 * initiator of both. */
TEST_P(dcx_list, is_not_starved)
{
    uct_ep_h other = m_dcx.ep;
    unsigned turns = 0;
    dcx_deadline deadline;
    dcx_end end;
    dcx_list_request wait([&] { return post(m_list, &end.comp); });
    dcx_list_request flood([&] { return put_short(other); });

    begin();
    add_apart(m_max, 8);
    fill(other);
    ASSERT_EQ(UCS_ERR_NO_RESOURCE, post(m_list, &end.comp));
    ASSERT_EQ(UCS_OK, uct_ep_pending_add(m_ep, &wait.req, 0));
    flood.status = UCS_OK;
    while ((end.count == 0) && (turns < 1000)) {
        deadline.check("a list");
        if (flood.status == UCS_OK) {
            turns++;
            fill(other);
            flood.status = UCS_ERR_NO_RESOURCE;
            EXPECT_EQ(UCS_OK, uct_ep_pending_add(other, &flood.req, 0));
        }
        uct_worker_progress(m_dcx.worker);
    }
    EXPECT_EQ(UCS_OK, end.status);
    m_dcx.flush();
    expect_bytes();
}

/* A list that is given up leaves the whole queue to others. */
TEST_P(dcx_list, given_up)
{
    unsigned room = fill(m_ep);

    m_dcx.flush();
    begin();
    add_apart(m_max, 8);
    m_want_near = m_near.bytes;
    m_want_far  = m_far.bytes;
    ASSERT_EQ(room, fill(m_ep));
    ASSERT_EQ(UCS_ERR_NO_RESOURCE, post(m_list, NULL));
    m_dcx.flush();
    EXPECT_EQ(room, fill(m_ep));
    m_dcx.flush();
    expect_bytes();

    /* one that does not fit beside few others */
    ASSERT_EQ(UCS_OK, put_short(m_ep));
    while (post(m_list, NULL) == UCS_INPROGRESS) {
    }
    m_dcx.flush();
    EXPECT_EQ(room, fill(m_ep));
}

/* --- order and the end ---------------------------------------------------- */

/* The last piece of the first list is at the place of the second list's first
 * one. */
TEST_P(dcx_list, behind_a_fence)
{
    const unsigned rounds = 300, count = std::min<size_t>(m_max / 2, 16);

    for (unsigned i = 0; (i < rounds) && !HasFailure(); i++) {
        dcx_end first, second;

        begin();
        for (unsigned j = count; j-- > 0;) {
            if (GetParam()) {
                add(j * 16, 8, 4096 + (j * 16));
            } else {
                add(4096 + (j * 16), 8, j * 16);
            }
        }
        post_soon(m_list, &first.comp, m_ep);
        ASSERT_EQ(UCS_OK, uct_ep_fence(m_ep, 0));
        m_list = dcx_list_args();
        for (unsigned j = 0; j < count; j++) {
            add(j * 16, 8, j * 16);
        }
        post_soon(m_list, &second.comp, m_ep);
        m_dcx.flush();
        EXPECT_EQ(UCS_OK, second.status);
        expect_bytes();
    }
}

TEST_P(dcx_list, flush_waits)
{
    std::vector<int> order;
    dcx_end end([&] { order.push_back(1); });
    dcx_end flushed([&] { order.push_back(2); });

    begin();
    add_apart(m_max / 2, 8);
    ASSERT_EQ(UCS_INPROGRESS, post(m_list, &end.comp));
    ASSERT_EQ(UCS_INPROGRESS, uct_ep_flush(m_ep, 0, &flushed.comp));
    m_dcx.flush();
    EXPECT_EQ(std::vector<int>({1, 2}), order);
}

TEST_P(dcx_list, destroyed)
{
    dcx_end end;

    begin();
    add_apart(m_max, 8);
    ASSERT_EQ(UCS_INPROGRESS, post(m_list, &end.comp));
    uct_ep_destroy(m_ep);
    m_ep = NULL;
    m_dcx.flush();
    EXPECT_EQ(1u, end.count);
    EXPECT_TRUE((end.status == UCS_ERR_CANCELED) || (end.status == UCS_OK));
}

INSTANTIATE_TEST_SUITE_P(exclusive, dcx_list, testing::Bool());
INSTANTIATE_TEST_SUITE_P(shared, dcx_list, testing::Bool());
INSTANTIATE_TEST_SUITE_P(hw_dcs, dcx_list, testing::Bool());
INSTANTIATE_TEST_SUITE_P(roce, dcx_list, testing::Bool());
INSTANTIATE_TEST_SUITE_P(small, dcx_list, testing::Bool());
INSTANTIATE_TEST_SUITE_P(lossy, dcx_list, testing::Bool());
INSTANTIATE_TEST_SUITE_P(ooo, dcx_list, testing::Bool());

/* --- failures ------------------------------------------------------------- */

class dcx_list_fail : public dcx_list_bench {
protected:
    /* Expects that the list ends with @status, and its endpoint fails. */
    void expect_failure(const dcx_end &end, ucs_status_t status)
    {
        EXPECT_TRUE(hca_until([&] {
            uct_worker_progress(m_dcx.worker);
            return !m_dcx.errors.empty();
        }));
        EXPECT_EQ(1u, end.count);
        EXPECT_EQ(status, end.status);
        EXPECT_EQ(std::vector<ucs_status_t>{status}, m_dcx.errors);
        m_dcx.errors.clear();
    }

    /* Expects that the log names the peer's memory of piece @at. */
    void expect_place(size_t at)
    {
        std::string logged = m_log.take();
        char place[64];

        snprintf(place, sizeof(place), "remote address 0x%lx, rkey 0x%lx",
                 (long)m_list.remotes[at], (long)m_list.rkeys[at]);
        EXPECT_NE(std::string::npos, logged.find(place))
            << "not " << place << ": " << logged;
    }

    /* Adds pieces in the second half of the memory, which do not arrive. */
    void add_behind(size_t count, size_t length)
    {
        for (size_t i = 0; i < count; i++) {
            size_t at = SIZE / 2 + (i * (length + 8));

            m_list.add(m_near.bytes.data() + at, length, m_near.memh,
                       (uintptr_t)m_far.bytes.data() + at, m_rkey);
        }
    }
};

/* The peer refuses a key in the middle: pieces before it arrive, those behind
 * it do not, and the log names its remote address. Others on the initiator are
 * not concerned. */
TEST_P(dcx_list_fail, wrong_key)
{
    const unsigned count = std::min<size_t>(m_max, 40);
    dcx_end end, other;

    begin();
    add_apart(count / 2, 64);
    add_behind(count - count / 2, 64);
    m_list.rkeys[count / 2] ^= ~0xffu;
    ASSERT_EQ(UCS_INPROGRESS, post(m_list, &end.comp));
    expect_failure(end, UCS_ERR_CONNECTION_RESET);
    expect_place(count / 2);
    expect_bytes();
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, post(m_list, &end.comp));
    m_log.take();
    EXPECT_EQ(1u, end.count);

    begin();
    add_apart(count, 65);
    m_dcx.flush();
    ASSERT_EQ(UCS_INPROGRESS, post(m_list, &other.comp, m_dcx.ep));
    m_dcx.flush();
    EXPECT_EQ(UCS_OK, other.status);
    expect_bytes();
}

/* The call does not check the addresses of a piece that is a single WQE. */
TEST_P(dcx_list_fail, end_above_64_bits)
{
    dcx_end end;

    begin();
    add_apart(3, 64);
    add_behind(2, 64);
    m_list.remotes[3] = UINT64_MAX - 7;
    ASSERT_EQ(UCS_INPROGRESS, post(m_list, &end.comp));
    expect_failure(end, UCS_ERR_CONNECTION_RESET);
    expect_place(3);
    expect_bytes();
}

/* A list that fails between lists of another endpoint */
TEST_P(dcx_list_fail, beside_others)
{
    const unsigned count = std::min<size_t>(m_max / 4, 40);
    dcx_end before, end, behind;
    dcx_list_args wrong;

    begin();
    add_apart(count, 64);
    wrong = m_list;
    wrong.rkeys[count - 1] ^= ~0xffu;
    post_soon(m_list, &before.comp, m_dcx.ep);
    post_soon(wrong, &end.comp, m_ep);
    post_soon(m_list, &behind.comp, m_dcx.ep);
    expect_failure(end, UCS_ERR_CONNECTION_RESET);
    m_dcx.flush();
    EXPECT_EQ(UCS_OK, before.status);
    EXPECT_EQ(UCS_OK, behind.status);
    EXPECT_EQ(1u, before.count);
    EXPECT_EQ(1u, behind.count);
    expect_bytes();
    m_log.take();
}

TEST_P(dcx_list_fail, dead_peer)
{
    dcx_end end;

    begin();
    add_apart(m_max, 8);
    uct_ep_destroy(m_ep);
    {
        dcx_loop peer;

        m_ep = m_dcx.make_ep(peer);
    }
    ASSERT_EQ(UCS_INPROGRESS, post(m_list, &end.comp));
    expect_failure(end, UCS_ERR_ENDPOINT_TIMEOUT);
    m_log.take();
}

INSTANTIATE_TEST_SUITE_P(exclusive, dcx_list_fail, testing::Bool());
INSTANTIATE_TEST_SUITE_P(shared, dcx_list_fail, testing::Bool());
INSTANTIATE_TEST_SUITE_P(hw_dcs, dcx_list_fail, testing::Bool());
INSTANTIATE_TEST_SUITE_P(roce, dcx_list_fail, testing::Bool());
INSTANTIATE_TEST_SUITE_P(small, dcx_list_fail, testing::Bool());

/* The peer answers the 20th piece with a NAK. */
class dcx_list_nak : public dcx_list_fail {};

TEST_P(dcx_list_nak, in_the_middle)
{
    dcx_end end;

    begin();
    add_apart(19, 8);
    add_behind(21, 8);
    ASSERT_EQ(UCS_INPROGRESS, post(m_list, &end.comp));
    expect_failure(end, UCS_ERR_CONNECTION_RESET);
    expect_place(19);
    expect_bytes();
}

INSTANTIATE_TEST_SUITE_P(nak_put, dcx_list_nak, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(nak_get, dcx_list_nak, testing::Values(true));

/* The peer deregisters its memory while the device delays the 20th piece: that
 * one and those behind it are refused. */
class dcx_list_dying_key : public dcx_list_fail {};

TEST_P(dcx_list_dying_key, in_the_middle)
{
    const std::vector<uint8_t> &target = GetParam() ? m_near.bytes :
                                                      m_far.bytes;
    dcx_end end;

    begin();
    add_apart(19, 8);
    add_behind(21, 8);
    ASSERT_EQ(UCS_INPROGRESS, post(m_list, &end.comp));
    EXPECT_TRUE(hca_until(
        [&] { return target == (GetParam() ? m_want_near : m_want_far); }));
    m_far.release();
    EXPECT_EQ(0u, end.count);
    expect_failure(end, UCS_ERR_CONNECTION_RESET);
    expect_place(19);
    expect_bytes();
}

INSTANTIATE_TEST_SUITE_P(dies_put, dcx_list_dying_key, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(dies_get, dcx_list_dying_key, testing::Values(true));

/* --- cost ----------------------------------------------------------------- */

class dcx_list_cost : public dcx_list_bench {
protected:
    struct cost {
        unsigned doorbells, cqes, bbs;
    };

    static uint64_t count(const char *kind)
    {
        auto get = (int (*)(const char *, uint64_t *, uint64_t *,
                            uint64_t *))dlsym(RTLD_DEFAULT, "softhca_pcie");
        uint64_t times, bytes, lines;

        HCA_CHECK_CALL((get != NULL) &&
                       (get(kind, &times, &bytes, &lines) == 0));
        return times;
    }

    cost measure()
    {
        uint64_t doorbells = count("mmio_write");
        uint64_t cqes      = count("send_cqe_write");
        uint32_t pi        = m_dcx.view().pi;

        run();
        return {(unsigned)(count("mmio_write") - doorbells),
                (unsigned)(count("send_cqe_write") - cqes),
                (uint16_t)(m_dcx.view().pi - pi)};
    }
};

TEST_P(dcx_list_cost, of_pieces_apart)
{
    const unsigned bb = getenv("SOFTHCA_LINK") ? 2 : 1;

    begin();
    add_apart(254, 1000);
    cost spent = measure();
    EXPECT_EQ(1u, spent.doorbells);
    EXPECT_EQ(1u, spent.cqes);
    EXPECT_EQ(254 * bb, spent.bbs);
}

/* 253 adjacent pieces are 23 work requests of 11 data segments. */
TEST_P(dcx_list_cost, of_adjacent_pieces)
{
    begin();
    for (unsigned i = 0; i < 253; i++) {
        add(16 * i, 8, 8 * i);
    }
    cost spent = measure();
    EXPECT_EQ(1u, spent.doorbells);
    EXPECT_EQ(1u, spent.cqes);
    EXPECT_EQ(23u * 4, spent.bbs);
}

INSTANTIATE_TEST_SUITE_P(pcie, dcx_list_cost, testing::Bool());
INSTANTIATE_TEST_SUITE_P(pcie_roce, dcx_list_cost, testing::Bool());

} /* namespace */

int main(int argc, char **argv)
{
    const std::pair<const char *, const char *>
        one  = {"UCX_DCX_NUM_DCI", "1"},
        fast = {"UCX_DCX_TIMEOUT", "1ms"}, few = {"UCX_DCX_RETRY_COUNT", "1"},
        late = {"SOFTHCA_FAULT", "delay:nth=20:time=3000ms"};

    return hca_test_main(
        argc, argv,
        {
            {"exclusive", {one, fast, few}},
            {"shared", {one, fast, few, {"UCX_DCX_TX_POLICY", "rand"}}},
            {"hw_dcs", {one, fast, few, {"UCX_DCX_TX_POLICY", "hw_dcs"}}},
            {"roce", {one, fast, few, {"SOFTHCA_LINK", "roce"}}},
            {"small",
             {one,
              fast,
              few,
              {"UCX_DCX_TX_QUEUE_LEN", "16"},
              {"UCX_DCX_TX_POLICY", "rand"}}},
            {"lossy", {one, fast, {"SOFTHCA_FAULT", "drop:p=0.01:seed=3"}}},
            {"ooo", {one, {"SOFTHCA_ORDER", "ooo"}}},
            {"nak_put", {one, {"SOFTHCA_FAULT", "nak_access:nth=20"}}},
            {"nak_get", {one, {"SOFTHCA_FAULT", "nak_access:nth=20"}}},
            {"dies_put", {one, late, {"UCX_DCX_RCACHE", "n"}}},
            {"dies_get", {one, late, {"UCX_DCX_RCACHE", "n"}}},
            {"pcie", {one, {"SOFTHCA_PCIE", "y"}}},
            {"pcie_roce",
             {one, {"SOFTHCA_PCIE", "y"}, {"SOFTHCA_LINK", "roce"}}},
        });
}
