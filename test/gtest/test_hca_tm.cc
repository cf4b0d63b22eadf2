/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The list of tagged buffers (hca_tm.c), compared with a simple model over
 * random operations; and the list after a process has died within an operation
 */
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <list>
#include <random>
#include <vector>

#include <signal.h>
#include <x86intrin.h>

/* C headers: a function may have the name of a structure */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
extern "C" {
#include "softhca/base/hca_valgrind.h"
#include "softhca/obj/hca_tm.h"
}
#pragma GCC diagnostic pop

namespace {

constexpr unsigned SIZE = 16;
constexpr size_t BYTES  = sizeof(struct hca_tm) +
                         SIZE * sizeof(struct hca_tm_entry);
static_assert(BYTES % sizeof(uint64_t) == 0, "words of memory");

/* Model of an entry. Active entries may match. */
struct model_entry {
    uint64_t tag, mask;
    uint16_t index;
    bool is_active;
};

/* The list in order: indexes of entries, and if they may match */
using entries = std::vector<std::pair<uint16_t, bool>>;

class hca_tm_list : public testing::Test {
protected:
    hca_tm_list()
    {
        hca_tm_init(tm, SIZE);
        for (unsigned i = 1; i < SIZE; i++) {
            m_free.push_back(i);
        }
    }

    unsigned random(unsigned below) { return m_random() % below; }

    void append()
    {
        struct hca_tm_entry fields = {};
        uint16_t index             = tm->append_next;

        if (m_free.empty()) {
            for (unsigned next = 0; next < SIZE; next++) {
                EXPECT_EQ(HCA_CHECK_TM_FULL, hca_tm_check_next(tm, next));
            }
            return;
        }
        fields.tag  = random(4);
        fields.mask = (random(4) == 0) ? 1 : 3;
        fields.tag &= fields.mask;
        ASSERT_EQ(HCA_OK, hca_tm_check_next(tm, m_free.front()));
        run([&] { hca_tm_append(tm, &fields, m_free.front()); });
        m_free.pop_front();
        m_list.push_back({fields.tag, fields.mask, index,
                          tm->sw_phase_cnt == tm->hw_phase_cnt});
        if (m_list.back().is_active) {
            activate();
        }
    }

    void remove()
    {
        uint16_t index = random(SIZE);
        bool is_there = false, is_removed = false;

        for (auto it = m_list.begin(); it != m_list.end(); ++it) {
            if (it->index == index) {
                take(it);
                is_there = true;
                break;
            }
        }
        run([&] { is_removed = hca_tm_remove(tm, index); });
        EXPECT_EQ(is_there, is_removed);
    }

    void message()
    {
        uint64_t tag      = random(4);
        uint16_t expected = HCA_TM_NONE;

        for (auto it = m_list.begin(); it != m_list.end(); ++it) {
            if (it->is_active && ((tag & it->mask) == it->tag)) {
                expected = it->index;
                take(it);
                break;
            }
        }
        ASSERT_EQ(expected, hca_tm_match(tm, tag));
        if (expected == HCA_TM_NONE) {
            hca_tm_count(tm, PRM_CQE_TM_UNEXPECTED);
        } else {
            run([&] { hca_tm_consume(tm, expected); });
        }
    }

    void sync()
    {
        uint16_t seen = tm->hw_phase_cnt - random(2);

        hca_tm_sync(tm, seen);
        if (seen == tm->hw_phase_cnt) {
            activate();
        }
    }

    entries model() const
    {
        entries all;

        for (const auto &entry : m_list) {
            all.emplace_back(entry.index, entry.is_active);
        }
        return all;
    }

    /* Returns the list; checks the fields that hca_tm_match() does not read. */
    entries listed() const
    {
        uint16_t index, prev = HCA_TM_NONE;
        bool is_active = true;
        entries all;
        unsigned num_listed = 0;

        for (index = tm->head; (index < SIZE) && (all.size() < SIZE);
             index = tm->entries[index].next) {
            is_active = is_active && (index != tm->inactive);
            EXPECT_EQ(prev, tm->entries[index].prev);
            EXPECT_EQ(HCA_TM_LISTED, tm->entries[index].state);
            all.emplace_back(index, is_active);
            prev = index;
        }
        EXPECT_EQ(HCA_TM_NONE, index);
        EXPECT_EQ(prev, tm->tail);
        EXPECT_EQ(is_active, tm->inactive == HCA_TM_NONE);
        for (unsigned i = 0; i < SIZE; i++) {
            num_listed += (tm->entries[i].state != HCA_TM_FREE);
        }
        EXPECT_EQ(all.size(), num_listed);
        return all;
    }

    /* Runs a random operation. */
    void step()
    {
        static void (hca_tm_list::*const steps[])() = {
            &hca_tm_list::append, &hca_tm_list::append, &hca_tm_list::message,
            &hca_tm_list::remove, &hca_tm_list::sync,
        };

        (this->*steps[random(5)])();
    }

    std::vector<uint64_t> m_memory =
        std::vector<uint64_t>(BYTES / sizeof(uint64_t));
    struct hca_tm *tm = (struct hca_tm *)m_memory.data();
    std::list<model_entry> m_list;

private:
    virtual void run(const std::function<void()> &op) { op(); }

    void activate()
    {
        for (auto &entry : m_list) {
            entry.is_active = true;
        }
    }

    void take(std::list<model_entry>::iterator it)
    {
        m_free.push_back(it->index);
        m_list.erase(it);
    }

    std::list<uint16_t> m_free;
    const unsigned m_seed = testing::UnitTest::GetInstance()->random_seed() + 1;
    testing::ScopedTrace m_trace{__FILE__, __LINE__,
                                 "seed " + std::to_string(m_seed)};
    std::mt19937 m_random{m_seed};
};

TEST_F(hca_tm_list, is_the_model)
{
    for (unsigned i = 0; (i < 20000) && !HasFailure(); i++) {
        step();
        EXPECT_EQ(model(), listed());
    }
}

/* hca_tm_relink() reads neither prev nor tail, nor tells free entries from
 * listed ones by their state. */
TEST_F(hca_tm_list, is_relinked)
{
    for (unsigned i = 0; (i < 2000) && !HasFailure(); i++) {
        step();
        for (unsigned index = 0; index < SIZE; index++) {
            tm->entries[index].prev  = random(SIZE);
            tm->entries[index].state = random(2) ? HCA_TM_FREE : HCA_TM_LISTED;
        }
        tm->tail = random(SIZE);
        hca_tm_relink(tm);
        EXPECT_EQ(model(), listed());
    }
}

/* Traps after each instruction of an operation, and copies the list if it has
 * changed: a process may die at any of these. */
class hca_tm_death : public hca_tm_list {
protected:
    void SetUp() override
    {
        struct sigaction act = {};

        if (hca_valgrind_active()) {
            GTEST_SKIP() << "valgrind does not trap after each instruction";
        }
        act.sa_handler = on_trap;
        s_self         = this;
        ASSERT_EQ(0, sigaction(SIGTRAP, &act, nullptr));
    }

    void TearDown() override { signal(SIGTRAP, SIG_DFL); }

    unsigned m_num_copies = 0;
    uint64_t m_copies[32][BYTES / sizeof(uint64_t)];

private:
    void run(const std::function<void()> &op) override
    {
        const unsigned long long trap = 0x100;

        copy();
        __writeeflags(__readeflags() | trap);
        op();
        __writeeflags(__readeflags() & ~trap);
    }

    void copy()
    {
        if ((m_num_copies == 0) ||
            (memcmp(m_copies[m_num_copies - 1], tm, BYTES) != 0)) {
            if (m_num_copies == 32) {
                abort();
            }
            memcpy(m_copies[m_num_copies++], tm, BYTES);
        }
    }

    static void on_trap(int) { s_self->copy(); }

    static hca_tm_death *s_self;
};

hca_tm_death *hca_tm_death::s_self;

TEST_F(hca_tm_death, leaves_the_list_before_or_after_the_operation)
{
    unsigned num_copies = 0;

    for (unsigned i = 0; (i < 500) && !HasFailure(); i++) {
        entries before = model();

        m_num_copies = 0;
        step();
        const std::vector<uint64_t> end = m_memory;
        for (unsigned at = 0; at < m_num_copies; at++) {
            SCOPED_TRACE("store " + std::to_string(at));
            memcpy(tm, m_copies[at], BYTES);
            hca_tm_relink(tm);
            entries found = listed();
            if (found != before) {
                EXPECT_EQ(model(), found);
            }
            for (const auto &entry : found) {
                EXPECT_NE(tm->append_next, entry.first);
            }
        }
        std::copy(end.begin(), end.end(), m_memory.begin());
        num_copies += m_num_copies;
    }
    EXPECT_LT(1000u, num_copies);
}

/* An entry whose data is in flight is neither free nor in the list. */
TEST_F(hca_tm_list, has_no_entry_whose_message_is_in_flight)
{
    append();
    uint16_t index = m_list.front().index;

    hca_tm_consume_begin(tm, index);
    hca_tm_relink(tm);
    EXPECT_EQ(HCA_TM_NONE, tm->head);
    EXPECT_EQ(HCA_CHECK_TM_FULL, hca_tm_check_next(tm, index));
    EXPECT_FALSE(hca_tm_remove(tm, index));
    hca_tm_consume_end(tm, index);
    EXPECT_EQ(HCA_OK, hca_tm_check_next(tm, index));
}

} /* namespace */
