/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Creation, change (REREG_MR) and destruction of mkeys of all types. The last
 * two wait for accesses that have begun (hca_mkey.h).
 */
#define _GNU_SOURCE
#include "hca_layout.h"
#include "hca_mkey.h"
#include "hca_odp.h"
#include "softhca/base/hca_log.h"
#include "softhca/fabric/hca_arena.h"
#include "softhca/fabric/hca_proc.h"
#include "softhca/fabric/hca_timer.h"

#include <common/prm_cmd.h>
#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Limits of the wait for an access. Access to 2^23 pieces of a peer takes less
 * than the first. */
#define HCA_WAIT_NS      5000000000ull
#define HCA_WAIT_LIVE_NS 60000000000ull /* by a process that is not stopped */
#define HCA_WAIT_SLOW_NS 10000000ull    /* by hca_mkey_slow */
#define HCA_WAIT_YIELDS  64u            /* tries before the first sleep */
#define HCA_WAIT_LOOK    1024u          /* tries between looks for its death */

uint32_t hca_key(const struct hca_mkey *mkey)
{
    return (hca_obj_number(HCA_KIND_MKEY, mkey) << 8) | mkey->variant;
}

/* Takes the program's variant, or else the next one. */
static uint8_t hca_mkey_variant(const struct hca_mkey_spec *spec)
{
    static _Atomic uint8_t variant;

    return spec->has_variant ? spec->variant : atomic_fetch_add(&variant, 1);
}

static void hca_mkey_set_region(struct hca_mkey *mkey,
                                const struct hca_mkey_spec *spec)
{
    mkey->implicit_odp = spec->implicit_odp;
    mkey->access       = spec->access;
    mkey->pdn          = spec->pdn;
    mkey->iova         = spec->iova;
    mkey->va           = spec->va;
    mkey->length       = spec->length;
    hca_odp_reset(mkey);
}

/* Allocates room for the given entries, or for the most that a UMR may set. */
static bool hca_mkey_alloc_klms(struct hca_mkey *mkey,
                                const struct hca_mkey_spec *spec)
{
    uint32_t num = spec->has_umr ? spec->max_klms : spec->num_klms;
    void *klms   = mkey->few;

    if (num > HCA_MKEY_FEW) {
        klms = hca_arena_alloc(num * sizeof(struct hca_klm));
    }
    mkey->klms = hca_off(klms);
    return klms != NULL;
}

static void hca_mkey_set_klms(struct hca_mkey *mkey,
                              const struct hca_mkey_spec *spec)
{
    struct hca_klm *klm = hca_at(mkey->klms);
    uint64_t start      = 0;

    mkey->klm_shift = spec->klm_shift;
    mkey->num_klms  = spec->num_klms;
    mkey->max_klms  = spec->max_klms;
    for (unsigned i = 0; i < spec->num_klms; i++) {
        klm[i].start  = start;
        klm[i].length = be32toh(spec->klms[i].byte_count);
        klm[i].key    = be32toh(spec->klms[i].mkey);
        klm[i].addr   = be64toh(spec->klms[i].address);
        start += klm[i].length;
    }
    hca_layout_measure(mkey);
}

int hca_mkey_create(const struct hca_mkey_spec *spec, struct hca_mkey **mkey_p)
{
    struct hca_mkey *mkey = hca_obj_alloc(HCA_KIND_MKEY, spec->dev);

    if (mkey == NULL) {
        return -ENOMEM;
    }
    if (spec->type == HCA_MKEY_INDIRECT) {
        if (!hca_mkey_alloc_klms(mkey, spec)) {
            hca_obj_free(HCA_KIND_MKEY, mkey);
            return -ENOMEM;
        }
        hca_mkey_set_klms(mkey, spec);
    }
    mkey->type          = spec->type;
    mkey->variant       = hca_mkey_variant(spec);
    mkey->is_free       = spec->is_free;
    mkey->has_umr       = spec->has_umr;
    mkey->local_inv_ok  = spec->local_inv_ok;
    mkey->remote_inv_ok = spec->remote_inv_ok;
    mkey->no_local_read = spec->no_local_read;
    mkey->qpn           = spec->qpn;
    hca_mkey_set_region(mkey, spec);
    hca_obj_publish(HCA_KIND_MKEY, mkey);
    *mkey_p = mkey;
    return 0;
}

/* One thread waits at a time: a wait directs new accesses to the count that it
 * does not wait for. */
static pthread_mutex_t hca_mkey_wait_lock = PTHREAD_MUTEX_INITIALIZER;

/* Process that did not end an access in time, 0 none: later waits for it are
 * short, until a wait for all succeeds. */
static unsigned hca_mkey_slow;

void hca_mkey_forked(void)
{
    pthread_mutex_init(&hca_mkey_wait_lock, NULL);
    hca_mkey_slow = 0;
}

/* Pauses between two tries, without a cancellation point. Most accesses end
 * within the first yields. */
static void hca_mkey_pause(unsigned tries)
{
    const struct timespec pause = {.tv_nsec = 50 * 1000};

    if (tries < HCA_WAIT_YIELDS) {
        syscall(SYS_sched_yield);
    } else {
        syscall(SYS_nanosleep, &pause, NULL);
    }
}

static bool hca_mkey_is_stopped(unsigned proc)
{
    struct hca_task task;

    return (hca_task_stat(hca_fabric->procs[proc].pid, &task) == 0) &&
           ((task.state == 'T') || (task.state == 't'));
}

/* Waits until the count of accesses of process @proc is 0, or it is dead.
 * @return false if that takes too long. */
static bool hca_mkey_wait_count(_Atomic(uint32_t) *count, unsigned proc)
{
    uint64_t start = hca_time_ns();
    uint64_t limit = (proc == hca_mkey_slow) ? HCA_WAIT_SLOW_NS : HCA_WAIT_NS;

    for (unsigned tries = 0; atomic_load(count) != 0; tries++) {
        if ((tries % HCA_WAIT_LOOK == HCA_WAIT_YIELDS) &&
            !hca_proc_lives(proc)) {
            break;
        }
        if (hca_time_ns() - start > limit) {
            if ((limit == HCA_WAIT_LIVE_NS) || hca_mkey_is_stopped(proc)) {
                hca_mkey_slow = proc;
                return false;
            }
            limit = HCA_WAIT_LIVE_NS;
        }
        hca_mkey_pause(tries);
    }
    return true;
}

static bool hca_mkey_wait_turn(unsigned owner, unsigned turn)
{
    unsigned end = atomic_load(&hca_fabric->procs_end);
    bool is_done = true;

    /* any process may have written it */
    end = (end < HCA_MAX_PROCS) ? end : HCA_MAX_PROCS;
    atomic_store(&hca_fabric->procs[owner].turn, !turn);
    for (unsigned i = 1; is_done && (i < end); i++) {
        if (atomic_load(&hca_fabric->procs[i].state) != HCA_PROC_FREE) {
            is_done = hca_mkey_wait_count(
                &hca_fabric->accesses[i].of[owner][turn], i);
        }
    }
    return is_done;
}

/* Waits for accesses to mkeys of the owner. New ones use the other count, so
 * that the wait ends. */
static bool hca_mkey_wait(unsigned owner)
{
    bool is_done;

    pthread_mutex_lock(&hca_mkey_wait_lock);
    is_done = hca_mkey_wait_turn(owner, 0) && hca_mkey_wait_turn(owner, 1);
    if (is_done) {
        hca_mkey_slow = 0;
    }
    pthread_mutex_unlock(&hca_mkey_wait_lock);
    return is_done;
}

/* Ends UMRs of the mkey: waits for one under way, as it writes the layout of
 * the mkey and may validate it again. Mkeys without UMRs take no lock.
 * @return false if that takes too long. */
static bool hca_mkey_end_umr(struct hca_mkey *mkey)
{
    if (!mkey->has_umr) {
        return true;
    }
    if (!hca_obj_hold_last(HCA_KIND_MKEY, mkey, NULL)) {
        return false;
    }
    mkey->has_umr = false;
    hca_obj_unlock(mkey);
    return true;
}

static bool hca_mkey_disable(struct hca_mkey *mkey)
{
    bool is_done = hca_mkey_end_umr(mkey);

    /* pairs with hca_mkeys_enter(): an access raises a count, then looks */
    __atomic_store_n(&mkey->is_free, true, __ATOMIC_SEQ_CST);
    if (is_done && hca_mkey_wait(mkey->obj.proc)) {
        return true;
    }
    hca_warn("mkey 0x%x: still used by a stopped process, or a slow one",
             hca_key(mkey));
    return false;
}

bool hca_mkey_modify(struct hca_mkey *mkey, const struct hca_mkey_spec *spec)
{
    bool is_done = hca_mkey_disable(mkey);

    if (is_done) {
        hca_mkey_set_region(mkey, spec);
    }
    __atomic_store_n(&mkey->is_free, false, __ATOMIC_RELEASE);
    return is_done;
}

bool hca_mkey_destroy(struct hca_mkey *mkey)
{
    if (!hca_mkey_disable(mkey)) {
        /* no UMR that is under way makes it valid again */
        atomic_store(&mkey->obj.num, 0);
        return false;
    }
    if ((mkey->klms != 0) && (mkey->klms != hca_off(mkey->few))) {
        hca_arena_free(hca_ptr(mkey->klms));
    }
    hca_odp_release(mkey);
    hca_obj_free(HCA_KIND_MKEY, mkey);
    return true;
}
