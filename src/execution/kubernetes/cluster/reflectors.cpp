#include "execution/kubernetes/cluster/reflectors.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace gpu_platform::execution {

Reflectors::Reflectors(kubernetes::Client& client,
                       std::function<void(const std::string& line)> warn)
    : client_(client), warn_(std::move(warn)) {}

void Reflectors::follow(kubernetes::Followed what, kubernetes::FollowHandlers handlers) {
  handlers.on_trouble = [this, path = what.path](const std::string& why) {
    if (!warn_) return;
    warn_(why.empty() ? fmt::format("{} can be followed again", path)
                      : fmt::format("{} cannot be followed: {}", path, why));
  };
  kubernetes::ReflectorOptions options;
  options.seed = reflectors_.size() + 1;
  reflectors_.push_back(std::make_unique<kubernetes::Reflector>(client_, std::move(what),
                                                                std::move(handlers), options));
}

void Reflectors::follow_taint_rules(kubernetes::FollowHandlers handlers) {
  taint_rules_.emplace(client_, std::move(handlers), warn_);
}

void Reflectors::advance(std::int64_t now_ns) {
  for (const auto& reflector : reflectors_) reflector->advance(now_ns);
  if (taint_rules_) taint_rules_->advance(now_ns);
}

std::int64_t Reflectors::due_ns() const {
  std::int64_t first = taint_rules_ ? taint_rules_->due_ns() : 0;
  for (const auto& reflector : reflectors_) {
    const std::int64_t due = reflector->due_ns();
    if (due != 0 && (first == 0 || due < first)) first = due;
  }
  return first;
}

bool Reflectors::are_listed() const {
  return std::ranges::all_of(reflectors_, [](const auto& each) { return each->is_listed(); }) &&
         (!taint_rules_ || taint_rules_->is_listed());
}

}  // namespace gpu_platform::execution
