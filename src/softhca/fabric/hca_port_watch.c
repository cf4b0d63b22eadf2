/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Makes all other processes notice the end of one that keeps a port down: see
 * hca_port.h.
 */
#include "hca_port.h"
#include "hca_proc.h"

/* Makes all others notice the end of this process from now on. A process found
 * dead here is reaped first: it needs no event of the change. */
static void hca_port_be_watched(void)
{
    for (unsigned proc = 1; proc < HCA_MAX_PROCS; proc++) {
        if ((proc != hca_self) && hca_proc_is_attached(proc) &&
            hca_proc_alive(proc)) {
            hca_proc_have_watched(proc);
        }
    }
}

void hca_port_down(unsigned dev)
{
    hca_port_be_watched();
    hca_port_keep(dev);
}

void hca_port_watch(void)
{
    for (unsigned dev = 0; dev < HCA_MAX_DEVS; dev++) {
        uint16_t keeper = atomic_load(&hca_fabric->port_down[dev]);

        if (keeper != 0) {
            hca_proc_alive(keeper);
        }
    }
}
