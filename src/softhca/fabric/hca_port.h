/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Ports that go down and come up while the fabric runs, as every process sees
 * (hca_dev_is_down()), and the events that report it to programs. Only the
 * process that put a port down brings it up; it comes up when that process is
 * gone, too. Called by faults (hca_fault.h), in the thread that sends.
 */
#ifndef HCA_PORT_H
#define HCA_PORT_H

/* Puts the port of a device down, or up again if this process put it down. If
 * that changes anything, each async event file of the device, in all processes,
 * gets PORT_ERR or PORT_ACTIVE. The caller holds no lock of another process'
 * object, nor of any channel. */
void hca_port_down(unsigned dev);
void hca_port_up(unsigned dev);

/* Puts a port down without asking other processes to watch this one: for
 * hca_port_down(). */
void hca_port_keep(unsigned dev);

/* Brings up all ports that this process keeps down. */
void hca_port_up_all(void);

/* Makes the helper of this process, which must run, watch the processes that
 * keep a port down. */
void hca_port_watch(void);

/* Brings up the ports that a process kept down which is dead or leaves. */
void hca_port_reap(unsigned proc);

/* Makes the lock free in a forked child: another thread of the parent may have
 * held it. */
void hca_port_forked(void);

#endif
