#include "telemetry/history/open_notes.h"

#include <utility>

namespace gpu_platform::telemetry {

namespace {

// A full disk must not fill the memory.
constexpr std::size_t kMaxBytes = std::size_t{32} << 20;

std::size_t bytes_of(const std::string& name, const OpenNotes::Change& change) {
  return 2 * name.size() + sizeof change + (change.bytes ? change.bytes->size() : 0);
}

}  // namespace

bool OpenNotes::change(std::string name, std::optional<std::string> bytes) {
  const std::lock_guard lock(mutex_);
  Change change{++number_, std::move(bytes)};
  const auto found = changes_.find(name);
  const std::size_t former = found == changes_.end() ? 0 : bytes_of(name, found->second);
  const std::size_t size = bytes_of(name, change);
  if (bytes_ - former + size > kMaxBytes) return false;
  bytes_ = bytes_ - former + size;
  changes_.insert_or_assign(std::move(name), std::move(change));
  return true;
}

bool OpenNotes::is_empty() const {
  const std::lock_guard lock(mutex_);
  return changes_.empty();
}

OpenNotes::Changes OpenNotes::all() const {
  const std::lock_guard lock(mutex_);
  return changes_;
}

std::optional<OpenNotes::Change> OpenNotes::find(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = changes_.find(name);
  return found == changes_.end() ? std::nullopt : std::optional(found->second);
}

void OpenNotes::written(const Changes& changes) {
  const std::lock_guard lock(mutex_);
  for (const auto& [name, change] : changes) {
    const auto found = changes_.find(name);
    if (found == changes_.end() || found->second.number != change.number) continue;
    bytes_ -= bytes_of(name, found->second);
    changes_.erase(found);
  }
}

}  // namespace gpu_platform::telemetry
