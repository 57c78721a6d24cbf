#include "monitoring/mps_faults.h"

#include <algorithm>
#include <iterator>
#include <ranges>

namespace gpu_platform::monitoring {

namespace {

auto is_of(model::AttemptId attempt) {
  return [attempt](const auto& failure) { return failure.client.attempt == attempt; };
}

bool are_together(base::Instant a, base::Instant b) {
  return a - b <= MpsFaults::kTogether && b - a <= MpsFaults::kTogether;
}

}  // namespace

void MpsFaults::take_xid(const Client& client, base::Instant at) {
  Fault* fault = latest_beside(client.server, at);
  // One that has begun since is no victim of it: this is another fault.
  if (fault == nullptr || fault->at < client.began) {
    fault = &begin(client.server, at);
    take_over_failures(*fault);
  }
  if (!fault->culprit) fault->culprit = client.attempt;
}

void MpsFaults::take_loss(const Server& server, base::Instant at) {
  Fault* fault = latest_beside(server, at);
  if (fault == nullptr) {
    fault = &begin(server, at);
    take_over_failures(*fault);
  }
  fault->is_server_lost = true;
}

void MpsFaults::take_failure(const Client& client, base::Instant at) {
  if (fault_with(client.attempt) != nullptr) return;
  Fault* fault = cause_of(client, at);
  if (fault == nullptr) fault = &begin(client.server, at);
  fault->failures.push_back({client, at});
}

std::optional<MpsFaults::Cause> MpsFaults::cause_of_failure(model::AttemptId attempt) const {
  const Fault* const fault = fault_with(attempt);
  if (fault == nullptr || fault->culprit == attempt) return std::nullopt;
  if (fault->culprit) return Cause{.culprit = fault->culprit};
  if (fault->is_server_lost) return Cause{.is_server_lost = true};
  const auto own = std::ranges::find_if(fault->failures, is_of(attempt));
  const bool is_alone = std::ranges::none_of(fault->failures, [&](const Failure& other) {
    return other.client.attempt != attempt && other.at - own->at <= kTogether;
  });
  return is_alone ? std::nullopt : std::optional<Cause>(Cause{});
}

// Returns the fault that began within moments of this time, before or after.
MpsFaults::Fault* MpsFaults::latest_beside(const Server& server, base::Instant at) {
  for (Fault& fault : faults_ | std::views::reverse) {
    if (fault.server == server && are_together(fault.at, at)) return &fault;
  }
  return nullptr;
}

// Returns the fault that ended the client. What is told of one may come in any order.
MpsFaults::Fault* MpsFaults::cause_of(const Client& client, base::Instant at) {
  for (Fault& fault : faults_ | std::views::reverse) {
    if (fault.server != client.server || fault.at < client.began) continue;
    if (at - fault.at <= kEndsWithin && fault.at - at <= kTogether) return &fault;
  }
  return nullptr;
}

const MpsFaults::Fault* MpsFaults::fault_with(model::AttemptId attempt) const {
  for (const Fault& fault : faults_ | std::views::reverse) {
    if (std::ranges::any_of(fault.failures, is_of(attempt))) return &fault;
  }
  return nullptr;
}

MpsFaults::Fault& MpsFaults::begin(const Server& server, base::Instant at) {
  if (faults_.size() == kMaxFaults) faults_.pop_front();
  faults_.push_back({.server = server, .at = at, .culprit = {}, .failures = {}});
  return faults_.back();
}

// What was laid to an earlier fault of the server, and comes of this one: it is told of moments
// after the failures. The culprit of the earlier one stays that.
void MpsFaults::take_over_failures(Fault& fault) {
  for (Fault& other : faults_) {
    if (&other == &fault || other.server != fault.server) continue;
    const auto is_its = [&](const Failure& failure) {
      return are_together(failure.at, fault.at) && failure.client.began <= fault.at &&
             other.culprit != failure.client.attempt;
    };
    std::ranges::copy_if(other.failures, std::back_inserter(fault.failures), is_its);
    std::erase_if(other.failures, is_its);
  }
}

}  // namespace gpu_platform::monitoring
