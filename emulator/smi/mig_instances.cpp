#include "smi/mig_instances.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace gpu_emulator {

namespace {

using Profile = GpuInstanceProfileInfoV2;
using ComputeProfile = ComputeInstanceProfileInfoV2;

constexpr unsigned int kMaxProfiles = 32;   // more than NVML has
constexpr unsigned int kMaxInstances = 16;  // of one profile

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    words.push_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return words;
}

std::optional<unsigned int> number_of(std::string_view text) {
  unsigned int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Whether -gi or -ci chooses this id; nothing chooses all.
bool is_chosen(const std::string& ids, unsigned int id) {
  if (ids.empty()) return true;
  const auto words = words_of(ids);
  return std::ranges::any_of(words, [&](std::string_view word) { return number_of(word) == id; });
}

// "1g.10gb" of "MIG 1g.10gb"
std::string_view short_name(std::string_view name) {
  return name.starts_with("MIG ") ? name.substr(4) : name;
}

std::vector<Profile> gpu_profiles(const Gpu& gpu) {
  std::vector<Profile> found;
  for (unsigned int i = 0; i < kMaxProfiles; ++i) {
    Profile profile{};
    profile.version = version_of<Profile>(2);
    if (gpu.call<decltype(nvmlDeviceGetGpuInstanceProfileInfoV)>(
            "nvmlDeviceGetGpuInstanceProfileInfoV", i, &profile) == kSuccess) {
      found.push_back(profile);
    }
  }
  return found;
}

std::vector<ComputeProfile> compute_profiles(const Gpu& gpu, nvmlGpuInstance_t instance) {
  std::vector<ComputeProfile> found;
  for (unsigned int i = 0; i < kMaxProfiles; ++i) {
    ComputeProfile profile{};
    profile.version = version_of<ComputeProfile>(2);
    if (gpu.nvml().call<decltype(nvmlGpuInstanceGetComputeInstanceProfileInfoV)>(
            "nvmlGpuInstanceGetComputeInstanceProfileInfoV", instance, i, 0u, &profile) ==
        kSuccess) {
      found.push_back(profile);
    }
  }
  return found;
}

struct Instance {
  nvmlGpuInstance_t handle = nullptr;
  GpuInstanceInfo info{};
  std::string name;  // "MIG 1g.10gb"
};

struct Compute {
  nvmlComputeInstance_t handle = nullptr;
  ComputeInstanceInfo info{};
  std::string name;
};

std::vector<Instance> instances_of(const Gpu& gpu) {
  std::vector<Instance> found;
  for (const Profile& profile : gpu_profiles(gpu)) {
    nvmlGpuInstance_t handles[kMaxInstances] = {};
    unsigned int count = 0;
    if (gpu.call<decltype(nvmlDeviceGetGpuInstances)>("nvmlDeviceGetGpuInstances", profile.id,
                                                      &handles[0], &count) != kSuccess) {
      continue;
    }
    for (unsigned int i = 0; i < count && i < kMaxInstances; ++i) {
      Instance one{handles[i], {}, profile.name};
      gpu.nvml().call<decltype(nvmlGpuInstanceGetInfo)>("nvmlGpuInstanceGetInfo", one.handle,
                                                        &one.info);
      found.push_back(std::move(one));
    }
  }
  std::ranges::sort(
      found, {}, [](const Instance& one) { return std::pair(~one.info.profile_id, one.info.id); });
  return found;
}

std::vector<Compute> computes_of(const Gpu& gpu, const Instance& owner) {
  std::vector<Compute> found;
  for (const ComputeProfile& profile : compute_profiles(gpu, owner.handle)) {
    nvmlComputeInstance_t handles[kMaxInstances] = {};
    unsigned int count = 0;
    if (gpu.nvml().call<decltype(nvmlGpuInstanceGetComputeInstances)>(
            "nvmlGpuInstanceGetComputeInstances", owner.handle, profile.id, &handles[0], &count) !=
        kSuccess) {
      continue;
    }
    for (unsigned int i = 0; i < count && i < kMaxInstances; ++i) {
      Compute one{handles[i], {}, profile.name};
      gpu.nvml().call<decltype(nvmlComputeInstanceGetInfo_v2)>("nvmlComputeInstanceGetInfo_v2",
                                                               one.handle, &one.info);
      found.push_back(std::move(one));
    }
  }
  std::ranges::sort(found, {}, [](const Compute& one) { return one.info.id; });
  return found;
}

bool is_mig_on(const Gpu& gpu) {
  const auto mode = gpu.numbers("nvmlDeviceGetMigMode");
  return mode.status == kSuccess && mode.value.first == 1;
}

std::string framed(std::string_view heading, const std::vector<std::string>& rows) {
  constexpr std::size_t kWidth = 52;
  const std::string rule = "+" + std::string(kWidth, '-') + "+\n";
  std::string out = rule + std::string(heading) + "|" + std::string(kWidth, '=') + "|\n";
  for (const std::string& row : rows) out += row + rule;
  return out;
}

MigOutcome none(const char* what) {
  return {fmt::format("No {} found: Not Found\n", what), kExitNotFound};
}

MigOutcome list_instances(std::span<const Gpu> gpus) {
  std::vector<std::string> rows;
  for (const Gpu& gpu : gpus) {
    for (const Instance& one : instances_of(gpu)) {
      const std::string place =
          fmt::format("{}:{}", one.info.placement.start, one.info.placement.size);
      rows.push_back(fmt::format("|{:>4}  {:<15}{:>4}{:>9}{:>13}     |\n", gpu.index(), one.name,
                                 one.info.profile_id, one.info.id, place));
    }
  }
  if (rows.empty()) return none("GPU instances");
  return {
      framed("| GPU instances:                                     |\n"
             "| GPU   Name          Profile  Instance   Placement  |\n"
             "|                       ID       ID       Start:Size |\n",
             rows)};
}

MigOutcome list_computes(const SmiArguments& arguments, std::span<const Gpu> gpus) {
  const std::string rule = "+" + std::string(68, '-') + "+\n";
  std::string out;
  for (const Gpu& gpu : gpus) {
    for (const Instance& owner : instances_of(gpu)) {
      if (!is_chosen(arguments.gpu_instances, owner.info.id)) continue;
      for (const Compute& one : computes_of(gpu, owner)) {
        out +=
            fmt::format("|{:>4}{:>7}       {:<17}{:>5}{:>10}{:>13}     |\n", gpu.index(),
                        owner.info.id, one.name, one.info.profile_id, one.info.id,
                        fmt::format("{}:{}", one.info.placement.start, one.info.placement.size)) +
            rule;
      }
    }
  }
  if (out.empty()) return none("compute instances");
  return {rule +
          "| Compute instances:                                                 |\n"
          "| GPU     GPU       Name             Profile   Instance   Placement  |\n"
          "|       Instance                       ID        ID       Start:Size |\n"
          "|         ID                                                         |\n"
          "|" +
          std::string(68, '=') + "|\n" + out};
}

std::string rows_of_compute_profile(const Gpu& gpu, const Instance& owner,
                                    const ComputeProfile& one) {
  unsigned int left = 0;
  gpu.nvml().call<decltype(nvmlGpuInstanceGetComputeInstanceRemainingCapacity)>(
      "nvmlGpuInstanceGetComputeInstanceRemainingCapacity", owner.handle, one.id, &left);
  // The star marks the profile of the whole GPU instance.
  const char star = std::string_view(one.name) == owner.name ? '*' : ' ';
  const std::string free = fmt::format("{}/{}", left, one.instance_count);
  return fmt::format("|{:>4}{:>7}       {:<17}{:>5}{}{:>8}{:>13}{:>9}{:>6}{:>6}   |\n", gpu.index(),
                     owner.info.id, one.name, one.id, star, free, one.multiprocessor_count,
                     one.shared_decoder_count, one.shared_encoder_count, one.shared_ofa_count) +
         fmt::format("|{:>71}{:>6}{:>9}|\n", one.shared_copy_engine_count, one.shared_jpeg_count,
                     "");
}

MigOutcome list_compute_profiles(const SmiArguments& arguments, std::span<const Gpu> gpus) {
  const std::string rule = "+" + std::string(86, '-') + "+\n";
  std::string out;
  for (const Gpu& gpu : gpus) {
    for (const Instance& owner : instances_of(gpu)) {
      if (!is_chosen(arguments.gpu_instances, owner.info.id)) continue;
      for (const ComputeProfile& one : compute_profiles(gpu, owner.handle)) {
        out += rows_of_compute_profile(gpu, owner, one) + rule;
      }
    }
  }
  if (out.empty()) return none("compute instance profiles");
  return {
      rule +
      "| Compute instance profiles:                                                           |\n"
      "| GPU     GPU       Name             Profile  Instances   Exclusive       Shared       |\n"
      "|       Instance                       ID     Free/Total     SM       DEC   ENC   OFA  |\n"
      "|         ID                                                          CE    JPEG       |\n"
      "|" +
      std::string(86, '=') + "|\n" + out};
}

MigOutcome mig_refused(const Gpu& gpu, const std::string& what, Return code) {
  return {fmt::format("Unable to {} on GPU {:>2}: {}\nFailed to {}: {}\n", what, gpu.index(),
                      gpu.nvml().words_for(code), what, gpu.nvml().words_for(code)),
          static_cast<int>(code)};
}

// By its name or its id; null if there is none.
template <class Profiles>
const typename Profiles::value_type* find_profile(const Profiles& profiles, std::string_view word) {
  const auto found = std::ranges::find_if(profiles, [&](const auto& each) {
    return number_of(word) == each.id || short_name(each.name) == short_name(word);
  });
  return found == profiles.end() ? nullptr : &*found;
}

Return create_compute(const Gpu& gpu, nvmlGpuInstance_t owner, const ComputeProfile& profile,
                      std::string& text) {
  nvmlComputeInstance_t made = nullptr;
  const Return code = gpu.nvml().call<decltype(nvmlGpuInstanceCreateComputeInstance)>(
      "nvmlGpuInstanceCreateComputeInstance", owner, profile.id, &made);
  if (code != kSuccess) return code;
  ComputeInstanceInfo info{};
  GpuInstanceInfo of_owner{};
  gpu.nvml().call<decltype(nvmlComputeInstanceGetInfo_v2)>("nvmlComputeInstanceGetInfo_v2", made,
                                                           &info);
  gpu.nvml().call<decltype(nvmlGpuInstanceGetInfo)>("nvmlGpuInstanceGetInfo", owner, &of_owner);
  text += fmt::format(
      "Successfully created compute instance ID {:>2} on GPU {:>2} GPU instance ID {:>2} using "
      "profile {} (ID {:>2})\n",
      info.id, gpu.index(), of_owner.id, profile.name, profile.id);
  return kSuccess;
}

// One instance of "-cgi": "9", "3g.40gb" or, at a memory slice, "9:4".
MigOutcome create_instance(const SmiArguments& arguments, const Gpu& gpu, std::string_view word) {
  const std::size_t colon = std::min(word.find(':'), word.size());
  const auto profiles = gpu_profiles(gpu);
  const Profile* profile = find_profile(profiles, word.substr(0, colon));
  const bool has_place = colon < word.size();
  const auto start = has_place ? number_of(word.substr(colon + 1)) : std::nullopt;
  if (profile == nullptr || (has_place && !start)) {
    return mig_refused(gpu, "create a GPU instance", kInvalidArgument);
  }
  nvmlGpuInstance_t made = nullptr;
  Return code = kSuccess;
  if (start) {
    GpuInstancePlacement place{*start, 0};
    std::vector<GpuInstancePlacement> places(kMaxProfiles);
    auto count = static_cast<unsigned int>(places.size());
    gpu.call<decltype(nvmlDeviceGetGpuInstancePossiblePlacements_v2)>(
        "nvmlDeviceGetGpuInstancePossiblePlacements_v2", profile->id, places.data(), &count);
    place.size = count == 0 ? 0 : places[0].size;
    code = gpu.call<decltype(nvmlDeviceCreateGpuInstanceWithPlacement)>(
        "nvmlDeviceCreateGpuInstanceWithPlacement", profile->id, &place, &made);
  } else {
    code = gpu.call<decltype(nvmlDeviceCreateGpuInstance)>("nvmlDeviceCreateGpuInstance",
                                                           profile->id, &made);
  }
  if (code != kSuccess) {
    return mig_refused(gpu, fmt::format("create a GPU instance using profile {}", profile->id),
                       code);
  }
  GpuInstanceInfo info{};
  gpu.nvml().call<decltype(nvmlGpuInstanceGetInfo)>("nvmlGpuInstanceGetInfo", made, &info);
  MigOutcome outcome{
      fmt::format("Successfully created GPU instance ID {:>2} on GPU {:>2} using profile {} (ID "
                  "{:>2})\n",
                  info.id, gpu.index(), profile->name, profile->id)};
  if (!arguments.has_compute) return outcome;
  const auto all = compute_profiles(gpu, made);
  const ComputeProfile* whole = find_profile(all, profile->name);
  code = whole == nullptr ? kNotFound : create_compute(gpu, made, *whole, outcome.text);
  if (code == kSuccess) return outcome;
  const MigOutcome failed = mig_refused(gpu, "create a compute instance", code);
  return {outcome.text + failed.text, failed.exit_code};
}

MigOutcome create_computes(const SmiArguments& arguments, const Gpu& gpu) {
  MigOutcome outcome;
  for (const Instance& owner : instances_of(gpu)) {
    if (!is_chosen(arguments.gpu_instances, owner.info.id)) continue;
    const auto all = compute_profiles(gpu, owner.handle);
    const std::string wanted = arguments.profiles.empty() ? owner.name : arguments.profiles;
    for (const std::string_view word : words_of(wanted)) {
      const ComputeProfile* profile = find_profile(all, word);
      const Return code = profile == nullptr
                              ? kInvalidArgument
                              : create_compute(gpu, owner.handle, *profile, outcome.text);
      if (code == kSuccess) continue;
      const MigOutcome failed = mig_refused(gpu, "create a compute instance", code);
      return {outcome.text + failed.text, failed.exit_code};
    }
  }
  return outcome;
}

MigOutcome destroy_instances(const SmiArguments& arguments, const Gpu& gpu) {
  MigOutcome outcome;
  for (const Instance& one : instances_of(gpu)) {
    if (!is_chosen(arguments.gpu_instances, one.info.id)) continue;
    const Return code =
        gpu.nvml().call<decltype(nvmlGpuInstanceDestroy)>("nvmlGpuInstanceDestroy", one.handle);
    if (code != kSuccess) {
      const MigOutcome failed =
          mig_refused(gpu, fmt::format("destroy GPU instance ID {:>2}", one.info.id), code);
      return {outcome.text + failed.text, failed.exit_code};
    }
    outcome.text += fmt::format("Successfully destroyed GPU instance ID {:>2} from GPU {:>2}\n",
                                one.info.id, gpu.index());
  }
  return outcome;
}

MigOutcome destroy_computes(const SmiArguments& arguments, const Gpu& gpu) {
  MigOutcome outcome;
  for (const Instance& owner : instances_of(gpu)) {
    if (!is_chosen(arguments.gpu_instances, owner.info.id)) continue;
    for (const Compute& one : computes_of(gpu, owner)) {
      if (!is_chosen(arguments.compute_instances, one.info.id)) continue;
      const Return code = gpu.nvml().call<decltype(nvmlComputeInstanceDestroy)>(
          "nvmlComputeInstanceDestroy", one.handle);
      if (code != kSuccess) {
        const MigOutcome failed =
            mig_refused(gpu, fmt::format("destroy compute instance ID {:>2}", one.info.id), code);
        return {outcome.text + failed.text, failed.exit_code};
      }
      outcome.text += fmt::format(
          "Successfully destroyed compute instance ID {:>2} from GPU {:>2} GPU instance ID "
          "{:>2}\n",
          one.info.id, gpu.index(), owner.info.id);
    }
  }
  return outcome;
}

MigOutcome set_mode(const SmiArguments& arguments, const Gpu& gpu) {
  const char* verb = arguments.is_mig_on ? "Enabled" : "Disabled";
  const char* infinitive = arguments.is_mig_on ? "enable" : "disable";
  const std::string bus = gpu.bus_id();
  Return status = kSuccess;
  const Return code = gpu.call<decltype(nvmlDeviceSetMigMode)>(
      "nvmlDeviceSetMigMode", arguments.is_mig_on ? 1u : 0u, &status);
  if (code != kSuccess) {
    return {fmt::format("Unable to {} MIG Mode for GPU {}: {}\n", infinitive, bus,
                        gpu.nvml().words_for(code)),
            static_cast<int>(code)};
  }
  if (status == kSuccess) return {fmt::format("{} MIG Mode for GPU {}\n", verb, bus)};
  return {fmt::format("Warning: MIG mode is in pending {} state for GPU {}:{}\n", infinitive, bus,
                      gpu.nvml().words_for(status))};
}

MigOutcome change_gpu(const SmiArguments& arguments, const Gpu& gpu) {
  switch (arguments.task) {
    case SmiTask::kMigCreateCompute:
      return create_computes(arguments, gpu);
    case SmiTask::kMigDestroy:
      return destroy_instances(arguments, gpu);
    case SmiTask::kMigDestroyCompute:
      return destroy_computes(arguments, gpu);
    case SmiTask::kMigMode:
      return set_mode(arguments, gpu);
    default:
      break;
  }
  MigOutcome outcome;
  for (const std::string_view word : words_of(arguments.profiles)) {
    const MigOutcome one = create_instance(arguments, gpu, word);
    outcome = {outcome.text + one.text, one.exit_code};
    if (outcome.exit_code != kExitOk) break;
  }
  return outcome;
}

}  // namespace

std::string mig_device_lines(const Gpu& gpu) {
  std::string out;
  const auto count = gpu.number("nvmlDeviceGetMaxMigDeviceCount");
  for (unsigned int i = 0; count.status == kSuccess && i < count.value; ++i) {
    nvmlDevice_t handle = nullptr;
    if (gpu.call<decltype(nvmlDeviceGetMigDeviceHandleByIndex)>(
            "nvmlDeviceGetMigDeviceHandleByIndex", i, &handle) != kSuccess) {
      continue;
    }
    const Gpu device(gpu.nvml(), handle, i);
    const std::string name = in_words(device.text("nvmlDeviceGetName"));
    const std::size_t at = name.rfind("MIG ");
    out += fmt::format("  MIG {:<11} Device {:>2}: (UUID: {})\n",
                       at == std::string::npos ? name : name.substr(at + 4), i,
                       in_words(device.text("nvmlDeviceGetUUID")));
  }
  return out;
}

MigOutcome run_mig(const SmiArguments& arguments, std::span<const Gpu> gpus) {
  std::vector<Gpu> with_mig;
  const bool is_mode = arguments.task == SmiTask::kMigMode;
  std::ranges::copy_if(gpus, std::back_inserter(with_mig),
                       [&](const Gpu& gpu) { return is_mode || is_mig_on(gpu); });
  if (with_mig.empty()) return {"No MIG-enabled devices found.\n", kExitNotFound};
  if (arguments.task == SmiTask::kMigInstances) return list_instances(with_mig);
  if (arguments.task == SmiTask::kMigComputeInstances) return list_computes(arguments, with_mig);
  if (arguments.task == SmiTask::kMigComputeProfiles) {
    return list_compute_profiles(arguments, with_mig);
  }
  MigOutcome outcome;
  for (const Gpu& gpu : with_mig) {
    const MigOutcome one = change_gpu(arguments, gpu);
    outcome.text += one.text;
    outcome.exit_code = one.exit_code;
    if (one.exit_code != kExitOk) return outcome;
  }
  if (outcome.text.empty()) return none("instances");
  if (is_mode) outcome.text += "All done.\n";
  return outcome;
}

}  // namespace gpu_emulator
