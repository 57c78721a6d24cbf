#include "tool/mig_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "mig_names.h"
#include "tool/parse.h"

namespace gpu_emulator {
namespace {

using gpu_platform::base::ErrorCode;
using gpu_platform::base::fail;
using gpu_platform::base::invalid;

constexpr std::uint32_t kHopper = 9;  // nvmlDeviceArchitecture_t

Result<const GpuState*> gpu_with_mig(const StateFile& file, std::uint32_t gpu) {
  const BoardState& state = file.state();
  if (gpu >= state.gpu_count) {
    return fail(ErrorCode::kNotFound, fmt::format("{} has no GPU {}", state.node_name, gpu));
  }
  if (has_mig(state.gpus[gpu])) return &state.gpus[gpu];
  return fail(ErrorCode::kFailedPrecondition,
              fmt::format("GPU {} of {} has no MIG", gpu, state.node_name));
}

Status done(MigResult result, const std::string& what) {
  if (result == MigResult::kDone) return {};
  const bool is_unknown = result == MigResult::kNotFound;
  return fail(is_unknown ? ErrorCode::kNotFound : ErrorCode::kResourceExhausted,
              fmt::format("{}: {}", what,
                          is_unknown ? "there is no such instance" : "there is no place for it"));
}

Result<std::string> create_instance(StateFile& file, std::uint32_t gpu, const MigOptions& options) {
  TRY_ASSIGN(const GpuState* state, gpu_with_mig(file, gpu));
  const std::string name = options.profile.substr(0, options.profile.find('@'));
  const MigProfile* profile = profile_called(*state, name.c_str());
  std::uint32_t start = kNoId;
  if (name.size() < options.profile.size()) {
    const auto number = parse_number(std::string_view(options.profile).substr(name.size() + 1));
    if (!number || *number >= kNoId) profile = nullptr;
    start = static_cast<std::uint32_t>(number.value_or(0));
  }
  if (profile == nullptr) {
    return invalid("profile", fmt::format("\"{}\" is no profile of GPU {}; nvidia-smi mig -lgip "
                                          "lists them",
                                          options.profile, gpu));
  }
  InstanceId id;
  const auto place = profile - state->mig_profiles;
  TRY_ASSIGN(const MigResult result, file.change_instances(gpu, [&](GpuState& to) {
    if (!is_mig_on(to)) return MigResult::kNoRoom;
    const MigProfile& own = to.mig_profiles[place];
    const MigResult made = create_gpu_instance(to, own, start, &id.gpu_instance);
    if (made != MigResult::kDone || options.is_alone) return made;
    const MigResult compute =
        create_compute_instance(to, id.gpu_instance, own.slices, kNoId, &id.compute_instance);
    if (compute != MigResult::kDone) drop_instance(to, {id.gpu_instance, kNoId});
    return compute;
  }));
  TRY(done(result, options.profile));
  if (options.is_alone) return fmt::format("{}\n", id.gpu_instance);
  char uuid[kMigUuidBytes];
  write_mig_uuid(*state, id, uuid);
  return fmt::format("{}/{} {}\n", id.gpu_instance, id.compute_instance, uuid);
}

Result<std::string> destroy_instance(StateFile& file, std::uint32_t gpu,
                                     const std::string& instance) {
  TRY(gpu_with_mig(file, gpu));
  TRY_ASSIGN(const InstanceId id, parse_instance(instance));
  TRY_ASSIGN(const MigResult result, file.change_instances(gpu, [&](GpuState& to) {
    if (is_whole_gpu(id) || !is_there(to, id)) return MigResult::kNotFound;
    drop_instance(to, id);
    return MigResult::kDone;
  }));
  TRY(done(result, instance));
  return std::string();
}

Result<std::string> switch_mode(StateFile& file, std::uint32_t gpu, Support mode) {
  TRY(gpu_with_mig(file, gpu));
  TRY(file.clear(gpu));
  TRY(file.change_instances(gpu, [&](GpuState& to) {
    to.mig_pending.store(static_cast<std::uint32_t>(mode), std::memory_order_relaxed);
    reset_mig(to);
    return MigResult::kDone;
  }));
  return std::string();
}

}  // namespace

Result<InstanceId> parse_instance(const std::string& text) {
  if (text.empty()) return InstanceId{};
  const std::size_t slash = std::min(text.find('/'), text.size());
  const auto first = parse_number(std::string_view(text).substr(0, slash));
  std::optional<std::uint64_t> second = kNoId;
  if (slash < text.size()) second = parse_number(std::string_view(text).substr(slash + 1));
  const bool is_compute = slash < text.size();
  if (first && *first < kMaxGpuInstances && second &&
      (!is_compute || *second < kMaxComputeInstances)) {
    return InstanceId{static_cast<std::uint32_t>(*first), static_cast<std::uint32_t>(*second)};
  }
  return invalid("instance", fmt::format("\"{}\" is no instance such as 13 or 13/0", text));
}

Result<std::string> change_mig(StateFile& file, std::uint32_t gpu, const MigOptions& options) {
  switch (options.change) {
    case MigChange::kCreate:
      return create_instance(file, gpu, options);
    case MigChange::kDestroy:
      return destroy_instance(file, gpu, options.instance);
    case MigChange::kOn:
      return switch_mode(file, gpu, Support::kOn);
    case MigChange::kOff:
      break;
  }
  return switch_mode(file, gpu, Support::kOff);
}

Status reboot_gpu(StateFile& file, std::uint32_t gpu) {
  TRY(file.clear(gpu));
  TRY(file.change_instances(gpu, [](GpuState& to) {
    const bool forgets = to.architecture >= kHopper;
    if (forgets)
      to.mig_pending.store(static_cast<std::uint32_t>(to.mig), std::memory_order_relaxed);
    reset_gpu(to);
    return MigResult::kDone;
  }));
  const std::uint32_t delay_us =
      file.state().gpus[gpu].answer_delay_us.load(std::memory_order_relaxed);
  return file.set_answer(gpu, 0, delay_us);
}

}  // namespace gpu_emulator
