/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The functions of HIP, the library of AMD's GPUs, that UCX's tests call; those
 * of fake_hip.cc. An error is any value but hipSuccess.
 */
#ifndef DCX_TEST_HIP_RUNTIME_H
#define DCX_TEST_HIP_RUNTIME_H

#include <stddef.h>

#define HIP_VERSION 60000000

typedef enum { hipSuccess, hipErrorNotSupported } hipError_t;

typedef enum { hipMemoryTypeUnified } hipMemoryType;

/* Older versions of HIP call the type memoryType. */
typedef struct {
    hipMemoryType type, memoryType;
} hipPointerAttribute_t;

typedef enum { hipMemcpyDefault } hipMemcpyKind;

typedef enum { hipDeviceAttributeImageSupport } hipDeviceAttribute_t;

extern "C" {
hipError_t hipGetDeviceCount(int *count);
hipError_t hipSetDevice(int device);
hipError_t hipDeviceGetAttribute(int *value, hipDeviceAttribute_t attr,
                                 int device);
hipError_t hipDeviceSynchronize(void);

hipError_t hipMalloc(void **addr, size_t length);
hipError_t hipMallocManaged(void **addr, size_t length);
hipError_t hipFree(void *addr);
hipError_t hipPointerGetAttributes(hipPointerAttribute_t *attr,
                                   const void *addr);

hipError_t hipMemset(void *addr, int value, size_t length);
hipError_t hipMemcpy(void *to, const void *from, size_t length,
                     hipMemcpyKind kind);
}

#endif
