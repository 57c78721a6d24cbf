#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include "base/check.h"

namespace gpu_platform::bench {

// A directory on the measured disk (GP_BENCH_DIR names another than the current one's), removed
// with the object.
class BenchDirectory {
 public:
  BenchDirectory() {
    const char* base = std::getenv("GP_BENCH_DIR");
    std::string name = fmt::format("{}/bench-XXXXXX", base == nullptr ? "." : base);
    CHECK(::mkdtemp(name.data()) != nullptr);
    path_ = name;
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
