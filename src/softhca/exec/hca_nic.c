/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/* The table of the NIC's objects, and how a process starts: see hca_nic.h. */
#define _GNU_SOURCE
#include "hca_nic.h"
#include "hca_late.h"
#include "hca_order.h"
#include "hca_rndv_fetch.h"
#include "hca_thread.h"
#include "softhca/base/hca_log.h"
#include "softhca/base/hca_mutex.h"
#include "softhca/doorbell/hca_trap.h"
#include "softhca/fabric/hca_chan.h"
#include "softhca/fabric/hca_fabric.h"
#include "softhca/fabric/hca_rules.h"
#include "softhca/fabric/hca_timer.h"
#include "softhca/obj/hca_check.h"
#include "softhca/obj/hca_cq.h"
#include "softhca/obj/hca_odp.h"
#include "softhca/obj/hca_pcie.h"
#include "softhca/obj/hca_tm.h"
#include "softhca/obj/hca_traffic.h"
#include "softhca/resp/hca_qp.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static void hca_qp_init(void *obj)
{
    struct hca_qp *qp = obj;

    hca_mutex_init(&qp->sq_lock);
}

static void hca_qp_retire(void *qp)
{
    hca_pcie_retire_qp(qp);
    hca_traffic_retire(qp);
}

const struct hca_kind_ops hca_nic_kinds[HCA_NUM_KINDS] = {
    [HCA_KIND_QP] = {"qp", sizeof(struct hca_qp), offsetof(struct hca_qp, type),
                     .index_bits = 16, .gen_bits = 8, .init = hca_qp_init,
                     .repair = hca_qp_repair, .retire = hca_qp_retire},
    [HCA_KIND_SRQ]  = {"srq", sizeof(struct hca_srq), sizeof(struct hca_obj),
                       .index_bits = 16, .gen_bits = 8, .repair = hca_tm_repair,
                       .retire = hca_pcie_retire_srq},
    [HCA_KIND_CQ]   = {"cq", sizeof(struct hca_cq), sizeof(struct hca_obj),
                       .index_bits = 16, .gen_bits = 8, .repair = hca_cq_repair,
                       .retire = hca_pcie_retire_cq},
    [HCA_KIND_CHAN] = {"channel", sizeof(struct hca_chan),
                       sizeof(struct hca_obj), .index_bits = 14,
                       .gen_bits = 10},
    [HCA_KIND_XRCD] = {"xrcd", sizeof(struct hca_xrcd), sizeof(struct hca_obj),
                       .index_bits = 12, .gen_bits = 8},
    [HCA_KIND_MKEY] = {"mkey", sizeof(struct hca_mkey), sizeof(struct hca_obj),
                       .index_bits = 20, .gen_bits = 4},
    [HCA_KIND_QPNS] = {"block of qp numbers", sizeof(struct hca_qpns),
                       sizeof(struct hca_obj), .index_bits = 10, .gen_bits = 8},
    [HCA_KIND_PD]   = {"protection domain", sizeof(struct hca_pd),
                       sizeof(struct hca_obj), .index_bits = HCA_LOG_MAX_PDS,
                       .gen_bits = 6},
    [HCA_KIND_DM]   = {"device memory", sizeof(struct hca_dm),
                       sizeof(struct hca_obj), .index_bits = HCA_LOG_MAX_DMS,
                       .gen_bits = 8},
};

static void hca_nic_init_once(void)
{
    const char *patch = getenv("SOFTHCA_PATCH");

    if ((patch != NULL) && strcmp(patch, "y") && strcmp(patch, "n")) {
        hca_error("SOFTHCA_PATCH=%s: use y or n", patch);
    }
    hca_trap_init((patch == NULL) || strcmp(patch, "n"));
    hca_strict_init();
    hca_rules_init();
    hca_late_init();
    hca_odp_init();
    hca_order_init();
    hca_pcie_init();
    hca_timer_set_bracket(hca_thread_enter, hca_thread_leave);
    hca_fabric_set_heir(hca_rndv_fetch_inherit);
}

void hca_nic_init(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, hca_nic_init_once);
}
