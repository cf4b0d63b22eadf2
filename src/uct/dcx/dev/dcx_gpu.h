/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Finds out how memory of GPUs can be registered: as a dma-buf, if the device's
 * driver takes one; or like other memory, if a module of the kernel tells the
 * driver the pages (peer memory). Called when a domain opens.
 */
#ifndef UCT_DCX_GPU_H
#define UCT_DCX_GPU_H

#include <infiniband/verbs.h>
#include <stdint.h>


/* Returns the memory types, a mask of UCS_BIT(UCS_MEMORY_TYPE_*), for which the
 * kernel has peer memory: CUDA and ROCm, by the files that UCX looks for
 * (uct_ib_md_open_common() in ib_md.c). /dev/kfd is no proof: the kernel has it
 * without peer memory, too. */
uint64_t uct_dcx_gpu_peer_types(void);

/* Returns 1 if the kernel and the driver of @pd register dma-bufs. */
int uct_dcx_gpu_has_dmabuf(struct ibv_pd *pd);

#endif
