/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * An mlx5 device as dcx opened it: context, protection domain and capabilities,
 * queried once. Belongs to a memory domain; read-only once that is open, so any
 * thread may read it.
 *
 * dev/ is the room of the device: its capabilities, its events, and the formats
 * and rings by which it is used (dcx_wqe.h, dcx_sq.h, dcx_cq.h). Called by all
 * rooms above. It must not know endpoints or UCT's operations.
 */
#ifndef UCT_DCX_DEVICE_H
#define UCT_DCX_DEVICE_H

#include "common/prm.h"
#include "dcx_profile.h"

#include <errno.h>
#include <ucs/sys/topo/base/topo.h>
#include <ucs/type/cpu_set.h>
#include <ucs/type/status.h>
#include <ucs/config/types.h>


/* Atomics as sets of operand sizes: sizeof(uint32_t) | sizeof(uint64_t). */
typedef struct uct_dcx_atomic_caps {
    uint8_t std;  /* fetch-and-add, compare-and-swap */
    uint8_t ext;  /* the masked ones */
    uint8_t be64; /* 8-byte results are big endian; 4-byte results always are */
} uct_dcx_atomic_caps_t;


/* Tag matching by the device */
typedef struct uct_dcx_tm_caps {
    unsigned max_tags; /* tagged buffers of one list; 0: no tag matching */
    int rndv_dc;       /* fetches the data of a rendezvous by DC */
    int has_keys;      /* receives into strided mkeys */
    unsigned max_hdr;  /* maximum bytes of a rendezvous header */
} uct_dcx_tm_caps_t;


/* Strided mkeys by UMR */
typedef struct uct_dcx_umr_caps {
    int has_keys;        /* strided mkeys; 0 without DEVX */
    int has_rows;        /* repeated blocks */
    int has_nests;       /* repeated blocks over strided mkeys */
    unsigned max_depth;  /* levels of indirect mkeys */
    unsigned max_klm;    /* translations of an mkey */
    unsigned max_inline; /* translations inline in a WQE */
    uint8_t fence;       /* PRM_UMR_FENCE_*, for the WQE after a UMR */
} uct_dcx_umr_caps_t;


/* Translations inline in a WQE: the maximum (dcx_umr_wqe.h), and the number
 * that kernels of MLNX_OFED announced */
#define UCT_DCX_DEVICE_MAX_INLINE    52
#define UCT_DCX_DEVICE_PROVEN_INLINE 20


typedef struct uct_dcx_device {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    uint32_t pdn;
    struct ibv_device_attr attr;
    uct_dcx_atomic_caps_t atomic;
    uct_dcx_tm_caps_t tm;
    uct_dcx_umr_caps_t umr;
    uint32_t mem_access; /* IBV_ACCESS_* of all memory */
    int has_devx;
    int answers;    /* it answers QUERY_HCA_CAP */
    int has_failed; /* an event reported that it has failed or was removed;
                     * atomic */
    int has_dc;
    int is_lag;             /* its ports are bonded */
    unsigned max_rd_atomic; /* outstanding reads and atomics of a DCI */
    int has_lag_dct;        /* bonded ports may have DC targets */
    int compact_av;         /* supports 16-byte address vectors */
    int indirect_keys;      /* supports KSM mkeys */
    int indirect_atomics;
    uint8_t ts_format;     /* PRM_TS_FORMAT_* */
    int has_sl_mask;       /* reports the adaptive SLs */
    int has_relaxed;       /* relaxed ordering on PCIe */
    int relaxed;           /* regions use relaxed ordering */
    int may_reorder;       /* RDMA of one queue may be reordered,
                          * or this is unknown */
    const char *odp_fault; /* reason why memory cannot be registered on demand,
                            * in words; NULL: it can */
    uint8_t log_streams;   /* log2 of a DCI's streams, 0: it has
                          * none */
    uint8_t log_errored;   /* log2 of the streams that may be in
                          * error */
    uct_dcx_profile_t profile;
    ucs_sys_device_t sys_device;
    ucs_cpu_set_t local_cpus;
} uct_dcx_device_t;


/* Returns non-zero if dcx supports the device. Otherwise logs the reason, at
 * debug level. */
int uct_dcx_device_is_mlx5(struct ibv_device *ibdev);

/* Opens @ibdev. @devx: UCS_NO opens it without DEVX; UCS_YES fails if DEVX is
 * refused. @ext_atomics: UCS_NO disables extended atomics; otherwise a device
 * that cannot be queried, but has atomics, is assumed to have them. @profile:
 * see uct_dcx_profile_load(). Logs errors. */
ucs_status_t uct_dcx_device_open(uct_dcx_device_t *dev,
                                 struct ibv_device *ibdev,
                                 ucs_ternary_auto_value_t devx,
                                 ucs_ternary_auto_value_t ext_atomics,
                                 const char *profile);

void uct_dcx_device_close(uct_dcx_device_t *dev);

/* Return the reason why it has no DC transport, or cannot match tags, in words;
 * NULL if it can. */
const char *uct_dcx_device_dc_fault(const uct_dcx_device_t *dev);
const char *uct_dcx_device_tm_fault(const uct_dcx_device_t *dev);

/* Returns the end of the message of a failed registration: a hint if @error
 * (errno) may come from the limit of locked memory, otherwise "". */
static inline const char *uct_dcx_device_reg_hint(int error)
{
    return ((error == ENOMEM) || (error == EPERM)) ?
               "; 'ulimit -l' may be too low, 'dcx-run --why' says what to do" :
               "";
}

/* Returns the log level for what the device refused with @error: a warning if a
 * resource of the process or of the machine ran out, else the device lacks
 * it. */
static inline ucs_log_level_t uct_dcx_device_refusal_level(int error)
{
    return ((error == ENOMEM) || (error == EMFILE) || (error == ENFILE) ||
            (error == EAGAIN)) ?
               UCS_LOG_LEVEL_WARN :
               UCS_LOG_LEVEL_DEBUG;
}


static inline const char *uct_dcx_device_name(const uct_dcx_device_t *dev)
{
    return ibv_get_device_name(dev->ctx->device);
}

#endif
