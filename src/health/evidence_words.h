#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "model/evidence.h"

// What the words of evidence tell: the driver's log lines, a job's output, a node's conditions.

namespace gpu_platform::health {

// The unit of the GPU that an XID 13 names: "(GPC 3, TPC 1, SM 0)".
struct Unit {
  std::uint32_t gpc = 0;
  std::uint32_t tpc = 0;
  friend bool operator==(const Unit&, const Unit&) = default;
};
std::optional<Unit> unit_of(std::string_view text);

// The action to which an XID 154 says that it changed: "... to 0x2 (Node Reboot Required)".
std::optional<std::uint32_t> recovery_action_of(std::string_view text);

// The registers of a piece, or those in its text: "link 6(0x10000, 0x0, ...)".
std::vector<std::uint32_t> registers_of(const model::Evidence& piece);

// "Unable to determine the device handle", "uncorrectable ECC error": only broken hardware or a
// broken driver says so to a program.
bool tells_of_hardware(std::string_view text);
// Words of the driver that name a fault of the one GPU that the program uses.
bool names_a_fault(std::string_view text);
// An XID 144 to 150 that calls itself not fatal.
bool is_harmless_link_event(std::string_view text);
// A slowdown by a power cap that the site has set.
bool is_chosen_cap(std::string_view text);
// "out of memory", "ModuleNotFoundError": only the program's own fault says so.
bool tells_of_application(std::string_view text);
// A condition of a node that hits its GPUs: an NVSwitch, a link, power, cooling, a GPU.
bool is_node_fault(std::string_view text);
// "nowhere else", "fine on other GPUs": a person has tried it elsewhere.
bool was_compared(std::string_view text);
// What a condition is called: the words up to a colon.
std::string_view condition_name(std::string_view text);

}  // namespace gpu_platform::health
