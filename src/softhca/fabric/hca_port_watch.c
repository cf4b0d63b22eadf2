/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The end of a process that keeps a port down is noticed by all others: see
 * hca_port.h.
 */
#include "hca_port.h"
#include "hca_proc.h"

/* All others notice the end of this process from now on. Nobody is told of a
 * change who is found dead here. */
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
