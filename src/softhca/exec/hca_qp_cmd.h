/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Commands on queue pairs and DC targets: uverbs/ and devx/ create, change and
 * destroy them only by these. Callers are inside the device (hca_thread.h) and
 * hold no lock of an object, unless a comment says otherwise.
 */
#ifndef HCA_QP_CMD_H
#define HCA_QP_CMD_H

#include "softhca/fabric/hca_caps.h"
#include "softhca/obj/hca_objs.h"

#define HCA_MAX_RD_ATOMIC 16u /* reads and atomics of a QP under way */

/* Returns the reads and atomics that a DCI may have under way (2 to the power
 * of log_max_ra_req_dc). */
static inline uint32_t hca_max_rd_atomic_dc(void)
{
    return hca_limit(HCA_LIMIT_RD_ATOMIC, HCA_MAX_RD_ATOMIC);
}

/* A queue pair to create; the numbers are of objects that exist. */
struct hca_qp_spec {
    unsigned dev;
    enum hca_qp_type type;
    uint32_t pdn, scqn, rcqn, srqn, xrcdn; /* 0: none */
    uint32_t uar;
    uint32_t uidx;
    struct hca_ring sq, rq;
    hca_off_t dbrec;
    uint8_t cs_req, cs_res; /* scatter to CQE: bytes, 0 off */
    bool wq_sig;
    bool has_rndv;
    bool has_streams;
    uint8_t log_streams, log_errored;
    uint64_t dc_key;         /* DCT */
    struct hca_qp_attr attr; /* DCT: all; others: log_msg_max */
    uint32_t async_chan;
    uint64_t user_handle; /* reported in async events */
};

/* Attributes without a bit in enum ibv_qp_attr_mask of verbs */
enum {
    HCA_QP_LOG_MSG_MAX = 1 << 27,
    HCA_QP_ATOMIC_MODE = 1 << 28,
    HCA_QP_DP_ORDERING = 1 << 29,
    HCA_QP_FROM        = 1 << 30, /* as IBV_QP_CUR_STATE, in every step */
    HCA_QP_OWN_ATTRS   = HCA_QP_LOG_MSG_MAX | HCA_QP_ATOMIC_MODE |
                       HCA_QP_DP_ORDERING | HCA_QP_FROM
};

/* A change of the attributes in @mask, and of the state if IBV_QP_STATE is. */
struct hca_qp_change {
    uint32_t mask;
    enum ibv_qp_state next; /* IBV_QP_STATE */
    enum ibv_qp_state cur;  /* IBV_QP_CUR_STATE, HCA_QP_FROM */
    uint8_t port;           /* IBV_QP_PORT */
    struct hca_qp_attr attr;
};

/* Result of a query of a QP: its PSNs are those of the next messages. */
struct hca_qp_info {
    enum ibv_qp_state state;
    uint16_t sq_ci; /* next basic block to execute */
    struct hca_qp_attr attr;
};

/* Checks a spec, as hca_qp_create() and hca_dct_create() do.
 * @return 0; -EPROTONOSUPPORT if the type cannot receive by tag matching;
 *         -EOPNOTSUPP for a rendezvous without tag matching, with a send queue
 *         or, of a DCT, on a device without it; -EINVAL for streams that the
 *         device does not have, logged. */
int hca_qp_check(const struct hca_qp_spec *spec);

/* Creates a QP in RESET.
 * @return 0; as hca_qp_check(); -ENOMEM, also at the limit of QPs. */
int hca_qp_create(const struct hca_qp_spec *spec, struct hca_qp **qp_p);

/* Changes a QP that is no DCT. RESET drops posted WQEs without completions, ERR
 * flushes them, RTS executes them.
 * @param bad_p  the bit of an attribute whose value is refused, or 0
 * @return 0; -EINVAL for that value, or if the state allows no such change. */
int hca_qp_modify(struct hca_qp *qp, const struct hca_qp_change *change,
                  uint32_t *bad_p);

/* Reads the fields that change. If the QP is in error, posted WQEs are
 * flushed. */
void hca_qp_query(struct hca_qp *qp, struct hca_qp_info *info);

/* Destroys a QP or a DCT.
 * @param events  number of its async events that the program has read
 * @return 0; -ETIMEDOUT, as hca_obj_hold_last(): the QP stays. */
int hca_qp_destroy(struct hca_qp *qp, uint32_t *events);

/* Creates a DCT in RTR.
 * @param bad_p  the bit of an attribute whose value is refused, or 0
 * @return 0, -EINVAL for that value, or as hca_qp_create(). */
int hca_dct_create(const struct hca_qp_spec *spec, uint32_t *bad_p,
                   struct hca_qp **dct_p);

/* Puts a DCT in error, so that it receives nothing.
 * @return 0, -EINVAL if it is not in RTR. */
int hca_dct_drain(struct hca_qp *dct);

/* Returns the attributes that a step from @cur to @next needs, besides
 * IBV_QP_STATE; 0 if it needs none, or there is no such step. */
uint32_t hca_qp_step_needs(enum hca_qp_type type, enum ibv_qp_state cur,
                           enum ibv_qp_state next);

/* Returns true if a QP may go from @cur to @next with attributes @mask. */
bool hca_qp_step_ok(enum hca_qp_type type, enum ibv_qp_state cur,
                    enum ibv_qp_state next, uint32_t mask);

/* Finds an attribute in @mask whose value the device cannot hold.
 * @return its bit, or 0. */
uint32_t hca_qp_attr_bad(enum hca_qp_type type, unsigned dev, uint32_t mask,
                         const struct hca_qp_attr *attr);

/* Take and release sq_lock and obj.lock of a QP. With @runs, posted WQEs are
 * executed, or flushed if the QP is in error, before sq_lock is released. */
void hca_qp_lock_both(struct hca_qp *qp);
void hca_qp_unlock_both(struct hca_qp *qp, bool runs);

/* Enters a state. The caller holds both locks. */
void hca_qp_enter(struct hca_qp *qp, enum ibv_qp_state next);

#endif
