/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Between hca_responder.c, which takes a message in and answers it, and
 * hca_resp_exec.c, which executes it; for these two only.
 */
#ifndef HCA_RESP_EXEC_H
#define HCA_RESP_EXEC_H

#include "hca_resp_recv.h"

/* @return HCA_OK, HCA_CHECK_NO_RECV, HCA_DROP, or what is wrong, logged. The
 * caller releases resp->memory. */
enum hca_check hca_resp_execute(struct hca_responder *resp);

/* The same for a message that was executed before. */
enum hca_check hca_resp_repeat(struct hca_responder *resp);

#endif
