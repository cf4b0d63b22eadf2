/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Lookup and check of memory keys. Nothing is locked: a use counts itself in
 * mkey->in_use and then checks that the mkey is still there; the destroyer
 * first removes the mkey and then waits for the count.
 */
#include "hca_mkey.h"

void hca_mkey_release(struct hca_mkey *mkey)
{
    atomic_fetch_sub_explicit(&mkey->in_use, 1, memory_order_release);
    atomic_fetch_sub_explicit(&hca_fabric->procs[hca_self].holds, 1,
                              memory_order_release);
}

/* mkey->in_use is raised first, then the number is read again; both
 * sequentially consistent, as are the two steps of the destroyer. The count of
 * this process is raised before that and lowered after it: if an mkey is in use
 * while no live process holds any, its user was a dead process
 * (hca_mkey_life.c). */
struct hca_mkey *hca_mkey_hold(uint32_t key)
{
    struct hca_mkey *mkey = hca_obj_peek(HCA_KIND_MKEY, key >> 8);

    if (mkey == NULL) {
        return NULL;
    }
    atomic_fetch_add(&hca_fabric->procs[hca_self].holds, 1);
    atomic_fetch_add(&mkey->in_use, 1);
    if ((atomic_load(&mkey->obj.num) == (key >> 8)) &&
        (mkey->variant == (key & 0xff))) {
        return mkey;
    }
    hca_mkey_release(mkey);
    return NULL;
}

const struct hca_mkey *hca_mkey_find(uint32_t key)
{
    struct hca_mkey *mkey = hca_obj_peek(HCA_KIND_MKEY, key >> 8);

    return ((mkey != NULL) && (mkey->variant == (key & 0xff))) ? mkey : NULL;
}

bool hca_mkey_is_indirect(uint32_t key)
{
    struct hca_mkey *mkey = hca_mkey_hold(key);
    bool is_indirect      = (mkey != NULL) && (mkey->type == HCA_MKEY_INDIRECT);

    if (mkey != NULL) {
        hca_mkey_release(mkey);
    }
    return is_indirect;
}

enum hca_key_fault hca_mkey_check(const struct hca_mkey *mkey,
                                  const struct hca_key_use *use)
{
    if (mkey->obj.dev != use->dev) {
        return HCA_KEY_UNKNOWN;
    }
    if (mkey->is_free) {
        return HCA_KEY_FREE;
    }
    if (mkey->type == HCA_MKEY_NULL) { /* of every PD, for local use */
        return (use->access & ~IBV_ACCESS_LOCAL_WRITE) ? HCA_KEY_ACCESS :
                                                         HCA_KEY_OK;
    }
    if (mkey->pdn != use->pdn) {
        return HCA_KEY_PD;
    }
    if ((mkey->qpn != 0xffffff) && (mkey->qpn != use->qpn)) {
        return HCA_KEY_QP;
    }
    if (((mkey->access & use->access) != use->access) ||
        ((use->access == 0) && mkey->no_local_read) ||
        ((mkey->type == HCA_MKEY_MW) &&
         ((use->access & ~IBV_ACCESS_LOCAL_WRITE) == 0))) {
        return HCA_KEY_ACCESS;
    }
    return hca_mkey_spans(mkey, use->addr, use->length) ? HCA_KEY_OK :
                                                          HCA_KEY_BOUNDS;
}

static enum hca_key_fault hca_mkey_may_invalidate(const struct hca_mkey *mkey,
                                                  const struct hca_key_use *use)
{
    if ((mkey->obj.dev != use->dev) || (mkey->variant != (use->key & 0xff))) {
        return HCA_KEY_UNKNOWN;
    }
    if (mkey->is_free) {
        return HCA_KEY_FREE;
    }
    if (mkey->pdn != use->pdn) {
        return HCA_KEY_PD;
    }
    return ((mkey->qpn != 0xffffff) && (mkey->qpn != use->qpn)) ? HCA_KEY_QP :
                                                                  HCA_KEY_OK;
}

static enum hca_key_fault
hca_mkey_invalidate(const struct hca_key_use *use,
                    bool (*is_allowed)(const struct hca_mkey *mkey))
{
    struct hca_mkey *mkey = hca_obj_lock(HCA_KIND_MKEY, use->key >> 8);
    enum hca_key_fault fault;

    if (mkey == NULL) {
        return HCA_KEY_UNKNOWN;
    }
    fault = hca_mkey_may_invalidate(mkey, use);
    if ((fault == HCA_KEY_OK) && !is_allowed(mkey)) {
        fault = HCA_KEY_ACCESS;
    }
    if (fault == HCA_KEY_OK) {
        mkey->is_free = true;
    }
    hca_obj_unlock(mkey);
    return fault;
}

static bool hca_mkey_is_local(const struct hca_mkey *mkey)
{
    return mkey->local_inv_ok;
}

static bool hca_mkey_is_remote(const struct hca_mkey *mkey)
{
    return mkey->remote_inv_ok;
}

enum hca_key_fault hca_mkey_invalidate_local(const struct hca_key_use *use)
{
    return hca_mkey_invalidate(use, hca_mkey_is_local);
}

enum hca_key_fault hca_mkey_invalidate_remote(const struct hca_key_use *use)
{
    return hca_mkey_invalidate(use, hca_mkey_is_remote);
}
