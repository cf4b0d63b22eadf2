/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The NIC's half of the device: the execution that a doorbell starts.
 *
 * exec/ is called by uverbs/ and devx/, which make, change and destroy its
 * objects (hca_qp_cmd.h, hca_stream.h, hca_uar.h), by dispatch/ (start, fork),
 * by preload/ (exit), by the trap of doorbells (hca_uar.c) and by the helper
 * thread (timers). A thread that takes the lock of an object is inside the
 * device: hca_thread.h. exec/ knows neither the ioctls nor the commands that
 * made an object, nor its callers.
 */
#ifndef HCA_NIC_H
#define HCA_NIC_H

#include "softhca/fabric/hca_obj.h"

/* All kinds of objects, for hca_fabric_attach(). */
extern const struct hca_kind_ops hca_nic_kinds[HCA_NUM_KINDS];

/* Reads the environment variables of the NIC's half, and sets the hooks of
 * timers and of dead processes. Call this before the process makes its first
 * object; later calls do nothing. */
void hca_nic_init(void);

#endif
