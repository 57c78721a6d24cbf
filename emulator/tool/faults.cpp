#include "tool/faults.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "tool/yaml_fields.h"

namespace gpu_emulator {
namespace {

using gpu_platform::base::ErrorCode;
using gpu_platform::base::fail;
using gpu_platform::base::invalid;

constexpr auto kRelaxed = std::memory_order_relaxed;

// nvmlEventType*
constexpr std::uint64_t kEventCorrected = 0x1;
constexpr std::uint64_t kEventUncorrected = 0x2;
constexpr std::uint64_t kEventXid = 0x8;
constexpr std::uint64_t kEventClock = 0x10;
constexpr std::uint64_t kEventRetirement = 0x400;
constexpr std::uint64_t kEventRetirementFailure = 0x800;
constexpr std::uint64_t kEventUnavailable = 0x4000;
constexpr std::uint64_t kEventRecoveryAction = 0x8000;

constexpr std::uint32_t kUnknownXid = 999;
constexpr std::uint32_t kLastKnownXid = 176;
constexpr std::uint32_t kFellOffTheBus = 79;
constexpr std::uint32_t kRowRemapped = 63;
constexpr std::uint32_t kRemapFailed = 64;

constexpr std::uint32_t kReset = 1;
constexpr std::uint32_t kReboot = 2;
constexpr std::uint32_t kDrainP2p = 3;
constexpr std::uint32_t kDrainAndReset = 4;

// XIDs that ask for more than a restart of the application.
struct XidAction {
  std::uint32_t xid;
  std::uint32_t action;
};
constexpr auto kActions = std::to_array<XidAction>({
    {46, kReset},     {48, kReset},     {62, kReset},         {64, kReset},
    {74, kDrainP2p},  {79, kReboot},    {94, kDrainAndReset}, {95, kReset},
    {109, kReset},    {110, kReset},    {119, kReset},        {120, kReset},
    {136, kReset},    {140, kReset},    {143, kReset},        {144, kDrainP2p},
    {145, kDrainP2p}, {146, kDrainP2p}, {147, kDrainP2p},     {148, kDrainP2p},
    {149, kDrainP2p}, {150, kDrainP2p}, {155, kReset},        {156, kDrainAndReset},
    {158, kReset},
});

// XIDs that only inform: they are in the kernel's log and make no NVML event.
constexpr auto kInformational = std::to_array<std::uint32_t>(
    {63, 92, 93, 106, 107, 121, 141, 152, 153, 154, 157, 160, 161, 162, 163, 164, 165, 176});

const std::vector<Choice> kRecoveryActions{{"none", 0},
                                           {"gpu-reset", kReset},
                                           {"node-reboot", kReboot},
                                           {"drain-p2p", kDrainP2p},
                                           {"drain-and-reset", kDrainAndReset}};

struct ThrottleName {
  std::string_view name;
  std::uint64_t bit;
};
constexpr auto kThrottleNames = std::to_array<ThrottleName>({
    {"idle", kThrottleIdle},
    {"application-clocks", 0x2},
    {"sw-power-cap", kThrottlePowerCap},
    {"hw-slowdown", kThrottleHwSlowdown},
    {"sync-boost", 0x10},
    {"sw-thermal", kThrottleSwThermal},
    {"hw-thermal", kThrottleHwThermal},
    {"hw-power-brake", kThrottlePowerBrake},
    {"display-clocks", 0x100},
});

// Returns a page or row of its own, the same in every run.
std::uint64_t address_of_page(std::uint32_t number) {
  constexpr std::uint64_t kFirst = 0x0000'0001'2340'0000;
  constexpr std::uint64_t kApart = 0x0000'0000'0041'0000;
  return kFirst + number * kApart;
}

// Takes bad memory out of use in the manner of the board.
void retire_memory(GpuState& gpu, EccClass kind, std::uint32_t count) {
  if (gpu.remap_banks != 0) {
    gpu.remapped_rows[kind].fetch_add(count, kRelaxed);
    gpu.remap_pending.store(1, kRelaxed);
    return;
  }
  const std::uint64_t now_us = now_ns(CLOCK_REALTIME) / 1000;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t number = gpu.retired_count.load(kRelaxed);
    if (number >= kMaxRetiredPages) break;
    RetiredPage& page = gpu.retired_pages[number];
    page.address.store(address_of_page(number), kRelaxed);
    page.at_us.store(now_us, kRelaxed);
    page.cause.store(kind, kRelaxed);  // NVML numbers the causes in the same way
    gpu.retired_count.store(number + 1, std::memory_order_release);
  }
  gpu.retirement_pending.store(1, kRelaxed);
}

bool remaps_rows(const GpuState& gpu) {
  return gpu.remap_banks != 0;
}

// Refuses a fault that the GPU cannot have; `why` follows its name.
template <class Condition>
Status require(const StateFile& file, std::uint32_t gpu, Condition can_have, const char* why) {
  const BoardState& state = file.state();
  // A number that is too large is refused by the change itself.
  if (gpu >= state.gpu_count || can_have(state.gpus[gpu])) return {};
  return fail(ErrorCode::kFailedPrecondition,
              fmt::format("GPU {} of {} {}", gpu, state.node_name, why));
}

Status raise_recovery(StateFile& file, std::uint32_t gpu, std::uint32_t action) {
  bool is_new = false;
  TRY(file.change(gpu, [&](GpuState& state) {
    is_new = state.recovery_action.exchange(action, kRelaxed) != action;
  }));
  return is_new ? file.raise(gpu, kEventRecoveryAction, action) : Status{};
}

}  // namespace

XidBehaviour behaviour_of_xid(std::uint32_t xid) {
  XidBehaviour behaviour;
  behaviour.is_known = xid <= kLastKnownXid;
  behaviour.is_critical = std::ranges::find(kInformational, xid) == kInformational.end();
  const auto found = std::ranges::find(kActions, xid, &XidAction::xid);
  if (found != kActions.end()) behaviour.recovery_action = found->action;
  return behaviour;
}

std::string_view name_of_recovery_action(std::uint32_t action) {
  const auto found = std::ranges::find(kRecoveryActions, action, &Choice::value);
  return found == kRecoveryActions.end() ? "unknown" : found->name;
}

Result<std::uint32_t> parse_recovery_action(const std::string& name) {
  std::vector<std::string_view> allowed;
  for (const Choice& choice : kRecoveryActions) {
    if (choice.name == name) return choice.value;
    allowed.push_back(choice.name);
  }
  return invalid("recovery", fmt::format("\"{}\" is not a recovery action; one of {} is", name,
                                         fmt::join(allowed, ", ")));
}

std::vector<std::string> names_of_throttle(std::uint64_t reasons) {
  std::vector<std::string> names;
  for (const ThrottleName& known : kThrottleNames) {
    if ((reasons & known.bit) != 0) names.emplace_back(known.name);
  }
  return names;
}

Result<std::uint64_t> parse_throttle(const std::vector<std::string>& names) {
  std::uint64_t reasons = 0;
  for (const std::string& name : names) {
    if (name == "none") continue;
    const auto known = std::ranges::find(kThrottleNames, name, &ThrottleName::name);
    if (known == kThrottleNames.end()) {
      return invalid("throttle",
                     fmt::format("\"{}\" is not a reason to throttle; one of none, {} is", name,
                                 fmt::join(names_of_throttle(~0ull), ", ")));
    }
    reasons |= known->bit;
  }
  return reasons;
}

Result<std::string> inject_xid(StateFile& file, std::uint32_t gpu, std::uint32_t xid,
                               const InstanceId& instance) {
  const XidBehaviour behaviour = behaviour_of_xid(xid);
  TRY(file.change(gpu, [&](GpuState& state) {
    state.last_xid.store(xid, kRelaxed);
    if (xid == kRowRemapped) retire_memory(state, kEccUncorrected, 1);
    if (xid == kRemapFailed) state.remap_failed.store(1, kRelaxed);
  }));
  if (behaviour.is_critical) {
    TRY(file.raise(gpu, kEventXid, behaviour.is_known ? xid : kUnknownXid, instance));
  }
  if (xid == kRowRemapped) TRY(file.raise(gpu, kEventRetirement, 0));
  if (xid == kRemapFailed) TRY(file.raise(gpu, kEventRetirementFailure, 0));
  if (behaviour.recovery_action != 0) TRY(raise_recovery(file, gpu, behaviour.recovery_action));
  if (xid == kFellOffTheBus) TRY(inject_lost(file, gpu));
  if (behaviour.is_critical) return std::string();
  return fmt::format("XID {} only informs: it makes no XID event\n", xid);
}

Status inject_ecc(StateFile& file, std::uint32_t gpu, EccClass kind, std::uint32_t count) {
  bool has_ecc = false;
  TRY(file.change(gpu, [&](GpuState& state) {
    has_ecc = state.ecc == Support::kOn;
    if (!has_ecc) return;
    state.ecc_errors[kEccVolatile][kind].fetch_add(count, kRelaxed);
    state.ecc_errors[kEccAggregate][kind].fetch_add(count, kRelaxed);
    if (kind == kEccUncorrected) retire_memory(state, kind, count);
  }));
  if (!has_ecc) {
    return fail(ErrorCode::kFailedPrecondition,
                fmt::format("GPU {} of {} has no ECC switched on", gpu, file.state().node_name));
  }
  return file.raise(gpu, kind == kEccUncorrected ? kEventUncorrected : kEventCorrected, count);
}

Status inject_temperature(StateFile& file, std::uint32_t gpu, std::uint32_t celsius) {
  TRY(file.change(gpu,
                  [&](GpuState& state) { state.injected_temperature_c.store(celsius, kRelaxed); }));
  return file.raise(gpu, kEventClock, 0);
}

Status inject_throttle(StateFile& file, std::uint32_t gpu, std::uint64_t reasons) {
  TRY(file.change(gpu, [&](GpuState& state) { state.injected_throttle.store(reasons, kRelaxed); }));
  return file.raise(gpu, kEventClock, 0);
}

Status inject_recovery(StateFile& file, std::uint32_t gpu, std::uint32_t action) {
  constexpr std::uint32_t kFirstBranch = 570;
  if (file.state().driver_major < kFirstBranch) {
    return fail(ErrorCode::kFailedPrecondition,
                fmt::format("driver {} of {} tells of no recovery action: branch {} is the first",
                            file.state().driver_version, file.state().node_name, kFirstBranch));
  }
  return raise_recovery(file, gpu, action);
}

Status inject_replays(StateFile& file, std::uint32_t gpu, std::uint32_t count) {
  return file.change(gpu, [&](GpuState& state) { state.pcie_replays.fetch_add(count, kRelaxed); });
}

Status inject_remap_pending(StateFile& file, std::uint32_t gpu, std::uint32_t rows) {
  TRY(require(file, gpu, remaps_rows, "remaps no rows: it retires pages, or has no ECC"));
  return file.change(gpu, [&](GpuState& state) {
    state.rows_to_remap.fetch_add(rows, kRelaxed);
    state.remap_pending.store(1, kRelaxed);
  });
}

Status inject_remap_failed(StateFile& file, std::uint32_t gpu) {
  TRY(require(file, gpu, remaps_rows, "remaps no rows: it retires pages, or has no ECC"));
  return file.change(gpu, [](GpuState& state) { state.remap_failed.store(1, kRelaxed); });
}

Status inject_retired(StateFile& file, std::uint32_t gpu, std::uint32_t pages) {
  const auto has_pages = [](const GpuState& state) { return state.remap_banks == 0; };
  TRY(require(file, gpu, has_pages, "retires no pages: it remaps rows"));
  return file.change(gpu, [&](GpuState& state) { retire_memory(state, kEccUncorrected, pages); });
}

Status inject_pcie_width(StateFile& file, std::uint32_t gpu, std::uint32_t lanes) {
  const auto has_lanes = [&](const GpuState& state) { return lanes <= state.pcie_width; };
  TRY(require(file, gpu, has_lanes, "has fewer lanes"));
  return file.change(gpu,
                     [&](GpuState& state) { state.injected_pcie_width.store(lanes, kRelaxed); });
}

Status inject_nvlink_errors(StateFile& file, std::uint32_t gpu, std::uint32_t count) {
  const auto has_links = [](const GpuState& state) { return state.nvlink_count > 0; };
  TRY(require(file, gpu, has_links, "has no NVLink"));
  return file.change(gpu, [&](GpuState& state) {
    state.link_errors[kLinkCrc].fetch_add(count, kRelaxed);
    state.link_errors[kLinkReplay].fetch_add(count, kRelaxed);
  });
}

Status inject_nvlink_down(StateFile& file, std::uint32_t gpu, std::uint32_t links) {
  const auto has_links = [&](const GpuState& state) { return links <= state.nvlink_count; };
  TRY(require(file, gpu, has_links, "has fewer NVLinks"));
  return file.change(gpu, [&](GpuState& state) {
    state.nvlinks_down.store((std::uint64_t{1} << links) - 1, kRelaxed);
  });
}

Status inject_restarted_counters(StateFile& file, std::uint32_t gpu) {
  return file.change(gpu, [](GpuState& state) { restart_counters(state); });
}

Status inject_memory_temperature(StateFile& file, std::uint32_t gpu, std::uint32_t celsius) {
  const auto tells = [](const GpuState& state) { return state.has_memory_temperature != 0; };
  TRY(require(file, gpu, tells, "does not tell the temperature of its memory"));
  return file.change(
      gpu, [&](GpuState& state) { state.injected_memory_temperature_c.store(celsius, kRelaxed); });
}

Status inject_reset_fault(StateFile& file, std::uint32_t gpu, ResetFault fault) {
  return file.change(gpu, [&](GpuState& state) {
    state.reset_fault.store(static_cast<std::uint32_t>(fault), kRelaxed);
  });
}

Status inject_hang(StateFile& file, std::uint32_t gpu, std::uint32_t seconds) {
  const std::uint64_t until = now_ns(CLOCK_BOOTTIME) + std::uint64_t{seconds} * 1'000'000'000;
  return file.change(gpu, [&](GpuState& state) {
    state.answers_from_ns.store(seconds == 0 ? 0 : until, kRelaxed);
  });
}

Status inject_failing_gpu_instances(StateFile& file, std::uint32_t gpu, std::uint32_t count) {
  TRY(require(file, gpu, has_mig, "has no MIG"));
  return file.change(gpu,
                     [&](GpuState& state) { state.failing_gpu_instances.store(count, kRelaxed); });
}

Status inject_failing_compute_instances(StateFile& file, std::uint32_t gpu, std::uint32_t count) {
  TRY(require(file, gpu, has_mig, "has no MIG"));
  return file.change(
      gpu, [&](GpuState& state) { state.failing_compute_instances.store(count, kRelaxed); });
}

Status inject_lost(StateFile& file, std::uint32_t gpu) {
  TRY(file.raise(gpu, kEventUnavailable, 0));
  const std::uint32_t delay_us = file.state().gpus[gpu].answer_delay_us.load(kRelaxed);
  return file.set_answer(gpu, kAnswerOfLostGpu, delay_us);
}

Status inject_listing(StateFile& file, std::uint32_t gpu, Listing listing) {
  return file.change(gpu, [&](GpuState& state) {
    state.listing.store(static_cast<std::uint32_t>(listing), kRelaxed);
  });
}

Status inject_slow(StateFile& file, std::uint32_t gpu, std::uint32_t milliseconds) {
  TRY(file.change(
      gpu, [&](GpuState& state) { state.answer_delay_us.store(milliseconds * 1000, kRelaxed); }));
  return {};
}

Status inject_work(StateFile& file, std::uint32_t gpu, std::uint32_t microseconds) {
  TRY(file.change(gpu,
                  [&](GpuState& state) { state.answer_work_us.store(microseconds, kRelaxed); }));
  return {};
}

Status clear_faults(StateFile& file, std::uint32_t gpu) {
  TRY(file.change(gpu, [](GpuState& state) {
    for (auto* value :
         {&state.injected_temperature_c, &state.recovery_action, &state.last_xid,
          &state.pcie_replays, &state.remap_pending, &state.remap_failed,
          &state.injected_memory_temperature_c, &state.injected_pcie_width, &state.rows_to_remap,
          &state.remapped_rows[0], &state.remapped_rows[1], &state.retirement_pending,
          &state.retired_count, &state.reset_fault, &state.answer_work_us, &state.listing,
          &state.failing_gpu_instances, &state.failing_compute_instances}) {
      value->store(0, kRelaxed);
    }
    for (auto* value : {&state.injected_throttle, &state.nvlinks_down, &state.answers_from_ns}) {
      value->store(0, kRelaxed);
    }
    for (auto& count : state.link_errors) count.store(0, kRelaxed);
    for (auto& span : state.ecc_errors) {
      for (auto& count : span) count.store(0, kRelaxed);
    }
  }));
  return file.set_answer(gpu, 0, 0);
}

}  // namespace gpu_emulator
