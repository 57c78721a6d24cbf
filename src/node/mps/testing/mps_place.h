#pragma once

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "node/identity.h"
#include "node/mps/front_end.h"

namespace gpu_platform::node {

// A folder for a test, with the double of nvidia-cuda-mps-control in it, which every user may
// execute, and room for the folder of a daemon. As root the daemon's user is another one.
class MpsPlace {
 public:
  static constexpr std::uint32_t kUser = 12345;

  MpsPlace() {
    char name[] = "/tmp/gp-mps-XXXXXX";
    path_ = mkdtemp(name);
    chmod(path_.c_str(), 0755);
    const char* const nvidias = getenv("GP_MPS_CONTROL");  // scripts/check_mps
    std::filesystem::copy_file(nvidias != nullptr ? nvidias : MPS_CONTROL, program());
    chmod(program().c_str(), 0755);
  }
  MpsPlace(const MpsPlace&) = delete;
  MpsPlace& operator=(const MpsPlace&) = delete;
  ~MpsPlace() { std::filesystem::remove_all(path_); }

  const std::string& path() const { return path_; }
  std::string program() const { return path_ + "/control"; }
  std::string folder() const { return path_ + "/" + folder_; }
  // Another folder than "daemon", which a test makes itself.
  void set_folder(const std::string& below) { folder_ = below; }
  static Identity user() {
    if (geteuid() != 0) return {getuid(), getgid(), {}, {}};
    return {kUser, kUser, {kUser}, {}};
  }
  MpsProgram about_program() const { return {program(), folder(), user()}; }

  // The daemon's folder, where no launcher makes it.
  void make_folder() const {
    for (const std::string& made : {folder(), folder() + "/pipe", folder() + "/log"}) {
      mkdir(made.c_str(), 0700);
      if (geteuid() == 0 && chown(made.c_str(), kUser, kUser) != 0) abort();
    }
  }
  std::string ask(const std::string& commands) const {
    const MpsAnswer answer = ask_mps_daemon(about_program(), commands, kTestTimeoutMs);
    return answer.why.empty() ? answer.text : "no answer: " + answer.why;
  }

  static constexpr int kTestTimeoutMs = 60'000;  // only what hangs reaches it

 private:
  std::string path_;
  std::string folder_ = "daemon";
};

}  // namespace gpu_platform::node
