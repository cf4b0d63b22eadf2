/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Commands on queue pairs, DC targets among them, for the front ends, which are
 * inside the device (hca_thread.h) and hold no lock of an object.
 */
#ifndef HCA_QP_CMD_H
#define HCA_QP_CMD_H

#include "softhca/obj/hca_objs.h"

/* A state change by MODIFY_QP, with the attributes already checked by the
 * caller and written to qp->attr and its decoded fields. Takes both locks:
 * RESET rewinds, ERR flushes what is posted, RTS runs.
 * @param from  the state in which the caller found the change to be allowed
 * @return 0, or -EINVAL if a peer has put the QP in error meanwhile; to RESET
 *         and ERR leads a way from everywhere. */
int hca_qp_set_state(struct hca_qp *qp, enum ibv_qp_state from,
                     enum ibv_qp_state to);

/* Called after hca_sq_del() and before the QP is freed: when it returns, no
 * thread of any process executes on the QP (or one that is stopped does), and no
 * timer of it is armed. */
void hca_qp_quiesce(struct hca_qp *qp);

#endif
