/* The device: one, of compute capability 9.0. Compiled with the headers of CUDA, for the layout of their structures. */

#define _GNU_SOURCE
#include <dlfcn.h>

/* The headers include one of the compiler nvcc, which is not installed beside torch; these are its words they use. */
#define __DOXYGEN_ONLY__
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __builtin_align__(bytes) __align__(bytes)
#define __device_builtin__
#include <driver_types.h>

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "stub.h"

enum { THREADS_PER_BLOCK = 1024, REGISTERS = 65536, GRID = 65535 };

static struct cudaDeviceProp properties(void) {
    struct cudaDeviceProp all = {
        .name = "nosync-lint stub device",
        .totalGlobalMem = device_bytes(),
        .sharedMemPerBlock = 48 << 10,
        .sharedMemPerBlockOptin = 227 << 10,
        .sharedMemPerMultiprocessor = 228 << 10,
        .regsPerBlock = REGISTERS,
        .regsPerMultiprocessor = REGISTERS,
        .warpSize = 32,
        .memPitch = INT32_MAX,
        .maxThreadsPerBlock = THREADS_PER_BLOCK,
        .maxThreadsDim = {THREADS_PER_BLOCK, THREADS_PER_BLOCK, 64},
        .maxGridSize = {INT32_MAX, GRID, GRID},
        .totalConstMem = 64 << 10,
        .major = 9,
        .minor = 0,
        .textureAlignment = 512,
        .multiProcessorCount = 132,
        .l2CacheSize = 50 << 20,
        .maxThreadsPerMultiProcessor = 2048,
        .maxBlocksPerMultiProcessor = 32,
        .unifiedAddressing = 1,
        .canMapHostMemory = 1,
        .concurrentKernels = 1,
        .cooperativeLaunch = 1,
    };
    return all;
}

Status cudaGetDeviceCount(int *count) {
    *count = 1;
    return SUCCESS;
}

Status cudaGetDeviceProperties(struct cudaDeviceProp *all, int device) {
    (void)device;
    *all = properties();
    return SUCCESS;
}

Status cudaGetDeviceProperties_v2(struct cudaDeviceProp *all, int device) {
    return cudaGetDeviceProperties(all, device);
}

Status cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device) {
    (void)device;
    struct cudaDeviceProp all = properties();
    switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: *value = all.maxThreadsPerBlock; break;
    case cudaDevAttrMaxBlockDimX: *value = all.maxThreadsDim[0]; break;
    case cudaDevAttrMaxBlockDimY: *value = all.maxThreadsDim[1]; break;
    case cudaDevAttrMaxBlockDimZ: *value = all.maxThreadsDim[2]; break;
    case cudaDevAttrMaxGridDimX: *value = all.maxGridSize[0]; break;
    case cudaDevAttrMaxGridDimY: *value = all.maxGridSize[1]; break;
    case cudaDevAttrMaxGridDimZ: *value = all.maxGridSize[2]; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = (int)all.sharedMemPerBlock; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = (int)all.sharedMemPerBlockOptin; break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: *value = (int)all.sharedMemPerMultiprocessor; break;
    case cudaDevAttrMaxRegistersPerBlock: *value = all.regsPerBlock; break;
    case cudaDevAttrMaxRegistersPerMultiprocessor: *value = all.regsPerMultiprocessor; break;
    case cudaDevAttrWarpSize: *value = all.warpSize; break;
    case cudaDevAttrMultiProcessorCount: *value = all.multiProcessorCount; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *value = all.maxThreadsPerMultiProcessor; break;
    case cudaDevAttrMaxBlocksPerMultiprocessor: *value = all.maxBlocksPerMultiProcessor; break;
    case cudaDevAttrL2CacheSize: *value = all.l2CacheSize; break;
    case cudaDevAttrComputeCapabilityMajor: *value = all.major; break;
    case cudaDevAttrComputeCapabilityMinor: *value = all.minor; break;
    case cudaDevAttrUnifiedAddressing: *value = all.unifiedAddressing; break;
    case cudaDevAttrCanMapHostMemory: *value = all.canMapHostMemory; break;
    case cudaDevAttrConcurrentKernels: *value = all.concurrentKernels; break;
    case cudaDevAttrCooperativeLaunch: *value = all.cooperativeLaunch; break;
    default: *value = 0; /* a feature that this device lacks */
    }
    return SUCCESS;
}

Status cudaDeviceGetPCIBusId(char *id, int length, int device) {
    snprintf(id, (size_t)length, "0000:01:%02x.0", device);
    return SUCCESS;
}

Status cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *kernel) {
    (void)kernel;
    *attributes = (struct cudaFuncAttributes){
        .maxThreadsPerBlock = THREADS_PER_BLOCK, .numRegs = 32, .ptxVersion = 90, .binaryVersion = 90};
    return SUCCESS;
}

const char *cudaGetErrorString(Status status) {
    switch (status) {
    case SUCCESS: return "no error";
    case INVALID_VALUE: return "invalid argument";
    case OUT_OF_MEMORY: return "out of memory";
    case ALREADY_REGISTERED: return "part or all of the requested memory range is already mapped";
    case NOT_REGISTERED: return "pointer does not correspond to a registered memory region";
    case CAPTURE_UNSUPPORTED: return "operation not permitted when stream is capturing";
    default: return "an error of the stub runtime";
    }
}

const char *cudaGetErrorName(Status status) { return cudaGetErrorString(status); }

static Status succeed(void) { return SUCCESS; }

/* Functions of the driver: of the stub driver where it has them, else one that does nothing. */
static Status entry_point(const char *name, void **function, int *found) {
    void *known = dlsym(RTLD_DEFAULT, name);
    *function = known != NULL ? known : (void *)succeed;
    if (found != NULL)
        *found = cudaDriverEntryPointSuccess;
    return SUCCESS;
}

Status cudaGetDriverEntryPoint(const char *name, void **function, unsigned long long flags, int *found) {
    (void)flags;
    return entry_point(name, function, found);
}

Status cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned version, unsigned long long flags,
                                        int *found) {
    (void)version, (void)flags;
    return entry_point(name, function, found);
}
