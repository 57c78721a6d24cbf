#include "hardware/dcgm/dcgm_functions.h"

#include <dlfcn.h>

#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace gpu_platform::hardware {
namespace {

// Returns whether the library has the function; else `missing` has its name.
template <class Function>
bool find(void* library, const char* name, Function& out, std::string_view& missing) {
  out = reinterpret_cast<Function>(dlsym(library, name));
  if (out == nullptr) missing = name;
  return out != nullptr;
}

// Returns the name of a function that is needed and not there, else nothing.
std::string_view find_all(void* library, DcgmFunctions& f) {
  std::string_view missing;
  const bool are_there = find(library, "dcgmInit", f.init, missing) &&
                         find(library, "dcgmShutdown", f.shutdown, missing) &&
                         find(library, "dcgmStartEmbedded", f.start, missing) &&
                         find(library, "dcgmStopEmbedded", f.stop, missing) &&
                         find(library, "dcgmConnect", f.connect, missing) &&
                         find(library, "dcgmDisconnect", f.disconnect, missing) &&
                         find(library, "dcgmGetAllSupportedDevices", f.gpus, missing) &&
                         find(library, "dcgmGroupCreate", f.group_create, missing) &&
                         find(library, "dcgmGroupAddEntity", f.group_add, missing) &&
                         find(library, "dcgmFieldGroupCreate", f.field_group_create, missing) &&
                         find(library, "dcgmWatchFields", f.watch, missing) &&
                         find(library, "dcgmEntitiesGetLatestValues", f.latest, missing);
  if (!are_there) return missing;
  (void)find(library, "errorString", f.error_string, missing);
  return {};
}

}  // namespace

std::vector<std::string> dcgm_libraries() {
  return {"libdcgm.so.4", "libdcgm.so.3"};
}

DcgmModule::DcgmModule(DcgmModule&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)),
      path_(std::move(other.path_)),
      functions_(other.functions_) {}

DcgmModule::~DcgmModule() {
  if (handle_ != nullptr) dlclose(handle_);
}

std::expected<DcgmModule, LibraryProblem> DcgmModule::open(std::span<const std::string> paths) {
  for (const std::string& path : paths) {
    void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      const std::string words = dlerror();
      // The words begin with the file that is missing: another one is a part of the library.
      const bool is_missing =
          words.starts_with(path) && words.find("No such file") != std::string::npos;
      if (is_missing) continue;
      return std::unexpected(LibraryProblem{ProblemKind::kOther, words});
    }
    DcgmModule module(handle, path);
    const std::string_view missing = find_all(handle, module.functions_);
    if (missing.empty()) return module;
    return std::unexpected(LibraryProblem{
        ProblemKind::kOther, fmt::format("{} is not DCGM: it has no {}", path, missing)});
  }
  return std::unexpected(LibraryProblem{ProblemKind::kNoLibrary, "DCGM is not installed"});
}

}  // namespace gpu_platform::hardware
