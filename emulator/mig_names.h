#pragma once

#include <cstdint>
#include <cstdio>
#include <cstring>

#include "board_mig.h"

// What instances of MIG are called: names, UUIDs and the minor numbers of their devices. Header
// only and without allocation, as board_mig.h.

namespace gpu_emulator {

// "3g.40gb", and "1c.3g.40gb" for a compute instance of a part of it.
inline constexpr std::size_t kMigNameBytes = 48;
inline void write_mig_name(const MigProfile& profile, std::uint32_t slices,
                           char (&out)[kMigNameBytes]) {
  const char* name = profile.name;
  if (slices == profile.slices) {
    std::snprintf(out, sizeof out, "%s", name);
  } else {
    std::snprintf(out, sizeof out, "%uc.%s", static_cast<unsigned>(slices), name);
  }
}

inline std::uint64_t mig_hash(const char* text, const InstanceId& id, std::uint64_t seed) {
  constexpr std::uint64_t kPrime = 0x100000001b3;
  std::uint64_t hash = 0xcbf29ce484222325 ^ seed;
  for (; *text != '\0'; ++text) hash = (hash ^ static_cast<unsigned char>(*text)) * kPrime;
  hash = (hash ^ id.gpu_instance) * kPrime;
  hash = (hash ^ id.compute_instance) * kPrime;
  hash = (hash ^ hash >> 29) * 0xbf58476d1ce4e5b9;
  return hash ^ hash >> 32;
}

// The UUID of a compute instance: the same for the same instance of the same GPU, as the driver has
// it since branch 470.
inline constexpr std::size_t kMigUuidBytes = 48;
inline void write_mig_uuid(const GpuState& gpu, const InstanceId& id, char (&out)[kMigUuidBytes]) {
  const std::uint64_t high = mig_hash(gpu.uuid, id, 1);
  const std::uint64_t low = mig_hash(gpu.uuid, id, 2);
  std::snprintf(out, sizeof out, "MIG-%08llx-%04llx-5%03llx-%04llx-%012llx",
                static_cast<unsigned long long>(high >> 32),
                static_cast<unsigned long long>(high >> 16 & 0xffff),
                static_cast<unsigned long long>(high & 0xfff),
                static_cast<unsigned long long>(0x8000 | (low >> 48 & 0x3fff)),
                static_cast<unsigned long long>(low & 0xffff'ffff'ffff));
}

// Finds the compute instance of this UUID on the GPU. Returns false if there is none.
inline bool find_mig_uuid(const GpuState& gpu, const char* uuid, std::size_t length,
                          InstanceId* out) {
  bool is_found = false;
  visit_compute_instances(gpu, [&](const InstanceId& id) {
    char known[kMigUuidBytes];
    write_mig_uuid(gpu, id, known);
    is_found = std::strncmp(known, uuid, length) == 0 && known[length < 40 ? length : 40] == '\0';
    if (is_found) *out = id;
    return is_found;
  });
  return is_found;
}

// The minor numbers of the devices that open the way to an instance, below the major number of
// nvidia-caps. The driver numbers all instances that there could be.
inline constexpr std::uint32_t kMigConfigMinor = 1;
inline constexpr std::uint32_t kMigMonitorMinor = 2;
inline std::uint32_t capability_minor(std::uint32_t gpu_minor, const InstanceId& id) {
  constexpr std::uint32_t kFirst = 3;
  constexpr std::uint32_t kOfGpuInstance = kMaxComputeInstances + 1;
  const std::uint32_t own =
      kFirst + gpu_minor * kMaxGpuInstances * kOfGpuInstance + id.gpu_instance * kOfGpuInstance;
  return id.compute_instance == kNoId ? own : own + 1 + id.compute_instance;
}

}  // namespace gpu_emulator
