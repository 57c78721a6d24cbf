#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/units.h"
#include "execution/container/attempt_container.h"
#include "os/descriptor.h"

namespace gpu_platform::execution {

// What the supervisor, or a person at the terminal, tells the program that runs a container, and
// what of it is still to be done. Signals are blocked and read where the owner looks.
//
// Ownership: the descriptor; the first process of a rootless container. Thread: one.
class RunSignals {
 public:
  // Blocks the signals, for the whole program.
  RunSignals();

  int fd() const { return fd_.get(); }
  // Reads what has come. Returns whether what waits is to be given up: a stop ends what has not
  // begun, but no call that makes the container.
  bool take();
  // Waits for so long and takes signals meanwhile; false: one of them ends what waits.
  bool wait(base::Duration time);

  bool is_to_end() const { return is_stopped_ || is_killed_; }
  bool is_killed() const { return is_killed_; }
  // The container may run: signals are for its processes from now on.
  void set_begun(bool has_begun) { has_begun_ = has_begun; }
  bool has_begun() const { return has_begun_; }
  // The engine has been asked to make the container.
  void set_making(bool is_making) { is_making_ = is_making; }
  // The terminal has, or may have, another size. take_resized() answers once.
  void set_resized() { is_resized_ = true; }
  bool take_resized() { return std::exchange(is_resized_, false); }

  // Signals for the processes of a rootless container go to this one and those beside it, because
  // no cgroup has them; what came before it was known, too.
  void pass_to(HeldProcess first);
  const HeldProcess& first() const { return first_; }

 private:
  void pass_on();

  const os::Descriptor fd_;
  HeldProcess first_;
  std::vector<int> owed_;  // to its processes
  bool is_stopped_ = false;
  bool is_killed_ = false;
  bool is_resized_ = false;
  bool is_making_ = false;
  bool has_begun_ = false;
};

}  // namespace gpu_platform::execution
