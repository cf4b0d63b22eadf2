/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Fetches the data of rendezvous (hca_rndv.h): reads it from the sender into
 * the tagged buffer, completes that, and sends the FIN. If a rendezvous has to
 * wait, a timer of the helper continues it.
 */
#ifndef HCA_RNDV_FETCH_H
#define HCA_RNDV_FETCH_H

#include <stdbool.h>

/* Runs the rendezvous that hca_rndv_start() recorded in this thread, which
 * holds no lock of an object. With a delay (hca_late.h) it only arms their
 * timers. */
void hca_rndv_fetch(void);

/* Begins the fetches of the dead process @proc anew, in this process; for
 * hca_fabric_set_heir(). A process that leaves (@proc is this one) leaves its
 * fetches to others.
 * @return false if some are left. */
bool hca_rndv_fetch_inherit(unsigned proc);

#endif
