/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The state of a port while the fabric runs, which every process sees
 * (hca_dev_is_down()), and the events that tell programs of it. Whoever puts a
 * port down keeps it down: nobody else brings it up, and it comes up when that
 * process is gone. Called by faults (hca_fault.h), in the thread that sends.
 */
#ifndef HCA_PORT_H
#define HCA_PORT_H

/* Puts the port of a device down, or up again if it was this process that put
 * it down. If that changes anything, each async event file of the device, in
 * all processes, gets PORT_ERR or PORT_ACTIVE. The caller holds no lock of
 * another process' object, nor of any channel. */
void hca_port_down(unsigned dev);
void hca_port_up(unsigned dev);

/* Puts it down without a word to those who have to notice the end of this
 * process: for hca_port_down(). */
void hca_port_keep(unsigned dev);

/* All that this process has put down. */
void hca_port_up_all(void);

/* Has the helper of this process, which runs, notice the end of those who keep
 * a port down. */
void hca_port_watch(void);

/* What a process that is gone kept down comes up. */
void hca_port_reap(unsigned proc);

/* In a forked child: what its parent's other threads held is free. */
void hca_port_forked(void);

#endif
