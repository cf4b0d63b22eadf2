/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Memory keys in the data path (hca_mkey.h): lookup and check, without a lock;
 * invalidation by LOCAL_INV or by a message, under obj.lock.
 */
#include "hca_mkey.h"

bool hca_mkey_is_indirect(uint32_t key)
{
    const struct hca_mkey *mkey = hca_mkey_peek(key);

    return (mkey != NULL) && (mkey->type == HCA_MKEY_INDIRECT);
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
