/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Fetches the data of rendezvous (hca_rndv.h): reads them from the sender to
 * the tagged buffer, completes that, and sends the FIN. Each answer decides on
 * the next step; the helper's timer goes on with what has to wait.
 */
#ifndef HCA_RNDV_FETCH_H
#define HCA_RNDV_FETCH_H

#include <stdbool.h>

/* Runs what hca_rndv_start() has noted in this thread, which holds no lock. A
 * device that is late (hca_late.h) begins later, by the timer. */
void hca_rndv_fetch(void);

/* hca_fabric_set_heir(): goes on with what process @proc was fetching.
 * @return false if something is left. */
bool hca_rndv_fetch_inherit(unsigned proc);

#endif
