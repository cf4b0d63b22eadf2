/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Probes for memory of GPUs; see dcx_gpu.h.
 */
#include "dcx_gpu.h"
#include "uct/dcx/ucx/dcx_ucx.h"

#include <errno.h>
#include <ucs/debug/log.h>
#include <ucs/sys/sys.h>
#include <unistd.h>


uint64_t uct_dcx_gpu_peer_types(void)
{
    static const struct {
        const char *path;
        ucs_memory_type_t type;
    } files[] = {
        {"/sys/kernel/mm/memory_peers/nv_mem/version", UCS_MEMORY_TYPE_CUDA},
        {"/sys/module/nvidia_peermem/version", UCS_MEMORY_TYPE_CUDA},
        {"/sys/module/nv_peer_mem/version", UCS_MEMORY_TYPE_CUDA},
        {"/dev/kfd", UCS_MEMORY_TYPE_ROCM},
    };
    uint64_t types = 0;
    unsigned i;

    for (i = 0; i < ucs_static_array_size(files); ++i) {
        if (access(files[i].path, F_OK) == 0) {
            ucs_debug("peer memory: %s exists", files[i].path);
            types |= UCS_BIT(files[i].type);
        }
    }
    return types;
}


/* A kernel and a driver with dma-bufs answer EBADF, others EOPNOTSUPP. */
int uct_dcx_gpu_has_dmabuf(struct ibv_pd *pd)
{
    struct ibv_mr *mr;

    errno = 0;
    mr    = ibv_reg_dmabuf_mr(pd, 0, ucs_get_page_size(), 0, -1,
                              IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
                                  IBV_ACCESS_REMOTE_WRITE);
    if (mr != NULL) {
        ucs_warn("a dma-buf was registered without a file");
        (void)ibv_dereg_mr(mr);
        return 0;
    }

    ucs_debug("ibv_reg_dmabuf_mr() without a file: %m");
    return errno == EBADF;
}
