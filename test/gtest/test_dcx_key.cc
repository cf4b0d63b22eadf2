/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Strided mkeys of dcx on the device (dcx_key.h): how a layout gets a key, when
 * the device has it, how it is evicted or invalidated, and a UMR queue that
 * fails or makes no progress ("silent").
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
    /* Writes @length bytes of the pattern 0x11 to the key, from offset 0. */
    enum ibv_wc_status write_to(uint32_t rkey, uint32_t length)
    {
        return pair.run(
            verbs_op(IBV_WR_RDMA_WRITE).local(src, length).remote(0, rkey));
    }
};

TEST_P(dcx_key, miss_then_hit)
{
    keys_t keys(dev, 8);
    dcx_layout layout  = rows(4, 8, remote);
    uct_dcx_key_t *key = NULL, *again = NULL;

    EXPECT_EQ(UCS_ERR_NO_RESOURCE, keys.try_get(layout, &key));
    ASSERT_EQ(UCS_OK, keys.wait(layout, &key));
    EXPECT_EQ(key->lkey, *(uint32_t *)key);
    EXPECT_EQ(key->rkey, key->lkey);
    ASSERT_EQ(IBV_WC_SUCCESS, write_to(key->rkey, 64));
    for (unsigned i = 0; i < 256; i++) {
        EXPECT_EQ(((i % 64 >= 8) && (i % 64 < 24)) ? 0x11 : 0x22, dst.addr[i])
            << i;
    }

    dcx_layout same = rows(4, 8, remote);
    ASSERT_EQ(UCS_OK, keys.try_get(same, &again)) << "not a hit";
    EXPECT_EQ(key, again);
    keys.put(key);
    keys.put(again);
    EXPECT_EQ(1u, keys.stats().misses);
    EXPECT_EQ(1u, keys.stats().hits);
    EXPECT_EQ(1u, keys.stats().doorbells);
    EXPECT_EQ(0u, keys.stats().evictions);
    EXPECT_EQ(1u, keys.stats().num_set);
}

/* No object is created on a device without UMR. */
TEST_P(dcx_key, device_without_umr)
{
    uct_dcx_keys_params_t params = {};
    uct_dcx_devx_path_t path     = {};
    uct_dcx_device_t device      = {};
    uct_dcx_keys_t keys;

    device.ctx         = dev.ctx;
    device.has_devx    = 1;
    params.dev         = &device;
    params.max_keys    = 8;
    params.max_entries = 8;
    ASSERT_EQ(UCS_OK, uct_dcx_keys_init(&keys, &params));
    EXPECT_EQ(UCS_ERR_UNSUPPORTED, uct_dcx_keys_open(&keys, &path));
    EXPECT_FALSE(uct_dcx_keys_is_open(&keys));
    uct_dcx_keys_forget(&keys, 0x100, 1);
    uct_dcx_keys_cleanup(&keys);
}

/* Layouts that differ only in their access rights have different keys. */
TEST_P(dcx_key, has_the_rights_of_its_layout)
{
    keys_t keys(dev, 8);
    dcx_layout local = rows(4), far = rows(4, 0, remote);
    uint32_t local_key = keys.touch(local), far_key = keys.touch(far);

    EXPECT_NE(local_key, far_key);
    EXPECT_EQ(IBV_WC_SUCCESS, write_to(far_key, 64));
    EXPECT_NE(IBV_WC_SUCCESS, write_to(local_key, 64));
}

/* A list of 1,024 pieces, with the head of a strided layout, takes no key that
 * has room for the longest. */
TEST_P(dcx_key, sizes_of_the_options)
{
    uct_dcx_device_t large       = {};
    uct_dcx_keys_params_t params = {};
    uct_dcx_keys_t keys;
    std::vector<unsigned> sizes;

    large.ctx            = dev.ctx;
    large.umr.max_klm    = 1 << 16;
    large.umr.max_inline = 52;
    params.dev           = &large;
    params.max_entries   = 8192;
    ASSERT_EQ(UCS_OK, uct_dcx_keys_init(&keys, &params));
    for (unsigned i = 0; i < UCT_DCX_KEY_KINDS; i++) {
        sizes.push_back(keys.sizes[i].num_klm);
    }
    EXPECT_EQ((std::vector<unsigned>{4, 52, 1028, 8196, 4, 52, 1028, 8196}),
              sizes);
    uct_dcx_keys_cleanup(&keys);
}

/* Keys of each size; the device reads the longest lists from memory. */
TEST_P(dcx_key, sizes)
{
    keys_t keys(dev, 8);

    EXPECT_EQ(64u, uct_dcx_keys_max_klm(&keys.keys));
    for (uint32_t num : {1u, 4u, 5u, 52u, 53u, 64u}) {
        dcx_layout layout = list(num);
        uint32_t lkey     = keys.touch(layout);

        memset(dst.addr, 0x22, 2 * num);
        memset(src.addr, num, num);
        ASSERT_EQ(
            IBV_WC_SUCCESS,
            pair.run(
                verbs_op(IBV_WR_RDMA_READ).local(0, num, lkey).remote(src)));
        for (uint32_t i = 0; i < 2 * num; i++) {
            ASSERT_EQ((i % 2) ? 0x22 : num, dst.addr[i]) << num << " " << i;
        }
    }

    dcx_layout more = list(65);
    uct_dcx_key_t *key;
    EXPECT_EQ(UCS_ERR_EXCEEDS_LIMIT, keys.try_get(more, &key));
    EXPECT_EQ(1u, keys.stats().exhausted);
}

/* No more keys can be created, and peers hold all: the caller is refused, as it
 * could wait forever. */
TEST_P(dcx_key, all_are_held)
{
    keys_t keys(dev, 16); /* 8 can be held, and 8 are created at a time */
    std::vector<uct_dcx_key_t *> held;
    std::vector<dcx_layout> layouts;
    uct_dcx_key_t *key;

    for (uint32_t i = 0; i < 9; i++) {
        layouts.push_back(rows(4, i));
    }
    for (uint32_t i = 0; i < 8; i++) {
        keys.touch(layouts[i]);
        ASSERT_EQ(UCS_OK,
                  uct_dcx_keys_get(&keys.keys, layouts[i].get(), 1, &key));
        held.push_back(key);
    }
    ASSERT_EQ(8u, held[0]->size->num);
    ASSERT_EQ(8u, held[0]->size->num_held);
    held[0]->size->max = 8; /* as after a failure to create more */
    EXPECT_EQ(UCS_ERR_EXCEEDS_LIMIT, keys.try_get(layouts[8], &key));
    uct_dcx_keys_put(&keys.keys, held[0], 1);
    keys.touch(layouts[8]);
    for (uint32_t i = 1; i < 8; i++) {
        uct_dcx_keys_put(&keys.keys, held[i], 1);
    }
}

TEST_P(dcx_key, evicts_the_least_recently_used)
{
    keys_t keys(dev, 4);
    std::vector<dcx_layout> layouts;
    std::vector<uint32_t> lkeys;
    uct_dcx_key_t *key;

    for (uint32_t i = 0; i < 4; i++) {
        layouts.push_back(rows(4, i, remote));
        lkeys.push_back(keys.touch(layouts[i]));
    }
    keys.touch(layouts[0]);

    dcx_layout fifth = rows(4, 5, remote);
    uint32_t lkey    = keys.touch(fifth);
    EXPECT_EQ(1u, keys.stats().evictions);
    EXPECT_EQ(lkeys[1] >> 8, lkey >> 8) << "evicted a key that was used later";
    EXPECT_NE(lkeys[1], lkey) << "the key keeps its number";
    EXPECT_EQ(UCS_OK, keys.try_get(layouts[0], &key));
    keys.put(key);
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, keys.try_get(layouts[1], &key));
    EXPECT_EQ(IBV_WC_SUCCESS, write_to(lkey, 16));
    EXPECT_NE(IBV_WC_SUCCESS, write_to(lkeys[1], 16)) << "the old number";
}

TEST_P(dcx_key, users_are_never_evicted)
{
    keys_t keys(dev, 2);
    dcx_layout one = rows(1), two = rows(2), three = rows(3);
    uct_dcx_key_t *a = keys.get(one), *b = keys.get(two), *c;

    EXPECT_EQ(UCS_ERR_BUSY, keys.try_get(three, &c));
    EXPECT_EQ(1u, keys.stats().exhausted);
    keys.put(b);
    c = keys.get(three);
    EXPECT_EQ(b, c);
    EXPECT_EQ(0, memcmp(one.get(), a->layout, uct_dcx_sgl_size(1)));
    keys.put(a);
    keys.put(c);
}

/* A key that was requested, but not used yet, is not evicted for a time of
 * grace. */
TEST_P(dcx_key, new_keys_have_a_time_of_grace)
{
    keys_t keys(dev, 1);
    dcx_layout one = rows(1), two = rows(2);
    uct_dcx_key_t *key;

    EXPECT_EQ(UCS_ERR_NO_RESOURCE, keys.try_get(one, &key));
    do {
        EXPECT_EQ(UCS_ERR_BUSY, keys.try_get(two, &key));
    } while (!ucs_list_is_empty(&keys.keys.pending));
    EXPECT_EQ(UCS_ERR_BUSY, keys.try_get(two, &key));
    key = ucs_list_head(&keys.keys.sizes[0].lru, uct_dcx_key_t, list);
    key->since -= UCT_DCX_KEY_GRACE;
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, keys.try_get(two, &key));
}

TEST_P(dcx_key, forgets_what_a_region_names)
{
    keys_t keys(dev, 8);
    strict_mem other(dev.pd, UMR_ACCESS_ALL, 0x33);
    dcx_layout used = rows(4, 0, remote), idle = rows(3, 0, remote);
    dcx_layout pending = rows(2, 0, remote);
    dcx_layout kept    = piece(other, 64);
    uint32_t idle_key = keys.touch(idle), kept_key = keys.touch(kept);
    uct_dcx_key_t *user = keys.get(used), *key;

    EXPECT_EQ(UCS_ERR_NO_RESOURCE, keys.try_get(pending, &key));
    uct_dcx_keys_forget(&keys.keys, dst.mr->lkey, 1);
    EXPECT_EQ(3u, keys.stats().invalidated);
    EXPECT_EQ(1u, keys.stats().num_set);

    EXPECT_EQ(IBV_WC_SUCCESS, write_to(kept_key, 64));
    EXPECT_NE(IBV_WC_SUCCESS, write_to(idle_key, 16));
    pair.reconnect();
    EXPECT_NE(IBV_WC_SUCCESS, write_to(user->rkey, 16)) << "the key in use";
    keys.put(user);
    EXPECT_EQ(UCS_OK, keys.try_get(kept, &key));
    keys.put(key);

    uct_dcx_keys_forget(&keys.keys, dst.mr->lkey, 1);
    EXPECT_EQ(3u, keys.stats().invalidated) << "invalidated twice";
    keys.touch(idle);
}

/* A layout whose translations cannot be read: its UMR fails, and layouts behind
 * it have to be requested again. */
TEST_P(dcx_key, failure)
{
    keys_t keys(dev, 8);
    dcx_layout bad = list(60), good = rows(4, 0, remote), after = rows(5);
    dcx_layout first = list(61);
    ucx_log_reader log;
    uct_dcx_key_t *key;

    keys.touch(first);
    keys.touch(good);
    key = ucs_list_head(&keys.keys.sizes[2].lru, uct_dcx_key_t, list);
    key->klm_lkey ^= 0xff00;
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, keys.try_get(bad, &key));
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, keys.try_get(after, &key));
    EXPECT_EQ(UCS_ERR_IO_ERROR, keys.wait(bad, &key));
    EXPECT_NE(std::string::npos, log.take().find("a list of 60 entries"));
    EXPECT_EQ(1u, keys.stats().failures);

    keys.touch(after);
    EXPECT_EQ(IBV_WC_SUCCESS, write_to(keys.touch(good), 16));
    EXPECT_EQ("", log.take());
    keys.touch(bad); /* gets another key */
}

/* The ring of 256 blocks wraps around. On a late device it is full at times. */
TEST_P(dcx_key, ring)
{
    keys_t keys(dev, 64);
    std::vector<dcx_layout> layouts;
    uct_dcx_key_t *key;

    for (uint32_t i = 0; i < 48; i++) {
        layouts.push_back(list(40 + i % 12, i));
    }
    for (unsigned round = 0; round < 3; round++) {
        for (auto &layout : layouts) {
            ucs_status_t status = keys.try_get(layout, &key);

            ASSERT_TRUE((status == UCS_OK) || (status == UCS_ERR_NO_RESOURCE));
            if (status == UCS_OK) {
                keys.put(key);
            }
        }
        for (auto &layout : layouts) {
            keys.touch(layout);
        }
        uct_dcx_keys_forget(&keys.keys, dst.mr->lkey, 1);
    }
    EXPECT_EQ(3u * 48, keys.stats().misses);
    EXPECT_EQ(3u * 48, keys.stats().invalidated);
    EXPECT_EQ(0u, keys.stats().failures);
}

/* A number that a peer had is not used again, until 4,096 others were. */
TEST_P(dcx_key, numbers_of_peers_are_not_used_again)
{
    keys_t keys(dev, 1);
    std::set<uint32_t> numbers;
    uct_dcx_key_t *key;

    for (unsigned i = 0; i < 256; i++) {
        dcx_layout layout = rows(1 + i % 7, i, remote);

        key = keys.get(layout);
        EXPECT_TRUE(
            numbers.insert(uct_dcx_keys_give_rkey(&keys.keys, key)).second)
            << i;
        keys.put(key);
    }

    dcx_layout one_more = rows(8, 0, remote), local = rows(8);
    EXPECT_EQ(UCS_ERR_BUSY, keys.try_get(one_more, &key))
        << "a number that a peer has was used again";
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, keys.try_get(local, &key))
        << "refused, though peers have no access by this layout";
}

/* A number that is_stale() refuses is not used: another kind of key had it. */
TEST_P(dcx_key, numbers_of_other_keys_are_not_used)
{
    keys_t keys(dev, 1);
    std::set<uint32_t> stale;
    dcx_layout first = rows(1, 0, remote), second = rows(2, 0, remote);
    uint32_t lkey = keys.touch(first);

    for (unsigned i = 0; i < 10; i++) {
        stale.insert((lkey & ~0xffu) | ((lkey + 1 + i) & 0xff));
    }
    keys.keys.params.arg      = &stale;
    keys.keys.params.is_stale = [](void *arg, uint32_t number) -> int {
        return ((std::set<uint32_t> *)arg)->count(number);
    };
    EXPECT_EQ((lkey & ~0xffu) | ((lkey + 11) & 0xff), keys.touch(second));
}

/* --- owned ---------------------------------------------------------------- */

TEST_P(dcx_key, owned_keys_are_not_in_the_cache)
{
    keys_t keys(dev, 1, 2);
    dcx_layout one = rows(1, 0, remote), two = rows(2, 0, remote);
    uct_dcx_key_t *a = keys.own(4), *b = keys.own(4), *c;

    EXPECT_EQ(UCS_ERR_NO_RESOURCE, uct_dcx_keys_own(&keys.keys, 4, &c));
    EXPECT_EQ(UCS_ERR_EXCEEDS_LIMIT, uct_dcx_keys_own(&keys.keys, 65, &c));
    EXPECT_EQ(UCS_ERR_NO_ELEM, uct_dcx_keys_test(&keys.keys, a));
    keys.set(a, one);
    keys.set(b, one);
    EXPECT_EQ(0u, keys.stats().misses);

    uct_dcx_key_t *cached = keys.get(one);
    EXPECT_NE(a, cached);
    EXPECT_NE(b, cached);
    EXPECT_EQ(UCS_ERR_BUSY, keys.try_get(two, &c)) << "took an owned key";
    keys.put(cached);
    EXPECT_EQ(3u, keys.stats().num_set);

    uint32_t number = a->lkey;
    keys.set(a, two);
    EXPECT_EQ(number, a->lkey);
    EXPECT_EQ(IBV_WC_SUCCESS, write_to(number, 32));
    uct_dcx_keys_disown(&keys.keys, a, 1);
    EXPECT_NE(IBV_WC_SUCCESS, write_to(number, 16));
    EXPECT_EQ(2u, keys.stats().num_set);
    EXPECT_EQ(0u, keys.stats().invalidated) << "counted, though no memory goes";
    a = keys.own(4);
    EXPECT_NE(number, a->lkey);
}

/* Peers may have the numbers of freed keys: the last 4,096 are not used again.
 * There is always another one. */
TEST_P(dcx_key, numbers_of_owned_keys_are_not_used_again)
{
    keys_t keys(dev, 1, 1);
    std::set<uint32_t> numbers;
    uct_dcx_key_t *key;

    for (unsigned i = 0; i < 4200; i++) {
        key = keys.own(4);
        EXPECT_TRUE((i >= 4096) || numbers.insert(key->rkey).second) << i;
        uct_dcx_keys_disown(&keys.keys, key, 1);
    }
    EXPECT_LE(keys.stats().num_keys, 8u * 3);
}

/* If no peer has its number, a key keeps it after its layout was invalidated.
 * Otherwise it gets another one. */
TEST_P(dcx_key, numbers_that_no_peer_has)
{
    keys_t keys(dev, 1, 1);
    dcx_layout layout  = rows(4, 0, remote);
    uct_dcx_key_t *key = keys.own(4);
    uint32_t number    = key->lkey;

    for (unsigned i = 0; i < 300; i++) {
        ASSERT_EQ(UCS_OK, uct_dcx_keys_set(&keys.keys, &key, 0, layout.get()));
        ASSERT_EQ(UCS_OK, keys.wait(key));
        ASSERT_EQ(number, key->lkey);
        uct_dcx_keys_forget(&keys.keys, dst.mr->lkey, 1);
        ASSERT_EQ(UCS_ERR_NO_ELEM, uct_dcx_keys_test(&keys.keys, key));
    }
    keys.set(key, layout);
    EXPECT_NE(number, key->lkey);
    EXPECT_EQ(IBV_WC_SUCCESS, write_to(key->lkey, 16));
    EXPECT_NE(IBV_WC_SUCCESS, write_to(number, 16));
}

/* Layouts that refer to an invalidated one are invalidated, too. */
TEST_P(dcx_key, invalidated_with_an_inner_layout)
{
    keys_t keys(dev, 8, 8);
    uct_dcx_key_t *inner = keys.own(4), *outer = keys.own(4);
    uct_dcx_key_t *other = keys.own(4);
    dcx_layout memory = rows(4, 0, remote), kept = rows(3, 0, remote);

    keys.set(inner, memory);
    keys.set(other, kept);
    dcx_layout nested(UCT_DCX_SGL_LIST, 1, {{8, 32, 0, inner->lkey, 0}},
                      remote);
    keys.set(outer, nested);
    dcx_layout above(UCT_DCX_SGL_LIST, 1, {{0, 16, 0, outer->lkey, 0}}, remote);
    uint32_t lkey = keys.touch(above);

    ASSERT_EQ(IBV_WC_SUCCESS, write_to(lkey, 16));
    keys.forget({inner});
    EXPECT_EQ(3u, keys.stats().invalidated);
    EXPECT_EQ(1u, keys.stats().num_set);
    for (uint32_t number : {lkey, outer->lkey, inner->lkey}) {
        EXPECT_NE(IBV_WC_SUCCESS, write_to(number, 8));
        pair.reconnect();
    }
    EXPECT_EQ(IBV_WC_SUCCESS, write_to(other->lkey, 8));
    EXPECT_EQ(UCS_ERR_NO_ELEM, uct_dcx_keys_test(&keys.keys, outer));

    uint32_t before = inner->lkey;
    keys.set(inner, memory);
    EXPECT_NE(before, inner->lkey);
    EXPECT_EQ(IBV_WC_SUCCESS, write_to(inner->lkey, 16));
}

/* Marked layouts are invalidated with one doorbell, and count once. */
TEST_P(dcx_key, marked_layouts_go_at_once)
{
    keys_t keys(dev, 8, 8);
    dcx_layout memory    = rows(4, 0, remote);
    uct_dcx_key_t *inner = keys.own(4), *outer = keys.own(4);
    uct_dcx_key_t *other = keys.own(4);

    keys.set(inner, memory);
    keys.set(other, memory);
    dcx_layout nested(UCT_DCX_SGL_LIST, 1, {{8, 32, 0, inner->lkey, 0}},
                      remote);
    keys.set(outer, nested);

    uint64_t doorbells = keys.stats().doorbells;
    keys.forget({inner, outer, other, inner});
    EXPECT_EQ(doorbells + 1, keys.stats().doorbells);
    EXPECT_EQ(3u, keys.stats().invalidated);
    EXPECT_EQ(0u, keys.stats().num_set);
    for (auto key : {inner, outer, other}) {
        EXPECT_EQ(UCS_ERR_NO_ELEM, uct_dcx_keys_peek(&keys.keys, key));
        EXPECT_NE(IBV_WC_SUCCESS, write_to(key->lkey, 8));
        pair.reconnect();
    }
}

/* A marked layout is out of use, and its key gets no other one until the device
 * has invalidated it. */
TEST_P(dcx_key, marked_layouts_are_out_of_use)
{
    keys_t keys(dev, 1, 8);
    dcx_layout memory = rows(4, 0, remote), other = rows(3, 0, remote);
    uct_dcx_key_t *inner = keys.own(4), *key;

    keys.set(inner, memory);
    dcx_layout nested(UCT_DCX_SGL_LIST, 1, {{8, 32, 0, inner->lkey, 0}},
                      remote);
    uint32_t lkey = keys.touch(nested);
    dcx_umr_silence silence(keys.keys);

    ucs_spin_lock(&keys.keys.lock);
    uct_dcx_keys_mark(&keys.keys, inner);
    ucs_spin_unlock(&keys.keys.lock);
    EXPECT_EQ(UCS_ERR_NO_ELEM, uct_dcx_keys_peek(&keys.keys, inner));
    EXPECT_EQ(IBV_WC_SUCCESS, write_to(inner->rkey, 16))
        << "invalidated before the doorbell";
    EXPECT_EQ(UCS_ERR_NO_RESOURCE,
              uct_dcx_keys_set(&keys.keys, &inner, 0, memory.get()));
    EXPECT_EQ(UCS_ERR_BUSY, keys.try_get(other, &key)) << "took a marked key";

    silence.end();
    uct_dcx_keys_forget_key(&keys.keys, inner);
    for (uint32_t number : {lkey, inner->lkey}) {
        EXPECT_NE(IBV_WC_SUCCESS, write_to(number, 16));
        pair.reconnect();
    }
    EXPECT_EQ(IBV_WC_SUCCESS, write_to(keys.touch(other), 16));
}

/* A list of pieces in two regions is invalidated with either region. */
TEST_P(dcx_key, names_each_of_its_regions)
{
    keys_t keys(dev, 8);
    strict_mem other(dev.pd, UMR_ACCESS_ALL, 0x33);
    std::vector<uct_dcx_sgl_entry_t> entries;

    for (uint32_t i = 0; i < 60; i++) {
        strict_mem &mem = (i % 2) ? other : dst;

        entries.push_back({(uintptr_t)mem.addr + i, 1, 0, mem.mr->lkey, 0});
    }
    dcx_layout mixed(UCT_DCX_SGL_LIST, 1, entries, remote);
    for (uint32_t region : {dst.mr->lkey, other.mr->lkey}) {
        uint32_t lkey = keys.touch(mixed);

        uct_dcx_keys_forget(&keys.keys, src.mr->lkey, 1);
        EXPECT_EQ(IBV_WC_SUCCESS, write_to(lkey, 60));
        uct_dcx_keys_forget(&keys.keys, region, 1);
        EXPECT_NE(IBV_WC_SUCCESS, write_to(lkey, 60));
        pair.reconnect();
    }
    EXPECT_EQ(2u, keys.stats().invalidated);
}

/* While one thread waits for a silent device to invalidate layouts, others can
 * use the keys. */
TEST_P(dcx_key, other_threads_do_not_wait)
{
    keys_t keys(dev, 8, 8);
    strict_mem other(dev.pd, UMR_ACCESS_ALL, 0x33);
    dcx_layout memory = rows(4, 0, remote);
    dcx_layout kept = piece(other, 64), fresh = piece(other, 32);
    uct_dcx_key_t *owned = keys.own(4), *key;
    uint32_t lkey = keys.touch(memory), kept_key = keys.touch(kept);
    std::atomic<bool> has_ended{false};
    dcx_deadline deadline;

    keys.set(owned, memory);
    dcx_key_set_timeout(keys.keys, TIME_WAIT);
    dcx_umr_silence silence(keys.keys);
    std::thread waiting([&] {
        uct_dcx_keys_forget(&keys.keys, dst.mr->lkey, 1);
        has_ended = true;
    });
    while (uct_dcx_keys_peek(&keys.keys, owned) == UCS_OK) {
        deadline.check("the thread that waits");
    }

    EXPECT_EQ(kept_key, keys.touch(kept));
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, keys.try_get(fresh, &key));
    key = keys.own(60);
    EXPECT_EQ(UCS_OK, uct_dcx_keys_set(&keys.keys, &key, 0, fresh.get()));
    EXPECT_EQ(UCS_INPROGRESS, uct_dcx_keys_test(&keys.keys, key));
    uct_dcx_keys_forget(&keys.keys, src.mr->lkey, 1);
    EXPECT_FALSE(has_ended);

    silence.end();
    waiting.join();
    EXPECT_EQ(UCS_OK, keys.wait(key));
    EXPECT_EQ(IBV_WC_SUCCESS, write_to(key->rkey, 32));
    EXPECT_EQ(IBV_WC_SUCCESS, write_to(keys.touch(fresh), 32));
    for (uint32_t number : {lkey, owned->lkey}) {
        EXPECT_NE(IBV_WC_SUCCESS, write_to(number, 16));
        pair.reconnect();
    }
}

/* The device has the previous layout of a key until it has executed the next
 * one. Deregistering memory of the previous layout waits for that, and keeps
 * the next one. Deregistering other memory does not wait. */
TEST_P(dcx_key, waits_for_the_replaced_layout)
{
    keys_t keys(dev, 8, 8);
    strict_mem other(dev.pd, UMR_ACCESS_ALL, 0x33);
    dcx_layout before  = rows(4, 0, remote);
    dcx_layout after   = piece(other, 64);
    uct_dcx_key_t *key = keys.own(4);
    std::atomic<bool> has_ended{false};
    dcx_deadline deadline;

    keys.set(key, before);
    dcx_key_set_timeout(keys.keys, TIME_WAIT);
    uint64_t doorbells = keys.stats().doorbells;
    dcx_umr_silence silence(keys.keys);
    EXPECT_EQ(UCS_OK, uct_dcx_keys_set(&keys.keys, &key, 0, after.get()));
    uct_dcx_keys_forget(&keys.keys, src.mr->lkey, 1);
    EXPECT_EQ(doorbells, keys.stats().doorbells);
    std::thread waiting([&] {
        uct_dcx_keys_forget(&keys.keys, dst.mr->lkey, 1);
        has_ended = true;
    });
    while (keys.stats().doorbells == doorbells) {
        deadline.check("the thread that waits");
    }
    EXPECT_FALSE(has_ended);
    EXPECT_EQ(IBV_WC_SUCCESS, write_to(key->rkey, 64)) << "the previous layout";

    silence.end();
    waiting.join();
    EXPECT_EQ(UCS_OK, keys.wait(key));
    EXPECT_EQ(IBV_WC_SUCCESS, write_to(key->rkey, 64));
    EXPECT_EQ(0x11, other.addr[63]);
    EXPECT_EQ(0u, keys.stats().invalidated);
}

/* uct_dcx_keys_peek() neither rings nor polls, unlike uct_dcx_keys_test(). */
TEST_P(dcx_key, peek_leaves_the_device_alone)
{
    keys_t keys(dev, 8, 8);
    dcx_layout layout  = rows(4);
    uct_dcx_key_t *key = keys.own(4);

    EXPECT_EQ(UCS_ERR_NO_ELEM, uct_dcx_keys_peek(&keys.keys, key));
    EXPECT_EQ(UCS_OK, uct_dcx_keys_set(&keys.keys, &key, 1, layout.get()));
    EXPECT_EQ(UCS_INPROGRESS, uct_dcx_keys_peek(&keys.keys, key));
    EXPECT_EQ(0u, keys.stats().doorbells);
    EXPECT_EQ(UCS_OK, keys.wait(key));
    EXPECT_EQ(UCS_OK, uct_dcx_keys_peek(&keys.keys, key));
}

/* A key whose UMR has failed reports this until it is set again; UMRs behind it
 * are posted again. */
TEST_P(dcx_key, failure_before_owned_keys)
{
    keys_t keys(dev, 8, 8);
    dcx_layout bad = list(60), good = rows(4, 0, remote);
    dcx_layout before = rows(2, 0, remote);
    uct_dcx_key_t *a = keys.own(60), *b = keys.own(4), *c = keys.own(4);
    ucx_log_reader log;

    keys.set(c, before);
    a->klm_lkey ^= 0xff00;
    EXPECT_EQ(UCS_OK, uct_dcx_keys_set(&keys.keys, &a, 1, bad.get()));
    EXPECT_EQ(UCS_OK, uct_dcx_keys_set(&keys.keys, &b, 1, good.get()));
    EXPECT_EQ(UCS_OK, uct_dcx_keys_set(&keys.keys, &c, 1, good.get()));
    EXPECT_EQ(UCS_ERR_IO_ERROR, keys.wait(a));
    EXPECT_NE(std::string::npos, log.take().find("a list of 60 entries"));
    EXPECT_EQ(UCS_OK, keys.wait(b));
    EXPECT_EQ(UCS_OK, keys.wait(c));
    EXPECT_EQ(IBV_WC_SUCCESS, write_to(b->lkey, 64));
    EXPECT_EQ(IBV_WC_SUCCESS, write_to(c->lkey, 64));
    EXPECT_EQ(UCS_ERR_IO_ERROR, keys.wait(a));
    a->klm_lkey ^= 0xff00;
    keys.set(a, bad);
    EXPECT_EQ(1u, keys.stats().failures);
    EXPECT_EQ("", log.take());
}

/* Several UMRs of one key fail: the device may have the layout of any of them,
 * or the previous one. */
TEST_P(dcx_key, repeated_failures_of_one_key)
{
    keys_t keys(dev, 8, 8);
    strict_mem other(dev.pd, UMR_ACCESS_ALL, 0x33);
    std::vector<uct_dcx_sgl_entry_t> entries;
    dcx_layout old     = list(60);
    uct_dcx_key_t *key = keys.own(60);
    ucx_log_reader log;

    for (uint32_t i = 0; i < 60; i++) {
        entries.push_back(
            {(uintptr_t)other.addr + 2 * i, 1, 0, other.mr->lkey, 0});
    }
    dcx_layout fresh(UCT_DCX_SGL_LIST, 1, entries, remote);
    keys.set(key, old);
    key->klm_lkey ^= 0xff00;
    for (unsigned i = 0; i < 3; i++) {
        EXPECT_EQ(UCS_OK, uct_dcx_keys_set(&keys.keys, &key, 0, fresh.get()));
        EXPECT_EQ(UCS_ERR_IO_ERROR, keys.wait(key));
    }
    uct_dcx_keys_forget(&keys.keys, dst.mr->lkey, 1);
    EXPECT_EQ(1u, keys.stats().invalidated);
    EXPECT_EQ(UCS_ERR_NO_ELEM, uct_dcx_keys_peek(&keys.keys, key));
    key->klm_lkey ^= 0xff00;
    keys.set(key, fresh);
    EXPECT_EQ(IBV_WC_SUCCESS, write_to(key->rkey, 60));
    log.take();
}

/* After a WQE that failed, the device still has the previous layouts: these are
 * invalidated with their memory, although the keys have other layouts by now,
 * or none. */
TEST_P(dcx_key, failure_before_a_previous_layout)
{
    keys_t keys(dev, 1, 8);
    strict_mem other(dev.pd, UMR_ACCESS_ALL, 0x33);
    dcx_layout bad = list(60), old = rows(4, 0, remote);
    dcx_layout fresh = piece(other, 64);
    uct_dcx_key_t *a = keys.own(60), *key;
    uint32_t lkey    = keys.touch(old);
    ucx_log_reader log;

    a->klm_lkey ^= 0xff00;
    EXPECT_EQ(UCS_OK, uct_dcx_keys_set(&keys.keys, &a, 1, bad.get()));
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, keys.try_get(fresh, &key));
    EXPECT_EQ(UCS_ERR_IO_ERROR, keys.wait(a));
    EXPECT_EQ(1u, keys.stats().num_set) << "not only the failed one";
    EXPECT_EQ(IBV_WC_SUCCESS, write_to(lkey, 16)) << "invalidated too early";
    uct_dcx_keys_forget(&keys.keys, dst.mr->lkey, 1);
    EXPECT_NE(IBV_WC_SUCCESS, write_to(lkey, 16));
    log.take();
}

/* The UMR queue makes no progress and is reset: its WQEs are not executed
 * later, and the previous layouts are invalidated. */
TEST_P(dcx_key, silent_queue_before_a_previous_layout)
{
    keys_t keys(dev, 8, 8);
    strict_mem other(dev.pd, UMR_ACCESS_ALL, 0x33);
    std::set<uint32_t> stale;
    dcx_layout old     = rows(4, 0, remote);
    dcx_layout fresh   = piece(other, 64);
    uct_dcx_key_t *key = keys.own(4), *before = keys.own(4);
    ucx_log_reader log;

    keys.keys.params.arg       = &stale;
    keys.keys.params.add_stale = [](void *arg, uint32_t number) {
        ((std::set<uint32_t> *)arg)->insert(number);
    };
    uint32_t given = before->lkey;
    uct_dcx_keys_disown(&keys.keys, before, 1);
    do { /* the same key with another number */
        before = keys.own(4);
    } while (before->lkey >> 8 != given >> 8);
    keys.set(before, fresh);

    keys.set(key, old);
    EXPECT_EQ(UCS_OK, uct_dcx_keys_set(&keys.keys, &key, 1, fresh.get()));
    EXPECT_EQ(UCS_OK, uct_dcx_keys_set(&keys.keys, &before, 1, old.get()));
    dcx_umr_silence silence(keys.keys);
    dcx_key_set_timeout(keys.keys, TIME_SILENCE);
    uct_dcx_keys_forget(&keys.keys, dst.mr->lkey, 1);
    EXPECT_NE(std::string::npos, log.take().find("does not move"));
    EXPECT_NE(IBV_WC_SUCCESS, write_to(key->lkey, 16));
    EXPECT_TRUE(uct_dcx_umr_is_idle(&keys.keys.umr)) << "it was not reset";
    EXPECT_EQ((std::set<uint32_t>{key->lkey, before->lkey, given}), stale);
    EXPECT_EQ(0u, keys.stats().num_set);
    uct_dcx_keys_disown(&keys.keys, key, 1);
    uct_dcx_keys_disown(&keys.keys, before, 1);
}

/* An invalidation does not wait for a device that has failed. */
TEST_P(dcx_key, silent_queue_of_a_failed_device)
{
    keys_t keys(dev, 8, 8);
    dcx_layout layout  = rows(4, 0, remote);
    uct_dcx_key_t *key = keys.own(4);
    ucx_log_reader log;

    keys.set(key, layout);
    uint32_t lkey = key->lkey;
    dcx_umr_silence silence(keys.keys);
    keys.dev.has_failed = 1;
    uint64_t start      = time_now_us();
    uct_dcx_keys_forget(&keys.keys, dst.mr->lkey, 1);
    EXPECT_LT(time_now_us() - start, time_slow(TIME_FATAL) * 1000u);
    EXPECT_NE(std::string::npos, log.take().find("has failed"));
    EXPECT_NE(IBV_WC_SUCCESS, write_to(lkey, 16)) << "it was not destroyed";
    uct_dcx_keys_disown(&keys.keys, key, 1);
}

/* An invalidation does not wait for a queue that always fails. */
TEST_P(dcx_key, queue_that_always_fails)
{
    keys_t keys(dev, 8, 8);
    dcx_layout layout  = rows(4, 0, remote);
    uct_dcx_key_t *key = keys.own(4);
    ucx_log_reader log;

    keys.set(key, layout);
    uint32_t lkey = key->lkey;
    key->lkey     = 0; /* no key that a UMR can change */
    keys.forget({key});
    key->lkey = lkey;
    EXPECT_NE(std::string::npos, log.take().find("failed repeatedly"));
    EXPECT_EQ(4u, keys.stats().failures);
    EXPECT_NE(IBV_WC_SUCCESS, write_to(lkey, 16)) << "it was not destroyed";
    uct_dcx_keys_disown(&keys.keys, key, 1);
}

/* An owner waits for keys that other threads are creating. */
TEST_P(dcx_key, owners_in_threads)
{
    keys_t keys(dev, 1, 8);
    std::vector<std::thread> threads;
    std::atomic<unsigned> wrong{0};

    for (unsigned i = 0; i < 8; i++) {
        threads.emplace_back([&] {
            uct_dcx_key_t *key;

            wrong += (uct_dcx_keys_own(&keys.keys, 4, &key) != UCS_OK);
        });
    }
    for (auto &thread : threads) {
        thread.join();
    }
    EXPECT_EQ(0u, wrong);
}

/* After a failure to create keys, the next owner tries again. */
TEST_P(dcx_key, owners_try_again)
{
    keys_t keys(dev, 1, 8);
    ucx_log_reader log;
    uct_dcx_key_t *key;
    uint32_t pdn = keys.dev.pdn;

    keys.dev.pdn = 0xffffff;
    EXPECT_EQ(UCS_ERR_IO_ERROR, uct_dcx_keys_own(&keys.keys, 4, &key));
    EXPECT_NE(std::string::npos, log.take().find("mkey of a layout"));
    keys.dev.pdn = pdn;
    EXPECT_EQ(UCS_OK, uct_dcx_keys_own(&keys.keys, 4, &key));
}

/* The UMR queue makes no progress: an invalidation waits for the timeout, then
 * destroys the keys. No layout can be set after that. */
TEST_P(dcx_key, silent_queue)
{
    keys_t keys(dev, 8, 8);
    dcx_layout layout = rows(4, 0, remote), other = rows(3);
    uct_dcx_key_t *ready = keys.own(4), *pending = keys.own(4), *key;
    uint32_t cached = keys.touch(layout);
    ucx_log_reader log;

    keys.set(ready, layout);
    EXPECT_EQ(UCS_OK, uct_dcx_keys_set(&keys.keys, &pending, 1, layout.get()));
    dcx_umr_silence silence(keys.keys);
    dcx_key_set_timeout(keys.keys, TIME_SILENCE);
    uct_dcx_keys_forget(&keys.keys, dst.mr->lkey, 1);
    EXPECT_NE(std::string::npos, log.take().find("does not move"));
    for (uint32_t lkey : {cached, ready->lkey, pending->lkey}) {
        EXPECT_NE(IBV_WC_SUCCESS, write_to(lkey, 16));
        pair.reconnect();
    }
    EXPECT_EQ(UCS_ERR_NO_ELEM, uct_dcx_keys_test(&keys.keys, ready));
    EXPECT_EQ(UCS_ERR_NO_ELEM, uct_dcx_keys_test(&keys.keys, pending));
    EXPECT_EQ(UCS_ERR_IO_ERROR,
              uct_dcx_keys_set(&keys.keys, &ready, 1, layout.get()));
    EXPECT_EQ(UCS_ERR_IO_ERROR, keys.try_get(other, &key));
    EXPECT_EQ(UCS_ERR_IO_ERROR, uct_dcx_keys_own(&keys.keys, 4, &key));

    /* memory may have the index of the keys, with another variant */
    void *place = NULL;
    EXPECT_EQ(UCS_ERR_NO_ELEM,
              uct_dcx_keys_place(&keys.keys, ready->lkey, 8, &place));
    EXPECT_EQ(UCS_OK, uct_dcx_keys_place(&keys.keys, ready->lkey ^ 1,
                                         (uintptr_t)src.addr, &place));
    EXPECT_EQ((void *)src.addr, place);
    uct_dcx_keys_disown(&keys.keys, ready, 1);
    uct_dcx_keys_disown(&keys.keys, pending, 1);
    EXPECT_EQ(0u, keys.stats().num_set);
    EXPECT_EQ("", log.take());
}

/* A key whose layout is on its way waits for a silent queue no longer than the
 * timeout before it takes another one. */
TEST_P(dcx_key, silent_queue_before_the_next_layout)
{
    keys_t keys(dev, 8, 8);
    dcx_layout layout = rows(4, 0, remote), other = rows(3, 0, remote);
    uct_dcx_key_t *key = keys.own(4);
    ucx_log_reader log;
    dcx_deadline deadline;
    ucs_status_t status;

    dcx_key_set_timeout(keys.keys, TIME_SILENCE);
    dcx_umr_silence silence(keys.keys);
    EXPECT_EQ(UCS_OK, uct_dcx_keys_set(&keys.keys, &key, 1, layout.get()));
    do {
        deadline.check("the next layout");
        status = uct_dcx_keys_set(&keys.keys, &key, 1, other.get());
    } while (status == UCS_ERR_NO_RESOURCE);
    EXPECT_EQ(UCS_OK, status) << "the first one has failed";
    EXPECT_NE(std::string::npos, log.take().find("does not move"));
    EXPECT_EQ(1u, keys.stats().failures);

    silence.end();
    EXPECT_EQ(UCS_OK, keys.wait(key));
    uct_dcx_keys_disown(&keys.keys, key, 1);
}

/* A silent queue is reset when a caller has waited for a layout, cached or
 * owned, for the whole timeout: the layout at the queue's head fails, and the
 * queue works again. */
TEST_P(dcx_key, silent_queue_is_restarted)
{
    keys_t keys(dev, 8, 8);
    dcx_layout layout = rows(4, 0, remote), other = rows(3, 0, remote);
    uct_dcx_key_t *own = keys.own(4), *key;
    ucx_log_reader log;

    dcx_key_set_timeout(keys.keys, TIME_SILENCE);
    {
        dcx_umr_silence silence(keys.keys);

        EXPECT_EQ(UCS_ERR_IO_ERROR, keys.wait(layout, &key));
        EXPECT_NE(std::string::npos, log.take().find("does not move"));
        EXPECT_EQ(UCS_OK, uct_dcx_keys_set(&keys.keys, &own, 1, other.get()));
        EXPECT_EQ(UCS_ERR_NO_RESOURCE, keys.try_get(other, &key));
        EXPECT_EQ(UCS_ERR_IO_ERROR, keys.wait(own));
        EXPECT_NE(std::string::npos, log.take().find("does not move"));
    }

    for (dcx_layout *each : {&layout, &other}) {
        EXPECT_EQ(IBV_WC_SUCCESS, write_to(keys.touch(*each), 16));
    }
    keys.set(own, layout);
    EXPECT_EQ(IBV_WC_SUCCESS, write_to(own->lkey, 16));
    EXPECT_EQ(2u, keys.stats().failures);
    EXPECT_EQ("", log.take());
    uct_dcx_keys_disown(&keys.keys, own, 1);
}

/* The keys of a domain whose events are read */
class dcx_key_async : public dcx_key {
protected:
    dcx_key_async() { uct_dcx_async_init(&async, dev.ctx); }

    uct_dcx_async_t async = {};
};

/* The doorbell record counts more WQEs than the ring has: the QP fails without
 * a completion. The next layout fails at once, and the queue works again. */
TEST_P(dcx_key_async, failed_qp)
{
    keys_t keys(dev, 8, 8, &async);
    dcx_layout layout  = rows(4, 0, remote);
    uct_dcx_key_t *key = keys.own(4);
    uct_dcx_sq_t *sq   = &keys.keys.umr.qp.sq;
    ucx_log_reader log;
    dcx_deadline deadline;

    *sq->dbrec = htobe32(0x7fff);
    uct_dcx_bf_ring(sq->bf, 0);
    while (!uct_dcx_async_is_marked(&keys.keys.watch.has_failed)) {
        deadline.check("the report");
    }

    uint64_t start = time_now_us();
    EXPECT_EQ(UCS_OK, uct_dcx_keys_set(&keys.keys, &key, 1, layout.get()));
    EXPECT_EQ(UCS_ERR_IO_ERROR, keys.wait(key));
    EXPECT_LT(time_now_us() - start, time_slow(TIME_FATAL) * 1000u);
    EXPECT_NE(std::string::npos, log.take().find("does not move"));
    keys.set(key, layout);
    EXPECT_EQ(IBV_WC_SUCCESS, write_to(key->lkey, 16));
    EXPECT_EQ(1u, keys.stats().failures);
    uct_dcx_async_cleanup(&async);
    uct_dcx_keys_disown(&keys.keys, key, 1);
}

/* A report that comes after the queue was restarted does not stop it. */
TEST_P(dcx_key_async, late_report)
{
    keys_t keys(dev, 8, 8, &async);
    dcx_layout layout  = rows(4, 0, remote);
    uct_dcx_key_t *key = keys.own(4);
    dcx_umr_silence silence(keys.keys);

    EXPECT_EQ(UCS_OK, uct_dcx_keys_set(&keys.keys, &key, 1, layout.get()));
    uct_dcx_async_mark(&keys.keys.watch.has_failed);
    EXPECT_EQ(UCS_INPROGRESS, uct_dcx_keys_test(&keys.keys, key));
    EXPECT_FALSE(uct_dcx_async_is_marked(&keys.keys.watch.has_failed));
    silence.end();
    EXPECT_EQ(UCS_OK, keys.wait(key));
    EXPECT_EQ(0u, keys.stats().failures);
    uct_dcx_async_cleanup(&async);
    uct_dcx_keys_disown(&keys.keys, key, 1);
}

INSTANTIATE_TEST_SUITE_P(ib, dcx_key_async, testing::Values(0));

/* Time without a call does not count: the process may have been stopped. */
TEST_P(dcx_key, silent_queue_is_not_looked_at)
{
    keys_t keys(dev, 8);
    dcx_layout layout = rows(4);
    uct_dcx_key_t *key;
    dcx_umr_silence silence(keys.keys);

    dcx_key_set_timeout(keys.keys, TIME_SILENCE);
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, keys.try_get(layout, &key));
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, keys.try_get(layout, &key));
    usleep(2 * time_slow(TIME_SILENCE) * 1000);
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, keys.try_get(layout, &key));
    silence.end();
    keys.touch(layout);
    EXPECT_EQ(0u, keys.stats().failures);
}

/* A silent queue that cannot be reset is destroyed: otherwise it could execute
 * its UMRs later, when other keys have the same indices. */
TEST_P(dcx_key, silent_queue_is_destroyed)
{
    keys_t keys(dev, 8, 8);
    dcx_layout layout  = rows(4, 0, remote);
    uct_dcx_key_t *key = keys.own(4);
    auto &umr          = keys.keys.umr;
    ucx_log_reader log;

    EXPECT_EQ(UCS_OK, uct_dcx_keys_set(&keys.keys, &key, 1, layout.get()));
    dcx_umr_silence silence(keys.keys);
    umr.qp.obj.number = 0xfffffe; /* no command reaches it */
    dcx_key_set_timeout(keys.keys, TIME_SILENCE);
    uct_dcx_keys_forget(&keys.keys, dst.mr->lkey, 1);
    EXPECT_NE(std::string::npos, log.take().find("does not move"));
    EXPECT_EQ(nullptr, umr.qp.obj.obj);
    uct_dcx_keys_disown(&keys.keys, key, 1);
}

/* Two threads wait for a silent queue: one of them resets it. */
TEST_P(dcx_key, silent_queue_of_two)
{
    keys_t keys(dev, 8, 8);
    strict_mem other(dev.pd, UMR_ACCESS_ALL, 0x33);
    dcx_layout memory = rows(4, 0, remote);
    dcx_layout kept   = piece(other, 64);
    std::vector<std::thread> threads;
    std::vector<uint32_t> lkeys;
    uct_dcx_key_t *owned[8];
    ucx_log_reader log;

    for (unsigned i = 0; i < 8; i++) {
        owned[i] = keys.own(4);
        keys.set(owned[i], (i % 2) ? kept : memory);
        lkeys.push_back(owned[i]->lkey);
    }
    dcx_umr_silence silence(keys.keys);
    dcx_key_set_timeout(keys.keys, TIME_SILENCE);
    for (uint32_t lkey : {dst.mr->lkey, other.mr->lkey}) {
        threads.emplace_back(
            [&, lkey] { uct_dcx_keys_forget(&keys.keys, lkey, 1); });
    }
    for (auto &thread : threads) {
        thread.join();
    }
    EXPECT_EQ(1u, keys.stats().failures);
    for (uint32_t lkey : lkeys) {
        EXPECT_NE(IBV_WC_SUCCESS, write_to(lkey, 16));
        pair.reconnect();
    }
    for (auto key : owned) {
        uct_dcx_keys_disown(&keys.keys, key, 1);
    }
}

/* Four threads use 24 layouts, for which there are 8 keys. */
TEST_P(dcx_key, threads)
{
    keys_t keys(dev, 8);
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

            /* on a busy machine most calls find all keys in use */
            for (unsigned i = 0; (i < 500) || (got <= 100); i++) {
                dcx_layout &layout = layouts[random() % layouts.size()];
                uct_dcx_key_t *key;
                ucs_status_t status = keys.wait(layout, &key);

                deadline.check("layouts");
                if (status == UCS_OK) {
                    got++;
                    wrong += !uct_dcx_sgl_is_equal(key->layout, layout.get());
                    keys.put(key);
                    if (random() % 64 == 0) {
                        uct_dcx_keys_forget(&keys.keys, dst.mr->lkey, 1);
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
    EXPECT_EQ(0u, keys.stats().failures);
    EXPECT_EQ(8u, keys.stats().num_keys);
}

INSTANTIATE_TEST_SUITE_P(ib, dcx_key, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(strict, dcx_key, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(late, dcx_key, testing::Values(0));

class dcx_key_doorbells : public dcx_key {};

/* The first UMR has a doorbell of its own; the others, requested before it has
 * completed, have one together. */
TEST_P(dcx_key_doorbells, several_under_one)
{
    keys_t keys(dev, 8);
    std::vector<dcx_layout> layouts;
    uct_dcx_key_t *key;

    for (uint32_t i = 0; i < 6; i++) {
        layouts.push_back(rows(1 + i));
        EXPECT_EQ(UCS_ERR_NO_RESOURCE, keys.try_get(layouts[i], &key));
    }
    for (auto &layout : layouts) {
        keys.touch(layout);
    }
    EXPECT_EQ(6u, keys.stats().misses);
    EXPECT_EQ(2u, keys.stats().doorbells);
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
