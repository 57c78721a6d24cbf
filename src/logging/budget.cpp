#include "logging/budget.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace gpu_platform::logging {

Source of_user(std::uint32_t uid) {
  return {fmt::format("uid {}", uid), uid != 0};
}

Source of_platform(std::string name) {
  return {std::move(name), false};
}

bool Budget::take(const Source& source, base::Instant now) {
  if (!end_.is_set()) end_ = now + limits_.window;
  auto found = counts_.find(source);
  if (found == counts_.end()) {
    const bool is_full = counts_.size() >= limits_.sources;
    const Source of_others = source.is_user ? Source{"other users", true} : Source{"others", false};
    found = counts_.try_emplace(is_full ? of_others : source).first;
  }
  Count& count = found->second;
  const bool is_left =
      count.written < limits_.of_source && (!source.is_user || of_users_ < limits_.of_all_users);
  if (!is_left) {
    ++count.dropped;
    has_dropped_ = true;
    return false;
  }
  ++count.written;
  if (source.is_user) ++of_users_;
  return true;
}

std::vector<Budget::Dropped> Budget::close_if_over(base::Instant now) {
  return end_.is_set() && now >= end_ ? close() : std::vector<Dropped>();
}

std::vector<Budget::Dropped> Budget::close() {
  std::vector<Dropped> dropped;
  for (const auto& [source, count] : counts_) {
    if (count.dropped != 0) dropped.push_back({source.name, count.dropped});
  }
  std::ranges::stable_sort(dropped, std::ranges::greater(), &Dropped::lines);
  counts_.clear();
  of_users_ = 0;
  has_dropped_ = false;
  end_ = {};
  return dropped;
}

base::Instant Budget::due() const {
  return has_dropped_ ? end_ : base::Instant();
}

}  // namespace gpu_platform::logging
