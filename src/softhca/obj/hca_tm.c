/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The list of tagged buffers: see hca_tm.h. It is intact in the direction of
 * `next` after each store. If a process dies in between, hca_tm_relink()
 * rebuilds the other fields.
 */
#include "hca_tm.h"
#include "softhca/base/hca_log.h"
#include "softhca/fabric/hca_arena.h"

void hca_tm_init(struct hca_tm *tm, uint16_t size)
{
    tm->size     = size;
    tm->head     = HCA_TM_NONE;
    tm->tail     = HCA_TM_NONE;
    tm->inactive = HCA_TM_NONE;
}

hca_off_t hca_tm_create(unsigned log_size)
{
    size_t size = (size_t)1 << log_size;
    struct hca_tm *tm =
        hca_arena_alloc(sizeof(*tm) + size * sizeof(tm->entries[0]));

    if (tm == NULL) {
        return 0;
    }
    hca_tm_init(tm, size);
    tm->jobs = hca_off(hca_arena_alloc(size * HCA_TM_JOB_SIZE));
    if (tm->jobs == 0) {
        hca_arena_free(tm);
        return 0;
    }
    return hca_off(tm);
}

void hca_tm_log_counts(uint32_t srqn, const struct hca_tm *tm)
{
    hca_info("srq 0x%x: tag matching: %llu expected, %llu unexpected, %llu "
             "without a tag, %llu strides",
             srqn, (unsigned long long)tm->num_expected,
             (unsigned long long)tm->num_unexpected,
             (unsigned long long)tm->num_no_tag,
             (unsigned long long)tm->num_strides);
}

void hca_tm_destroy(struct hca_tm *tm)
{
    hca_arena_free(hca_ptr(tm->jobs));
    hca_arena_free(tm);
}

bool hca_srq_has_tm(uint32_t srqn)
{
    const struct hca_srq *srq = hca_obj_peek(HCA_KIND_SRQ, srqn);

    return (srq != NULL) && (srq->tm != 0);
}

static void hca_tm_link(struct hca_tm *tm, uint16_t index)
{
    struct hca_tm_entry *entry = &tm->entries[index];

    entry->next  = HCA_TM_NONE;
    entry->prev  = tm->tail;
    entry->state = HCA_TM_LISTED;
    if (tm->sw_phase_cnt == tm->hw_phase_cnt) {
        tm->inactive = HCA_TM_NONE;
    } else if (tm->inactive == HCA_TM_NONE) {
        tm->inactive = index;
    }
    atomic_signal_fence(memory_order_seq_cst); /* before others can find it */
    if (tm->tail == HCA_TM_NONE) {
        tm->head = index;
    } else {
        tm->entries[tm->tail].next = index;
    }
    tm->tail = index;
}

static void hca_tm_unlink(struct hca_tm *tm, uint16_t index, uint8_t state)
{
    struct hca_tm_entry *entry = &tm->entries[index];

    if (entry->prev == HCA_TM_NONE) {
        tm->head = entry->next;
    } else {
        tm->entries[entry->prev].next = entry->next;
    }
    atomic_signal_fence(memory_order_seq_cst); /* others cannot find it now */
    if (tm->inactive == index) {
        tm->inactive = entry->next;
    }
    if (entry->next == HCA_TM_NONE) {
        tm->tail = entry->prev;
    } else {
        tm->entries[entry->next].prev = entry->prev;
    }
    entry->state = state;
}

enum hca_check hca_tm_check_next(const struct hca_tm *tm, uint16_t next)
{
    if (next >= tm->size) {
        return HCA_CHECK_TM_INDEX;
    }
    return ((next == tm->append_next) ||
            (tm->entries[next].state != HCA_TM_FREE)) ?
               HCA_CHECK_TM_FULL :
               HCA_OK;
}

void hca_tm_append(struct hca_tm *tm, const struct hca_tm_entry *fields,
                   uint16_t next)
{
    uint16_t index             = tm->append_next;
    struct hca_tm_entry *entry = &tm->entries[index];

    entry->tag      = fields->tag;
    entry->mask     = fields->mask;
    entry->data     = fields->data;
    tm->append_next = next;
    atomic_signal_fence(memory_order_seq_cst); /* append_next: never listed */
    hca_tm_link(tm, index);
}

bool hca_tm_remove(struct hca_tm *tm, uint16_t index)
{
    if (tm->entries[index].state != HCA_TM_LISTED) {
        return false;
    }
    hca_tm_unlink(tm, index, HCA_TM_FREE);
    return true;
}

void hca_tm_sync(struct hca_tm *tm, uint16_t sw_cnt)
{
    tm->sw_phase_cnt = sw_cnt;
    if (sw_cnt == tm->hw_phase_cnt) {
        tm->inactive = HCA_TM_NONE;
    }
}

uint16_t hca_tm_search(const struct hca_tm *tm, uint64_t tag)
{
    uint16_t index;

    for (index = tm->head; index != tm->inactive;
         index = tm->entries[index].next) {
        if ((tag & tm->entries[index].mask) == tm->entries[index].tag) {
            return index;
        }
    }
    return HCA_TM_NONE;
}

void hca_tm_consume(struct hca_tm *tm, uint16_t index)
{
    tm->num_expected++;
    hca_tm_unlink(tm, index, HCA_TM_FREE);
}

void hca_tm_consume_begin(struct hca_tm *tm, uint16_t index)
{
    tm->num_expected++;
    hca_tm_unlink(tm, index, HCA_TM_BUSY);
}

void hca_tm_consume_end(struct hca_tm *tm, uint16_t index)
{
    tm->entries[index].state = HCA_TM_FREE;
}

/* An entry that was being linked or unlinked is in the list if it is reachable;
 * an unreachable one is free, or busy for a message of the dead process. If
 * such an entry is `inactive`, its `next` takes its place: hca_tm_unlink()
 * keeps it, hca_tm_link() has set it to none. */
void hca_tm_relink(struct hca_tm *tm)
{
    uint16_t index, prev = HCA_TM_NONE;

    for (unsigned i = 0; i < tm->size; i++) {
        if (tm->entries[i].state == HCA_TM_LISTED) {
            tm->entries[i].state = HCA_TM_FREE;
        }
    }
    for (index = tm->head; index != HCA_TM_NONE;
         index = tm->entries[index].next) {
        tm->entries[index].prev  = prev;
        tm->entries[index].state = HCA_TM_LISTED;
        prev                     = index;
    }
    tm->tail = prev;
    if ((tm->inactive != HCA_TM_NONE) &&
        (tm->entries[tm->inactive].state != HCA_TM_LISTED)) {
        tm->inactive = tm->entries[tm->inactive].next;
    }
}

void hca_tm_repair(void *obj)
{
    const struct hca_srq *srq = obj;

    if (srq->tm != 0) {
        hca_tm_relink(hca_srq_tm(srq));
    }
}
