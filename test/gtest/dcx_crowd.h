/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Endpoints that always have something to send: each posts operations of one
 * kind until it is refused, then adds a pending request. Counts the operations
 * of each.
 */
#ifndef DCX_TEST_DCX_CROWD_H
#define DCX_TEST_DCX_CROWD_H

#include "dcx_live_peer.h"

#include <algorithm>
#include <list>
#include <map>
#include <numeric>

enum dcx_crowd_op {
    DCX_CROWD_AM,
    DCX_CROWD_PUT, /* long, zero-copy */
    DCX_CROWD_GET,
    DCX_CROWD_ADD,
    DCX_CROWD_FETCH,
    DCX_CROWD_NUM_OPS
};

/* Use of the pending queue */
enum dcx_crowd_manner {
    DCX_CROWD_STAYS, /* the request is called again after each operation */
    DCX_CROWD_LEAVES /* the request ends after one operation; the user posts
                      * again */
};

class dcx_crowd {
public:
    static constexpr size_t length = 4096; /* bytes of puts and gets */

    dcx_crowd(dcx_loop &from, live_peer &to) : m_from(from), m_to(to) {}

    ~dcx_crowd()
    {
        for (auto &each : m_members) {
            uct_ep_pending_purge(each.ep, NULL, NULL);
            uct_ep_destroy(each.ep);
        }
    }

    dcx_crowd(const dcx_crowd &) = delete;

    /* Maximum of outstanding operations with a completion, per endpoint */
    unsigned window = 10000;

    void add(enum dcx_crowd_op op) { add(m_from.make_ep(m_to.loop), op); }

    /* Adds this endpoint; it is destroyed with the others. */
    void add(uct_ep_h ep, enum dcx_crowd_op op)
    {
        m_members.emplace_back();
        m_members.back().init(this, ep, op, m_members.size() - 1);
    }

    /* Runs until all endpoints together have posted `goal` further operations.
     * The peer polls only in each `receive_every`-th round. */
    void run(unsigned goal, enum dcx_crowd_manner manner,
             unsigned receive_every = 1)
    {
        m_goal   = total() + goal;
        m_manner = manner;
        m_total  = total();

        dcx_deadline deadline;

        for (unsigned i = 0; m_total < m_goal; i++) {
            ASSERT_FALSE(deadline.is_over()) << m_total << " posted";
            for (auto &each : m_members) {
                each.send_all();
            }
            uct_worker_progress(m_from.worker);
            if (i % receive_every == 0) {
                m_to.progress();
            }
        }
    }

    /* Runs until no request is pending, all operations with a completion have
     * ended, and the peer has received all messages. */
    void drain()
    {
        dcx_deadline deadline;

        while (!is_done()) {
            ASSERT_FALSE(deadline.is_over());
            uct_worker_progress(m_from.worker);
            m_to.progress();
        }
    }

    unsigned total() const
    {
        unsigned sum = 0;

        for (const auto &each : m_members) {
            sum += each.sent;
        }
        return sum;
    }

    /* Checks that each endpoint has posted at least half of the mean. */
    void expect_fair() const { expect_fair(m_members, mean(m_members)); }

    /* Checks expect_fair() among endpoints with the same operation. */
    void expect_fair_kinds() const
    {
        expect_fair_groups([](const member &m) { return (unsigned)m.op; });
    }

    /* Checks expect_fair() among endpoints with the same operation and the same
     * initiator, for policies by which endpoints keep their initiator. */
    void expect_fair_places() const
    {
        expect_fair_groups([](const member &m) {
            return m.op + DCX_CROWD_NUM_OPS * dcx_peek_place(m.ep);
        });
    }

    /* Checks that each endpoint without an initiator has posted at least half
     * of the mean of all endpoints. */
    void expect_fair_waiting() const
    {
        std::list<member> waiting;

        for (const auto &each : m_members) {
            if (dcx_peek_place(each.ep) == UINT16_MAX) {
                waiting.push_back(each);
            }
        }
        ASSERT_FALSE(waiting.empty());
        expect_fair(waiting, mean(m_members));
    }

    /* Checks that all messages were received, and that no operation failed. */
    void expect_received() const
    {
        std::vector<unsigned> got(m_members.size());

        for (uint64_t header : m_to.headers) {
            got.at(header)++;
        }
        for (const auto &each : m_members) {
            EXPECT_EQ((each.op == DCX_CROWD_AM) ? each.sent : 0u, got[each.id]);
            EXPECT_EQ(UCS_OK, each.comp.status);
        }
    }

private:
    struct member;

    /* Checks expect_fair() among the members for which group_of() returns the
     * same number. */
    template <typename F> void expect_fair_groups(F group_of) const
    {
        std::map<unsigned, std::list<member>> groups;

        for (const auto &each : m_members) {
            groups[group_of(each)].push_back(each);
        }
        for (const auto &group : groups) {
            SCOPED_TRACE(group.first);
            expect_fair(group.second, mean(group.second));
        }
    }

    static double mean(const std::list<member> &members)
    {
        double sum = 0;

        for (const auto &each : members) {
            sum += each.sent;
        }
        return sum / members.size();
    }

    static void expect_fair(const std::list<member> &members, double mean)
    {
        unsigned min = UINT32_MAX, max = 0;

        for (const auto &each : members) {
            min = std::min(min, each.sent);
            max = std::max(max, each.sent);
        }
        EXPECT_GE(2.0 * min, mean) << "min " << min << " max " << max;
    }

    struct member {
        void init(dcx_crowd *owner, uct_ep_h to, enum dcx_crowd_op kind,
                  unsigned number)
        {
            crowd    = owner;
            ep       = to;
            op       = kind;
            id       = number;
            req.func = resume;
        }

        ucs_status_t post()
        {
            uint64_t addr  = (uintptr_t)crowd->m_to.loop.mem.data();
            uct_rkey_t key = dcx_peek_rkey(crowd->m_to.loop.memh);
            uct_iov_t iov  = {};

            iov.buffer = crowd->m_from.mem.data() + length;
            iov.length = length;
            iov.memh   = crowd->m_from.memh;
            iov.count  = 1;
            switch (op) {
            case DCX_CROWD_AM:
                return uct_ep_am_short(ep, 6, id, NULL, 0);
            case DCX_CROWD_PUT:
                return uct_ep_put_zcopy(ep, &iov, 1, addr + length, key, &comp);
            case DCX_CROWD_GET:
                return uct_ep_get_zcopy(ep, &iov, 1, addr + length, key, &comp);
            case DCX_CROWD_ADD:
                return uct_ep_atomic64_post(ep, UCT_ATOMIC_OP_ADD, 1, addr,
                                            key);
            default:
                return uct_ep_atomic64_fetch(ep, UCT_ATOMIC_OP_ADD, 1, &result,
                                             addr, key, &comp);
            }
        }

        ucs_status_t send()
        {
            ucs_status_t status = post();

            if (status == UCS_INPROGRESS) {
                comp.count++; /* never becomes 0 */
            } else if (status != UCS_OK) {
                EXPECT_EQ(UCS_ERR_NO_RESOURCE, status);
                return status;
            }
            sent++;
            crowd->m_total++;
            return UCS_OK;
        }

        void send_all()
        {
            while (!in_line && (crowd->m_total < crowd->m_goal) &&
                   (comp.count <= (int)crowd->window)) {
                if (send() != UCS_OK) {
                    in_line = (uct_ep_pending_add(ep, &req, 0) == UCS_OK);
                }
            }
        }

        static ucs_status_t resume(uct_pending_req_t *req)
        {
            member *self     = (member *)req; /* its first member */
            dcx_crowd *crowd = self->crowd;

            if (crowd->m_total < crowd->m_goal) {
                ucs_status_t status = self->send();

                if (status != UCS_OK) {
                    return status;
                }
                if (crowd->m_manner == DCX_CROWD_STAYS) {
                    return UCS_INPROGRESS;
                }
            }
            self->in_line = false;
            return UCS_OK;
        }

        uct_pending_req_t req = {};
        dcx_crowd *crowd;
        enum dcx_crowd_op op;
        unsigned id;
        uct_ep_h ep;
        unsigned sent         = 0;
        bool in_line          = false;
        uint64_t result       = 0;
        uct_completion_t comp = {.func = NULL, .count = 1, .status = UCS_OK};
    };

    bool is_done() const
    {
        unsigned messages = 0;

        for (const auto &each : m_members) {
            if (each.in_line || (each.comp.count != 1)) {
                return false;
            }
            messages += (each.op == DCX_CROWD_AM) ? each.sent : 0;
        }
        return m_to.headers.size() >= messages;
    }

    dcx_loop &m_from;
    live_peer &m_to;
    std::list<member> m_members;
    enum dcx_crowd_manner m_manner;
    unsigned m_goal = 0, m_total = 0;
};

#endif
