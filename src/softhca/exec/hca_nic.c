/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/* What the NIC's half needs once in a process: see hca_nic.h. */
#define _GNU_SOURCE
#include "hca_nic.h"
#include "hca_fault.h"
#include "hca_late.h"
#include "hca_order.h"
#include "hca_qp.h"
#include "hca_tm_job.h"
#include "softhca/base/hca_log.h"
#include "softhca/doorbell/hca_trap.h"
#include "softhca/obj/hca_check.h"
#include "softhca/obj/hca_cq.h"
#include "softhca/obj/hca_pcie.h"
#include "softhca/obj/hca_tm.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static void hca_nic_init_once(void)
{
    const char *patch = getenv("SOFTHCA_PATCH");

    if ((patch != NULL) && strcmp(patch, "y") && strcmp(patch, "n")) {
        hca_error("SOFTHCA_PATCH=%s: use y or n", patch);
    }
    hca_trap_init((patch == NULL) || strcmp(patch, "n"));
    hca_strict_init();
    hca_fault_init();
    hca_late_init();
    hca_order_init();
    hca_pcie_init();
    hca_obj_set_repair(HCA_KIND_QP, hca_qp_repair);
    hca_obj_set_repair(HCA_KIND_CQ, hca_cq_repair);
    hca_obj_set_repair(HCA_KIND_SRQ, hca_tm_repair);
    hca_fabric_set_heir(hca_tm_job_inherit);
}

void hca_nic_init(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, hca_nic_init_once);
}
