/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Memory keys as the data path sees them: looked up and checked (hca_mkey.c).
 * Also their creation and invalidation (hca_mkey_life.c).
 *
 * An access to mkeys of a process is bracketed by hca_mkeys_enter() and
 * hca_mkeys_leave(); all mkeys of that process that are found in between, and
 * their lists, stay until its end. Destruction and REREG_MR first invalidate
 * the mkey, then wait for the accesses that had begun before. A UMR and an
 * invalidation do not wait. An access ends with the message: nothing is kept in
 * it for a retry, a result that is late, or a timer.
 */
#ifndef HCA_MKEY_H
#define HCA_MKEY_H

#include "hca_objs.h"
#include "softhca/fabric/hca_caps.h"

/* Nesting of indirect mkeys (mlx5_ifc.h: max_indirection). */
#define HCA_MKEY_DEPTH 4u

static inline unsigned hca_mkey_depth(void)
{
    return hca_limit(HCA_LIMIT_INDIRECTION, HCA_MKEY_DEPTH);
}

struct prm_klm;

/* Reasons to refuse an mkey; 0 is fine. The rows HCA_CHECK_LKEY, HCA_CHECK_RKEY
 * and HCA_CHECK_RECV_LKEY of hca_check.h are in this order from 1 on. */
enum hca_key_fault {
    HCA_KEY_OK,
    HCA_KEY_UNKNOWN,
    HCA_KEY_FREE,
    HCA_KEY_PD,
    HCA_KEY_ACCESS,
    HCA_KEY_BOUNDS,
    HCA_KEY_QP,
    HCA_KEY_FAULT,
    HCA_KEY_PIECES
};

#define HCA_ANY_QPN 0xffffffu /* hca_mkey.qpn: no QP in particular */

/* One range to be accessed through an mkey. */
struct hca_key_use {
    uint32_t key;
    uint32_t pdn;
    uint32_t qpn;    /* of the QP that uses it: windows are bound to one */
    uint32_t access; /* IBV_ACCESS_* needed, 0 to read locally */
    uint16_t dev;
    uint64_t addr;
    uint64_t length; /* not 0 */
};

/* Returns true if [addr, addr + length) lies in the mkey's range. */
static inline bool hca_mkey_spans(const struct hca_mkey *mkey, uint64_t addr,
                                  uint64_t length)
{
    uint64_t offset = addr - mkey->iova;

    if (addr + length < addr) {
        return false;
    }
    return mkey->implicit_odp ||
           ((addr >= mkey->iova) && (offset <= mkey->length) &&
            (length <= mkey->length - offset));
}

/* @return true for a region registered with relaxed ordering. */
static inline bool hca_mkey_is_relaxed(const struct hca_mkey *mkey)
{
    return (mkey->type == HCA_MKEY_MR) &&
           (mkey->access & IBV_ACCESS_RELAXED_ORDERING);
}

/* Begins an access to mkeys of @proc. There are two counts, used in turn: a
 * thread that waits for one has later accesses use the other. The count is
 * raised before any mkey is looked at, which pairs with hca_mkey_destroy().
 * @return the @turn for hca_mkeys_leave(). */
static inline unsigned hca_mkeys_enter(unsigned proc)
{
    unsigned turn = atomic_load(&hca_fabric->procs[proc].turn) & 1;

    atomic_fetch_add(&hca_fabric->accesses[hca_self].of[proc][turn], 1);
    return turn;
}

static inline void hca_mkeys_leave(unsigned proc, unsigned turn)
{
    atomic_fetch_sub_explicit(&hca_fabric->accesses[hca_self].of[proc][turn], 1,
                              memory_order_release);
}

/* Finds an mkey, which may be free, of any process, outside of an access: for
 * fields that do not change in its life. @return NULL if there is none. */
static inline const struct hca_mkey *hca_mkey_peek(uint32_t key)
{
    const struct hca_mkey *mkey =
        (const struct hca_mkey *)hca_obj_peek(HCA_KIND_MKEY, key >> 8);

    return ((mkey != NULL) && (mkey->variant == (key & 0xff))) ? mkey : NULL;
}

/* Finds an mkey, which may be free, of @proc, within an access to its mkeys.
 * @return NULL if there is none. */
static inline const struct hca_mkey *hca_mkey_find(uint32_t key, unsigned proc)
{
    const struct hca_mkey *mkey = hca_mkey_peek(key);

    /* the number is read again: another process' mkey is not kept, and its slot
     * may have become one of @proc's meanwhile */
    return ((mkey != NULL) && (mkey->obj.proc == proc) &&
            (atomic_load(&mkey->obj.num) == (key >> 8))) ?
               mkey :
               NULL;
}

/* Returns the number of changes of the mkey, for hca_mkey_is_same(). */
static inline uint32_t hca_mkey_change(const struct hca_mkey *mkey)
{
    return atomic_load_explicit(&mkey->change, memory_order_acquire);
}

/* Returns true if the mkey still has the translation that it had when @change
 * was read: all reads since then are of that one. Pairs with
 * hca_umr_begin_change(): the mkey is free as long as @change is odd. */
static inline bool hca_mkey_is_same(const struct hca_mkey *mkey,
                                    uint32_t change)
{
    atomic_thread_fence(memory_order_acquire);
    return !__atomic_load_n(&mkey->is_free, __ATOMIC_ACQUIRE) &&
           (hca_mkey_change(mkey) == change);
}

/* Returns true if there is such an mkey, and it is indirect. */
bool hca_mkey_is_indirect(uint32_t key);

/* Checks that an mkey, found in an access, allows a use. Ignores the mkeys that
 * it leads to. */
enum hca_key_fault hca_mkey_check(const struct hca_mkey *mkey,
                                  const struct hca_key_use *use);

/* Returns true if hca_mkey_check() would return HCA_KEY_OK for a region of the
 * most usual kind: pinned, and readable by its own process. */
static inline bool hca_mkey_is_plain(const struct hca_mkey *mkey,
                                     const struct hca_key_use *use)
{
    const uint32_t access = use->access | IBV_ACCESS_ON_DEMAND;

    /* pairs with hca_mkey_modify(): no other field is read before */
    return (mkey->type == HCA_MKEY_MR) &&
           !__atomic_load_n(&mkey->is_free, __ATOMIC_ACQUIRE) &&
           !mkey->no_local_read && (mkey->obj.dev == use->dev) &&
           (mkey->pdn == use->pdn) && (mkey->qpn == HCA_ANY_QPN) &&
           ((mkey->access & access) == use->access) &&
           hca_mkey_spans(mkey, use->addr, use->length);
}

/* Invalidate use->key, if its mkey allows that (a window of type 2, some
 * indirect mkeys), for a WQE of the QP, or for a message to it. Accesses under
 * way go on. use->access, addr and length are ignored. @return HCA_KEY_OK or a
 * fault. */
enum hca_key_fault hca_mkey_invalidate_local(const struct hca_key_use *use);
enum hca_key_fault hca_mkey_invalidate_remote(const struct hca_key_use *use);

/* Returns the key of an mkey: its number and its variant. */
uint32_t hca_key(const struct hca_mkey *mkey);

struct hca_mkey_spec {
    unsigned dev;
    uint8_t type;     /* enum hca_mkey_type */
    bool has_variant; /* the program chose it; else the key is one
                       * that libmlx5 does not take for "no key" */
    uint8_t variant;
    bool is_free; /* no translation yet */
    bool implicit_odp;
    bool has_umr;
    bool local_inv_ok, remote_inv_ok;
    bool no_local_read;
    uint32_t access; /* enum ibv_access_flags */
    uint32_t pdn, qpn;
    uint64_t iova, va, length;
    uint8_t klm_shift;           /* INDIRECT: log2 of the bytes of an entry;
                                  * 0: entries have lengths */
    uint32_t num_klms, max_klms; /* entries; room for those of a UMR */
    const struct prm_klm *klms;  /* entries, copied */
};

/* @return 0, -ENOMEM. */
int hca_mkey_create(const struct hca_mkey_spec *spec, struct hca_mkey **mkey_p);

/* REREG_MR: changes a region's translation, rights and domain; the key stays.
 * Waits for accesses that had begun before, as hca_mkey_destroy().
 * @return false, logged, if the time is over: the region is as it was. */
bool hca_mkey_modify(struct hca_mkey *mkey, const struct hca_mkey_spec *spec);

/* Frees an mkey. Waits for a UMR and the accesses that had begun before, not
 * for those of dead processes.
 * @return false, logged, if one did not end in 5 s, as its process is stopped,
 * or in a minute: the mkey leads nowhere, and all that it led to must stay
 * until a further call succeeds. Without one the mkey leaks until the process
 * ends. */
bool hca_mkey_destroy(struct hca_mkey *mkey);

/* Resets the mutex of waits for accesses in a forked child, where no thread
 * waits. */
void hca_mkey_forked(void);

#endif
