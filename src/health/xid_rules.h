#pragma once

#include <cstdint>
#include <span>
#include <string_view>

// What the driver's error numbers (XIDs) mean for the GPU that had one.

namespace gpu_platform::health {

// Where the cause of an XID lies.
enum class XidCause : std::uint8_t {
  kApplication,  // mostly in the program that ran
  kDriver,       // in the driver or its firmware, or the sources disagree
  kHardware,
  kSymptom,  // in another fault, which has an XID of its own
};

struct XidRule {
  std::uint32_t xid = 0;
  std::string_view what;
  XidCause cause = XidCause::kApplication;
  // What has to be done before the GPU takes new work again, as an order to an operator. Empty: the
  // XID alone keeps no work away.
  std::string_view remedy = {};
};

// Ascending. An XID without a row keeps no work away: it is shown.
std::span<const XidRule> xid_rules();
const XidRule* find_xid_rule(std::uint64_t xid);  // null: there is none

}  // namespace gpu_platform::health
