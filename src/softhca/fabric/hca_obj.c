/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Tables of numbered objects. Slots are handed out next-fit under the mutex
 * of the fabric; a number is looked up without any lock.
 */
#include "hca_obj.h"
#include "hca_rules.h"
#include "softhca/base/hca_log.h"
#include "softhca/base/hca_mutex.h"

#include <string.h>

const struct hca_kind_ops *hca_obj_kinds;
struct hca_slots hca_obj_slots[HCA_NUM_KINDS];

/* Largest table, in 64-bit words of its bitmap. */
#define HCA_MAP_WORDS ((1u << 20) / 64)

struct hca_table {
    uint32_t next; /* next slot to search */
    _Atomic uint64_t used[HCA_MAP_WORDS];
};

static struct hca_table *hca_table(enum hca_kind kind)
{
    return (struct hca_table *)hca_ptr(hca_fabric->tables) + kind;
}

static void *hca_slot(enum hca_kind kind, uint32_t index)
{
    return hca_obj_slots[kind].first + (size_t)index * hca_obj_slots[kind].size;
}

uint32_t hca_obj_index(enum hca_kind kind, const void *obj)
{
    return ((const char *)obj - hca_obj_slots[kind].first) /
           hca_obj_slots[kind].size;
}

static uint32_t hca_num_slots(enum hca_kind kind)
{
    return 1u << hca_obj_kinds[kind].index_bits;
}

static size_t hca_slot_size(enum hca_kind kind)
{
    return (hca_obj_kinds[kind].size + 63) & ~63ul;
}

size_t hca_obj_tables_size(void)
{
    size_t size = sizeof(struct hca_table) * HCA_NUM_KINDS;

    for (unsigned kind = 0; kind < HCA_NUM_KINDS; kind++) {
        size += 4096 + hca_slot_size(kind) * hca_num_slots(kind);
    }
    return size;
}

void hca_obj_tables_find(void)
{
    hca_off_t off = hca_fabric->tables +
                    sizeof(struct hca_table) * HCA_NUM_KINDS;

    for (unsigned kind = 0; kind < HCA_NUM_KINDS; kind++) {
        off                 = (off + 4095) & ~4095ul;
        hca_obj_slots[kind] = (struct hca_slots){
            .first = hca_ptr(off),
            .size  = hca_slot_size(kind),
            .mask  = hca_num_slots(kind) - 1,
        };
        off += hca_slot_size(kind) * hca_num_slots(kind);
    }
}

/* Takes a free slot. @return its index, or the number of slots if there is
 * none */
static uint32_t hca_slot_take(enum hca_kind kind)
{
    struct hca_table *table = hca_table(kind);
    uint32_t words          = hca_num_slots(kind) / 64;
    uint32_t index          = hca_num_slots(kind);

    hca_mutex_lock(&hca_fabric->lock);
    for (uint32_t i = 0; i <= words; i++) {
        uint32_t word  = (table->next / 64 + i) % words;
        uint64_t taken = atomic_load(&table->used[word]);

        if (i == 0) {
            taken |= (1ull << (table->next % 64)) - 1;
        }
        if (taken != ~0ull) {
            index = word * 64 + __builtin_ctzll(~taken);
            /* before the slot counts as used, for hca_obj_foreach() */
            ((struct hca_obj *)hca_slot(kind, index))->proc = hca_self;
            atomic_fetch_or(&table->used[word], 1ull << (index % 64));
            table->next = (index + 1) % hca_num_slots(kind);
            break;
        }
    }
    hca_mutex_unlock(&hca_fabric->lock);
    return index;
}

void *hca_obj_alloc(enum hca_kind kind, unsigned dev)
{
    const struct hca_kind_ops *ops = &hca_obj_kinds[kind];
    struct hca_obj *obj;
    uint32_t index;

    if (hca_rules_are_set() &&
        (hca_rules_fail(HCA_RULE_ALLOC, ops->name) != 0)) {
        return NULL;
    }
    index = hca_slot_take(kind);
    obj   = hca_slot(kind, index);
    if (index == hca_num_slots(kind)) {
        hca_error("%s: all %u are in use", ops->name, index);
        return NULL;
    }

    if (obj->gen == 0) {
        hca_mutex_init(&obj->lock);
        if (ops->init != NULL) {
            ops->init(obj);
        }
    }
    memset((char *)obj + ops->keep, 0, ops->size - ops->keep);
    obj->gen         = (obj->gen % ((1u << ops->gen_bits) - 1)) + 1;
    obj->dev         = dev;
    obj->async_chan  = 0;
    obj->user_handle = 0;
    obj->events      = 0;
    obj->devx.chan   = 0;
    return obj;
}

uint32_t hca_obj_number(enum hca_kind kind, const void *obj)
{
    return ((uint32_t)((const struct hca_obj *)obj)->gen
            << hca_obj_kinds[kind].index_bits) |
           hca_obj_index(kind, obj);
}

uint32_t hca_obj_publish(enum hca_kind kind, void *ptr)
{
    struct hca_obj *obj = ptr;
    uint32_t num        = hca_obj_number(kind, obj);

    atomic_store(&obj->num, num);
    hca_info("%s 0x%x: created on device %u", hca_obj_kinds[kind].name, num,
             obj->dev);
    return num;
}

void hca_obj_retire(enum hca_kind kind, void *ptr)
{
    struct hca_obj *obj = ptr;
    uint32_t index      = hca_obj_index(kind, obj);

    hca_info("%s 0x%x: destroyed", hca_obj_kinds[kind].name,
             atomic_load(&obj->num));
    if (hca_obj_kinds[kind].retire != NULL) {
        hca_obj_kinds[kind].retire(obj);
    }
    atomic_store(&obj->num, 0);
    hca_mutex_unlock(&obj->lock);
    atomic_fetch_and(&hca_table(kind)->used[index / 64],
                     ~(1ull << (index % 64)));
}

void hca_obj_foreach(enum hca_kind kind, unsigned proc,
                     void (*fn)(void *obj, void *arg), void *arg)
{
    const struct hca_table *table = hca_table(kind);

    for (uint32_t word = 0; word < hca_num_slots(kind) / 64; word++) {
        uint64_t used = atomic_load(&table->used[word]);

        for (; used != 0; used &= used - 1) {
            struct hca_obj *obj = hca_slot(kind,
                                           word * 64 + __builtin_ctzll(used));

            if ((obj->proc == proc) || (proc == HCA_ANY_PROC)) {
                fn(obj, arg);
            }
        }
    }
}
