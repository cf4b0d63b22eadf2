/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Key slots of dcx on the device: which layout gets which, when it is there,
 * and what goes again.
 */
#include "dcx_key_bench.h"
#include "ucx_log.h"

#include <atomic>
#include <random>
#include <set>
#include <thread>

namespace {

class dcx_key : public dcx_key_test {
protected:
    /* Through the key to dst, from offset 0 on */
    enum ibv_wc_status write_to(uint32_t rkey, uint32_t length)
    {
        return pair.run(
            verbs_op(IBV_WR_RDMA_WRITE).local(src, length).remote(0, rkey));
    }
};

TEST_P(dcx_key, miss_then_hit)
{
    slots_t slots(dev, 8);
    dcx_layout layout   = rows(4, 8, remote);
    uct_dcx_key_t *slot = NULL, *again = NULL;

    EXPECT_EQ(UCS_ERR_NO_RESOURCE, slots.try_get(layout, &slot));
    ASSERT_EQ(UCS_OK, slots.wait(layout, &slot));
    EXPECT_EQ(slot->lkey, *(uint32_t *)slot);
    EXPECT_EQ(slot->rkey, slot->lkey);
    ASSERT_EQ(IBV_WC_SUCCESS, write_to(slot->rkey, 64));
    for (unsigned i = 0; i < 256; i++) {
        EXPECT_EQ(((i % 64 >= 8) && (i % 64 < 24)) ? 0x11 : 0x22, dst.addr[i])
            << i;
    }

    dcx_layout same = rows(4, 8, remote);
    ASSERT_EQ(UCS_OK, slots.try_get(same, &again)) << "a hit needs no WQE";
    EXPECT_EQ(slot, again);
    slots.put(slot);
    slots.put(again);
    EXPECT_EQ(1u, slots.stats().misses);
    EXPECT_EQ(1u, slots.stats().hits);
    EXPECT_EQ(1u, slots.stats().doorbells);
    EXPECT_EQ(0u, slots.stats().evictions);
    EXPECT_EQ(1u, slots.stats().num_set);
}

/* Has no layouts, and nothing is made on it */
TEST_P(dcx_key, device_without_umr)
{
    uct_dcx_keys_params_t params = {};
    uct_dcx_devx_path_t path     = {};
    uct_dcx_device_t device      = {};
    uct_dcx_keys_t slots;

    device.ctx         = dev.ctx;
    device.has_devx    = 1;
    params.dev         = &device;
    params.max_keys    = 8;
    params.max_entries = 8;
    ASSERT_EQ(UCS_OK, uct_dcx_keys_init(&slots, &params));
    EXPECT_EQ(UCS_ERR_UNSUPPORTED, uct_dcx_keys_open(&slots, &path));
    EXPECT_FALSE(uct_dcx_keys_is_open(&slots));
    uct_dcx_keys_forget(&slots, 0x100, 1);
    uct_dcx_keys_cleanup(&slots);
}

/* Rights count as content. */
TEST_P(dcx_key, has_the_rights_of_its_layout)
{
    slots_t slots(dev, 8);
    dcx_layout local = rows(4), far = rows(4, 0, remote);
    uint32_t local_key = slots.touch(local), far_key = slots.touch(far);

    EXPECT_NE(local_key, far_key);
    EXPECT_EQ(IBV_WC_SUCCESS, write_to(far_key, 64));
    EXPECT_NE(IBV_WC_SUCCESS, write_to(local_key, 64));
}

/* Each size, the greatest by reference */
TEST_P(dcx_key, sizes)
{
    slots_t slots(dev, 8);

    EXPECT_EQ(64u, uct_dcx_keys_max_klm(&slots.slots));
    for (uint32_t num : {1u, 4u, 5u, 52u, 53u, 64u}) {
        dcx_layout layout = list(num);
        uint32_t key      = slots.touch(layout);

        memset(dst.addr, 0x22, 2 * num);
        memset(src.addr, num, num);
        ASSERT_EQ(
            IBV_WC_SUCCESS,
            pair.run(
                verbs_op(IBV_WR_RDMA_READ).local(0, num, key).remote(src)));
        for (uint32_t i = 0; i < 2 * num; i++) {
            ASSERT_EQ((i % 2) ? 0x22 : num, dst.addr[i]) << num << " " << i;
        }
    }

    dcx_layout more = list(65);
    uct_dcx_key_t *slot;
    EXPECT_EQ(UCS_ERR_EXCEEDS_LIMIT, slots.try_get(more, &slot));
    EXPECT_EQ(1u, slots.stats().exhausted);
}

TEST_P(dcx_key, evicts_the_one_used_least_recently)
{
    slots_t slots(dev, 4);
    std::vector<dcx_layout> layouts;
    std::vector<uint32_t> keys;
    uct_dcx_key_t *slot;

    for (uint32_t i = 0; i < 4; i++) {
        layouts.push_back(rows(4, i, remote));
        keys.push_back(slots.touch(layouts[i]));
    }
    slots.touch(layouts[0]);

    dcx_layout fifth = rows(4, 5, remote);
    uint32_t key     = slots.touch(fifth);
    EXPECT_EQ(1u, slots.stats().evictions);
    EXPECT_EQ(keys[1] >> 8, key >> 8) << "was used before all others";
    EXPECT_NE(keys[1], key) << "another number";
    EXPECT_EQ(UCS_OK, slots.try_get(layouts[0], &slot));
    slots.put(slot);
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, slots.try_get(layouts[1], &slot));
    EXPECT_EQ(IBV_WC_SUCCESS, write_to(key, 16));
    EXPECT_NE(IBV_WC_SUCCESS, write_to(keys[1], 16)) << "it was taken away";
}

TEST_P(dcx_key, users_are_never_evicted)
{
    slots_t slots(dev, 2);
    dcx_layout one = rows(1), two = rows(2), three = rows(3);
    uct_dcx_key_t *a = slots.get(one), *b = slots.get(two), *c;

    EXPECT_EQ(UCS_ERR_BUSY, slots.try_get(three, &c));
    EXPECT_EQ(1u, slots.stats().exhausted);
    slots.put(b);
    c = slots.get(three);
    EXPECT_EQ(b, c);
    EXPECT_EQ(0, memcmp(one.get(), a->layout, uct_dcx_sgl_size(1)));
    slots.put(a);
    slots.put(c);
}

/* One that was asked for and is not yet used waits for its user. */
TEST_P(dcx_key, new_ones_have_a_time_of_grace)
{
    slots_t slots(dev, 1);
    dcx_layout one = rows(1), two = rows(2);
    uct_dcx_key_t *slot;

    EXPECT_EQ(UCS_ERR_NO_RESOURCE, slots.try_get(one, &slot));
    do {
        EXPECT_EQ(UCS_ERR_BUSY, slots.try_get(two, &slot));
    } while (!ucs_list_is_empty(&slots.slots.pending));
    EXPECT_EQ(UCS_ERR_BUSY, slots.try_get(two, &slot));
    slot = ucs_list_head(&slots.slots.sizes[0].lru, uct_dcx_key_t, list);
    slot->since -= UCT_DCX_KEY_GRACE;
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, slots.try_get(two, &slot));
}

TEST_P(dcx_key, forgets_what_a_region_names)
{
    slots_t slots(dev, 8);
    strict_mem other(dev.pd, UMR_ACCESS_ALL, 0x33);
    dcx_layout used = rows(4, 0, remote), idle = rows(3, 0, remote);
    dcx_layout pending = rows(2, 0, remote);
    dcx_layout kept    = piece(other, 64);
    uint32_t idle_key = slots.touch(idle), kept_key = slots.touch(kept);
    uct_dcx_key_t *user = slots.get(used), *slot;

    EXPECT_EQ(UCS_ERR_NO_RESOURCE, slots.try_get(pending, &slot));
    uct_dcx_keys_forget(&slots.slots, dst.mr->lkey, 1);
    EXPECT_EQ(3u, slots.stats().invalidated);
    EXPECT_EQ(1u, slots.stats().num_set);

    EXPECT_EQ(IBV_WC_SUCCESS, write_to(kept_key, 64));
    EXPECT_NE(IBV_WC_SUCCESS, write_to(idle_key, 16));
    pair.reconnect();
    EXPECT_NE(IBV_WC_SUCCESS, write_to(user->rkey, 16)) << "also of one in use";
    slots.put(user);
    EXPECT_EQ(UCS_OK, slots.try_get(kept, &slot));
    slots.put(slot);

    uct_dcx_keys_forget(&slots.slots, dst.mr->lkey, 1);
    EXPECT_EQ(3u, slots.stats().invalidated) << "nothing is left of it";
    slots.touch(idle);
}

/* A layout whose translations cannot be read: its UMR fails, and those behind
 * it are asked for again. */
TEST_P(dcx_key, failure)
{
    slots_t slots(dev, 8);
    dcx_layout bad = list(60), good = rows(4, 0, remote), after = rows(5);
    dcx_layout first = list(61);
    ucx_log_reader log;
    uct_dcx_key_t *slot;

    slots.touch(first);
    slots.touch(good);
    slot = ucs_list_head(&slots.slots.sizes[2].lru, uct_dcx_key_t, list);
    slot->klm_lkey ^= 0xff00;
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, slots.try_get(bad, &slot));
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, slots.try_get(after, &slot));
    EXPECT_EQ(UCS_ERR_IO_ERROR, slots.wait(bad, &slot));
    EXPECT_NE(std::string::npos, log.take().find("a list of 60 entries"));
    EXPECT_EQ(1u, slots.stats().failures);

    slots.touch(after);
    EXPECT_EQ(IBV_WC_SUCCESS, write_to(slots.touch(good), 16));
    EXPECT_EQ("", log.take());
    slots.touch(bad); /* another slot */
}

/* A ring of 256 blocks goes round, and is full where the device is late. */
TEST_P(dcx_key, ring)
{
    slots_t slots(dev, 64);
    std::vector<dcx_layout> layouts;
    uct_dcx_key_t *slot;

    for (uint32_t i = 0; i < 48; i++) {
        layouts.push_back(list(40 + i % 12, i));
    }
    for (unsigned round = 0; round < 3; round++) {
        for (auto &layout : layouts) {
            ucs_status_t status = slots.try_get(layout, &slot);

            ASSERT_TRUE((status == UCS_OK) || (status == UCS_ERR_NO_RESOURCE));
            if (status == UCS_OK) {
                slots.put(slot);
            }
        }
        for (auto &layout : layouts) {
            slots.touch(layout);
        }
        uct_dcx_keys_forget(&slots.slots, dst.mr->lkey, 1);
    }
    EXPECT_EQ(3u * 48, slots.stats().misses);
    EXPECT_EQ(3u * 48, slots.stats().invalidated);
    EXPECT_EQ(0u, slots.stats().failures);
}

/* A number that a peer had does not come back for a long time. */
TEST_P(dcx_key, numbers_of_peers_are_not_used_again)
{
    slots_t slots(dev, 1);
    std::set<uint32_t> numbers;
    uct_dcx_key_t *slot;

    for (unsigned i = 0; i < 256; i++) {
        dcx_layout layout = rows(1 + i % 7, i, remote);

        slot = slots.get(layout);
        EXPECT_TRUE(
            numbers.insert(uct_dcx_keys_give_rkey(&slots.slots, slot)).second)
            << i;
        slots.put(slot);
    }

    dcx_layout one_more = rows(8, 0, remote), local = rows(8);
    EXPECT_EQ(UCS_ERR_BUSY, slots.try_get(one_more, &slot))
        << "all numbers of the key are with peers";
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, slots.try_get(local, &slot))
        << "peers have no right to this one";
}

/* Nor is a number used that another kind of key had. */
TEST_P(dcx_key, numbers_of_other_keys_are_not_used)
{
    slots_t slots(dev, 1);
    std::set<uint32_t> stale;
    dcx_layout first = rows(1, 0, remote), second = rows(2, 0, remote);
    uint32_t key = slots.touch(first);

    for (unsigned i = 0; i < 10; i++) {
        stale.insert((key & ~0xffu) | ((key + 1 + i) & 0xff));
    }
    slots.slots.params.arg      = &stale;
    slots.slots.params.is_stale = [](void *arg, uint32_t number) -> int {
        return ((std::set<uint32_t> *)arg)->count(number);
    };
    EXPECT_EQ((key & ~0xffu) | ((key + 11) & 0xff), slots.touch(second));
}

/* --- owned ---------------------------------------------------------------- */

TEST_P(dcx_key, owned_ones_are_not_of_the_cache)
{
    slots_t slots(dev, 1, 2);
    dcx_layout one = rows(1, 0, remote), two = rows(2, 0, remote);
    uct_dcx_key_t *a = slots.own(4), *b = slots.own(4), *c;

    EXPECT_EQ(UCS_ERR_NO_RESOURCE, uct_dcx_keys_own(&slots.slots, 4, &c));
    EXPECT_EQ(UCS_ERR_EXCEEDS_LIMIT, uct_dcx_keys_own(&slots.slots, 65, &c));
    EXPECT_EQ(UCS_ERR_NO_ELEM, uct_dcx_keys_test(&slots.slots, a));
    slots.set(a, one);
    slots.set(b, one);
    EXPECT_EQ(0u, slots.stats().misses);

    uct_dcx_key_t *cached = slots.get(one);
    EXPECT_NE(a, cached);
    EXPECT_NE(b, cached);
    EXPECT_EQ(UCS_ERR_BUSY, slots.try_get(two, &c)) << "none is taken from a";
    slots.put(cached);
    EXPECT_EQ(3u, slots.stats().num_set);

    uint32_t number = a->lkey;
    slots.set(a, two);
    EXPECT_EQ(number, a->lkey);
    EXPECT_EQ(IBV_WC_SUCCESS, write_to(number, 32));
    uct_dcx_keys_disown(&slots.slots, a, 1);
    EXPECT_NE(IBV_WC_SUCCESS, write_to(number, 16));
    EXPECT_EQ(2u, slots.stats().num_set);
    EXPECT_EQ(0u, slots.stats().invalidated) << "that is of memory that goes";
    a = slots.own(4);
    EXPECT_NE(number, a->lkey);
}

/* Peers may have it, but there is always another one. */
TEST_P(dcx_key, numbers_of_owned_ones_are_not_used_again)
{
    slots_t slots(dev, 1, 1);
    std::set<uint32_t> numbers;
    uct_dcx_key_t *slot;

    for (unsigned i = 0; i < 4200; i++) {
        slot = slots.own(4);
        EXPECT_TRUE((i >= 4096) || numbers.insert(slot->rkey).second) << i;
        uct_dcx_keys_disown(&slots.slots, slot, 1);
    }
    EXPECT_LE(slots.stats().num_keys, 8u * 3);
}

/* Without such a peer, a layout that was lost keeps its number. */
TEST_P(dcx_key, numbers_that_no_peer_has)
{
    slots_t slots(dev, 1, 1);
    dcx_layout layout   = rows(4, 0, remote);
    uct_dcx_key_t *slot = slots.own(4);
    uint32_t number     = slot->lkey;

    for (unsigned i = 0; i < 300; i++) {
        ASSERT_EQ(UCS_OK,
                  uct_dcx_keys_set(&slots.slots, &slot, 0, layout.get()));
        ASSERT_EQ(UCS_OK, slots.wait(slot));
        ASSERT_EQ(number, slot->lkey);
        uct_dcx_keys_forget(&slots.slots, dst.mr->lkey, 1);
        ASSERT_EQ(UCS_ERR_NO_ELEM, uct_dcx_keys_test(&slots.slots, slot));
    }
    slots.set(slot, layout);
    EXPECT_NE(number, slot->lkey);
    EXPECT_EQ(IBV_WC_SUCCESS, write_to(slot->lkey, 16));
    EXPECT_NE(IBV_WC_SUCCESS, write_to(number, 16));
}

/* A layout that names the number of one that is dropped goes, too. */
TEST_P(dcx_key, dropped_with_what_names_it)
{
    slots_t slots(dev, 8, 8);
    uct_dcx_key_t *inner = slots.own(4), *outer = slots.own(4);
    uct_dcx_key_t *other = slots.own(4);
    dcx_layout memory = rows(4, 0, remote), kept = rows(3, 0, remote);

    slots.set(inner, memory);
    slots.set(other, kept);
    dcx_layout nested(UCT_DCX_SGL_LIST, 1, {{8, 32, 0, inner->lkey, 0}},
                      remote);
    slots.set(outer, nested);
    dcx_layout above(UCT_DCX_SGL_LIST, 1, {{0, 16, 0, outer->lkey, 0}}, remote);
    uint32_t key = slots.touch(above);

    ASSERT_EQ(IBV_WC_SUCCESS, write_to(key, 16));
    slots.forget({inner});
    EXPECT_EQ(3u, slots.stats().invalidated);
    EXPECT_EQ(1u, slots.stats().num_set);
    for (uint32_t number : {key, outer->lkey, inner->lkey}) {
        EXPECT_NE(IBV_WC_SUCCESS, write_to(number, 8));
        pair.reconnect();
    }
    EXPECT_EQ(IBV_WC_SUCCESS, write_to(other->lkey, 8));
    EXPECT_EQ(UCS_ERR_NO_ELEM, uct_dcx_keys_test(&slots.slots, outer));

    uint32_t before = inner->lkey;
    slots.set(inner, memory);
    EXPECT_NE(before, inner->lkey);
    EXPECT_EQ(IBV_WC_SUCCESS, write_to(inner->lkey, 16));
}

/* Several go with one doorbell, and count once. */
TEST_P(dcx_key, marked_ones_go_at_once)
{
    slots_t slots(dev, 8, 8);
    dcx_layout memory    = rows(4, 0, remote);
    uct_dcx_key_t *inner = slots.own(4), *outer = slots.own(4);
    uct_dcx_key_t *other = slots.own(4);

    slots.set(inner, memory);
    slots.set(other, memory);
    dcx_layout nested(UCT_DCX_SGL_LIST, 1, {{8, 32, 0, inner->lkey, 0}},
                      remote);
    slots.set(outer, nested);

    uint64_t doorbells = slots.stats().doorbells;
    slots.forget({inner, outer, other, inner});
    EXPECT_EQ(doorbells + 1, slots.stats().doorbells);
    EXPECT_EQ(3u, slots.stats().invalidated);
    EXPECT_EQ(0u, slots.stats().num_set);
    for (auto slot : {inner, outer, other}) {
        EXPECT_EQ(UCS_ERR_NO_ELEM, uct_dcx_keys_peek(&slots.slots, slot));
        EXPECT_NE(IBV_WC_SUCCESS, write_to(slot->lkey, 8));
        pair.reconnect();
    }
}

/* One that is GOING is out of use, and gets nothing until it is gone. */
TEST_P(dcx_key, marked_ones_are_out_of_use)
{
    slots_t slots(dev, 1, 8);
    dcx_layout memory = rows(4, 0, remote), other = rows(3, 0, remote);
    uct_dcx_key_t *inner = slots.own(4), *slot;

    slots.set(inner, memory);
    dcx_layout nested(UCT_DCX_SGL_LIST, 1, {{8, 32, 0, inner->lkey, 0}},
                      remote);
    uint32_t key = slots.touch(nested);
    dcx_umr_silence silence(slots.slots);

    ucs_spin_lock(&slots.slots.lock);
    uct_dcx_keys_mark(&slots.slots, inner);
    ucs_spin_unlock(&slots.slots.lock);
    EXPECT_EQ(UCS_ERR_NO_ELEM, uct_dcx_keys_peek(&slots.slots, inner));
    EXPECT_EQ(IBV_WC_SUCCESS, write_to(inner->rkey, 16)) << "is there still";
    EXPECT_EQ(UCS_ERR_NO_RESOURCE,
              uct_dcx_keys_set(&slots.slots, &inner, 0, memory.get()));
    EXPECT_EQ(UCS_ERR_BUSY, slots.try_get(other, &slot)) << "the only one";

    silence.end();
    uct_dcx_keys_forget_key(&slots.slots, inner);
    for (uint32_t number : {key, inner->lkey}) {
        EXPECT_NE(IBV_WC_SUCCESS, write_to(number, 16));
        pair.reconnect();
    }
    EXPECT_EQ(IBV_WC_SUCCESS, write_to(slots.touch(other), 16));
}

/* Lists of pieces in two regions go with either. */
TEST_P(dcx_key, names_each_of_its_regions)
{
    slots_t slots(dev, 8);
    strict_mem other(dev.pd, UMR_ACCESS_ALL, 0x33);
    std::vector<uct_dcx_sgl_entry_t> entries;

    for (uint32_t i = 0; i < 60; i++) {
        strict_mem &mem = (i % 2) ? other : dst;

        entries.push_back({(uintptr_t)mem.addr + i, 1, 0, mem.mr->lkey, 0});
    }
    dcx_layout mixed(UCT_DCX_SGL_LIST, 1, entries, remote);
    for (uint32_t lkey : {dst.mr->lkey, other.mr->lkey}) {
        uint32_t key = slots.touch(mixed);

        uct_dcx_keys_forget(&slots.slots, src.mr->lkey, 1);
        EXPECT_EQ(IBV_WC_SUCCESS, write_to(key, 60));
        uct_dcx_keys_forget(&slots.slots, lkey, 1);
        EXPECT_NE(IBV_WC_SUCCESS, write_to(key, 60));
        pair.reconnect();
    }
    EXPECT_EQ(2u, slots.stats().invalidated);
}

/* A thread waits for a device that is silent: others go on. */
TEST_P(dcx_key, nobody_else_waits)
{
    slots_t slots(dev, 8, 8);
    strict_mem other(dev.pd, UMR_ACCESS_ALL, 0x33);
    dcx_layout memory = rows(4, 0, remote);
    dcx_layout kept = piece(other, 64), fresh = piece(other, 32);
    uct_dcx_key_t *owned = slots.own(4), *slot;
    uint32_t key = slots.touch(memory), kept_key = slots.touch(kept);
    std::atomic<bool> has_ended{false};
    dcx_deadline deadline;

    slots.set(owned, memory);
    dcx_key_set_timeout(slots.slots, TIME_WAIT);
    dcx_umr_silence silence(slots.slots);
    std::thread waiting([&] {
        uct_dcx_keys_forget(&slots.slots, dst.mr->lkey, 1);
        has_ended = true;
    });
    while (uct_dcx_keys_peek(&slots.slots, owned) == UCS_OK) {
        deadline.check("the thread that waits");
    }

    EXPECT_EQ(kept_key, slots.touch(kept));
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, slots.try_get(fresh, &slot));
    slot = slots.own(60);
    EXPECT_EQ(UCS_OK, uct_dcx_keys_set(&slots.slots, &slot, 0, fresh.get()));
    EXPECT_EQ(UCS_INPROGRESS, uct_dcx_keys_test(&slots.slots, slot));
    uct_dcx_keys_forget(&slots.slots, src.mr->lkey, 1);
    EXPECT_FALSE(has_ended);

    silence.end();
    waiting.join();
    EXPECT_EQ(UCS_OK, slots.wait(slot));
    EXPECT_EQ(IBV_WC_SUCCESS, write_to(slot->rkey, 32));
    EXPECT_EQ(IBV_WC_SUCCESS, write_to(slots.touch(fresh), 32));
    for (uint32_t number : {key, owned->lkey}) {
        EXPECT_NE(IBV_WC_SUCCESS, write_to(number, 16));
        pair.reconnect();
    }
}

/* The layout before is there until the next one arrives: its memory waits, and
 * the next one stays. Other memory does not. */
TEST_P(dcx_key, waits_for_what_is_replaced)
{
    slots_t slots(dev, 8, 8);
    strict_mem other(dev.pd, UMR_ACCESS_ALL, 0x33);
    dcx_layout before   = rows(4, 0, remote);
    dcx_layout after    = piece(other, 64);
    uct_dcx_key_t *slot = slots.own(4);
    std::atomic<bool> has_ended{false};
    dcx_deadline deadline;

    slots.set(slot, before);
    dcx_key_set_timeout(slots.slots, TIME_WAIT);
    uint64_t doorbells = slots.stats().doorbells;
    dcx_umr_silence silence(slots.slots);
    EXPECT_EQ(UCS_OK, uct_dcx_keys_set(&slots.slots, &slot, 0, after.get()));
    uct_dcx_keys_forget(&slots.slots, src.mr->lkey, 1);
    EXPECT_EQ(doorbells, slots.stats().doorbells);
    std::thread waiting([&] {
        uct_dcx_keys_forget(&slots.slots, dst.mr->lkey, 1);
        has_ended = true;
    });
    while (slots.stats().doorbells == doorbells) {
        deadline.check("the thread that waits");
    }
    EXPECT_FALSE(has_ended);
    EXPECT_EQ(IBV_WC_SUCCESS, write_to(slot->rkey, 64)) << "the one before";

    silence.end();
    waiting.join();
    EXPECT_EQ(UCS_OK, slots.wait(slot));
    EXPECT_EQ(IBV_WC_SUCCESS, write_to(slot->rkey, 64));
    EXPECT_EQ(0x11, other.addr[63]);
    EXPECT_EQ(0u, slots.stats().invalidated);
}

/* A look does not ring and poll, as a test does. */
TEST_P(dcx_key, peek_leaves_the_device_alone)
{
    slots_t slots(dev, 8, 8);
    dcx_layout layout   = rows(4);
    uct_dcx_key_t *slot = slots.own(4);

    EXPECT_EQ(UCS_ERR_NO_ELEM, uct_dcx_keys_peek(&slots.slots, slot));
    EXPECT_EQ(UCS_OK, uct_dcx_keys_set(&slots.slots, &slot, 1, layout.get()));
    EXPECT_EQ(UCS_INPROGRESS, uct_dcx_keys_peek(&slots.slots, slot));
    EXPECT_EQ(0u, slots.stats().doorbells);
    EXPECT_EQ(UCS_OK, slots.wait(slot));
    EXPECT_EQ(UCS_OK, uct_dcx_keys_peek(&slots.slots, slot));
}

/* One whose UMR fails says so until it is set again; those behind it are posted
 * again. */
TEST_P(dcx_key, failure_before_owned_ones)
{
    slots_t slots(dev, 8, 8);
    dcx_layout bad = list(60), good = rows(4, 0, remote);
    dcx_layout before = rows(2, 0, remote);
    uct_dcx_key_t *a = slots.own(60), *b = slots.own(4), *c = slots.own(4);
    ucx_log_reader log;

    slots.set(c, before);
    a->klm_lkey ^= 0xff00;
    EXPECT_EQ(UCS_OK, uct_dcx_keys_set(&slots.slots, &a, 1, bad.get()));
    EXPECT_EQ(UCS_OK, uct_dcx_keys_set(&slots.slots, &b, 1, good.get()));
    EXPECT_EQ(UCS_OK, uct_dcx_keys_set(&slots.slots, &c, 1, good.get()));
    EXPECT_EQ(UCS_ERR_IO_ERROR, slots.wait(a));
    EXPECT_NE(std::string::npos, log.take().find("a list of 60 entries"));
    EXPECT_EQ(UCS_OK, slots.wait(b));
    EXPECT_EQ(UCS_OK, slots.wait(c));
    EXPECT_EQ(IBV_WC_SUCCESS, write_to(b->lkey, 64));
    EXPECT_EQ(IBV_WC_SUCCESS, write_to(c->lkey, 64));
    EXPECT_EQ(UCS_ERR_IO_ERROR, slots.wait(a));
    a->klm_lkey ^= 0xff00;
    slots.set(a, bad);
    EXPECT_EQ(1u, slots.stats().failures);
    EXPECT_EQ("", log.take());
}

/* Two that failed in the place of one: the device may have any of the three. */
TEST_P(dcx_key, failures_in_the_place_of_another)
{
    slots_t slots(dev, 8, 8);
    strict_mem other(dev.pd, UMR_ACCESS_ALL, 0x33);
    std::vector<uct_dcx_sgl_entry_t> entries;
    dcx_layout old      = list(60);
    uct_dcx_key_t *slot = slots.own(60);
    ucx_log_reader log;

    for (uint32_t i = 0; i < 60; i++) {
        entries.push_back(
            {(uintptr_t)other.addr + 2 * i, 1, 0, other.mr->lkey, 0});
    }
    dcx_layout fresh(UCT_DCX_SGL_LIST, 1, entries, remote);
    slots.set(slot, old);
    slot->klm_lkey ^= 0xff00;
    for (unsigned i = 0; i < 3; i++) {
        EXPECT_EQ(UCS_OK,
                  uct_dcx_keys_set(&slots.slots, &slot, 0, fresh.get()));
        EXPECT_EQ(UCS_ERR_IO_ERROR, slots.wait(slot));
    }
    uct_dcx_keys_forget(&slots.slots, dst.mr->lkey, 1);
    EXPECT_EQ(1u, slots.stats().invalidated);
    EXPECT_EQ(UCS_ERR_NO_ELEM, uct_dcx_keys_peek(&slots.slots, slot));
    slot->klm_lkey ^= 0xff00;
    slots.set(slot, fresh);
    EXPECT_EQ(IBV_WC_SUCCESS, write_to(slot->rkey, 60));
    log.take();
}

/* Behind a WQE that failed the device still has the former layouts: they go
 * with their memory although the slots have others by now, or none. */
TEST_P(dcx_key, failure_before_what_was_there)
{
    slots_t slots(dev, 1, 8);
    strict_mem other(dev.pd, UMR_ACCESS_ALL, 0x33);
    dcx_layout bad = list(60), old = rows(4, 0, remote);
    dcx_layout fresh = piece(other, 64);
    uct_dcx_key_t *a = slots.own(60), *slot;
    uint32_t key     = slots.touch(old);
    ucx_log_reader log;

    a->klm_lkey ^= 0xff00;
    EXPECT_EQ(UCS_OK, uct_dcx_keys_set(&slots.slots, &a, 1, bad.get()));
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, slots.try_get(fresh, &slot));
    EXPECT_EQ(UCS_ERR_IO_ERROR, slots.wait(a));
    EXPECT_EQ(1u, slots.stats().num_set) << "the one that failed";
    EXPECT_EQ(IBV_WC_SUCCESS, write_to(key, 16)) << "it is there still";
    uct_dcx_keys_forget(&slots.slots, dst.mr->lkey, 1);
    EXPECT_NE(IBV_WC_SUCCESS, write_to(key, 16));
    log.take();
}

/* The same behind a queue that gives up: its WQEs are not executed later. */
TEST_P(dcx_key, silent_queue_before_what_was_there)
{
    slots_t slots(dev, 8, 8);
    strict_mem other(dev.pd, UMR_ACCESS_ALL, 0x33);
    std::set<uint32_t> stale;
    dcx_layout old      = rows(4, 0, remote);
    dcx_layout fresh    = piece(other, 64);
    uct_dcx_key_t *slot = slots.own(4), *before = slots.own(4);
    ucx_log_reader log;

    slots.slots.params.arg       = &stale;
    slots.slots.params.add_stale = [](void *arg, uint32_t number) {
        ((std::set<uint32_t> *)arg)->insert(number);
    };
    uint32_t given = before->lkey;
    uct_dcx_keys_disown(&slots.slots, before, 1);
    do { /* the same key with another number */
        before = slots.own(4);
    } while (before->lkey >> 8 != given >> 8);
    slots.set(before, fresh);

    slots.set(slot, old);
    EXPECT_EQ(UCS_OK, uct_dcx_keys_set(&slots.slots, &slot, 1, fresh.get()));
    EXPECT_EQ(UCS_OK, uct_dcx_keys_set(&slots.slots, &before, 1, old.get()));
    dcx_umr_silence silence(slots.slots);
    dcx_key_set_timeout(slots.slots, TIME_SILENCE);
    uct_dcx_keys_forget(&slots.slots, dst.mr->lkey, 1);
    EXPECT_NE(std::string::npos, log.take().find("does not move"));
    EXPECT_NE(IBV_WC_SUCCESS, write_to(slot->lkey, 16));
    EXPECT_TRUE(uct_dcx_umr_is_idle(&slots.slots.umr)) << "it was reset";
    EXPECT_EQ((std::set<uint32_t>{slot->lkey, before->lkey, given}), stale);
    EXPECT_EQ(0u, slots.stats().num_set);
    uct_dcx_keys_disown(&slots.slots, slot, 1);
    uct_dcx_keys_disown(&slots.slots, before, 1);
}

/* Forgetting does not wait for a queue that always fails. */
TEST_P(dcx_key, queue_that_always_fails)
{
    slots_t slots(dev, 8, 8);
    dcx_layout layout   = rows(4, 0, remote);
    uct_dcx_key_t *slot = slots.own(4);
    ucx_log_reader log;

    slots.set(slot, layout);
    uint32_t key = slot->lkey;
    slot->lkey   = 0; /* no key that a UMR can change */
    slots.forget({slot});
    slot->lkey = key;
    EXPECT_NE(std::string::npos, log.take().find("failed repeatedly"));
    EXPECT_EQ(4u, slots.stats().failures);
    EXPECT_NE(IBV_WC_SUCCESS, write_to(key, 16)) << "it was destroyed";
    uct_dcx_keys_disown(&slots.slots, slot, 1);
}

/* Owners wait for slots that others are making. */
TEST_P(dcx_key, owners_in_threads)
{
    slots_t slots(dev, 1, 8);
    std::vector<std::thread> threads;
    std::atomic<unsigned> wrong{0};

    for (unsigned i = 0; i < 8; i++) {
        threads.emplace_back([&] {
            uct_dcx_key_t *slot;

            wrong += (uct_dcx_keys_own(&slots.slots, 4, &slot) != UCS_OK);
        });
    }
    for (auto &thread : threads) {
        thread.join();
    }
    EXPECT_EQ(0u, wrong);
}

/* A key that could not be made once is tried again. */
TEST_P(dcx_key, owners_try_again)
{
    slots_t slots(dev, 1, 8);
    ucx_log_reader log;
    uct_dcx_key_t *slot;
    uint32_t pdn = slots.dev.pdn;

    slots.dev.pdn = 0xffffff;
    EXPECT_EQ(UCS_ERR_IO_ERROR, uct_dcx_keys_own(&slots.slots, 4, &slot));
    EXPECT_NE(std::string::npos, log.take().find("mkey of a layout"));
    slots.dev.pdn = pdn;
    EXPECT_EQ(UCS_OK, uct_dcx_keys_own(&slots.slots, 4, &slot));
}

/* A queue that does not move: forgetting waits for the timeout, then destroys
 * the keys, and there are no layouts any more. */
TEST_P(dcx_key, silent_queue)
{
    slots_t slots(dev, 8, 8);
    dcx_layout layout = rows(4, 0, remote), other = rows(3);
    uct_dcx_key_t *ready = slots.own(4), *pending = slots.own(4), *slot;
    uint32_t cached = slots.touch(layout);
    ucx_log_reader log;

    slots.set(ready, layout);
    EXPECT_EQ(UCS_OK,
              uct_dcx_keys_set(&slots.slots, &pending, 1, layout.get()));
    dcx_umr_silence silence(slots.slots);
    dcx_key_set_timeout(slots.slots, TIME_SILENCE);
    uct_dcx_keys_forget(&slots.slots, dst.mr->lkey, 1);
    EXPECT_NE(std::string::npos, log.take().find("does not move"));
    for (uint32_t key : {cached, ready->lkey, pending->lkey}) {
        EXPECT_NE(IBV_WC_SUCCESS, write_to(key, 16));
        pair.reconnect();
    }
    EXPECT_EQ(UCS_ERR_NO_ELEM, uct_dcx_keys_test(&slots.slots, ready));
    EXPECT_EQ(UCS_ERR_NO_ELEM, uct_dcx_keys_test(&slots.slots, pending));
    EXPECT_EQ(UCS_ERR_IO_ERROR,
              uct_dcx_keys_set(&slots.slots, &ready, 1, layout.get()));
    EXPECT_EQ(UCS_ERR_IO_ERROR, slots.try_get(other, &slot));
    EXPECT_EQ(UCS_ERR_IO_ERROR, uct_dcx_keys_own(&slots.slots, 4, &slot));

    /* memory may have their index, with another variant */
    void *place = NULL;
    EXPECT_EQ(UCS_ERR_NO_ELEM,
              uct_dcx_keys_place(&slots.slots, ready->lkey, 8, &place));
    EXPECT_EQ(UCS_OK, uct_dcx_keys_place(&slots.slots, ready->lkey ^ 1,
                                         (uintptr_t)src.addr, &place));
    EXPECT_EQ((void *)src.addr, place);
    uct_dcx_keys_disown(&slots.slots, ready, 1);
    uct_dcx_keys_disown(&slots.slots, pending, 1);
    EXPECT_EQ(0u, slots.stats().num_set);
    EXPECT_EQ("", log.take());
}

/* A thread waits for a layout: the queue is late only if it has not moved for
 * as long as it may take. */
TEST_P(dcx_key, late_queue)
{
    slots_t slots(dev, 8, 8);
    dcx_layout layout  = rows(4, 0, remote);
    uct_dcx_key_t *key = slots.own(4);
    dcx_umr_silence silence(slots.slots);
    uct_dcx_keys_watch_t watch = {0, 0, slots.slots.umr.qp.sq.ci};

    EXPECT_EQ(UCS_OK, uct_dcx_keys_set(&slots.slots, &key, 1, layout.get()));
    EXPECT_EQ(UCS_INPROGRESS, uct_dcx_keys_test(&slots.slots, key));
    EXPECT_EQ(1, uct_dcx_keys_is_late(&slots.slots, &watch));

    silence.end();
    EXPECT_EQ(UCS_OK, slots.wait(key));
    EXPECT_EQ(0, uct_dcx_keys_is_late(&slots.slots, &watch)) << "it has moved";
    EXPECT_EQ(0, uct_dcx_keys_is_late(&slots.slots, &watch)) << "just now";
    uct_dcx_keys_disown(&slots.slots, key, 1);
}

/* A silent queue that cannot be restarted executes nothing later, when others
 * have the indices of its keys. */
TEST_P(dcx_key, silent_queue_is_destroyed)
{
    slots_t slots(dev, 8, 8);
    dcx_layout layout   = rows(4, 0, remote);
    uct_dcx_key_t *slot = slots.own(4);
    auto &umr           = slots.slots.umr;
    ucx_log_reader log;

    EXPECT_EQ(UCS_OK, uct_dcx_keys_set(&slots.slots, &slot, 1, layout.get()));
    dcx_umr_silence silence(slots.slots);
    umr.qp.obj.number = 0xfffffe; /* no command reaches it */
    dcx_key_set_timeout(slots.slots, TIME_SILENCE);
    uct_dcx_keys_forget(&slots.slots, dst.mr->lkey, 1);
    EXPECT_NE(std::string::npos, log.take().find("does not move"));
    EXPECT_EQ(nullptr, umr.qp.obj.obj);
    uct_dcx_keys_disown(&slots.slots, slot, 1);
}

/* Two threads wait for a queue that is silent. */
TEST_P(dcx_key, silent_queue_of_two)
{
    slots_t slots(dev, 8, 8);
    strict_mem other(dev.pd, UMR_ACCESS_ALL, 0x33);
    dcx_layout memory = rows(4, 0, remote);
    dcx_layout kept   = piece(other, 64);
    std::vector<std::thread> threads;
    std::vector<uint32_t> keys;
    uct_dcx_key_t *owned[8];
    ucx_log_reader log;

    for (unsigned i = 0; i < 8; i++) {
        owned[i] = slots.own(4);
        slots.set(owned[i], (i % 2) ? kept : memory);
        keys.push_back(owned[i]->lkey);
    }
    dcx_umr_silence silence(slots.slots);
    dcx_key_set_timeout(slots.slots, TIME_SILENCE);
    for (uint32_t lkey : {dst.mr->lkey, other.mr->lkey}) {
        threads.emplace_back(
            [&, lkey] { uct_dcx_keys_forget(&slots.slots, lkey, 1); });
    }
    for (auto &thread : threads) {
        thread.join();
    }
    EXPECT_EQ(1u, slots.stats().failures) << "one of them gives up";
    for (uint32_t key : keys) {
        EXPECT_NE(IBV_WC_SUCCESS, write_to(key, 16));
        pair.reconnect();
    }
    for (auto slot : owned) {
        uct_dcx_keys_disown(&slots.slots, slot, 1);
    }
}

/* Four threads want 24 layouts of 8 slots. */
TEST_P(dcx_key, threads)
{
    slots_t slots(dev, 8);
    std::vector<dcx_layout> layouts;
    std::vector<std::thread> threads;
    std::atomic<unsigned> got{0}, wrong{0};

    for (uint32_t i = 0; i < 24; i++) {
        layouts.push_back(rows(1 + i));
    }
    for (unsigned seed = 0; seed < 4; seed++) {
        threads.emplace_back([&, seed] {
            std::mt19937 random(seed);
            dcx_deadline deadline;

            /* on a busy machine most are refused while others have the slots */
            for (unsigned i = 0; (i < 500) || (got <= 100); i++) {
                dcx_layout &layout = layouts[random() % layouts.size()];
                uct_dcx_key_t *slot;
                ucs_status_t status = slots.wait(layout, &slot);

                deadline.check("layouts");
                if (status == UCS_OK) {
                    got++;
                    wrong += !uct_dcx_sgl_is_equal(slot->layout, layout.get());
                    slots.put(slot);
                    if (random() % 64 == 0) {
                        uct_dcx_keys_forget(&slots.slots, dst.mr->lkey, 1);
                    }
                } else {
                    wrong += (status != UCS_ERR_BUSY);
                }
            }
        });
    }
    for (auto &thread : threads) {
        thread.join();
    }
    EXPECT_EQ(0u, wrong);
    EXPECT_LT(100u, got);
    EXPECT_EQ(0u, slots.stats().failures);
    EXPECT_EQ(8u, slots.stats().num_keys);
}

INSTANTIATE_TEST_SUITE_P(ib, dcx_key, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(strict, dcx_key, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(late, dcx_key, testing::Values(0));

class dcx_key_doorbells : public dcx_key {};

/* The first goes alone, the others while that is under way, for as long as they
 * take to be asked for. */
TEST_P(dcx_key_doorbells, several_under_one)
{
    slots_t slots(dev, 8);
    std::vector<dcx_layout> layouts;
    uct_dcx_key_t *slot;

    for (uint32_t i = 0; i < 6; i++) {
        layouts.push_back(rows(1 + i));
        EXPECT_EQ(UCS_ERR_NO_RESOURCE, slots.try_get(layouts[i], &slot));
    }
    for (auto &layout : layouts) {
        slots.touch(layout);
    }
    EXPECT_EQ(6u, slots.stats().misses);
    EXPECT_EQ(2u, slots.stats().doorbells);
}

INSTANTIATE_TEST_SUITE_P(very_late, dcx_key_doorbells, testing::Values(0));

} /* namespace */

int main(int argc, char **argv)
{
    return hca_test_main(
        argc, argv,
        {
            {"ib", {}},
            {"strict", {{"SOFTHCA_STRICT", "1"}, {"SOFTHCA_LACKS", "wc"}}},
            {"late", {{"SOFTHCA_DELAY", "1000"}}},
            {"very_late", {{"SOFTHCA_DELAY", "100000"}}},
            {"cached", {{"UCX_DCX_RCACHE", "y"}}},
            {"locked",
             {{"UCX_DCX_RCACHE", "y"},
              {"SOFTHCA_MEMLOCK", "y"},
              {"UCX_DCX_RX_QUEUE_LEN", "64"}}},
            {"single", {{"UCX_DCX_RCACHE", "n"}}},
            {"roce", {{"UCX_DCX_RCACHE", "n"}, {"SOFTHCA_LINK", "roce"}}},
        });
}
