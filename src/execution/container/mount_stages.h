#pragma once

#include <string>
#include <vector>

#include "execution/container/container_failure.h"
#include "execution/container/create_body.h"
#include "model/container.h"
#include "node/user_switch.h"

namespace gpu_platform::execution {

// The sources of a container's mounts, each opened as the job's user and then mounted at a place
// that only root can reach, read-only where that is asked for: from there they are put into the
// container (container_places.h). Needs root's rights, but for look_at().
class MountStages {
 public:
  MountStages() = default;
  MountStages(const MountStages&) = delete;
  MountStages& operator=(const MountStages&) = delete;
  ~MountStages() { remove(); }

  // No link on the way is followed: what is opened is what the site's rules have seen. `begin`: of
  // the name of the folder that they are mounted in (mounts_folder_begin).
  ContainerDone<> open(node::Identity user, const std::vector<model::ContainerMount>& mounts,
                       std::string begin);
  // A file of the site's rules, which root opens, through any links; to read only.
  ContainerDone<> open_driver_file(const std::string& path, std::string begin);
  // The files of an emulated board, which the daemon names: a board's state and the folder of the
  // emulator's library, each at its own place, to read only. Root owns them and the way to them,
  // and the job's user may read them.
  ContainerDone<> open_board_files(node::Identity user,
                                   const std::vector<model::ContainerMount>& files,
                                   std::string begin);
  // The same as open() without a place of root's, as ourselves: an engine that has no more rights
  // than we opens the names again.
  ContainerDone<> look_at(const std::vector<model::ContainerMount>& mounts);
  // In the order of what was opened.
  const std::vector<OpenMount>& opened() const { return opened_; }
  // Undoes all of it; a running container has its own mounts of them.
  void remove();

 private:
  ContainerDone<> open_one(const node::UserSwitch& as_user, const model::ContainerMount& mount,
                           bool is_of_board = false);
  ContainerDone<> keep(int source, const model::ContainerMount& mount);
  std::string make_stage(int source, bool read_only);

  std::vector<OpenMount> opened_;
  std::size_t stages_ = 0;
  std::string begin_;
  std::string folder_;  // empty: there is none
};

}  // namespace gpu_platform::execution
