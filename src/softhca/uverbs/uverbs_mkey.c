/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Keys of memory regions and windows: how they come to be known to execution,
 * and how they are taken from under it. An access of any process raises
 * in_use, then looks whether the key is good (hca_mkey.c); here the key is
 * made bad first, then in_use is waited for.
 */
#define _GNU_SOURCE
#include "uverbs_mkey.h"
#include "softhca/fabric/hca_fabric.h"
#include "softhca/base/hca_log.h"
#include "softhca/fabric/hca_obj.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* MLX5_INVALID_LKEY of libmlx5: ends a list of scatter entries. */
#define UVERBS_INVALID_KEY 0x100u

uint32_t uverbs_key(const struct hca_mkey *mkey)
{
    return (hca_obj_number(HCA_KIND_MKEY, mkey) << 8) | mkey->variant;
}

uint32_t uverbs_mkey_publish(struct hca_mkey *mkey)
{
    static _Atomic uint8_t variant;

    do {
        mkey->variant = atomic_fetch_add(&variant, 1);
    } while (uverbs_key(mkey) == UVERBS_INVALID_KEY);
    hca_obj_publish(HCA_KIND_MKEY, mkey);
    return uverbs_key(mkey);
}

uint32_t uverbs_mkey_publish_as(struct hca_mkey *mkey, uint8_t variant)
{
    mkey->variant = variant; /* numbers are too large for UVERBS_INVALID_KEY */
    hca_obj_publish(HCA_KIND_MKEY, mkey);
    return uverbs_key(mkey);
}

/* Whether a process that lives uses any key this moment. */
static bool uverbs_keys_held(void)
{
    for (unsigned i = 1; i < HCA_MAX_PROCS; i++) {
        const struct hca_proc *proc = &hca_fabric->procs[i];

        if ((atomic_load(&proc->state) == HCA_PROC_ALIVE) &&
            (atomic_load(&proc->holds) != 0)) {
            return true;
        }
    }
    return false;
}

/* Waits until no process that lives is among those counted. */
static void uverbs_mkey_drain(const struct hca_mkey *mkey,
                              _Atomic(uint32_t) *users)
{
    const struct timespec pause = {.tv_nsec = 50 * 1000};
    unsigned tries              = 40000; /* above 2 s: a copy of 1 GiB ends */

    while (atomic_load(users) != 0) {
        if ((tries-- == 0) || !uverbs_keys_held()) {
            hca_info("mkey 0x%x: given back while a process that died was "
                     "using it", uverbs_key(mkey));
            atomic_store(users, 0);
            break;
        }
        syscall(SYS_nanosleep, &pause, NULL); /* no cancellation point */
    }
}

/* One waits at a time: each sends new walks where it does not wait itself. */
static pthread_mutex_t uverbs_walks_lock = PTHREAD_MUTEX_INITIALIZER;

void uverbs_mkey_forked(void)
{
    pthread_mutex_init(&uverbs_walks_lock, NULL);
}

/* Who came to it over an indirect key (hca_walk.h). New walks take the other
 * turn, so that an end comes. */
static void uverbs_mkey_drain_walks(const struct hca_mkey *mkey)
{
    struct hca_proc *proc = &hca_fabric->procs[mkey->obj.proc];

    pthread_mutex_lock(&uverbs_walks_lock);
    for (unsigned turn = 0; turn < 2; turn++) {
        if (atomic_load(&proc->walks[turn]) != 0) {
            atomic_store(&proc->walk_turn, !turn);
            uverbs_mkey_drain(mkey, &proc->walks[turn]);
        }
    }
    pthread_mutex_unlock(&uverbs_walks_lock);
}

void uverbs_mkey_disable(struct hca_mkey *mkey)
{
    /* pairs with hca_mkey_hold() and hca_walk_enter(): an access raises a
     * count, then looks */
    __atomic_store_n(&mkey->is_free, true, __ATOMIC_SEQ_CST);
    uverbs_mkey_drain(mkey, &mkey->in_use);
    uverbs_mkey_drain_walks(mkey);
}

void uverbs_mkey_free(struct hca_mkey *mkey)
{
    uverbs_mkey_disable(mkey);
    hca_obj_free(HCA_KIND_MKEY, mkey);
}
