/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The sending side of tagged messages: their WQEs, compared with libmlx5's of
 * the same bytes (see test_dcx_post.cc), their effect on an XRQ of the test,
 * which matches tags, and rendezvous until they end. dcx is linked into the
 * program; its own receiving side is not involved.
 */
#include "dcx_end.h"
#include "dcx_post_bench.h"
#include "devx_xrq.h"

#include <set>

extern "C" {
#include "dcx_tag_driver.h"
}

namespace {

constexpr uint64_t TAG = 0x1122334455667788;

using bytes = std::vector<uint8_t>;

bytes operator+(bytes a, const bytes &b)
{
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

template <typename T> bytes raw(const T &what)
{
    return bytes((const uint8_t *)&what, (const uint8_t *)(&what + 1));
}

/* Returns the tag header as it is in memory: the tag in the byte order of the
 * processor. */
bytes tmh_bytes(uint32_t app_ctx, uint8_t op = IBV_TMH_EAGER)
{
    struct ibv_tmh tmh = {};

    tmh.opcode  = op;
    tmh.app_ctx = htobe32(app_ctx);
    tmh.tag     = TAG;
    return raw(tmh);
}

size_t pack(void *dest, void *arg)
{
    const auto *data = (const bytes *)arg;

    memcpy(dest, data->data(), data->size());
    return data->size();
}

class dcx_tag : public dcx_post_bench {
protected:
    dcx_tag()
    {
        dcx_tag_open(m_dcx.iface, 64, &m_limits);
        dcx_tag_matches(m_dcx.ep);
        /* the own receiving side takes tag headers for these ids */
        for (uint8_t id : {0, 1, 2}) {
            UCT_CALL(
                uct_iface_set_am_handler(m_dcx.iface, id, ignore, NULL, 0));
        }
    }

    ~dcx_tag()
    {
        m_dcx.flush();
        EXPECT_EQ(0u, dcx_tag_rndv_count(m_dcx.iface));
        dcx_tag_close(m_dcx.iface);
    }

    static ucs_status_t ignore(void *, void *, size_t, unsigned)
    {
        return UCS_OK;
    }

    /* Creates an endpoint to a target of the test, which matches tags. */
    uct_ep_h make_ep_to(uint32_t dctn)
    {
        return make_ep([&](uint8_t *addr) {
            uint32_t number = htobe32(dctn << 8);
            uint64_t key    = htobe64(TM_DC_KEY);

            memcpy(&addr[2], &number, 3);
            memcpy(&addr[5], &key, sizeof(key));
        });
    }

    /* Creates an endpoint to the own address after a change:
     * uct_dcx_iface_addr_t, packed. */
    uct_ep_h make_ep(const std::function<void(uint8_t *addr)> &change)
    {
        std::vector<uint8_t> addr = m_dcx.iface_addr();
        uct_ep_h ep;

        addr[1] |= 2; /* flag: matches tags */
        change(addr.data());
        dcx_peek_seal_addr(addr.data());
        UCT_CALL(m_dcx.create_ep(m_dcx.dev_addr(), addr, 0, &ep));
        return ep;
    }

    static dc_op eager(uint64_t imm = 0)
    {
        dc_op op = {.opcode = MLX5_OPCODE_SEND, .flags = IBV_SEND_SOLICITED};

        if (imm != 0) {
            op.opcode = MLX5_OPCODE_SEND_IMM;
            op.imm    = imm;
        }
        return op;
    }

    /* Adds the data segments of @list to a WQE with inline data. */
    wqe_bytes with_data(const dc_op &op, const std::vector<uct_iov_t> &list,
                        const struct dcx_view &view)
    {
        dc_op data     = {.opcode = MLX5_OPCODE_SEND, .sges = sges(list)};
        wqe_bytes wqe  = theirs(op, view);
        wqe_bytes tail = theirs(data, view);

        wqe.insert(wqe.end(), tail.begin() + (is_compact() ? 32 : 64),
                   tail.end());
        wqe[7] = wqe.size() / 16;
        return wqe;
    }

    /* Begins a rendezvous, checks the WQE of its request, and cancels it. */
    void expect_rndv(const bytes &header, const std::vector<uct_iov_t> &list)
    {
        dcx_end end;
        void *op              = NULL;
        const unsigned length = header.size(), num = list.size();
        struct dcx_view view = idle_view();
        wqe_bytes wqe        = ours([&] {
            op = uct_ep_tag_rndv_zcopy(m_dcx.ep, TAG, header.data(), length,
                                              list.data(), num, 0, &end.comp);
            return UCS_PTR_STATUS(op);
        });
        dc_op expected       = eager();

        ASSERT_FALSE(UCS_PTR_IS_ERR(op));
        expected.inl = rndv_bytes(header, list, dcx_tag_rndv_id(op), view);
        EXPECT_EQ("", diff(theirs(expected, view), wqe))
            << header.size() << " bytes";
        EXPECT_EQ(UCS_OK, uct_ep_tag_rndv_cancel(m_dcx.ep, op));
        EXPECT_EQ(0u, end.count);
    }

    bytes rndv_bytes(const bytes &header, const std::vector<uct_iov_t> &list,
                     uint32_t id, const struct dcx_view &view)
    {
        size_t in_tmh        = std::min(header.size(), (size_t)2);
        bytes tmh            = tmh_bytes(id, IBV_TMH_RNDV);
        struct ibv_rvh rvh   = {};
        struct prm_ravh ravh = {};

        tmh[1] = in_tmh;
        std::copy_n(header.begin(), in_tmh, tmh.begin() + 2);
        if (!list.empty() && (list[0].length > 0)) {
            rvh.va   = htobe64((uintptr_t)list[0].buffer);
            rvh.rkey = htobe32(m_rkey);
            rvh.len  = htobe32(list[0].length);
        }
        ravh.sl_dct        = htobe32(view.dctn);
        ravh.dc_access_key = htobe64(view.dc_key);
        return tmh + raw(rvh) + raw(ravh) +
               bytes(header.begin() + in_tmh, header.end());
    }

    struct dcx_tag_limits m_limits;
};

/* --- WQEs ----------------------------------------------------------------- */

TEST_P(dcx_tag, eager_short)
{
    EXPECT_EQ(172u, m_limits.max_short);
    for (size_t length = 0; length <= m_limits.max_short; length++) {
        auto data = pattern(length);
        dc_op op  = eager();

        op.inl = tmh_bytes(0) + data;
        expect_same("eager_short", op, [&] {
            return uct_ep_tag_eager_short(m_dcx.ep, TAG, data.data(), length);
        });
    }
}

/* A rendezvous of software: an immediate of 0 */
TEST_P(dcx_tag, rndv_request)
{
    for (size_t length : {(size_t)0, (size_t)41, m_limits.max_short}) {
        auto data = pattern(length);
        dc_op op  = eager();

        op.opcode = MLX5_OPCODE_SEND_IMM;
        op.inl    = tmh_bytes(0) + data;
        expect_same("rndv_request", op, [&] {
            return uct_ep_tag_rndv_request(m_dcx.ep, TAG, data.data(), length,
                                           0);
        });
    }
}

/* Immediates: the upper half is in the header, the lower half in the device's
 * field */
const uint64_t imms[] = {0, 1, 0x80000000, 0x100000000, 0xfedcba9876543210};

TEST_P(dcx_tag, eager_bcopy)
{
    for (uint64_t imm : imms) {
        for (size_t length : {(size_t)0, (size_t)100, m_limits.bcopy}) {
            auto data            = pattern(length);
            struct dcx_view view = idle_view();
            wqe_bytes wqe        = ours([&] {
                return uct_ep_tag_eager_bcopy(m_dcx.ep, TAG, imm, pack, &data,
                                                     0);
            });
            bytes all            = tmh_bytes(imm >> 32) + data;
            dc_op op             = with_buffer_of(eager(imm), wqe, all.size());

            EXPECT_EQ("", diff(theirs(op, view), wqe)) << imm;
            EXPECT_EQ(0,
                      memcmp((void *)op.sges[0].addr, all.data(), all.size()));
        }
    }
}

TEST_P(dcx_tag, eager_zcopy)
{
    EXPECT_EQ(10u, m_limits.iov);
    for (uint64_t imm : imms) {
        for (unsigned n = 0; n <= m_limits.iov; n++) {
            struct dcx_view view = idle_view();
            auto list            = iovs(n);
            dc_op op             = eager(imm);

            op.inl = tmh_bytes(imm >> 32);
            EXPECT_EQ("", diff(with_data(op, list, view), ours([&] {
                                   return uct_ep_tag_eager_zcopy(
                                       m_dcx.ep, TAG, imm, list.data(), n, 0,
                                       NULL);
                               })))
                << n << " pieces";
        }
    }
}

/* The first two bytes of the header are in the TMH: UCX's header of 17 bytes
 * fits. */
TEST_P(dcx_tag, rndv)
{
    EXPECT_EQ(18u, m_limits.rndv_hdr);
    for (size_t length = 0; length <= m_limits.rndv_hdr; length++) {
        expect_rndv(pattern(length), iovs(1));
    }
    expect_rndv(pattern(17), {});
    expect_rndv(pattern(17), {iov(0, 0)});
}

/* Headers across the end of the ring, at several places */
TEST_P(dcx_tag, ring_end)
{
    unsigned straddles = 0;

    for (unsigned i = 0; straddles < 8; i++) {
        struct dcx_view view = idle_view();
        auto data            = pattern((i * 5) % m_limits.max_short);

        if (i % 3 == 0) {
            expect_rndv(pattern(17), iovs(1));
        } else {
            dc_op op = eager();

            op.inl = tmh_bytes(0) + data;
            expect_same("eager_short", op, [&] {
                return uct_ep_tag_eager_short(m_dcx.ep, TAG, data.data(),
                                              data.size());
            });
        }
        unsigned to = m_dcx.view().pi % view.num_bb;
        straddles += (to < view.pi % view.num_bb) && (to != 0);
    }
}

/* --- limits and refusals -------------------------------------------------- */

TEST_P(dcx_tag, capabilities)
{
    uct_iface_attr_t attr;

    UCT_CALL(uct_iface_query(m_dcx.iface, &attr));
    EXPECT_TRUE(attr.cap.flags & UCT_IFACE_FLAG_TAG_RNDV_ZCOPY);
    EXPECT_EQ(1u << 30, attr.cap.tag.rndv.max_zcopy);
    EXPECT_EQ(18u, attr.cap.tag.rndv.max_hdr);
    EXPECT_GE(attr.cap.tag.recv.min_recv, 64u) << "a request fits";
    EXPECT_GE(attr.cap.tag.recv.max_zcopy, attr.cap.tag.rndv.max_zcopy);
    EXPECT_EQ(1000u, attr.cap.tag.recv.max_outstanding);

    /* a device that does not fetch: UCP sends its own requests */
    dcx_tag_close(m_dcx.iface);
    dcx_tag_open(m_dcx.iface, 0, &m_limits);
    UCT_CALL(uct_iface_query(m_dcx.iface, &attr));
    EXPECT_TRUE(attr.cap.flags & UCT_IFACE_FLAG_TAG_RNDV_ZCOPY);
    EXPECT_EQ(0u, attr.cap.tag.rndv.max_zcopy);
    EXPECT_EQ(m_limits.max_short, attr.cap.tag.rndv.max_hdr);
}

/* Nothing is sent, and the initiator is available again. */
TEST_P(dcx_tag, peer_that_matches_none)
{
    uct_ep_h ep = m_dcx.make_ep();
    auto data   = pattern(8);
    auto list   = iovs(1);
    auto before = idle_view().pi;

    /* the address is of a peer without tag matching */
    EXPECT_EQ(UCS_ERR_UNSUPPORTED,
              uct_ep_tag_eager_short(ep, TAG, data.data(), 8));
    EXPECT_EQ(UCS_ERR_UNSUPPORTED,
              uct_ep_tag_eager_bcopy(ep, TAG, 0, pack, &data, 0));
    EXPECT_EQ(UCS_ERR_UNSUPPORTED,
              uct_ep_tag_eager_zcopy(ep, TAG, 0, list.data(), 1, 0, NULL));
    EXPECT_EQ(UCS_ERR_UNSUPPORTED,
              UCS_PTR_STATUS(uct_ep_tag_rndv_zcopy(ep, TAG, data.data(), 8,
                                                   list.data(), 1, 0, NULL)));
    EXPECT_EQ(UCS_ERR_UNSUPPORTED,
              uct_ep_tag_rndv_request(ep, TAG, data.data(), 8, 0));
    EXPECT_EQ(before, m_dcx.view().pi);
    uct_ep_destroy(ep);
}

/* The size of the peer's buffers limits data and header together. */
TEST_P(dcx_tag, peer_with_smaller_buffers)
{
    uct_ep_h ep = make_ep([](uint8_t *addr) {
        uint32_t seg_size = htobe32(700);

        memcpy(&addr[19], &seg_size, sizeof(seg_size));
    });
    auto data   = pattern(700 - 16);
    auto list   = std::vector<uct_iov_t>{iov(0, 700 - 15)};
    dcx_end end;

    EXPECT_EQ(UCS_ERR_EXCEEDS_LIMIT,
              uct_ep_tag_eager_zcopy(ep, TAG, 0, list.data(), 1, 0, &end.comp));
    EXPECT_EQ(684, uct_ep_tag_eager_bcopy(ep, TAG, 0, pack, &data, 0));
    m_dcx.flush();
    data.push_back(0);
    EXPECT_EQ(UCS_ERR_EXCEEDS_LIMIT,
              uct_ep_tag_eager_bcopy(ep, TAG, 0, pack, &data, 0));
    list[0].length--;
    EXPECT_EQ(UCS_INPROGRESS,
              uct_ep_tag_eager_zcopy(ep, TAG, 0, list.data(), 1, 0, &end.comp));
    m_dcx.flush();
    EXPECT_EQ(1u, end.count);
    uct_ep_destroy(ep);
}

/* --- a queue that matches tags -------------------------------------------- */

/* An XRQ of the test matches the messages, fetches the data of a rendezvous,
 * and ends it by a FIN. */
class dcx_tag_xrq : public dcx_tag {
protected:
    static constexpr uint32_t LENGTH = 5000;

    /* A FIN arrives as an active message, whose payload starts after two bytes
     * of the TMH. */
    static ucs_status_t take_fin(void *arg, void *data, size_t length, unsigned)
    {
        struct ibv_tmh tmh;

        EXPECT_EQ(sizeof(struct ibv_tmh) + sizeof(struct ibv_rvh) - 2, length);
        memcpy((uint8_t *)&tmh + 2, data, sizeof(tmh) - 2);
        EXPECT_EQ(TAG, tmh.tag);
        dcx_tag_rndv_fin((uct_iface_h)arg, be32toh(tmh.app_ctx));
        return UCS_OK;
    }

    /* MTU of dcx's targets: both ends need the same. */
    unsigned mtu() const
    {
        struct ibv_port_attr attr;

        EXPECT_EQ(0, ibv_query_port(m_dev.ctx, 1, &attr));
        return attr.active_mtu;
    }

    /* A target for dcx's messages, whose list fetches with dcx's own key */
    void open_target()
    {
        devx_mailbox in     = devx_dct_in(m_dev, m_xrq.cq.cq, m_xrq.number());
        devx_mailbox params = m_xrq.dc_params(), out(16);

        in.set(0x10, 7, 4, 1);
        m_dct.reset(new devx_object(m_dev.ctx, in));
        ASSERT_NE(nullptr, m_dct->obj);
        params.set(0x10, 18, 16, mtu());
        params.put64(0x18, dcx_tag_dc_key(m_dcx.iface));
        EXPECT_EQ(0, m_xrq.modify(params, &out));
        m_cmd.connect(m_cmd);
        m_ep = make_ep_to(m_dct->out.number());
    }

    ~dcx_tag_xrq()
    {
        uct_ep_destroy(m_ep);
        m_dcx.flush();
    }

    devx_xrq m_xrq{m_dev};
    devx_qp m_cmd{m_dev, m_xrq};
    strict_mem m_dst{m_dev.pd, ACCESS_ALL, 0x22};
    std::unique_ptr<devx_object> m_dct;
    uct_ep_h m_ep;
};

/* Each kind of eager message into a buffer of its tag */
TEST_P(dcx_tag_xrq, matches)
{
    const uint64_t imm = 0x0123456789abcdef;
    auto data          = pattern(100);
    auto list          = std::vector<uct_iov_t>{iov(0, 100)};
    auto expect_match  = [&](const void *sent, uint32_t app_ctx) {
        struct mlx5_cqe64 cqe = m_xrq.expect(PRM_CQE_TM_CONSUMED_MSG);

        EXPECT_EQ(100u, be32toh(cqe.byte_cnt));
        EXPECT_EQ(app_ctx, cqe.tmh.app_ctx);
        EXPECT_EQ(0, memcmp(m_dst.addr, sent, 100));
        memset(m_dst.addr, 0x22, 100);
    };

    open_target();
    m_xrq.append(m_cmd, htobe64(TAG), m_dst, 100);
    EXPECT_EQ(UCS_OK, uct_ep_tag_eager_short(m_ep, TAG, data.data(), 100));
    expect_match(data.data(), 0);
    m_xrq.append(m_cmd, htobe64(TAG), m_dst, 100, 1);
    EXPECT_EQ(100, uct_ep_tag_eager_bcopy(m_ep, TAG, imm, pack, &data, 0));
    expect_match(data.data(), htobe32(imm >> 32));
    m_xrq.append(m_cmd, htobe64(TAG), m_dst, 100, 2);
    EXPECT_EQ(UCS_INPROGRESS,
              uct_ep_tag_eager_zcopy(m_ep, TAG, 0, list.data(), 1, 0, NULL));
    expect_match(list[0].buffer, 0);
}

TEST_P(dcx_tag_xrq, fetches_the_data_of_a_rendezvous)
{
    auto header = pattern(17);
    auto list   = std::vector<uct_iov_t>{iov(0, LENGTH)};
    dcx_deadline deadline;
    dcx_end end;

    open_target();
    m_xrq.append(m_cmd, htobe64(TAG), m_dst, LENGTH);
    UCT_CALL(
        uct_iface_set_am_handler(m_dcx.iface, 2, take_fin, m_dcx.iface, 0));
    for (uint32_t i = 0; i < LENGTH; i++) {
        m_dcx.mem[i] = i * 7;
    }

    void *op = uct_ep_tag_rndv_zcopy(m_ep, TAG, header.data(), header.size(),
                                     list.data(), 1, 0, &end.comp);
    ASSERT_FALSE(UCS_PTR_IS_ERR(op));
    EXPECT_EQ(TAG, m_xrq.expect(PRM_CQE_TM_CONSUMED).tmh.tag);
    EXPECT_EQ(LENGTH, be32toh(m_xrq.expect(PRM_CQE_TM_EXPECTED).byte_cnt));
    EXPECT_EQ(0, memcmp(m_dst.addr, m_dcx.mem.data(), LENGTH));
    while (end.count == 0) {
        deadline.check("the FIN");
        uct_worker_progress(m_dcx.worker);
    }
    EXPECT_EQ(UCS_OK, end.status);
}

/* --- rendezvous in progress ----------------------------------------------- */

class dcx_tag_rndv : public dcx_tag {
protected:
    void *begin(dcx_end &end)
    {
        auto list = iovs(1);
        void *op  = uct_ep_tag_rndv_zcopy(m_dcx.ep, TAG, "x", 1, list.data(), 1,
                                          0, &end.comp);

        EXPECT_FALSE(UCS_PTR_IS_ERR(op));
        return op;
    }

    void fin(uint32_t id) { dcx_tag_rndv_fin(m_dcx.iface, id); }
};

TEST_P(dcx_tag_rndv, ends_with_its_fin)
{
    dcx_end first, second;
    uint32_t id = dcx_tag_rndv_id(begin(first));

    fin(dcx_tag_rndv_id(begin(second)));
    EXPECT_EQ(0u, first.count);
    EXPECT_EQ(1u, second.count);
    EXPECT_EQ(UCS_OK, second.status);
    m_dcx.flush(); /* it waits for no rendezvous */
    EXPECT_EQ(0u, first.count);
    fin(id);
    EXPECT_EQ(1u, first.count);
    EXPECT_EQ(UCS_OK, first.status);
    fin(id);
    EXPECT_EQ(1u, first.count);
}

/* A late FIN has no effect, not even on another rendezvous in the same entry of
 * the table. */
TEST_P(dcx_tag_rndv, hears_no_fin_after_its_end)
{
    dcx_end end, other;
    void *op     = begin(end);
    uint32_t old = dcx_tag_rndv_id(op);

    EXPECT_EQ(UCS_OK, uct_ep_tag_rndv_cancel(m_dcx.ep, op));
    fin(old);
    EXPECT_EQ(0u, end.count);
    dcx_tag_rndv_set_next(m_dcx.iface, old ^ 1);
    op = begin(other);
    EXPECT_EQ(old ^ 1, dcx_tag_rndv_id(op));
    fin(old);
    EXPECT_EQ(0u, other.count);
    fin(old ^ 1);
    EXPECT_EQ(1u, other.count);
}

/* Ids do not tell the next one: no bit of them stays, and no two pairs have the
 * same difference. */
TEST_P(dcx_tag_rndv, ids_cannot_be_guessed)
{
    uint32_t ones = 0, zeros = 0, last = 0;
    std::set<uint32_t> steps;

    for (unsigned i = 0; i < 200; i++) {
        dcx_end end;
        uint32_t id = dcx_tag_rndv_id(begin(end));

        fin(id);
        m_dcx.flush();
        ones |= id;
        zeros |= ~id;
        EXPECT_TRUE(steps.insert(id - last).second);
        last = id;
    }
    EXPECT_EQ(UINT32_MAX, ones);
    EXPECT_EQ(UINT32_MAX, zeros);
}

/* The number of rendezvous is not limited. */
TEST_P(dcx_tag_rndv, table_grows)
{
    constexpr unsigned count = 70000;
    std::vector<dcx_end> ends(count);
    std::vector<void *> ops;

    for (auto &end : ends) {
        ops.push_back(dcx_tag_rndv_begin(m_dcx.ep, &end.comp));
    }
    EXPECT_EQ(count, dcx_tag_rndv_count(m_dcx.iface));
    for (unsigned i = 0; i < count; i += 2) {
        fin(dcx_tag_rndv_id(ops[i]));
    }
    for (unsigned i = 0; i < count; i++) {
        ASSERT_EQ((i + 1) % 2, ends[i].count) << i;
    }
    for (unsigned i = 1; i < count; i += 2) {
        EXPECT_EQ(UCS_OK, uct_ep_tag_rndv_cancel(m_dcx.ep, ops[i]));
    }
    EXPECT_EQ(0u, dcx_tag_rndv_count(m_dcx.iface));
}

/* Ids differ from those of all earlier rendezvous, in progress or not. */
TEST_P(dcx_tag_rndv, ids_differ)
{
    std::vector<void *> held;
    std::set<uint32_t> ids;
    dcx_end end;

    end.comp.count = 1000;
    for (unsigned i = 0; i < 20; i++) {
        held.push_back(dcx_tag_rndv_begin(m_dcx.ep, &end.comp));
        ids.insert(dcx_tag_rndv_id(held.back()));
    }
    for (unsigned i = 0; i < 1000; i++) {
        void *op = dcx_tag_rndv_begin(m_dcx.ep, &end.comp);

        EXPECT_TRUE(ids.insert(dcx_tag_rndv_id(op)).second);
        fin(dcx_tag_rndv_id(op));
    }
    EXPECT_EQ(1u, end.count);
    for (void *op : held) {
        EXPECT_EQ(UCS_OK, uct_ep_tag_rndv_cancel(m_dcx.ep, op));
    }
}

TEST_P(dcx_tag_rndv, ends_with_its_endpoint)
{
    uct_ep_h ep = m_dcx.make_ep();
    dcx_end end, other, canceled;
    void *op    = dcx_tag_rndv_begin(ep, &end.comp);
    uint32_t id = dcx_tag_rndv_id(op), kept;

    kept = dcx_tag_rndv_id(begin(other));
    uct_ep_destroy(ep);
    EXPECT_EQ(1u, end.count);
    EXPECT_EQ(UCS_ERR_CANCELED, end.status);
    EXPECT_EQ(1u, dcx_tag_rndv_count(m_dcx.iface));
    fin(id);
    fin(kept);
    EXPECT_EQ(1u, other.count);
    EXPECT_EQ(UCS_OK, other.status);

    begin(canceled);
    m_dcx.flush();
    EXPECT_EQ(UCS_OK, uct_ep_flush(m_dcx.ep, UCT_FLUSH_FLAG_CANCEL, NULL));
    EXPECT_EQ(1u, canceled.count);
    EXPECT_EQ(UCS_ERR_CANCELED, canceled.status);
}

/* A request that was not sent must not be sent later: the user has the memory
 * back. */
TEST_P(dcx_tag_rndv, request_is_not_left_behind)
{
    dcx_end end;

    m_dcx.flush();
    begin(end);
    uct_ep_destroy(m_dcx.ep);
    m_dcx.ep = NULL;
    EXPECT_EQ(1u, end.count);
    EXPECT_EQ(UCS_OK, uct_iface_flush(m_dcx.iface, 0, NULL))
        << "its queue was reset";
}

TEST_P(dcx_tag_rndv, key_of_a_number)
{
    uint8_t packed[8], ours[8];
    uct_rkey_bundle_t rkey;

    dcx_tag_pack_rkey(m_rkey, packed);
    UCT_CALL(uct_md_mkey_pack(m_dcx.md(), m_dcx.memh, ours));
    EXPECT_EQ(0, memcmp(ours, packed, sizeof(ours)));
    UCT_CALL(uct_rkey_unpack(m_dcx.component(), packed, &rkey));
    EXPECT_EQ(m_rkey, rkey.rkey);
    UCT_CALL(uct_rkey_release(m_dcx.component(), &rkey));
}

DCX_POST_MODES(dcx_tag);
DCX_POST_MODES(dcx_tag_rndv);
DCX_POST_MODES(dcx_tag_xrq);

} /* namespace */

int main(int argc, char **argv)
{
    std::vector<std::pair<const char *, const char *>> env = {
        {"UCX_DCX_NUM_DCI", "1"},          {"UCX_DCX_TX_QUEUE_LEN", "8"},
        {"UCX_DCX_FC_ENABLE", "n"},        /* no WQEs but those of the calls */
        {"UCX_DCX_TX_CQ_MODERATION", "1"}, /* all signaled, as libmlx5's are */
        {"UCX_DCX_RX_QUEUE_LEN", "64"},    {"UCX_DCX_SL", "3"},
        {"UCX_DCX_TRAFFIC_CLASS", "33"},   {"UCX_DCX_HOP_LIMIT", "17"},
        {"UCX_DCX_DM_SIZE", "0"},   /* the test reads the buffers */
        {"UCX_LOG_LEVEL", "fatal"}, /* refusals are logged */
    };
    auto global = env, roce = env;

    global.push_back({"UCX_DCX_IS_GLOBAL", "y"});
    roce.push_back({"SOFTHCA_LINK", "roce"});
    roce.push_back({"SOFTHCA_HAS", "tm_roce"});
    roce.push_back({"UCX_DCX_GID_INDEX", "1"});
    return hca_test_main(argc, argv,
                         {{"ib", env}, {"global", global}, {"roce", roce}});
}
