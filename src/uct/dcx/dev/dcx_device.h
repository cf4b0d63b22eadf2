/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * An mlx5 device as dcx opened it: context, protection domain and what the
 * device can do, found out once. Belongs to a memory domain; read-only after
 * uct_dcx_device_open(), so any thread may look.
 *
 * dev/ is the room of the device: what it can do, its events, and the formats
 * and rings that it shares with us (dcx_wqe.h, dcx_sq.h, dcx_cq.h). Called by
 * all rooms above. It must not know of DC, endpoints or UCT's operations.
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
    uint8_t ext;  /* the same with masks */
    uint8_t be64; /* results of 8 bytes come in big endian; of 4 they always
                   * do */
} uct_dcx_atomic_caps_t;


/* Matching of tags by the device, all 0 if it has none. */
typedef struct uct_dcx_tm_caps {
    unsigned max_tags; /* tagged buffers of one list */
    int      rndv_dc;  /* it fetches the data of a rendezvous by DC */
    int      has_keys; /* it receives into keys with a layout */
    unsigned max_hdr;  /* of a rendezvous request */
} uct_dcx_tm_caps_t;


/* Layouts of keys by UMR. Without DEVX there are none. */
typedef struct uct_dcx_umr_caps {
    int      has_keys;   /* of indirect keys */
    int      has_rows;   /* repeated blocks */
    int      has_nests;  /* repeated blocks over keys with layouts */
    unsigned max_depth;  /* keys that lead to each other */
    unsigned max_klm;    /* translations of one */
    unsigned max_inline; /* translations that stand in the WQE */
    uint8_t  fence;      /* PRM_UMR_FENCE_*, of the WQE behind one */
} uct_dcx_umr_caps_t;


/* Translations in a WQE: as many as fit (dcx_umr_wqe.h), and what kernels of
 * MLNX_OFED announced. */
#define UCT_DCX_DEVICE_MAX_INLINE    52
#define UCT_DCX_DEVICE_PROVEN_INLINE 20


typedef struct uct_dcx_device {
    struct ibv_context     *ctx;
    struct ibv_pd          *pd;
    uint32_t               pdn;
    struct ibv_device_attr attr;
    uct_dcx_atomic_caps_t  atomic;
    uct_dcx_tm_caps_t      tm;
    uct_dcx_umr_caps_t     umr;
    uint32_t               mem_access;    /* IBV_ACCESS_* of all memory */
    int                    has_devx;
    int                    answers;       /* QUERY_HCA_CAP */
    int                    has_dc;
    int                    is_lag;        /* its ports are bonded */
    unsigned               max_rd_atomic; /* reads at a time of a DCI */
    int                    has_lag_dct;   /* a bond may have DC targets */
    int                    compact_av;    /* takes 16-byte address vectors */
    int                    indirect_keys; /* makes KSM keys */
    int                    indirect_atomics;
    uint8_t                ts_format;     /* PRM_TS_FORMAT_* */
    int                    has_sl_mask;   /* tells which SLs are adaptive */
    int                    has_relaxed;   /* relaxed ordering on PCIe */
    int                    relaxed;       /* regions use relaxed ordering */
    int                    may_reorder;   /* RDMA of one queue, or it does not
                                           * say */
    uint8_t                log_streams;   /* of a DCI, 0: it has none */
    uint8_t                log_errored;   /* ... that may be in error */
    uct_dcx_profile_t      profile;
    ucs_sys_device_t       sys_device;
    ucs_cpu_set_t          local_cpus;
} uct_dcx_device_t;


/* Returns non-zero if dcx can work with the device at all. Else logs why, at
 * debug level. */
int uct_dcx_device_is_mlx5(struct ibv_device *ibdev);

/* Opens 'ibdev', with DEVX or without. ext_atomics: whether to use extended
 * atomics on a device that does not let itself be asked about them. profile:
 * see uct_dcx_profile_load(). Errors are logged. */
ucs_status_t
uct_dcx_device_open(uct_dcx_device_t *dev, struct ibv_device *ibdev,
                    ucs_ternary_auto_value_t devx,
                    ucs_ternary_auto_value_t ext_atomics,
                    const char *profile);

void uct_dcx_device_close(uct_dcx_device_t *dev);

/* Why it has no DC transport, or cannot match tags, in words; NULL if it can. */
const char *uct_dcx_device_dc_fault(const uct_dcx_device_t *dev);
const char *uct_dcx_device_tm_fault(const uct_dcx_device_t *dev);

/* End the message of a registration that failed with this errno, if that is the
 * kernel's answer to too much locked memory, or to a limit of none. */
static inline const char *uct_dcx_device_reg_hint(int error)
{
    return ((error == ENOMEM) || (error == EPERM)) ?
           "; 'ulimit -l' may be too low, 'dcx-run --why' says what to do" : "";
}

static inline const char *uct_dcx_device_name(const uct_dcx_device_t *dev)
{
    return ibv_get_device_name(dev->ctx->device);
}

#endif
