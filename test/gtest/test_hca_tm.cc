/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The list of tagged buffers (hca_tm.c), compared with a simple model over
 * random operations; and the list after a process has died within an operation
 */
#include <gtest/gtest.h>

#include <list>
#include <random>
#include <vector>

extern "C" {
#include "softhca/obj/hca_tm.h"
}

namespace {

constexpr unsigned SIZE = 16;

/* Model of an entry. Active entries may match. */
struct model_entry {
    uint64_t tag, mask;
    uint16_t index;
    bool is_active;
};

class hca_tm_list : public testing::Test {
protected:
    hca_tm_list() :
        m_memory(sizeof(struct hca_tm) + SIZE * sizeof(struct hca_tm_entry))
    {
        tm = (struct hca_tm *)m_memory.data();
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
        hca_tm_append(tm, &fields, m_free.front());
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
        bool is_there  = false;

        for (auto it = m_list.begin(); it != m_list.end(); ++it) {
            if (it->index == index) {
                take(it);
                is_there = true;
                break;
            }
        }
        EXPECT_EQ(is_there, hca_tm_remove(tm, index));
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
            hca_tm_unexpected(tm);
        } else {
            hca_tm_consume(tm, expected);
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

    void expect_same() const
    {
        uint16_t index = tm->head, prev = HCA_TM_NONE;

        for (const auto &entry : m_list) {
            ASSERT_EQ(entry.index, index);
            EXPECT_EQ(prev, tm->entries[index].prev);
            EXPECT_EQ(HCA_TM_LISTED, tm->entries[index].state);
            prev  = index;
            index = tm->entries[index].next;
        }
        EXPECT_EQ(HCA_TM_NONE, index);
        EXPECT_EQ(prev, tm->tail);
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

    struct hca_tm *tm;
    std::list<model_entry> m_list;

private:
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

    std::vector<uint64_t> m_memory;
    std::list<uint16_t> m_free;
    std::mt19937 m_random{testing::UnitTest::GetInstance()->random_seed() + 1u};
};

TEST_F(hca_tm_list, is_what_it_is_meant_to_be)
{
    for (unsigned i = 0; (i < 20000) && !HasFailure(); i++) {
        step();
        expect_same();
    }
}

/* The list is restored from `next`, for any values of the other fields. */
TEST_F(hca_tm_list, is_whole_after_a_death)
{
    for (unsigned i = 0; (i < 2000) && !HasFailure(); i++) {
        step();
        for (unsigned index = 0; index < SIZE; index++) {
            tm->entries[index].prev = random(SIZE);
        }
        for (const auto &entry : m_list) {
            tm->entries[entry.index].state = random(2) ? HCA_TM_FREE :
                                                         HCA_TM_LISTED;
        }
        tm->tail = random(SIZE);
        hca_tm_relink(tm);
        expect_same();
    }
}

/* Its data is in flight: the entry is neither free nor in the list. */
TEST_F(hca_tm_list, keeps_an_entry_whose_message_is_not_complete)
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
