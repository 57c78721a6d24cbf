#pragma once

#include <expected>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "hardware/dcgm/dcgm_abi.h"
#include "hardware/readings.h"

namespace gpu_platform::hardware {

// The functions of one loaded library. All but error_string are there.
struct DcgmFunctions {
  DcgmPlainFunction init = nullptr;
  DcgmPlainFunction shutdown = nullptr;
  DcgmStartFunction start = nullptr;
  DcgmEndFunction stop = nullptr;
  DcgmConnectFunction connect = nullptr;
  DcgmEndFunction disconnect = nullptr;
  DcgmListFunction gpus = nullptr;
  DcgmGroupCreateFunction group_create = nullptr;
  DcgmGroupAddFunction group_add = nullptr;
  DcgmFieldGroupCreateFunction field_group_create = nullptr;
  DcgmWatchFunction watch = nullptr;
  DcgmLatestFunction latest = nullptr;
  DcgmErrorStringFunction error_string = nullptr;
};

// The names of the library in the versions whose interface we know, the newest first.
std::vector<std::string> dcgm_libraries();

// A library opened by dlopen, closed when this goes.
class DcgmModule {
 public:
  // Opens the first of the libraries that is there; a bare name is looked for as the dynamic linker
  // does. kNoLibrary: there is none of them.
  static std::expected<DcgmModule, LibraryProblem> open(std::span<const std::string> paths);
  DcgmModule(DcgmModule&& other) noexcept;
  DcgmModule& operator=(DcgmModule&&) = delete;
  ~DcgmModule();

  const std::string& path() const { return path_; }  // as it was asked for
  const DcgmFunctions& functions() const { return functions_; }

 private:
  DcgmModule(void* handle, std::string path) : handle_(handle), path_(std::move(path)) {}

  void* handle_ = nullptr;
  std::string path_;
  DcgmFunctions functions_;
};

}  // namespace gpu_platform::hardware
