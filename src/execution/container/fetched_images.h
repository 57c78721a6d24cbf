#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/units.h"
#include "execution/container/engine_calls.h"
#include "execution/container/image_fetch.h"
#include "os/descriptor.h"

// The images that jobs had fetched, in a file of the node part, so that unused ones can be removed.
// What an administrator has put there is none of them. Processes take turns at it; each change
// replaces the file as a whole. Without the file, or with a damaged one, nothing is remembered.

namespace gpu_platform::execution {

class FetchedImages {
 public:
  // `root`: the launcher's folder; empty: nothing is remembered and nothing removed.
  explicit FetchedImages(std::string root) : root_(std::move(root)) {}

  // A job uses the image: it was used last now.
  void note_use(std::string_view reference, base::Instant now) const;
  // The same for one that a job has had fetched, unless it was there before by other means.
  void note_fetch(std::string_view reference, const ImageOnHost& image, base::Instant now) const;

  // Removes those that no job has used for that long and no container uses. Nothing is forced. An
  // image that has further names loses only the job's.
  void remove_unused(EngineCalls& engine, base::Duration unused_for, base::Instant now) const;

 private:
  struct Image {
    std::string id;         // of the engine
    std::string reference;  // as full_reference writes it
    base::Instant used;
  };

  os::Descriptor take_turn() const;
  std::vector<Image> read() const;
  void write(const std::vector<Image>& images) const;
  bool remove_next(EngineCalls& engine, base::Instant used_before,
                   std::vector<std::string>& kept) const;

  std::string root_;
};

// Returns the reference with all that the engines' tools add to it: "busybox" is
// "docker.io/library/busybox:latest".
std::string full_reference(std::string_view image);

// Returns the name under which the image may be removed, from the answer to GET /images/ID/json:
// that reference, or the id if it has no names; empty: it has only others.
std::string removable_name(const nlohmann::json& image, std::string_view reference);

}  // namespace gpu_platform::execution
