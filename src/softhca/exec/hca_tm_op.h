/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * WQEs of the opcode TAG_MATCHING, which a program posts to the command QP of
 * an SRQ with tag matching: they append to its list, remove from it, and
 * report how many unexpected messages the program has seen.
 */
#ifndef HCA_TM_OP_H
#define HCA_TM_OP_H

#include "softhca/wqe/hca_wqe.h"

/* Executes such a WQE.
 * @return HCA_OK; HCA_CHECK_CQ if the list was changed, but the CQ takes no
 *         completion; another error, logged, with the list unchanged. */
enum hca_check hca_tm_op_execute(const struct hca_qp *qp,
                                 const struct hca_wqe *wqe);

#endif
