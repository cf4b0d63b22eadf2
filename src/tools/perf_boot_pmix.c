/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Connects the two processes by PMIx, for mpirun, prterun and srun --mpi=pmix;
 * see perf_boot.h. If one process ends early, the launcher ends the other.
 */
#include "perf_boot.h"
#include "perf_say.h"

#include <pmix.h>
#include <stdint.h>
#include <string.h>

#define PERF_PMIX_KEY "dcx_perf"

static pmix_proc_t perf_pmix_self;

static void perf_pmix_check(pmix_status_t status, const char *what)
{
    if (status != PMIX_SUCCESS) {
        perf_fail("%s: %s", what, PMIx_Error_string(status));
    }
}

/* Gets a value of the job (PMIX_RANK_WILDCARD), or of one process. */
static pmix_value_t *perf_pmix_get(pmix_rank_t rank, const char *key)
{
    pmix_value_t *value;
    pmix_proc_t proc;

    PMIX_PROC_LOAD(&proc, perf_pmix_self.nspace, rank);
    perf_pmix_check(PMIx_Get(&proc, key, NULL, 0, &value), "PMIx_Get");
    return value;
}

static void perf_pmix_put(const void *mine, size_t length)
{
    pmix_value_t value;

    PMIX_VALUE_CONSTRUCT(&value);
    value.type          = PMIX_BYTE_OBJECT;
    value.data.bo.bytes = (char *)mine;
    value.data.bo.size  = length;
    perf_pmix_check(PMIx_Put(PMIX_GLOBAL, PERF_PMIX_KEY, &value), "PMIx_Put");
    perf_pmix_check(PMIx_Commit(), "PMIx_Commit");
}

static void perf_pmix_fence(void)
{
    bool collect = true;
    pmix_info_t info;

    PMIX_INFO_CONSTRUCT(&info);
    PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
    perf_pmix_check(PMIx_Fence(NULL, 0, &info, 1), "PMIx_Fence");
    PMIX_INFO_DESTRUCT(&info);
}

static void perf_pmix_swap(const void *mine, void *theirs, size_t length)
{
    pmix_value_t *value;

    perf_pmix_put(mine, length);
    perf_pmix_fence();
    value = perf_pmix_get(1 - perf_pmix_self.rank, PERF_PMIX_KEY);
    if ((value->type != PMIX_BYTE_OBJECT) || (value->data.bo.size != length)) {
        perf_fail("the other process is another version of dcx_perf");
    }
    memcpy(theirs, value->data.bo.bytes, length);
    PMIX_VALUE_RELEASE(value);
}

static bool perf_pmix_is_gone(void)
{
    return false;
}

static void perf_pmix_close(void)
{
    PMIx_Finalize(NULL, 0);
}

static uint32_t perf_pmix_size(void)
{
    pmix_value_t *value = perf_pmix_get(PMIX_RANK_WILDCARD, PMIX_JOB_SIZE);
    uint32_t size       = value->data.uint32;

    PMIX_VALUE_RELEASE(value);
    return size;
}

void perf_boot_pmix_open(struct perf_boot *boot)
{
    pmix_status_t status = PMIx_Init(&perf_pmix_self, NULL, 0);
    uint32_t size;

    if (status != PMIX_SUCCESS) {
        perf_fail("PMIx_Init: %s; was it started by mpirun, prterun or srun "
                  "--mpi=pmix?",
                  PMIx_Error_string(status));
    }
    size = perf_pmix_size();
    if (size != 2) {
        PMIx_Finalize(NULL, 0);
        perf_wrong_call("two processes are needed, this job has %u: mpirun -np "
                        "2 dcx_perf, or --port PORT to meet by TCP",
                        size);
    }
    *boot = (struct perf_boot){.measures = (perf_pmix_self.rank == 0),
                               .swap     = perf_pmix_swap,
                               .is_gone  = perf_pmix_is_gone,
                               .close    = perf_pmix_close};
}
