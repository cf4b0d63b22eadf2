/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * What the files of the kernel's half know of each other's objects. All of it
 * is guarded by the mutex of the context.
 */
#ifndef UVERBS_OBJS_H
#define UVERBS_OBJS_H

#include "uverbs.h"

#define UVERBS_ANY_QPN 0xffffffu /* hca_mkey.qpn: no QP in particular */

struct uverbs_pd {
    struct uverbs_obj obj;
    uint32_t          pdn;
};

/* A completion channel or an async event file. The program closes its
 * descriptor without telling; that is found out from the inode. */
struct uverbs_event {
    struct uverbs_obj    obj;
    int                  fd;
    uint64_t             st_dev, st_ino;
    uint32_t             chan; /* HCA_KIND_CHAN */
    struct uverbs_event *next; /* of the context */
};

struct uverbs_cq {
    struct uverbs_obj    obj;
    struct hca_cq       *cq;
    struct uverbs_event *comp, *async;
    unsigned             cqe_size;
};

struct uverbs_xrcd {
    struct uverbs_obj obj;
    struct hca_xrcd  *xrcd;
    uint32_t          xrcdn; /* of the domain, which several may share */
};

struct uverbs_srq {
    struct uverbs_obj    obj;
    struct hca_srq      *srq;
    struct uverbs_pd    *pd;
    struct uverbs_cq    *cq;   /* XRC */
    struct uverbs_xrcd  *xrcd; /* XRC */
    struct uverbs_event *async;
    uint32_t             max_sge;
};

struct uverbs_dm {
    struct uverbs_obj obj;
    void             *mem;    /* in the arena */
    size_t            length; /* what was asked for */
};

struct uverbs_mr {
    struct uverbs_obj obj;
    struct hca_mkey  *mkey;
    struct uverbs_pd *pd;
    struct uverbs_dm *dm;
    uint64_t          pinned; /* pages */
};

struct uverbs_qp {
    struct uverbs_obj    obj;
    struct hca_qp       *qp;
    uint32_t             open_qpn;  /* not 0: another's, by OPEN_QP */
    bool                 published; /* a DCT is only after RTR */
    struct uverbs_pd    *pd;
    struct uverbs_cq    *scq, *rcq;
    struct uverbs_srq   *srq;
    struct uverbs_xrcd  *xrcd;
    struct uverbs_event *async;
    struct ibv_qp_cap    cap;
};

/* --- uverbs_pin.c --- */

/* Counts the pages of [start, start + length) as locked memory.
 * @return 0 and what to give back in the end; -ENOMEM: beyond the limit. */
int uverbs_pin(uint64_t start, uint64_t length, uint64_t *pages);
void uverbs_unpin(uint64_t pages);

/* In a forked child, which has nothing pinned. */
void uverbs_pin_forked(void);

/* --- uverbs_mr.c, uverbs_mkey.c --- */

/* A translation, as REG_MR and REREG_MR describe it. */
struct uverbs_region {
    uint64_t start, length, iova;
    uint32_t access;
};

/* Rights that a region may give. @return 0, -EINVAL. */
int uverbs_check_access(uint32_t access);

/* A region with a fresh key; the translation is already checked.
 * @return 0, -ENOMEM. */
int uverbs_mr_new(struct uverbs_ctx *ctx, struct uverbs_pd *pd,
                  const struct uverbs_region *region, struct uverbs_mr **mrp);

/* Key of an mkey: its number and its variant. */
uint32_t uverbs_key(const struct hca_mkey *mkey);

/* Gives a fresh mkey a variant, so that its key is none that libmlx5 takes
 * for "no key", and publishes it. @return the key. */
uint32_t uverbs_mkey_publish(struct hca_mkey *mkey);

/* The same with the variant that the program chose. */
uint32_t uverbs_mkey_publish_as(struct hca_mkey *mkey, uint8_t variant);

/* Takes the translation away (mkey->is_free) and waits for the accesses that
 * had begun before. One of a process that died in it never ends: so not for
 * ever. */
void uverbs_mkey_disable(struct hca_mkey *mkey);

/* Takes an mkey back once no access is under way on it. */
void uverbs_mkey_free(struct hca_mkey *mkey);

/* --- uverbs_event.c --- */

/* The async event file given in attribute `id`, or the context's own. */
struct uverbs_event *uverbs_async(struct uverbs_req *req, uint16_t id);

/* Handler of a method that makes a channel and answers with its descriptor in
 * attribute `id`. */
int uverbs_event_alloc(struct uverbs_req *req, uint16_t type, uint16_t id);

/* Of all types of channels. */
void uverbs_event_release(struct uverbs_obj *obj,
                          struct uverbs_events *events);

/* The channel of a descriptor. @return NULL with *err = -EBADF. */
struct uverbs_event *uverbs_event_find(struct uverbs_ctx *ctx, uint16_t type,
                                       int64_t fd, int *err);

/* Takes back the events of an object that lie unread in a channel (0: none).
 * @return how many. */
unsigned uverbs_purge_async(uint32_t chan, const struct hca_obj *obj);
unsigned uverbs_purge_comp(uint32_t chan, const struct hca_obj *cq);

/* --- uverbs_dm.c, uverbs_uar.c, uverbs_mmap.c --- */

/* In a forked child: nobody holds the locks. */
void uverbs_dm_forked(void);
void uverbs_uar_forked(void);

/* Whether the UAR page is one of this context. */
bool uverbs_uar_valid(const struct uverbs_ctx *ctx, uint32_t page_id);

enum uverbs_map_kind { UVERBS_MAP_UAR, UVERBS_MAP_DM };

/* A mapping that the program will make through the device file at `offset`. */
struct uverbs_map_plan {
    enum uverbs_map_kind kind;
    uint32_t             id;
    uint64_t             offset;
    void                *mem; /* what is to be found there (device memory) */
    size_t               size;
};

/* Announces it. @return 0, -ENOMEM. */
int uverbs_map_expect(struct uverbs_ctx *ctx,
                      const struct uverbs_map_plan *plan);
void uverbs_map_forget(struct uverbs_ctx *ctx, enum uverbs_map_kind kind,
                       uint32_t id);

/* Looks for the mappings announced and not yet found. */
void uverbs_map_resolve(struct uverbs_ctx *ctx);

/* --- uverbs_qp*.c --- */

/* A fresh QP, as from hca_obj_alloc(). @return NULL if the device has as many
 * as it may. */
struct hca_qp *uverbs_qp_alloc(unsigned dev);

/* The device's QP behind a handle; NULL if it is gone (OPEN_QP). */
struct hca_qp *uverbs_qp_hw(const struct uverbs_qp *qp);

/* Stops all work on a QP that peers can find: the caller may free it then. */
void uverbs_qp_stop(struct hca_qp *hw);

/* Changes a QP that is no DCT. @param path of attr->ah_attr, checked.
 * @return 0, or -EINVAL if it is in no state for that. */
int uverbs_qp_modify_hw(struct hca_qp *hw, const struct ibv_qp_attr *attr,
                        unsigned mask, const struct hca_path *path);

/* Whether a QP may go from cur to next with these attributes. */
bool uverbs_qp_modify_ok(enum hca_qp_type type, enum ibv_qp_state cur,
                         enum ibv_qp_state next, unsigned mask);

/* Checks a buffer that the device is to use.
 * @return 0, or -EINVAL after a line that says what is wrong. */
int uverbs_check_buf(const char *what, uint64_t addr, size_t size,
                     unsigned align);

/* MODIFY_QP of a DCT. */
int uverbs_dct_modify(struct uverbs_req *req, struct uverbs_qp *qp,
                      const struct ibv_qp_attr *attr, unsigned mask);

/* --- uverbs_ah.c --- */

/* Address vector of MODIFY_QP and QUERY_QP. */
void uverbs_dest_in(const struct ib_uverbs_qp_dest *in,
                    struct ibv_ah_attr *out);
void uverbs_dest_out(const struct ibv_ah_attr *in,
                     struct ib_uverbs_qp_dest *out);

/* Address vector of the program, checked for this device.
 * @return 0 or -EINVAL. */
int uverbs_path(const struct uverbs_ctx *ctx, const struct ibv_ah_attr *attr,
                struct hca_path *path);

/* RoCE: finds the MAC that belongs to the path's GID.
 * @return 0 or -EHOSTUNREACH: nobody has that GID. */
int uverbs_path_resolve(const struct uverbs_ctx *ctx, struct hca_path *path);

static inline void uverbs_ref(struct uverbs_obj *obj)
{
    if (obj != NULL) {
        obj->users++;
    }
}

static inline void uverbs_unref(struct uverbs_obj *obj)
{
    if (obj != NULL) {
        obj->users--;
    }
}

/* For members that may be NULL. */
#define uverbs_hold(_ptr) uverbs_ref((_ptr) ? &(_ptr)->obj : NULL)
#define uverbs_drop(_ptr) uverbs_unref((_ptr) ? &(_ptr)->obj : NULL)

#endif
