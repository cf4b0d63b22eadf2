/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The memory of fake_gpu.h as UCX sees it: a component and a transport with the
 * name of UCX's own for ROCm, as UCX's tests name that one. It detects the
 * memory, passes its dma-buf since UCX 1.14, and copies it. Registered when the
 * program starts. Its memory type is ROCm's; with DCX_TEST_GPU_TYPES=all CUDA's
 * managed memory, too, and with "none" there is no device.
 */
#ifndef DCX_TEST_FAKE_GPU_UCX_H
#define DCX_TEST_FAKE_GPU_UCX_H

#include <stddef.h>

/* Defined by fake_gpu.h, which is C++ */

/* Returns 1 for memory of the GPU. */
int fake_gpu_has(const void *address);

/* Returns the place where the processor may access a byte: for any memory. */
void *fake_gpu_place(const void *address);

/* Returns the first byte and the length of memory of the GPU. Stores a new
 * descriptor of its file in @fd_p, unless this is NULL. */
void *fake_gpu_range(const void *address, size_t *length, int *fd_p);

/* Number of bytes that the transport has copied */
extern size_t fake_gpu_num_copied;

#endif
