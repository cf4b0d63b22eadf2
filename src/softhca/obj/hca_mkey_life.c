/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Mkeys of memory regions and windows: their creation and invalidation. An
 * access of any process raises in_use, then checks that the mkey is valid
 * (hca_mkey.c); here the mkey is invalidated first, then in_use is waited for.
 */
#define _GNU_SOURCE
#include "hca_mkey.h"
#include "softhca/base/hca_log.h"
#include "softhca/fabric/hca_arena.h"
#include "softhca/fabric/hca_proc.h"

#include <common/prm_cmd.h>
#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* MLX5_INVALID_LKEY of libmlx5: ends a list of scatter entries. */
#define HCA_INVALID_KEY 0x100u

uint32_t hca_key(const struct hca_mkey *mkey)
{
    return (hca_obj_number(HCA_KIND_MKEY, mkey) << 8) | mkey->variant;
}

/* No number is so small that a chosen variant makes HCA_INVALID_KEY of it. */
static void hca_mkey_set_variant(struct hca_mkey *mkey,
                                 const struct hca_mkey_spec *spec)
{
    static _Atomic uint8_t variant;

    mkey->variant = spec->variant;
    while (!spec->has_variant) {
        mkey->variant = atomic_fetch_add(&variant, 1);
        if (hca_key(mkey) != HCA_INVALID_KEY) {
            break;
        }
    }
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
    struct hca_klm *klm = hca_ptr(mkey->klms);
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
    mkey->is_free       = spec->is_free;
    mkey->has_umr       = spec->has_umr;
    mkey->local_inv_ok  = spec->local_inv_ok;
    mkey->remote_inv_ok = spec->remote_inv_ok;
    mkey->no_local_read = spec->no_local_read;
    mkey->qpn           = spec->qpn;
    hca_mkey_set_region(mkey, spec);
    hca_mkey_set_variant(mkey, spec);
    hca_obj_publish(HCA_KIND_MKEY, mkey);
    *mkey_p = mkey;
    return 0;
}

/* Returns true if a live process uses any mkey this moment.
 * @param is_asked  check by hca_proc_lives(), which costs time */
static bool hca_mkeys_held(bool is_asked)
{
    for (unsigned i = 1; i < HCA_MAX_PROCS; i++) {
        const struct hca_proc *proc = &hca_fabric->procs[i];

        if ((atomic_load(&proc->state) == HCA_PROC_ALIVE) &&
            (atomic_load(&proc->holds) != 0) &&
            (!is_asked || hca_proc_lives(i))) {
            return true;
        }
    }
    return false;
}

static void hca_mkey_pause(void)
{
    const struct timespec pause = {.tv_nsec = 50 * 1000};

    syscall(SYS_nanosleep, &pause, NULL); /* no cancellation point */
}

/* Waits until no live process uses the mkey.
 * @return false if that takes too long. */
static bool hca_mkey_drain(struct hca_mkey *mkey)
{
    unsigned tries = 40000; /* above 2 s: a copy of 1 GiB ends */

    while (atomic_load(&mkey->in_use) != 0) {
        if (!hca_mkeys_held(tries % 1000 == 999)) {
            hca_info("mkey 0x%x: released; the process that was using it has "
                     "died",
                     hca_key(mkey));
            atomic_store(&mkey->in_use, 0);
            break;
        }
        if (tries-- == 0) {
            return false;
        }
        hca_mkey_pause();
    }
    return true;
}

/* One thread waits at a time: each sends new walks to the count that it does
 * not wait for. */
static pthread_mutex_t hca_mkey_walks_lock = PTHREAD_MUTEX_INITIALIZER;

void hca_mkey_forked(void)
{
    pthread_mutex_init(&hca_mkey_walks_lock, NULL);
}

static bool hca_mkey_drain_walker(unsigned walker, unsigned owner,
                                  unsigned turn)
{
    _Atomic(uint32_t) *walks = &hca_fabric->walks[walker].of[owner][turn];
    unsigned tries           = 400000; /* above 20 s: 2^25 pieces of a peer */

    for (; atomic_load(walks) != 0; tries--) {
        if ((tries % 1000 == 0) && !hca_proc_lives(walker)) {
            break;
        }
        if (tries == 0) {
            return false;
        }
        hca_mkey_pause();
    }
    return true;
}

static bool hca_mkey_drain_turn(unsigned owner, unsigned turn)
{
    bool is_done = true;

    atomic_store(&hca_fabric->procs[owner].walk_turn, !turn);
    for (unsigned i = 1; is_done && (i < HCA_MAX_PROCS); i++) {
        if (atomic_load(&hca_fabric->procs[i].state) == HCA_PROC_ALIVE) {
            is_done = hca_mkey_drain_walker(i, owner, turn);
        }
    }
    return is_done;
}

/* Waits for walks that reached it over an indirect mkey (hca_walk.h). New ones
 * use the other count, so that the wait ends. */
static bool hca_mkey_drain_walks(const struct hca_mkey *mkey)
{
    unsigned owner = mkey->obj.proc;
    bool is_done;

    pthread_mutex_lock(&hca_mkey_walks_lock);
    is_done = hca_mkey_drain_turn(owner, 0) && hca_mkey_drain_turn(owner, 1);
    pthread_mutex_unlock(&hca_mkey_walks_lock);
    return is_done;
}

/* Ends UMRs of the mkey: waits for one under way, as it writes the layout of
 * the mkey and may validate it again. Mkeys of memory have none: no lock.
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

bool hca_mkey_disable(struct hca_mkey *mkey)
{
    bool is_done = hca_mkey_end_umr(mkey);

    /* pairs with hca_mkey_hold() and hca_walk_enter(): an access raises a
     * count, then looks */
    __atomic_store_n(&mkey->is_free, true, __ATOMIC_SEQ_CST);
    if (is_done && hca_mkey_drain(mkey) && hca_mkey_drain_walks(mkey)) {
        return true;
    }
    hca_warn("mkey 0x%x: still used by a stopped process; leaked until this "
             "process exits",
             hca_key(mkey));
    return false;
}

void hca_mkey_modify(struct hca_mkey *mkey, const struct hca_mkey_spec *spec)
{
    hca_mkey_disable(mkey);
    hca_mkey_set_region(mkey, spec);
    __atomic_store_n(&mkey->is_free, false, __ATOMIC_RELEASE);
}

void hca_mkey_destroy(struct hca_mkey *mkey)
{
    if (!hca_mkey_disable(mkey)) {
        return;
    }
    if ((mkey->klms != 0) && (mkey->klms != hca_off(mkey->few))) {
        hca_arena_free(hca_ptr(mkey->klms));
    }
    hca_obj_free(HCA_KIND_MKEY, mkey);
}
