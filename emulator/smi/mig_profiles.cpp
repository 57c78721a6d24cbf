#include "smi/mig_profiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace gpu_emulator {

namespace {

using Profile = GpuInstanceProfileInfoV2;

// By their sizes, as the original lists them.
std::vector<Profile> profiles_of(const Gpu& gpu) {
  constexpr unsigned int kProfiles = 16;  // more than NVML has
  std::vector<Profile> found;
  for (unsigned int i = 0; i < kProfiles; ++i) {
    Profile profile{};
    profile.version = version_of<Profile>(2);
    const Return status = gpu.call<decltype(nvmlDeviceGetGpuInstanceProfileInfoV)>(
        "nvmlDeviceGetGpuInstanceProfileInfoV", i, &profile);
    if (status == kSuccess) found.push_back(profile);
  }
  std::ranges::stable_sort(found, {}, &Profile::slice_count);
  return found;
}

unsigned int free_instances(const Gpu& gpu, const Profile& profile) {
  unsigned int count = 0;
  const Return status = gpu.call<decltype(nvmlDeviceGetGpuInstanceRemainingCapacity)>(
      "nvmlDeviceGetGpuInstanceRemainingCapacity", profile.id, &count);
  return status == kSuccess ? count : 0;
}

std::string full_name(const Profile& profile) {
  const std::string_view name = profile.name;
  return name.starts_with("MIG ") ? std::string(name) : fmt::format("MIG {}", name);
}

std::string rows_of_profile(const Gpu& gpu, const Profile& profile) {
  const std::string count =
      fmt::format("{}/{}", free_instances(gpu, profile), profile.instance_count);
  const std::string memory =
      fmt::format("{:.2f}", static_cast<double>(profile.memory_size_mib) / 1024);
  return fmt::format("|{:>4}  {:<16}{:>4}{:>8}        {:<11}{:<3}{:>6}{:>6}{:>6}   |\n",
                     gpu.index(), full_name(profile), profile.id, count, memory,
                     profile.is_p2p_supported != 0 ? "Yes" : "No", profile.multiprocessor_count,
                     profile.decoder_count, profile.encoder_count) +
         fmt::format("|{:>62}{:>6}{:>6}   |\n", profile.copy_engine_count, profile.jpeg_count,
                     profile.ofa_count);
}

}  // namespace

std::string profile_table(std::span<const Gpu> gpus) {
  const std::string rule = "+" + std::string(77, '-') + "+\n";
  std::string out;
  for (const Gpu& gpu : gpus) {
    for (const Profile& profile : profiles_of(gpu)) out += rows_of_profile(gpu, profile) + rule;
  }
  if (out.empty()) return out;
  return rule +
         "| GPU instance profiles:                                                      |\n"
         "| GPU   Name             ID    Instances   Memory     P2P    SM    DEC   ENC  |\n"
         "|                              Free/Total   GiB              CE    JPEG  OFA  |\n"
         "|" +
         std::string(77, '=') + "|\n" + out;
}

std::string placement_lines(std::span<const Gpu> gpus) {
  std::string out;
  for (const Gpu& gpu : gpus) {
    for (const Profile& profile : profiles_of(gpu)) {
      std::vector<GpuInstancePlacement> places(64);
      auto count = static_cast<unsigned int>(places.size());
      const Return status = gpu.call<decltype(nvmlDeviceGetGpuInstancePossiblePlacements_v2)>(
          "nvmlDeviceGetGpuInstancePossiblePlacements_v2", profile.id, places.data(), &count);
      if (status != kSuccess || count == 0) continue;
      std::string starts;
      for (unsigned int i = 0; i < count; ++i) {
        starts += fmt::format("{}{}", i == 0 ? "" : ",", places[i].start);
      }
      out += fmt::format("GPU {:>2} Profile ID {:>2} Placement{}: {{{}}}:{}\n", gpu.index(),
                         profile.id, count == 1 ? " " : "s", starts, places[0].size);
    }
  }
  return out;
}

}  // namespace gpu_emulator
