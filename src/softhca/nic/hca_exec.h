/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Where the control side (uverbs_*.c: the kernel's part) meets execution (the
 * NIC's part: hca_uar.c, hca_requester.c, hca_responder.c, hca_cq.c, ...).
 */
#ifndef HCA_EXEC_H
#define HCA_EXEC_H

#include "softhca/fabric/hca_obj.h"

/* Brackets for code that takes locks of objects. A signal handler of the
 * program may interrupt it in the same thread and ring a doorbell, which would
 * wait for its own thread: inside the brackets a doorbell is only noted, and
 * run by the outermost hca_exec_leave(). They nest. */
void hca_exec_enter(void);
void hca_exec_leave(void);

/* A UAR page was mapped at `page` (4 KiB, of this process) with this id:
 * stores to it ring doorbells from now on. @return 0 or -errno. */
int hca_uar_add(uint32_t uar, void *page);
void hca_uar_del(uint32_t uar);

/* In a forked child: the pages and queues are the parent's. */
void hca_uar_forked(void);

/* A published QP that sends (all but DCT, XRC_RECV) starts / stops listening
 * to its UAR. del: from now on nothing of it is executed. */
int hca_sq_add(struct hca_qp *qp);
void hca_sq_del(struct hca_qp *qp);

/* Runs what is posted on the SQ. The caller holds no lock. */
void hca_sq_run(struct hca_qp *qp);

/* A state change by MODIFY_QP, with the attributes already checked by the
 * caller and written to qp->attr and its decoded fields. Takes both locks:
 * RESET rewinds, ERR flushes what is posted, RTS runs.
 * @param from  the state in which the caller found the change to be allowed
 * @return 0, or -EINVAL if a peer has put the QP in error meanwhile; to RESET
 *         and ERR leads a way from everywhere. */
int hca_qp_set_state(struct hca_qp *qp, enum ibv_qp_state from,
                     enum ibv_qp_state to);

/* Makes a stream of a DCI in RTS usable again that is in error.
 * @return 0, or -EINVAL if it is not. */
int hca_qp_reset_stream(struct hca_qp *qp, uint16_t stream);

/* Called after hca_sq_del() and before the QP is freed: when it returns, no
 * thread of any process executes on the QP, and no timer of it is armed. */
void hca_qp_quiesce(struct hca_qp *qp);

/* Goes on in another ring: RESIZE_CQ. The old one is not touched afterwards.
 * @return 0, -ENOENT, -EINVAL (more is waiting than the new one holds). */
int hca_cq_resize(uint32_t cqn, const struct hca_ring *ring);

/* The last who held the lock of an object died inside, and it is held again
 * now: finishes what was begun (hca_obj_lock()). */
void hca_qp_repair(struct hca_qp *qp);
void hca_cq_repair(struct hca_cq *cq);

/* Event types of the device (mlx5_ifc.h and the kernel's linux/mlx5/device.h,
 * MLX5_EVENT_TYPE_*). */
enum hca_eqe_type {
    HCA_EQE_CQ_ERROR     = 0x04,
    HCA_EQE_WQ_CATAS     = 0x05,
    HCA_EQE_WQ_INVAL     = 0x10,
    HCA_EQE_WQ_ACCESS    = 0x11,
    HCA_EQE_SRQ_CATAS    = 0x12,
    HCA_EQE_SRQ_LAST_WQE = 0x13,
    HCA_EQE_SRQ_LIMIT    = 0x14
};

#define HCA_EQE_BIT(_type) (1ull << (_type))

/* Reports an async event of `obj` on obj->async_chan, with obj->user_handle as
 * its element, and counts it in obj->events; to a subscription as well. The
 * caller holds obj->lock. */
void hca_async_event(struct hca_obj *obj, enum ibv_event_type type);

#endif
