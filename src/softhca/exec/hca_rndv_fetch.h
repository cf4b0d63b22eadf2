/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Fetches the data of rendezvous (hca_rndv.h): reads it from the sender into
 * the tagged buffer, completes that, and sends the FIN. Each answer decides the
 * next step; the helper's timer continues those that have to wait.
 */
#ifndef HCA_RNDV_FETCH_H
#define HCA_RNDV_FETCH_H

#include <stdbool.h>

/* Runs the rendezvous that hca_rndv_start() recorded in this thread. The thread
 * holds no lock. A device that is late (hca_late.h) begins later, by the
 * timer. */
void hca_rndv_fetch(void);

/* hca_fabric_set_heir(): continues the fetches of process @proc.
 * @return false if some are left. */
bool hca_rndv_fetch_inherit(unsigned proc);

#endif
