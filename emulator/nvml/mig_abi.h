#pragma once

#include "nvml/nvml_abi.h"

// NVML's structures for MIG, declared by their layout as in nvml_abi.h.

namespace gpu_emulator {

struct GpuInstancePlacement {
  unsigned int start;
  unsigned int size;  // memory slices
};
static_assert(sizeof(GpuInstancePlacement) == 8);

struct GpuInstanceProfileInfo {
  unsigned int id;
  unsigned int is_p2p_supported;
  unsigned int slice_count;
  unsigned int instance_count;
  unsigned int multiprocessor_count;
  unsigned int copy_engine_count;
  unsigned int decoder_count;
  unsigned int encoder_count;
  unsigned int jpeg_count;
  unsigned int ofa_count;
  unsigned long long memory_size_mib;
};
static_assert(sizeof(GpuInstanceProfileInfo) == 48);

struct GpuInstanceProfileInfoV2 {
  unsigned int version;
  unsigned int id;
  unsigned int is_p2p_supported;
  unsigned int slice_count;
  unsigned int instance_count;
  unsigned int multiprocessor_count;
  unsigned int copy_engine_count;
  unsigned int decoder_count;
  unsigned int encoder_count;
  unsigned int jpeg_count;
  unsigned int ofa_count;
  unsigned long long memory_size_mib;
  char name[96];
};
static_assert(version_of<GpuInstanceProfileInfoV2>(2) == 0x02000098);

struct GpuInstanceProfileInfoV3 {
  unsigned int version;
  unsigned int id;
  unsigned int slice_count;
  unsigned int instance_count;
  unsigned int multiprocessor_count;
  unsigned int copy_engine_count;
  unsigned int decoder_count;
  unsigned int encoder_count;
  unsigned int jpeg_count;
  unsigned int ofa_count;
  unsigned long long memory_size_mib;
  char name[96];
  unsigned int capabilities;
};
static_assert(version_of<GpuInstanceProfileInfoV3>(3) == 0x03000098);

struct GpuInstanceInfo {
  DeviceHandle* device;
  unsigned int id;
  unsigned int profile_id;
  GpuInstancePlacement placement;
};
static_assert(sizeof(GpuInstanceInfo) == 24);

struct ComputeInstanceProfileInfo {
  unsigned int id;
  unsigned int slice_count;
  unsigned int instance_count;
  unsigned int multiprocessor_count;
  unsigned int shared_copy_engine_count;
  unsigned int shared_decoder_count;
  unsigned int shared_encoder_count;
  unsigned int shared_jpeg_count;
  unsigned int shared_ofa_count;
};
static_assert(sizeof(ComputeInstanceProfileInfo) == 36);

struct ComputeInstanceProfileInfoV2 {
  unsigned int version;
  unsigned int id;
  unsigned int slice_count;
  unsigned int instance_count;
  unsigned int multiprocessor_count;
  unsigned int shared_copy_engine_count;
  unsigned int shared_decoder_count;
  unsigned int shared_encoder_count;
  unsigned int shared_jpeg_count;
  unsigned int shared_ofa_count;
  char name[96];
};
static_assert(version_of<ComputeInstanceProfileInfoV2>(2) == 0x02000088);

struct ComputeInstanceProfileInfoV3 {
  unsigned int version;
  unsigned int id;
  unsigned int slice_count;
  unsigned int instance_count;
  unsigned int multiprocessor_count;
  unsigned int shared_copy_engine_count;
  unsigned int shared_decoder_count;
  unsigned int shared_encoder_count;
  unsigned int shared_jpeg_count;
  unsigned int shared_ofa_count;
  char name[96];
  unsigned int capabilities;
};
static_assert(version_of<ComputeInstanceProfileInfoV3>(3) == 0x0300008c);

struct ComputeInstancePlacement {
  unsigned int start;
  unsigned int size;  // compute slices of the GPU instance
};
static_assert(sizeof(ComputeInstancePlacement) == 8);

struct ComputeInstanceInfo {
  DeviceHandle* device;
  GpuInstanceHandle* gpu_instance;
  unsigned int id;
  unsigned int profile_id;
  ComputeInstancePlacement placement;
};
static_assert(sizeof(ComputeInstanceInfo) == 32);

struct DeviceAttributes {
  unsigned int multiprocessor_count;
  unsigned int shared_copy_engine_count;
  unsigned int shared_decoder_count;
  unsigned int shared_encoder_count;
  unsigned int shared_jpeg_count;
  unsigned int shared_ofa_count;
  unsigned int gpu_instance_slice_count;
  unsigned int compute_instance_slice_count;
  unsigned long long memory_size_mib;
};
static_assert(sizeof(DeviceAttributes) == 40);

}  // namespace gpu_emulator
