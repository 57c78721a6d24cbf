#include "model/audit.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace gpu_platform::model {

namespace {

constexpr std::array<std::string_view, kDoors> kDoorNames = {"unknown", "unix socket", "signal",
                                                             "start", "listener"};
constexpr std::array<std::string_view, kAuditActions> kActionNames = {"submit",
                                                                      "cancel",
                                                                      "kill",
                                                                      "hold",
                                                                      "release",
                                                                      "requeue",
                                                                      "requeue_and_hold",
                                                                      "update",
                                                                      "drain",
                                                                      "offline",
                                                                      "online",
                                                                      "reserve",
                                                                      "unreserve",
                                                                      "configure",
                                                                      "exec",
                                                                      "attach",
                                                                      "port_forward",
                                                                      "change_many",
                                                                      "top",
                                                                      "signal",
                                                                      "change_reservation",
                                                                      "create_token",
                                                                      "revoke_token",
                                                                      "set_team",
                                                                      "remove_team",
                                                                      "accept_invitation",
                                                                      "decline_invitation",
                                                                      "reset",
                                                                      "check",
                                                                      "silence",
                                                                      "end_silence",
                                                                      "acknowledge",
                                                                      "test_channel",
                                                                      "stop_idle",
                                                                      "set_price",
                                                                      "withdraw_price",
                                                                      "correct_ledger",
                                                                      "set_budget",
                                                                      "override_budget",
                                                                      "remove_budget"};

constexpr std::size_t kMaxFieldBytes = 64;

}  // namespace

std::string_view to_string(Door door) {
  return kDoorNames.at(static_cast<std::size_t>(door));
}

std::string_view to_string(AuditAction action) {
  return kActionNames.at(static_cast<std::size_t>(action));
}

std::string one_line(std::string_view text, std::size_t max_bytes) {
  std::string out(text.substr(0, max_bytes));
  if (text.size() > max_bytes) {
    const auto is_inside = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; };
    std::size_t end = max_bytes;
    while (end > 0 && is_inside(text[end])) --end;
    out.resize(end);
  }
  std::ranges::replace_if(
      out, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, ' ');
  return out;
}

Refusal refusal_of(const base::Error& error) {
  Refusal refusal{std::string(to_string(error.code)), {}};
  if (error.code != base::ErrorCode::kInvalidArgument) {
    refusal.text = one_line(error.message, kMaxRefusalBytes);
  } else if (error.field.empty()) {
    refusal.text = "the request is malformed";
  } else {
    refusal.text = fmt::format("{}: the value is not valid", one_line(error.field, kMaxFieldBytes));
  }
  return refusal;
}

bool concerns(const AuditedCall& call, std::uint32_t uid) {
  return call.by.uid == uid || (call.owner && call.owner->uid == uid);
}

}  // namespace gpu_platform::model
