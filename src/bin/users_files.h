#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "execution/process/process_engine.h"
#include "os/descriptor.h"

namespace gpu_platform::bin {

// Opens files that users have named, through the engine. A copy may outlive the engine: a thread
// that reads a file on a disk that is gone may return at any time. Safe from any thread except the
// engine's own.
class UsersFiles {
 public:
  // `engine` lives until disconnect().
  void connect(execution::ProcessEngine& engine);
  void disconnect();

  // Opens the file with the user's rights, and waits for it; kUnavailable if that takes too long.
  base::Result<os::Descriptor> open(std::uint32_t uid, const std::string& path) const;

 private:
  struct Link;
  std::shared_ptr<Link> link_ = make_link();
  static std::shared_ptr<Link> make_link();
};

}  // namespace gpu_platform::bin
