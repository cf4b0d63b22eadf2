/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Counts of PCIe transfers: see hca_pcie.h. They are raised without a lock, as
 * the requester, the responder and writers of completions hold different ones.
 */
#include "hca_pcie.h"
#include "softhca/base/hca_log.h"
#include "softhca/fabric/hca_fabric.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define HCA_LINE 64u

static const char *const hca_pcie_names[HCA_NUM_PCIE] = {
    [HCA_PCIE_MMIO]       = "mmio_write",
    [HCA_PCIE_WQE]        = "wqe_read",
    [HCA_PCIE_WQE_WAIT]   = "wqe_wait",
    [HCA_PCIE_LIST]       = "list_read",
    [HCA_PCIE_GATHER]     = "gather_read",
    [HCA_PCIE_RESULT]     = "result_write",
    [HCA_PCIE_RECV_WQE]   = "recv_wqe_read",
    [HCA_PCIE_RECV_DBREC] = "recv_dbrec_read",
    [HCA_PCIE_REMOTE]     = "remote_read",
    [HCA_PCIE_PAYLOAD]    = "payload_write",
    [HCA_PCIE_SEND_CQE]   = "send_cqe_write",
    [HCA_PCIE_RECV_CQE]   = "recv_cqe_write",
};

bool hca_pcie_on;

/* Counts of the queues that this process has destroyed. */
static struct hca_pcie hca_pcie_gone;

static void hca_pcie_count(struct hca_pcie *pcie, enum hca_pcie_what what,
                           uint64_t times, uint64_t bytes, uint64_t lines)
{
    struct hca_pcie_count *count = &pcie->counts[what];

    __atomic_fetch_add(&count->times, times, __ATOMIC_RELAXED);
    __atomic_fetch_add(&count->bytes, bytes, __ATOMIC_RELAXED);
    __atomic_fetch_add(&count->lines, lines, __ATOMIC_RELAXED);
}

/* Returns the cache lines that @length bytes, not 0, touch. */
static uint64_t hca_pcie_lines(uint64_t addr, uint64_t length)
{
    return (addr + length - 1) / HCA_LINE - addr / HCA_LINE + 1;
}

void hca_pcie_add(struct hca_pcie *pcie, enum hca_pcie_what what, uint64_t addr,
                  uint64_t length)
{
    if (length > 0) {
        hca_pcie_count(pcie, what, 1, length, hca_pcie_lines(addr, length));
    }
}

/* Returns true for device memory of this process: it is in the arena, and other
 * memory with an mkey is not. Another process maps the arena elsewhere. */
static bool hca_pcie_is_dm(const struct hca_sgl *sgl, uintptr_t addr)
{
    return (sgl->owner.proc == hca_self) &&
           (addr - (uintptr_t)hca_at(HCA_ARENA) <
            HCA_MAX_CHUNKS * HCA_CHUNK_SIZE);
}

void hca_pcie_add_sgl(struct hca_pcie *pcie, enum hca_pcie_what what,
                      const struct hca_sgl *sgl, const void *inner, size_t size)
{
    for (unsigned i = 0; i < sgl->count; i++) {
        uintptr_t addr = (uintptr_t)sgl->iov[i].iov_base;
        size_t length  = sgl->iov[i].iov_len;
        uint64_t lines;

        if ((addr - (uintptr_t)inner < size) || (length == 0)) {
            continue;
        }
        lines = hca_pcie_lines(addr, length);
        if (!hca_pcie_is_dm(sgl, addr)) {
            hca_pcie_count(pcie, what, 1, length, lines);
        } else if (what == HCA_PCIE_GATHER) {
            hca_pcie_count(pcie, HCA_PCIE_MMIO, lines, lines * HCA_LINE, lines);
        }
    }
}

void hca_pcie_ring(struct hca_pcie *pcie)
{
    hca_pcie_count(pcie, HCA_PCIE_MMIO, 1, sizeof(uint64_t), 1);
    pcie->is_rung = true;
}

/* Only the first WQE of a doorbell is waited for: later ones are read while it
 * is under way. */
void hca_pcie_wqe(struct hca_pcie *pcie, uint16_t idx, unsigned size)
{
    hca_pcie_add(pcie, HCA_PCIE_WQE, idx * HCA_LINE, size);
    if (pcie->is_rung) {
        pcie->is_rung = false;
        hca_pcie_add(pcie, HCA_PCIE_WQE_WAIT, idx * HCA_LINE, size);
    }
}

/* Takes back the counts of a doorbell. A WQE that was not read yet (is_rung) is
 * read from the ring later, which counts: by then the register has lost it. */
void hca_pcie_push(struct hca_pcie *pcie, unsigned size, bool has_rung)
{
    uint64_t lines = (size + HCA_LINE - 1) / HCA_LINE;

    hca_pcie_count(pcie, HCA_PCIE_MMIO, lines, lines * HCA_LINE, lines);
    if (!has_rung) {
        return;
    }
    hca_pcie_count(pcie, HCA_PCIE_MMIO, -1, -sizeof(uint64_t), -1);
    if (!pcie->is_rung) {
        hca_pcie_count(pcie, HCA_PCIE_WQE, -1, -(uint64_t)size, -lines);
        hca_pcie_count(pcie, HCA_PCIE_WQE_WAIT, -1, -(uint64_t)size, -lines);
    }
}

/* The record is read again only when all receives that it posted are taken. */
void hca_pcie_look(struct hca_pcie *pcie, uint16_t taken, uint16_t posted)
{
    if ((int16_t)(pcie->known - taken) > 0) {
        return;
    }
    hca_pcie_add(pcie, HCA_PCIE_RECV_DBREC, 0, sizeof(uint32_t));
    pcie->known = posted;
    pcie->line  = 0;
}

/* Does not count a line that was read for the last receive: pcie->line is the
 * line behind that. */
void hca_pcie_take(struct hca_pcie *pcie, size_t offset, size_t size)
{
    uint64_t first = offset / HCA_LINE, end;

    end   = (offset + size - 1) / HCA_LINE + 1;
    first = (first + 1 == pcie->line) ? first + 1 : first;
    hca_pcie_add(pcie, HCA_PCIE_RECV_WQE, first * HCA_LINE,
                 (end - first) * HCA_LINE);
    pcie->line = end;
}

/* --- printing ------------------------------------------------------------ */

static void hca_pcie_print(const char *kind, uint32_t num,
                           const struct hca_pcie *pcie)
{
    for (unsigned i = 0; i < HCA_NUM_PCIE; i++) {
        const struct hca_pcie_count *count = &pcie->counts[i];

        if (count->bytes > 0) {
            hca_log_write(
                HCA_LOG_INFO, "pcie: %s 0x%x: %s: %llu, %llu bytes, %llu lines",
                kind, num, hca_pcie_names[i], (unsigned long long)count->times,
                (unsigned long long)count->bytes,
                (unsigned long long)count->lines);
        }
    }
}

static void hca_pcie_sum(struct hca_pcie *sum, const struct hca_pcie *pcie)
{
    for (unsigned i = 0; i < HCA_NUM_PCIE; i++) {
        hca_pcie_count(sum, i, pcie->counts[i].times, pcie->counts[i].bytes,
                       pcie->counts[i].lines);
    }
}

static void hca_pcie_retire(const char *kind, const struct hca_obj *obj,
                            const struct hca_pcie *pcie)
{
    if (hca_pcie_on && (obj->proc == hca_self)) {
        hca_pcie_print(kind, obj->num, pcie);
        hca_pcie_sum(&hca_pcie_gone, pcie);
    }
}

void hca_pcie_retire_qp(void *obj)
{
    hca_pcie_retire("qp", obj, &((struct hca_qp *)obj)->pcie);
}

void hca_pcie_retire_srq(void *obj)
{
    hca_pcie_retire("srq", obj, &((struct hca_srq *)obj)->pcie);
}

void hca_pcie_retire_cq(void *obj)
{
    hca_pcie_retire("cq", obj, &((struct hca_cq *)obj)->pcie);
}

void hca_pcie_exit(void)
{
    if (hca_pcie_on) {
        hca_pcie_print("process", 0, &hca_pcie_gone);
    }
}

/* --- requests of programs ------------------------------------------------ */

static void hca_pcie_sum_qp(void *obj, void *sum)
{
    hca_pcie_sum(sum, &((struct hca_qp *)obj)->pcie);
}

static void hca_pcie_sum_srq(void *obj, void *sum)
{
    hca_pcie_sum(sum, &((struct hca_srq *)obj)->pcie);
}

static void hca_pcie_sum_cq(void *obj, void *sum)
{
    hca_pcie_sum(sum, &((struct hca_cq *)obj)->pcie);
}

int softhca_pcie(const char *kind, uint64_t *times, uint64_t *bytes,
                 uint64_t *lines)
{
    struct hca_pcie sum = hca_pcie_gone;

    if (!hca_pcie_on || !hca_fabric_is_attached()) {
        return -1;
    }
    hca_obj_foreach(HCA_KIND_QP, hca_self, hca_pcie_sum_qp, &sum);
    hca_obj_foreach(HCA_KIND_SRQ, hca_self, hca_pcie_sum_srq, &sum);
    hca_obj_foreach(HCA_KIND_CQ, hca_self, hca_pcie_sum_cq, &sum);
    for (unsigned i = 0; i < HCA_NUM_PCIE; i++) {
        if (!strcmp(kind, hca_pcie_names[i])) {
            *times = sum.counts[i].times;
            *bytes = sum.counts[i].bytes;
            *lines = sum.counts[i].lines;
            return 0;
        }
    }
    return -1;
}

static void hca_pcie_forked(void)
{
    memset(&hca_pcie_gone, 0, sizeof(hca_pcie_gone));
}

void hca_pcie_init(void)
{
    const char *value = getenv("SOFTHCA_PCIE");

    if ((value == NULL) || !strcmp(value, "n")) {
        return;
    }
    if (strcmp(value, "y")) {
        hca_error("SOFTHCA_PCIE=%s: use y or n", value);
        return;
    }
    hca_pcie_on = true;
    pthread_atfork(NULL, NULL, hca_pcie_forked);
}
