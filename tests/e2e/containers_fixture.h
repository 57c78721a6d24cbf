#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "harness.h"

namespace gpu_platform::e2e {

inline constexpr const char* kImage = "localhost/gp-test:1";  // of busybox alone

// A Podman service, or Docker's where the environment names its programs, with everything of its
// own below one folder: images, containers, socket. With a user it is Podman without root's rights.
class Engine {
 public:
  explicit Engine(std::uint32_t uid = 0);
  ~Engine();

  // Why there is none; empty: it answers, and runs containers of kImage.
  std::string start();
  std::string serve();
  void stop();
  // It takes connections and answers none of them until it goes on.
  void hang() const;
  void go_on() const;

  // Makes an image like kImage, whose root `change` may change first, with further lines as a
  // Dockerfile has them, or for a platform ("linux/arm64"; empty: this host's). Why it cannot;
  // empty: it is there.
  std::string add_image(const std::string& name,
                        const std::function<void(const std::string& root)>& change,
                        const std::vector<std::string>& lines = {},
                        const std::string& platform = "");

  // Packs the root of kImage, which `change` may change first, as the file archive_path(). Why it
  // cannot; empty: it is there.
  std::string pack_image(const std::function<void(const std::string& root)>& change);
  std::string archive_path() const { return folder_.path() + "/image.tar"; }

  bool is_docker() const { return !docker_.empty(); }
  bool is_rootless() const { return uid_ != 0; }
  // The engine's own command line.
  std::vector<std::string> tool(const std::vector<std::string>& further) const;
  std::vector<std::string> containers() const;
  void clear() const;  // removes them
  std::string socket() const {
    return folder_.path() + (is_rootless() ? "/place" : "") + "/engine.sock";
  }
  std::string log_path() const { return folder_.path() + "/log"; }

 private:
  std::string settings_path() const { return folder_.path() + "/containers.conf"; }
  std::vector<std::string> service() const;
  std::vector<std::string> as_user() const;
  std::string make_user();
  std::string make_image();
  std::string load_image(const std::string& name, const std::string& platform);

  std::uint32_t uid_ = 0;
  TemporaryDirectory folder_;
  std::string docker_;  // the folder of its programs; empty: Podman
  pid_t pid_ = -1;
};

}  // namespace gpu_platform::e2e
