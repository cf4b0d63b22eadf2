/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The state of a port while the fabric runs, which every process sees
 * (hca_dev_is_down()), and the events that tell programs of it. Called by
 * faults (hca_fault.h), in the thread that sends.
 */
#ifndef HCA_PORT_H
#define HCA_PORT_H

#include <stdbool.h>

/* Puts the port of a device down or up. If that changes anything, each async
 * event file of the device, in all processes, gets PORT_ERR or PORT_ACTIVE. The
 * caller holds no lock of another process' object, nor of any channel. */
void hca_port_set(unsigned dev, bool is_down);

#endif
