/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Completions of both halves: from the outcome of a WQE to its CQE, and the
 * one place where a check becomes a syndrome.
 */
#ifndef HCA_COMPLETER_H
#define HCA_COMPLETER_H

#include "hca_msg.h"
#include "softhca/obj/hca_rq.h"

#include <infiniband/mlx5dv.h>

/* Completes a send WQE. @data, if not NULL, has wqe->length bytes and goes into
 * the CQE.
 * @return HCA_OK, or HCA_CHECK_CQ: the QP must go to the error state. */
enum hca_check hca_completer_send(const struct hca_qp *qp,
                                  const struct hca_wqe *wqe, const void *data);

/* Completes a send WQE that failed, or is flushed (HCA_CHECK_FLUSH). @check
 * determines the syndrome, @vendor is the vendor syndrome. */
void hca_completer_send_error(const struct hca_qp *qp,
                              const struct hca_wqe *wqe, enum hca_check check,
                              enum hca_check vendor);

/* Completes a receive WQE, or a tagged buffer, for an executed message. @data,
 * if not NULL, goes into the CQE: the message, for a tagged buffer
 * recv->tm_bytes without the header. @return as hca_completer_send(). */
enum hca_check hca_completer_recv(const struct hca_qp *qp,
                                  const struct hca_recv *recv,
                                  const struct hca_msg *msg, const void *data);

/* Completes an operation on the tag list, under the lock of the SRQ.
 * @return as hca_completer_send(). */
enum hca_check hca_completer_tm_op(const struct hca_srq *srq, uint8_t tm_op,
                                   uint16_t index,
                                   const struct mlx5_tm_cqe *result);

/* Completes a receive WQE whose message failed.
 * @return as hca_completer_send(). */
enum hca_check hca_completer_recv_error(const struct hca_qp *qp,
                                        const struct hca_recv *recv,
                                        enum hca_check check);

/* Completes receive @index of the own queue of a QP in error, as flushed. */
void hca_completer_flush_recv(const struct hca_qp *qp, uint16_t index);

#endif
