#include "health/xid_rules.h"

#include <algorithm>
#include <array>

namespace gpu_platform::health {

namespace {

using enum XidCause;

constexpr std::string_view kReset = "reset the GPU";
constexpr std::string_view kReboot = "reboot the node";

// The source is NVIDIA's XID catalogue of 2025-10-29, beside what gpud and NVIDIA's device plugin
// made of each in August 2026. A row has a remedy where the catalogue asks for a reset, a restart
// of the machine or a repair, and where nothing else in it says that the program may be to blame.
// Without one are the XIDs about which the sources disagree (32, 38, 44, 63, 69, 92, 94, 109), and
// those whose registers or recovery action decide (74, 144 to 150, 155, 156).
constexpr auto kRules = std::to_array<XidRule>({
    {13, "graphics engine exception", kApplication},
    {31, "memory page fault", kApplication},
    {32, "corrupted push buffer", kDriver},
    {38, "driver firmware error", kDriver},
    {43, "GPU stopped processing", kApplication},
    {44, "fault during a context switch", kDriver},
    {45, "preemptive cleanup", kSymptom},
    {46, "GPU timeout", kHardware, kReset},
    {48, "uncorrectable memory error", kHardware, kReset},
    {54, "auxiliary power missing", kHardware, "connect its power"},
    {61, "breakpoint of the power management unit", kDriver},
    {62, "power management unit halted", kHardware, kReset},
    {63, "memory row remapped", kHardware},
    {64, "memory row could not be remapped", kHardware, kReset},
    {66, "illegal access by the driver", kDriver},
    {68, "video decoder exception", kApplication},
    {69, "graphics class error", kApplication},
    {74, "NVLink error", kHardware},
    {78, "start of a virtual GPU", kDriver},
    {79, "fallen off the bus", kHardware, kReboot},
    {92, "many corrected memory errors", kHardware},
    {93, "wear of the InfoROM", kHardware},
    {94, "contained memory error", kHardware},
    {95, "uncontained memory error", kHardware, kReset},
    {109, "timeout of a context switch", kDriver},
    {110, "security fault", kHardware, kReset},
    {119, "timeout of the GPU system processor", kDriver, kReset},
    {120, "error of the GPU system processor", kDriver, kReset},
    {121, "corrected error of the link to the CPU", kHardware},
    {136, "link training failed", kHardware, kReset},
    {137, "NVLink privilege error", kApplication},
    {140, "unrecovered memory error", kHardware, kReset},
    {141, "CUDA fast path", kDriver},
    {143, "initialization failed", kHardware, kReset},
    {144, "NVLink error", kHardware},
    {145, "NVLink error", kHardware},
    {146, "NVLink error", kHardware},
    {147, "NVLink error", kHardware},
    {148, "NVLink error", kHardware},
    {149, "NVLink error", kHardware},
    {150, "NVLink error", kHardware},
    {154, "recovery action changed", kSymptom},
    {155, "NVLink error seen by the driver", kDriver},
    {156, "resource retired", kHardware},
    {157, "resource could not be retired", kHardware},
    {158, "fatal timeout", kHardware, kReset},
    {160, "memory channel retired", kHardware},
    {161, "memory channel could not be retired", kHardware},
    {162, "power smoothing", kHardware},
    {163, "power smoothing", kHardware},
    {164, "power smoothing", kHardware},
    {165, "power smoothing", kHardware},
    {167, "fatal timeout of PCIe", kHardware, kReboot},
    {168, "reduced memory capacity", kHardware},
    {169, "security processor halted", kHardware, kReset},
    {171, "uncorrectable error in DRAM", kHardware, kReset},
    {172, "uncorrectable error in SRAM", kHardware, kReset},
});
static_assert(std::ranges::is_sorted(kRules, {}, &XidRule::xid));

}  // namespace

std::span<const XidRule> xid_rules() {
  return kRules;
}

const XidRule* find_xid_rule(std::uint64_t xid) {
  const auto found = std::ranges::lower_bound(kRules, xid, {}, &XidRule::xid);
  return found != kRules.end() && found->xid == xid ? &*found : nullptr;
}

}  // namespace gpu_platform::health
