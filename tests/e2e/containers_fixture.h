#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "harness.h"

namespace gpu_platform::e2e {

inline constexpr const char* kImage = "localhost/gp-test:1";  // of busybox alone

// A Podman service, or Docker's where the environment names its programs, with everything of its
// own below one folder: images, containers, socket.
class Engine {
 public:
  Engine();
  ~Engine();

  // Why there is none; empty: it answers, and runs containers of kImage.
  std::string start();
  std::string serve();
  void stop();

  // Makes an image like kImage, whose root `change` may change first, with further lines as a
  // Dockerfile has them. Why it cannot; empty: it is there.
  std::string add_image(const std::string& name,
                        const std::function<void(const std::string& root)>& change,
                        const std::vector<std::string>& lines = {});

  bool is_docker() const { return !docker_.empty(); }
  // The engine's own command line.
  std::vector<std::string> tool(const std::vector<std::string>& further) const;
  std::vector<std::string> containers() const;
  std::string socket() const { return folder_.path() + "/engine.sock"; }
  std::string log_path() const { return folder_.path() + "/log"; }

 private:
  std::vector<std::string> service() const;
  std::string make_image();

  TemporaryDirectory folder_;
  std::string docker_;  // the folder of its programs; empty: Podman
  pid_t pid_ = -1;
};

}  // namespace gpu_platform::e2e
