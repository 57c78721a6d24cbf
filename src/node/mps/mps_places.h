#pragma once

#include <set>
#include <string>

#include "node/identity.h"
#include "os/descriptor.h"

namespace gpu_platform::node {

// What an MPS daemon has on this host: the folder NAME (mps_name) with pipe/, log/ and shm/, which
// belongs to its user alone, and the cgroup mps-NAME below that of jobs. shm/ is a file system in
// memory: the /dev/shm of the daemon and of its jobs.
//
// The folders above are root's. Within NAME its user may do anything, so no link is followed there.
class MpsPlaces {
 public:
  struct Options {
    std::string root;   // kMpsRoot; its folder must be there
    std::string token;  // of the launcher's folder
    int base_fd = -1;   // of the cgroups of jobs
  };
  explicit MpsPlaces(Options options) : o_(std::move(options)) {}

  struct Place {
    os::Descriptor folder;
    os::Descriptor cgroup;
    std::string why;  // it could not be made; else empty
  };
  // Makes what is missing of the place, and keeps what is there if it is as it should be: a daemon
  // may live in it. A folder that is another thing is made anew.
  Place make(const std::string& name, const Identity& user);
  // Kills what is in the cgroup and removes all of the place. Returns false if processes are left
  // after half a second; then call it again.
  bool remove(const std::string& name);
  // Removes the places without a process, and returns the names of the others. For a launcher that
  // begins.
  std::set<std::string> find_living();

 private:
  bool open_token();
  std::string make_folder(const std::string& name, const Identity& user) const;
  bool is_whole(const std::string& name, std::uint32_t uid) const;
  void remove_folder(const std::string& name) const;
  int open_cgroup(const std::string& name) const;
  std::set<std::string> names();

  const Options o_;
  os::Descriptor root_;
  os::Descriptor token_;
};

// Kills what is in the cgroup until it is empty. Returns false if it is not in time.
bool end_mps_cgroup(int cgroup, int timeout_ms);

}  // namespace gpu_platform::node
