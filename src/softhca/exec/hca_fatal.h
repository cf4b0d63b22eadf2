/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A device that fails, as one process sees it: by a fault (hca_fault.h), and
 * for the rest of the process' life.
 */
#ifndef HCA_FATAL_H
#define HCA_FATAL_H

#include <stdbool.h>

/* Fails a device: the queue pairs of this process stop without a completion,
 * its targets do not answer, and its async event files get DEVICE_FATAL. The
 * caller holds no lock of an object but sq_lock. */
void hca_fatal_device(unsigned dev);

/* Returns true if the device has failed: commands end with EIO, except
 * those that destroy an object. */
bool hca_fatal_is(unsigned dev);

/* Forgets the failures of its parent in a forked child. */
void hca_fatal_forked(void);

#endif
