/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Opens an mlx5 device and queries its capabilities. Called by the memory
 * domain (dcx_md.c). DEVX command QUERY_HCA_CAP (common/prm_cmd.h) returns the
 * capabilities that verbs do not show.
 */
#include "dcx_device.h"
#include "common/prm_cmd.h"
#include "uct/dcx/ucx/dcx_ucx.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucs/debug/log.h>
#include <ucs/sys/math.h>
#include <ucs/sys/string.h>
#include <ucs/sys/sys.h>


/* Standard atomics, and the masked ones that UCX calls extended */
#define UCT_DCX_ATOMIC_OPS_STD (PRM_ATOMIC_CMP_SWAP | PRM_ATOMIC_FETCH_ADD)
#define UCT_DCX_ATOMIC_OPS_EXT \
    (PRM_ATOMIC_MASKED_CMP_SWAP | PRM_ATOMIC_MASKED_FETCH_ADD)


#define UCT_DCX_DEVICE_MEM_ACCESS \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

/* Limit of nested indirect mkeys, even if the device supports more levels */
#define UCT_DCX_DEVICE_MAX_DEPTH 4


int uct_dcx_device_is_mlx5(struct ibv_device *ibdev)
{
    if (!mlx5dv_is_supported(ibdev)) {
        ucs_debug("%s: not an mlx5 device, dcx does not support it",
                  ibv_get_device_name(ibdev));
        return 0;
    }

    return 1;
}


static ucs_status_t uct_dcx_device_query_cap(uct_dcx_device_t *dev,
                                             unsigned type,
                                             struct prm_query_hca_cap_out *out)
{
    struct prm_query_hca_cap_in in = {
        .opcode = htobe16(PRM_CMD_QUERY_HCA_CAP),
        .op_mod = htobe16((type << 1) | PRM_CAP_CURRENT),
    };

    memset(out, 0, sizeof(*out));
    if (!dev->has_devx) {
        return UCS_ERR_UNSUPPORTED;
    }

    if (mlx5dv_devx_general_cmd(dev->ctx, &in, sizeof(in), out, sizeof(*out)) !=
        0) {
        ucs_log(uct_dcx_device_refusal_level(errno),
                "%s: QUERY_HCA_CAP of page %u refused: %m",
                uct_dcx_device_name(dev), type);
        return UCS_ERR_UNSUPPORTED;
    }

    return UCS_OK;
}


/* Takes the atomics from verbs, on a device that does not answer QUERY_HCA_CAP:
 * "atomic_cap" is set when it has 8-byte atomics that reply in host order
 * (get_atomic_caps in the kernel's mlx5_ib). Assumes extended atomics, too;
 * UCX_DCX_EXT_ATOMICS=n is for a device without them. */
static void uct_dcx_device_guess_atomics(uct_dcx_device_t *dev,
                                         ucs_ternary_auto_value_t ext_atomics)
{
    uct_dcx_atomic_caps_t *caps = &dev->atomic;

    if (dev->attr.atomic_cap == IBV_ATOMIC_NONE) {
        return;
    }

    caps->std = sizeof(uint64_t);
    if (ext_atomics != UCS_NO) {
        caps->ext = sizeof(uint64_t) | sizeof(uint32_t);
    }
}


static void uct_dcx_device_query_atomics(uct_dcx_device_t *dev,
                                         ucs_ternary_auto_value_t ext_atomics)
{
    uct_dcx_atomic_caps_t *caps = &dev->atomic;
    const struct prm_atomic_caps *page;
    struct prm_query_hca_cap_out out;
    unsigned ops;

    if (uct_dcx_device_query_cap(dev, PRM_CAP_ATOMIC, &out) != UCS_OK) {
        uct_dcx_device_guess_atomics(dev, ext_atomics);
        return;
    }

    page       = &out.cap.atomic;
    ops        = be16toh(page->operations);
    caps->be64 = !(page->req_8b_endianness >> 6);
    if (ucs_test_all_flags(ops, UCT_DCX_ATOMIC_OPS_STD)) {
        caps->std = sizeof(uint64_t);
    }

    if (ucs_test_all_flags(ops, UCT_DCX_ATOMIC_OPS_EXT) &&
        (ext_atomics != UCS_NO)) {
        caps->ext = be16toh(page->size_qp) & be16toh(page->size_dc) &
                    (sizeof(uint32_t) | sizeof(uint64_t));
    }
}


/* Returns a bit of the general page, PRM_HCA_CAP_*. */
static int uct_dcx_device_cap(const struct prm_query_hca_cap_out *out,
                              unsigned bit)
{
    return (out->cap.bytes[bit / 8] >> (7 - (bit % 8))) & 1;
}


/* Queries tag matching. One entry of the list stays free; the kernel knows the
 * size of a header (tm_caps in mlx5_ib_query_device()). */
static void uct_dcx_device_query_tm(uct_dcx_device_t *dev,
                                    const struct prm_query_hca_cap_out *out,
                                    const struct ibv_device_attr_ex *attr)
{
    const uint8_t *page = out->cap.bytes;

    if (!uct_dcx_device_cap(out, PRM_HCA_CAP_TAG_MATCHING) ||
        !(page[PRM_HCA_CAP_LOG_MAX_XRQ] & PRM_HCA_CAP_LOG)) {
        return;
    }

    dev->tm.max_tags = UCS_MASK(page[PRM_HCA_CAP_LOG_TAG_LIST] &
                                PRM_HCA_CAP_LOG);
    dev->tm.rndv_dc  = uct_dcx_device_cap(out, PRM_HCA_CAP_RNDV_OFFLOAD_DC);
    dev->tm.max_hdr  = attr->tm_caps.max_rndv_hdr_size;
}


/* Queries UMR. Strided layouts need repeated blocks: a device without them has
 * no layouts at all. */
static void uct_dcx_device_query_umr(uct_dcx_device_t *dev,
                                     const struct prm_query_hca_cap_out *out)
{
    const uint8_t *page     = out->cap.bytes;
    uct_dcx_umr_caps_t *umr = &dev->umr;
    unsigned log_klm = page[PRM_HCA_CAP_LOG_MAX_KLM] & PRM_HCA_CAP_LOG_KLM;

    umr->has_rows  = !uct_dcx_device_cap(out,
                                         PRM_HCA_CAP_REPEATED_BLOCK_DISABLED);
    umr->max_depth = ucs_min(page[PRM_HCA_CAP_MAX_INDIRECTION],
                             UCT_DCX_DEVICE_MAX_DEPTH);
    umr->max_klm   = UCS_BIT(ucs_min(log_klm, 30));
    umr->fence = (page[PRM_HCA_CAP_UMR_FENCE] >> PRM_HCA_CAP_UMR_FENCE_SHIFT) &
                 PRM_HCA_CAP_TWO_BITS;
    umr->has_keys = umr->has_rows && (umr->max_depth > 0) &&
                    !uct_dcx_device_cap(out,
                                        PRM_HCA_CAP_UMR_INDIRECT_MKEY_DISABLED);
}


/* Returns non-zero if the ports are bonded: QUERY_LAG (common/prm_cmd.h). A
 * device that lacks the command, or refuses it, counts as not bonded. */
static int uct_dcx_device_is_lag(const uct_dcx_device_t *dev)
{
    struct prm_query_lag_in in   = {.opcode = htobe16(PRM_CMD_QUERY_LAG)};
    struct prm_query_lag_out out = {};

    return (mlx5dv_devx_general_cmd(dev->ctx, &in, sizeof(in), &out,
                                    sizeof(out)) == 0) &&
           (be32toh(out.state) & PRM_LAG_STATE);
}


static void uct_dcx_device_query_order(uct_dcx_device_t *dev,
                                       const struct prm_query_hca_cap_out *out)
{
    dev->has_sl_mask = uct_dcx_device_cap(out, PRM_HCA_CAP_OOO_SL_MASK);
    dev->has_relaxed = uct_dcx_device_cap(out,
                                          PRM_HCA_CAP_RELAXED_ORDERING_WRITE);
    /* An administrator may force it on all queues (mlxreg). */
    dev->may_reorder =
        uct_dcx_device_cap(out, PRM_HCA_CAP_DP_ORDERING_OOO_RW_DC) ||
        uct_dcx_device_cap(out, PRM_HCA_CAP_DP_ORDERING_OOO_ALL_DC);
}


/* Queries on-demand paging, from the kernel and from libmlx5, which gets the
 * operations of DC with QUERY_HCA_CAP. */
static void uct_dcx_device_query_odp(uct_dcx_device_t *dev,
                                     const struct prm_query_hca_cap_out *out,
                                     const struct ibv_device_attr_ex *attr)
{
    uint32_t needed =
        IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ |
        ((dev->atomic.std || dev->atomic.ext) ? IBV_ODP_SUPPORT_ATOMIC : 0);
    struct mlx5dv_context dv_attr = {
        .comp_mask = MLX5DV_CONTEXT_MASK_DC_ODP_CAPS,
    };

    if (!(attr->odp_caps.general_caps & IBV_ODP_SUPPORT)) {
        dev->odp_fault = "it has no on-demand paging";
    } else if ((mlx5dv_query_device(dev->ctx, &dv_attr) != 0) ||
               !ucs_test_all_flags(dv_attr.dc_odp_caps, needed)) {
        dev->odp_fault = "it has no on-demand paging for DC";
    } else if (uct_dcx_device_cap(out, PRM_HCA_CAP_DP_ORDERING_OOO_ALL_DC)) {
        /* issue 4238670 of NVIDIA, see ib_mlx5dv_md.c of UCX 1.22 */
        dev->odp_fault = "it places data out of order (DDP), which excludes "
                         "on-demand paging";
    } else {
        dev->odp_fault = NULL;
    }
}


/* Queries the features of which the kernel has a part. */
static void uct_dcx_device_query_kernel(uct_dcx_device_t *dev,
                                        const struct prm_query_hca_cap_out *out)
{
    struct ibv_device_attr_ex attr = {};

    if (ibv_query_device_ex(dev->ctx, NULL, &attr) != 0) {
        ucs_log(uct_dcx_device_refusal_level(errno),
                "%s: ibv_query_device_ex() failed: %m; continuing without tag "
                "matching and on-demand paging",
                uct_dcx_device_name(dev));
        dev->odp_fault = "ibv_query_device_ex() failed";
        return;
    }

    uct_dcx_device_query_tm(dev, out, &attr);
    uct_dcx_device_query_odp(dev, out, &attr);
}


static void uct_dcx_device_query_general(uct_dcx_device_t *dev)
{
    struct prm_query_hca_cap_out out;
    const uint8_t *page = out.cap.bytes;

    dev->max_rd_atomic = ucs_max(dev->attr.max_qp_init_rd_atom, 1);
    if (uct_dcx_device_query_cap(dev, PRM_CAP_GENERAL, &out) != UCS_OK) {
        dev->compact_av  = 1;
        dev->may_reorder = 1;
        dev->odp_fault   = "it does not answer QUERY_HCA_CAP";
        return;
    }

    if (!uct_dcx_device_cap(&out, PRM_HCA_CAP_ATOMIC)) {
        /* The page of atomics does not count then (get_atomic_mode() of
         * mlx5_ib). */
        dev->atomic.std = dev->atomic.ext = 0;
    }

    dev->answers       = 1;
    dev->compact_av    = uct_dcx_device_cap(&out,
                                            PRM_HCA_CAP_COMPACT_ADDRESS_VECTOR);
    dev->indirect_keys = uct_dcx_device_cap(&out,
                                            PRM_HCA_CAP_FIXED_BUFFER_SIZE);
    dev->indirect_atomics =
        !uct_dcx_device_cap(&out, PRM_HCA_CAP_UMR_MODIFY_ATOMIC_DISABLED);
    dev->ts_format = page[PRM_HCA_CAP_SQ_TS_FORMAT] >>
                     PRM_HCA_CAP_TS_FORMAT_SHIFT;
    dev->max_rd_atomic =
        ucs_min(dev->max_rd_atomic,
                UCS_BIT(page[PRM_HCA_CAP_LOG_RA_REQ_DC] & PRM_HCA_CAP_LOG_RA));
    dev->is_lag      = uct_dcx_device_is_lag(dev);
    dev->has_lag_dct = (page[PRM_HCA_CAP_LAG_DCT] & PRM_HCA_CAP_TWO_BITS) != 0;
    uct_dcx_device_query_umr(dev, &out);
    uct_dcx_device_query_order(dev, &out);
    uct_dcx_device_query_kernel(dev, &out);
}


/* Loads the profile. It enables features that have no capability bit, and
 * disables those whose probes failed. */
static void uct_dcx_device_load_profile(uct_dcx_device_t *dev,
                                        const char *option)
{
    uct_dcx_profile_id_t id;
    uint32_t passed, failed;

    uct_dcx_profile_identify(&id, dev->ctx->device, &dev->attr);
    uct_dcx_profile_load(&dev->profile, option, &id);
    passed = dev->profile.passed;
    failed = dev->profile.failed;
    if (failed & UCS_BIT(UCT_DCX_PROFILE_KSM)) {
        dev->indirect_keys = 0;
    }
    if (failed & UCS_BIT(UCT_DCX_PROFILE_UMR)) {
        dev->umr.has_keys = 0;
    }
    if (failed & UCS_BIT(UCT_DCX_PROFILE_TM)) {
        dev->tm.max_tags = 0;
    }
    if (dev->profile.levels > 0) {
        dev->umr.max_depth = ucs_min(dev->umr.max_depth, dev->profile.levels);
    }
    dev->umr.has_nests = dev->umr.has_rows &&
                         (passed & UCS_BIT(UCT_DCX_PROFILE_NESTS));
    dev->umr.max_inline = (passed & UCS_BIT(UCT_DCX_PROFILE_INLINE)) ?
                              UCT_DCX_DEVICE_MAX_INLINE :
                              UCT_DCX_DEVICE_PROVEN_INLINE;
    dev->tm.has_keys    = (dev->tm.max_tags > 0) &&
                       (passed & UCS_BIT(UCT_DCX_PROFILE_TM_KEYS));
}


/* Finds out whether there is DC, for which no capability flag exists. The
 * kernel refuses to create a DCI on a device that lacks it (mlx5_ib,
 * check_qp_type), and targets on a bond that has no lag_dct (create_dct). */
static void uct_dcx_device_probe_dc(uct_dcx_device_t *dev)
{
    struct ibv_qp_init_attr_ex attr = {
        .qp_type   = IBV_QPT_DRIVER,
        .comp_mask = IBV_QP_INIT_ATTR_PD,
        .pd        = dev->pd,
        .cap       = {.max_send_wr = 1, .max_send_sge = 1},
    };
    struct mlx5dv_qp_init_attr dv_attr = {
        .comp_mask    = MLX5DV_QP_INIT_ATTR_MASK_DC,
        .dc_init_attr = {.dc_type = MLX5DV_DCTYPE_DCI},
    };
    struct ibv_cq *cq;
    struct ibv_qp *qp;

    if (dev->is_lag && !dev->has_lag_dct) {
        return;
    }

    cq = ibv_create_cq(dev->ctx, 1, NULL, NULL, 0);
    if (cq == NULL) {
        ucs_error("%s: failed to create a completion queue to probe for DC: "
                  "%m; continuing without dcx",
                  uct_dcx_device_name(dev));
        return;
    }

    attr.send_cq = attr.recv_cq = cq;
    qp                          = mlx5dv_create_qp(dev->ctx, &attr, &dv_attr);
    if (qp == NULL) {
        ucs_log(uct_dcx_device_refusal_level(errno),
                "%s: no initiator to probe for DC: %m; continuing without dcx",
                uct_dcx_device_name(dev));
    } else {
        dev->has_dc = 1;
        ibv_destroy_qp(qp);
    }
    ibv_destroy_cq(cq);
}


/* Queries the streams of a DCI from libmlx5, which gets them with
 * QUERY_HCA_CAP. */
static void uct_dcx_device_query_streams(uct_dcx_device_t *dev)
{
    struct mlx5dv_context attr = {
        .comp_mask = MLX5DV_CONTEXT_MASK_DCI_STREAMS,
    };

    if ((mlx5dv_query_device(dev->ctx, &attr) == 0) &&
        (attr.comp_mask & MLX5DV_CONTEXT_MASK_DCI_STREAMS)) {
        dev->log_streams = attr.dci_streams_caps.max_log_num_concurent;
        dev->log_errored = attr.dci_streams_caps.max_log_num_errored;
    }
}


static void uct_dcx_device_find_bus(uct_dcx_device_t *dev)
{
    char path[PATH_MAX], resolved[PATH_MAX];

    dev->sys_device = UCS_SYS_DEVICE_ID_UNKNOWN;
    snprintf(path, sizeof(path), "%.*s/device", PATH_MAX - 16,
             dev->ctx->device->ibdev_path);
    if ((realpath(path, resolved) != NULL) &&
        (ucs_topo_find_device_by_bdf_name(ucs_basename(resolved),
                                          &dev->sys_device) == UCS_OK)) {
        uct_dcx_ucx_name_device(dev->sys_device, uct_dcx_device_name(dev));
    }
}


/* Parses a list of numbers and ranges: "0-15,32-47". */
static void uct_dcx_device_parse_cpus(ucs_cpu_set_t *cpus, char *list)
{
    unsigned long cpu, last;

    while (isdigit(*list)) {
        cpu  = strtoul(list, &list, 10);
        last = (*list == '-') ? strtoul(list + 1, &list, 10) : cpu;
        for (; (cpu <= last) && (cpu < UCS_CPU_SETSIZE); ++cpu) {
            UCS_CPU_SET(cpu, cpus);
        }
        list += (*list == ',');
    }
}


static void uct_dcx_device_find_cpus(uct_dcx_device_t *dev)
{
    char list[4096]; /* no file of sysfs is longer */

    /* Without the file, all processors count as local. */
    memset(&dev->local_cpus, 0xff, sizeof(dev->local_cpus));
    if (ucs_read_file_str(list, sizeof(list), 1, "%s/device/local_cpulist",
                          dev->ctx->device->ibdev_path) > 0) {
        UCS_CPU_ZERO(&dev->local_cpus);
        uct_dcx_device_parse_cpus(&dev->local_cpus, list);
    }
}


static ucs_status_t uct_dcx_device_open_context(uct_dcx_device_t *dev,
                                                struct ibv_device *ibdev,
                                                ucs_ternary_auto_value_t devx)
{
    struct mlx5dv_context_attr attr = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};
    const char *name                = ibv_get_device_name(ibdev);

    if (devx != UCS_NO) {
        dev->ctx      = mlx5dv_open_device(ibdev, &attr);
        dev->has_devx = (dev->ctx != NULL);
        if (dev->has_devx) {
            return UCS_OK;
        }

        if (devx == UCS_YES) {
            ucs_error("%s: failed to open with DEVX: %m; UCX_DCX_DEVX=try "
                      "continues without it",
                      name);
            return UCS_ERR_UNSUPPORTED;
        }
        ucs_log(uct_dcx_device_refusal_level(errno),
                "%s: failed to open with DEVX: %m; continuing without DEVX",
                name);
    }

    /* libmlx5 itself asks for DEVX here, too; dcx gives no command. */
    dev->ctx = ibv_open_device(ibdev);
    if (dev->ctx == NULL) {
        /* A process that may not use the device does without it. */
        ucs_log(((errno == EACCES) || (errno == EPERM) || (errno == ENOENT)) ?
                    UCS_LOG_LEVEL_DIAG :
                    UCS_LOG_LEVEL_ERROR,
                "%s: failed to open: %m; is /dev/infiniband accessible?", name);
        return UCS_ERR_IO_ERROR;
    }

    return UCS_OK;
}


static ucs_status_t uct_dcx_device_init_pd(uct_dcx_device_t *dev)
{
    struct mlx5dv_pd dv_pd = {};
    struct mlx5dv_obj obj  = {.pd = {.out = &dv_pd}};

    dev->pd = ibv_alloc_pd(dev->ctx);
    if (dev->pd == NULL) {
        ucs_error("%s: ibv_alloc_pd() failed: %m", uct_dcx_device_name(dev));
        return UCS_ERR_IO_ERROR;
    }

    obj.pd.in = dev->pd;
    if (mlx5dv_init_obj(&obj, MLX5DV_OBJ_PD) != 0) {
        ucs_error("%s: mlx5dv_init_obj(pd) failed: %m",
                  uct_dcx_device_name(dev));
        ibv_dealloc_pd(dev->pd);
        return UCS_ERR_IO_ERROR;
    }

    dev->pdn = dv_pd.pdn;
    return UCS_OK;
}


/* Logs the device, with a word for each missing or reduced capability. */
static void uct_dcx_device_log(const uct_dcx_device_t *dev)
{
    const char *tm_fault = uct_dcx_device_tm_fault(dev);

    ucs_info(
        "%s (%s): %s%s%s, tag matching %s, %u levels of mkeys, %u "
        "translations in a WQE%s%s%s%s%s%s",
        uct_dcx_device_name(dev), dev->attr.fw_ver,
        dev->has_dc ? "DC" : "no DC",
        (dev->mem_access & IBV_ACCESS_REMOTE_ATOMIC) ? "" : ", no atomics",
        dev->indirect_keys ? "" : ", no indirect mkeys",
        (tm_fault == NULL) ? "yes" : "no", dev->umr.max_depth,
        dev->umr.max_inline, dev->umr.has_rows ? "" : ", no repeated blocks",
        dev->umr.has_nests ? "" : ", no repeated blocks over layouts",
        dev->indirect_atomics ? "" : ", no atomics on indirect mkeys",
        (dev->odp_fault == NULL) ? "" : ", no on-demand paging",
        (dev->umr.fence == PRM_UMR_FENCE_STRONG) ?
            ", strong ordering after a UMR" :
            "",
        (dev->ts_format == PRM_TS_FORMAT_REAL_TIME) ? ", real-time timestamps "
                                                      "only" :
                                                      "");
}


ucs_status_t uct_dcx_device_open(uct_dcx_device_t *dev,
                                 struct ibv_device *ibdev,
                                 ucs_ternary_auto_value_t devx,
                                 ucs_ternary_auto_value_t ext_atomics,
                                 const char *profile)
{
    ucs_status_t status;

    memset(dev, 0, sizeof(*dev));
    status = uct_dcx_device_open_context(dev, ibdev, devx);
    if (status != UCS_OK) {
        return status;
    }

    if (ibv_query_device(dev->ctx, &dev->attr) != 0) {
        ucs_error("%s: ibv_query_device() failed: %m",
                  uct_dcx_device_name(dev));
        goto err_close;
    }

    if (uct_dcx_device_init_pd(dev) != UCS_OK) {
        goto err_close;
    }

    uct_dcx_device_query_atomics(dev, ext_atomics);
    uct_dcx_device_query_general(dev);
    dev->mem_access =
        UCT_DCX_DEVICE_MEM_ACCESS |
        ((dev->atomic.std || dev->atomic.ext) ? IBV_ACCESS_REMOTE_ATOMIC : 0);
    uct_dcx_device_load_profile(dev, profile);
    uct_dcx_device_probe_dc(dev);
    uct_dcx_device_query_streams(dev);
    uct_dcx_device_find_bus(dev);
    uct_dcx_device_find_cpus(dev);
    uct_dcx_device_log(dev);
    return UCS_OK;

err_close:
    ibv_close_device(dev->ctx);
    return UCS_ERR_IO_ERROR;
}


void uct_dcx_device_close(uct_dcx_device_t *dev)
{
    const char *name = uct_dcx_device_name(dev);

    if (ibv_dealloc_pd(dev->pd) != 0) {
        ucs_warn("%s: failed to free the protection domain: %m", name);
    }
    if (ibv_close_device(dev->ctx) != 0) {
        ucs_warn("an mlx5 device could not be closed: %m");
    }
}


const char *uct_dcx_device_dc_fault(const uct_dcx_device_t *dev)
{
    return dev->has_dc ?
               NULL :
           (dev->is_lag && !dev->has_lag_dct) ?
               "its ports are bonded, and its firmware does not support DC on "
               "a bond" :
               "it has no DC transport";
}


const char *uct_dcx_device_tm_fault(const uct_dcx_device_t *dev)
{
    return !dev->has_devx          ? "it was opened without DEVX" :
           !dev->answers           ? "it does not answer QUERY_HCA_CAP" :
           (dev->tm.max_tags == 0) ? "it has no tag matching" :
           !dev->tm.rndv_dc        ? "it does not support rendezvous over DC" :
                                     NULL;
}
