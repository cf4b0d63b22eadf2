/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Locks of objects, and the end of objects: see hca_obj.h. If the holder of a
 * lock dies, the next one repairs the object.
 */
#include "hca_obj.h"
#include "softhca/base/hca_log.h"
#include "softhca/base/hca_mutex.h"

/* Completes the work of a holder that died. Objects of kinds without a repair
 * are consistent at each moment. */
static __attribute__((noinline)) void hca_obj_repair(enum hca_kind kind,
                                                     struct hca_obj *obj)
{
    if (atomic_load(&obj->num) == 0) {
        return;
    }
    hca_info("%s 0x%x: the process that used it last has died",
             hca_obj_kinds[kind].name, atomic_load(&obj->num));
    if (hca_obj_kinds[kind].repair != NULL) {
        hca_obj_kinds[kind].repair(obj);
    }
}

void hca_obj_hold(enum hca_kind kind, void *ptr)
{
    struct hca_obj *obj = ptr;

    if (__builtin_expect(hca_mutex_lock(&obj->lock), 0)) {
        hca_obj_repair(kind, obj);
    }
}

bool hca_obj_hold_until(enum hca_kind kind, void *ptr,
                        const struct timespec *deadline)
{
    struct hca_obj *obj = ptr;
    bool is_broken;

    if (!hca_mutex_lock_until(&obj->lock, deadline, &is_broken)) {
        return false;
    }
    if (is_broken) {
        hca_obj_repair(kind, obj);
    }
    return true;
}

/* --- the end of an object ------------------------------------------------- */

bool hca_obj_hold_last(enum hca_kind kind, void *ptr, struct hca_mutex *first)
{
    struct timespec deadline = hca_mutex_deadline();
    struct hca_obj *obj      = ptr;
    bool is_broken; /* needs no repair */

    if ((first == NULL) || hca_mutex_lock_until(first, &deadline, &is_broken)) {
        if (hca_obj_hold_until(kind, obj, &deadline)) {
            return true;
        }
        if (first != NULL) {
            hca_mutex_unlock(first);
        }
    }
    hca_warn("%s 0x%x: not destroyed: a stopped process has it locked",
             hca_obj_kinds[kind].name, atomic_load(&obj->num));
    return false;
}

void hca_obj_free(enum hca_kind kind, void *ptr)
{
    struct hca_obj *obj = ptr;

    hca_mutex_lock(&obj->lock); /* it goes, so no repair */
    hca_obj_retire(kind, obj);
}

struct hca_obj_reaper {
    enum hca_kind kind;
    struct timespec deadline; /* for all objects */
    bool is_done;
};

static void hca_obj_reap_one(void *ptr, void *arg)
{
    struct hca_obj_reaper *reaper = arg;
    struct hca_obj *obj           = ptr;
    bool is_broken; /* ignored: it goes, so no repair */

    if (!hca_mutex_lock_until(&obj->lock, &reaper->deadline, &is_broken)) {
        reaper->is_done = false;
        return;
    }
    hca_obj_retire(reaper->kind, obj);
}

bool hca_obj_reap(unsigned proc)
{
    struct hca_obj_reaper reaper = {
        .deadline = hca_mutex_deadline(),
        .is_done  = true,
    };

    for (reaper.kind = 0; reaper.kind < HCA_NUM_KINDS; reaper.kind++) {
        hca_obj_foreach(reaper.kind, proc, hca_obj_reap_one, &reaper);
    }
    return reaper.is_done;
}
