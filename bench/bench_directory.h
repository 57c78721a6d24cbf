#pragma once

#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include "base/check.h"

namespace gpu_platform::bench {

// A directory on the measured disk, which is the build's (GP_BENCH_DIR names a folder on another),
// removed with the object. That of a program that is killed goes with the build.
class BenchDirectory {
 public:
  BenchDirectory() {
    const char* named = std::getenv("GP_BENCH_DIR");
    const std::string base =
        named != nullptr ? std::string(named)
                         : std::filesystem::canonical("/proc/self/exe").parent_path().string();
    std::string name = base + "/bench-XXXXXX";
    CHECK(::mkdtemp(name.data()) != nullptr);
    path_ = std::filesystem::absolute(name);
  }
  ~BenchDirectory() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  BenchDirectory(const BenchDirectory&) = delete;
  BenchDirectory& operator=(const BenchDirectory&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace gpu_platform::bench
