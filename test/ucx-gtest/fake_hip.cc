/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * HIP for UCX's tests, with the memory of a fake GPU (fake_gpu.h). The library
 * adds the transport of that memory to UCX, too (fake_gpu_ucx.h). It has no
 * managed memory.
 */
#include "fake_gpu.h"
#include "hip_runtime.h"

hipError_t hipGetDeviceCount(int *count)
{
    const char *types = getenv("DCX_TEST_GPU_TYPES");

    *count = (types == NULL) || strcmp(types, "none");
    return hipSuccess;
}

hipError_t hipSetDevice(int)
{
    return hipSuccess;
}

hipError_t hipDeviceGetAttribute(int *, hipDeviceAttribute_t, int)
{
    return hipErrorNotSupported;
}

hipError_t hipDeviceSynchronize(void)
{
    return hipSuccess;
}

hipError_t hipMalloc(void **addr, size_t length)
{
    *addr = (new fake_gpu((length + 4095) & ~4095ul))->addr;
    return hipSuccess;
}

hipError_t hipMallocManaged(void **, size_t)
{
    return hipErrorNotSupported;
}

hipError_t hipFree(void *addr)
{
    delete fake_gpu::find(addr);
    return hipSuccess;
}

hipError_t hipPointerGetAttributes(hipPointerAttribute_t *, const void *)
{
    return hipErrorNotSupported;
}

hipError_t hipMemset(void *addr, int value, size_t length)
{
    memset(fake_gpu_place(addr), value, length);
    return hipSuccess;
}

hipError_t hipMemcpy(void *to, const void *from, size_t length, hipMemcpyKind)
{
    memcpy(fake_gpu_place(to), fake_gpu_place(from), length);
    return hipSuccess;
}
