/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Messages to an SRQ with tag matching.
 */
#ifndef HCA_RESP_TM_H
#define HCA_RESP_TM_H

#include "hca_resp_recv.h"

/* Executes a SEND to a QP of such an SRQ. @return as hca_resp_execute(). */
enum hca_check hca_resp_tm_send(struct hca_responder *resp);

#endif
