#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace gpu_platform::telemetry {

// The notes that were changed and are not on disk yet. Safe from any thread; no lock is held while
// a disk is waited for.
class OpenNotes {
 public:
  struct Change {
    std::uint64_t number = 0;          // of all changes, in their order
    std::optional<std::string> bytes;  // none: the note is removed
  };
  using Changes = std::map<std::string, Change>;  // by name

  // False: too much waits for the disk already, and the change is dropped.
  bool change(std::string name, std::optional<std::string> bytes);
  bool is_empty() const;
  Changes all() const;
  std::optional<Change> find(const std::string& name) const;
  // These are on disk. One that was changed again stays.
  void written(const Changes& changes);

 private:
  mutable std::mutex mutex_;
  Changes changes_;           // guarded by mutex_
  std::size_t bytes_ = 0;     // guarded by mutex_
  std::uint64_t number_ = 0;  // guarded by mutex_
};

}  // namespace gpu_platform::telemetry
