/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Base of tests of tag matching: an interface whose device matches tags, an
 * endpoint to itself, memory to send from, and receives that store their
 * results.
 */
#ifndef DCX_TEST_DCX_MATCH_BENCH_H
#define DCX_TEST_DCX_MATCH_BENCH_H

#include "dcx_end.h"
#include "dcx_iov_bench.h"
#include "dcx_loop.h"
#include "ucx_log.h"

#include <memory>
#include <numeric>
#include <thread>

/* Waits until the device has all posted receives, and knows the number of
 * unexpected messages given to the user: a message that is sent after that can
 * match these receives. */
inline void dcx_wait_told(const dcx_loop &loop)
{
    dcx_deadline deadline;

    while (!dcx_peek_list_is_told(loop.iface)) {
        deadline.check("a device that knows the list");
        std::this_thread::yield();
    }
}

/* Registered memory; its contents depend on the seed */
struct dcx_tag_mem {
    dcx_tag_mem(dcx_loop &loop, size_t length, unsigned seed = 0) :
        bytes(length), m_md(loop.md())
    {
        bytes.reserve(1); /* reserves memory even for no bytes */
        for (size_t i = 0; i < length; i++) {
            bytes[i] = (i * 7) ^ (i >> 8) ^ (seed * 31);
        }
        UCT_CALL(uct_md_mem_reg(m_md, bytes.data(), std::max<size_t>(length, 1),
                                UCT_MD_MEM_ACCESS_ALL, &iov.memh));
        iov.buffer = bytes.data();
        iov.length = length;
        iov.count  = 1;
    }

    ~dcx_tag_mem() { uct_md_mem_dereg(m_md, iov.memh); }

    dcx_tag_mem(const dcx_tag_mem &) = delete;

    std::vector<uint8_t> bytes;
    uct_iov_t iov = {};

private:
    uct_md_h m_md;
};

/* A posted receive: its context and results */
struct dcx_tag_recv {
    explicit dcx_tag_recv(dcx_loop &loop, size_t size) :
        mem(loop, size, 99), m_iface(loop.iface)
    {
        ctx.tag_consumed_cb = on_consumed;
        ctx.completed_cb    = on_completed;
        ctx.rndv_cb         = on_rndv;
    }

    ucs_status_t post(uct_tag_t value, uct_tag_t mask = ~0ull)
    {
        const iovs to = iov.empty() ? iovs{mem.iov} : iov;

        return uct_iface_tag_recv_zcopy(m_iface, value, mask, to.data(),
                                        to.size(), &ctx);
    }

    ucs_status_t cancel(bool force)
    {
        return uct_iface_tag_recv_cancel(m_iface, &ctx, force);
    }

    bool has_ended() const { return num_completed + num_rndv > 0; }

    uct_tag_context_t ctx = {}; /* the first member */
    dcx_tag_mem mem;
    iovs iov;                     /* replaces the buffer, unless empty */
    std::vector<uint8_t *> where; /* addresses of iov's bytes, if iov has
                                   * offsets */
    unsigned num_consumed = 0, num_completed = 0, num_rndv = 0;
    uct_tag_t tag       = 0;
    uint64_t imm        = 0;
    size_t length       = 0;
    ucs_status_t status = UCS_INPROGRESS;
    std::vector<uint8_t> header; /* header of a rendezvous request */
    std::function<void()> then;

private:
    static dcx_tag_recv *of(uct_tag_context_t *ctx)
    {
        return (dcx_tag_recv *)ctx;
    }

    static void on_consumed(uct_tag_context_t *ctx)
    {
        EXPECT_EQ(0u, of(ctx)->num_consumed++);
    }

    static void on_completed(uct_tag_context_t *ctx, uct_tag_t tag,
                             uint64_t imm, size_t length, void *inline_data,
                             ucs_status_t status)
    {
        dcx_tag_recv *self = of(ctx);

        EXPECT_FALSE(self->has_ended());
        self->num_completed++;
        self->tag    = tag;
        self->imm    = imm;
        self->length = length;
        self->status = status;
        if (inline_data != NULL) {
            self->unpack((uint8_t *)inline_data, length);
        }
        if (self->then) {
            self->then();
        }
    }

    void unpack(const uint8_t *data, size_t size)
    {
        auto to = where.empty() ? places_of(iov.empty() ? iovs{mem.iov} : iov) :
                                  where;

        for (size_t i = 0; i < size; i++) {
            *to[i] = data[i];
        }
    }

    static void on_rndv(uct_tag_context_t *ctx, uct_tag_t tag, const void *hdr,
                        unsigned length, ucs_status_t status, unsigned)
    {
        dcx_tag_recv *self = of(ctx);

        EXPECT_FALSE(self->has_ended());
        self->num_rndv++;
        self->tag    = tag;
        self->status = status;
        self->header.assign((uint8_t *)hdr, (uint8_t *)hdr + length);
    }

    uct_iface_h m_iface;
};

/* A message that has matched nothing */
struct dcx_tag_unexpected {
    bool is_rndv;
    uct_tag_t tag;
    uint64_t imm;
    std::vector<uint8_t> data; /* message, or header of a request */
    uint64_t remote;
    size_t size;
    std::vector<uint8_t> rkey;
};

class dcx_tag_bench : public testing::TestWithParam<int> {
protected:
    dcx_tag_bench()
    {
        m_dcx.survives_errors = true;
        m_dcx.on_eager = [this](void *data, size_t length, unsigned flags,
                                uct_tag_t tag, uint64_t imm) {
            EXPECT_TRUE(flags & UCT_CB_PARAM_FLAG_FIRST);
            EXPECT_FALSE(flags & UCT_CB_PARAM_FLAG_MORE);
            m_unexpected.push_back(
                {false, tag, imm, bytes(data, length), 0, 0, {}});
            return UCS_OK;
        };
        m_dcx.on_rndv = [this](uct_tag_t tag, const void *hdr, unsigned length,
                               uint64_t remote, size_t size, const void *rkey) {
            m_unexpected.push_back({true, tag, 0, bytes(hdr, length), remote,
                                    size, bytes(rkey, (rkey == NULL) ? 0 : 8)});
            if (on_request) {
                on_request();
            }
            return UCS_OK;
        };
    }

    ~dcx_tag_bench() { EXPECT_EQ("", m_log.take()); }

    static std::vector<uint8_t> bytes(const void *data, size_t length)
    {
        return std::vector<uint8_t>((uint8_t *)data, (uint8_t *)data + length);
    }

    template <typename F> void progress_until(F done)
    {
        dcx_deadline deadline;

        while (!done()) {
            deadline.check("progress");
            uct_worker_progress(m_dcx.worker);
        }
    }

    /* Calls until there are resources. */
    template <typename F> auto retry(F call) -> decltype(call())
    {
        dcx_deadline deadline;

        for (;;) {
            auto result = call();

            if ((intptr_t)result != UCS_ERR_NO_RESOURCE) {
                return result;
            }
            deadline.check("room");
            uct_worker_progress(m_dcx.worker);
        }
    }

    ucs_status_t send_short(uct_tag_t tag, const dcx_tag_mem &mem)
    {
        return retry([&] {
            return uct_ep_tag_eager_short(m_dcx.ep, tag, mem.bytes.data(),
                                          mem.bytes.size());
        });
    }

    static size_t pack(void *dst, void *arg)
    {
        const dcx_tag_mem *mem = (const dcx_tag_mem *)arg;

        memcpy(dst, mem->bytes.data(), mem->bytes.size());
        return mem->bytes.size();
    }

    ssize_t send_bcopy(uct_tag_t tag, uint64_t imm, const dcx_tag_mem &mem)
    {
        return retry([&] {
            return uct_ep_tag_eager_bcopy(m_dcx.ep, tag, imm, pack,
                                          (void *)&mem, 0);
        });
    }

    ucs_status_t send_zcopy(uct_tag_t tag, uint64_t imm, const dcx_tag_mem &mem,
                            dcx_end &end)
    {
        return retry([&] {
            return uct_ep_tag_eager_zcopy(m_dcx.ep, tag, imm, &mem.iov, 1, 0,
                                          &end.comp);
        });
    }

    ucs_status_ptr_t send_rndv(uct_tag_t tag, const std::string &hdr,
                               const dcx_tag_mem &mem, dcx_end &end)
    {
        return retry([&] {
            return uct_ep_tag_rndv_zcopy(m_dcx.ep, tag, hdr.data(), hdr.size(),
                                         &mem.iov, 1, 0, &end.comp);
        });
    }

    ucs_status_t send_request(uct_tag_t tag, const std::string &hdr)
    {
        return retry([&] {
            return uct_ep_tag_rndv_request(m_dcx.ep, tag, hdr.data(),
                                           hdr.size(), 0);
        });
    }

    /* Waits until the receive has ended. Checks its results, and that no
     * message was unexpected. */
    void expect_received(dcx_tag_recv &recv, uct_tag_t tag, uint64_t imm,
                         const dcx_tag_mem &mem)
    {
        progress_until([&] { return recv.has_ended(); });
        EXPECT_EQ(1u, recv.num_consumed);
        EXPECT_EQ(1u, recv.num_completed);
        EXPECT_EQ(UCS_OK, recv.status);
        EXPECT_EQ(tag, recv.tag);
        EXPECT_EQ(imm, recv.imm);
        ASSERT_EQ(mem.bytes.size(), recv.length);
        EXPECT_EQ(0,
                  memcmp(mem.bytes.data(), recv.mem.bytes.data(), recv.length));
        EXPECT_TRUE(m_unexpected.empty());
    }

    /* Waits for the next unexpected message. */
    dcx_tag_unexpected wait_unexpected()
    {
        progress_until([&] { return !m_unexpected.empty(); });
        dcx_tag_unexpected next = m_unexpected.front();
        m_unexpected.erase(m_unexpected.begin());
        return next;
    }

    ucx_log_reader m_log;
    dcx_loop m_dcx;
    std::vector<dcx_tag_unexpected> m_unexpected;
    std::function<void()> on_request;
};

#endif
