#include "hardware/nvml/nvml_session.h"

#include <utility>

#include <fmt/format.h>

namespace gpu_platform::hardware {
namespace {

constexpr unsigned kMaxGpus = 64;

}  // namespace

NvmlSession::NvmlSession(NvmlModule module, std::string path)
    : module_(std::move(module)), path_(std::move(path)) {}

NvmlSession::NvmlSession(NvmlSession&& other) noexcept
    : module_(std::move(other.module_)),
      path_(std::move(other.path_)),
      is_initialised_(std::exchange(other.is_initialised_, false)) {}

NvmlSession::~NvmlSession() {
  if (is_initialised_) functions().shutdown();
}

std::expected<NvmlSession, LibraryProblem> NvmlSession::open(const std::string& path) {
  auto module = NvmlModule::open(path);
  if (!module) return std::unexpected(std::move(module).error());
  NvmlSession session(std::move(*module), path);
  const int code = session.functions().init();
  if (code != kNvmlSuccess) return std::unexpected(session.problem_of(code));
  session.is_initialised_ = true;
  return session;
}

std::string NvmlSession::words(int code) const {
  const char* text = functions().error_string == nullptr ? nullptr : functions().error_string(code);
  return text == nullptr ? fmt::format("error {}", code) : fmt::format("{} ({})", text, code);
}

LibraryProblem NvmlSession::problem_of(int code) const {
  switch (code) {
    case kNvmlErrorDriverNotLoaded:
      return {ProblemKind::kNoDriver,
              fmt::format("{}: the NVIDIA kernel module is not loaded", path_)};
    case kNvmlErrorLibRmVersionMismatch:
      return {ProblemKind::kDriverMismatch,
              fmt::format("{} and the loaded NVIDIA kernel module are of different versions: "
                          "reboot, or reload the module",
                          path_)};
    case kNvmlErrorNoPermission:
      return {ProblemKind::kNoPermission,
              fmt::format("{}: no permission to use the NVIDIA devices (/dev/nvidia*)", path_)};
    case kNvmlErrorGpuNotFound:
      return {ProblemKind::kNoGpu, fmt::format("{}: the driver reports no GPU", path_)};
    case kNvmlErrorLibraryNotFound:
      return {ProblemKind::kNoLibrary, fmt::format("{}: {}", path_, words(code))};
    default:
      return {ProblemKind::kOther, fmt::format("{}: {}", path_, words(code))};
  }
}

std::expected<unsigned, LibraryProblem> NvmlSession::gpu_count() const {
  unsigned count = 0;
  if (const int code = functions().count(&count); code != kNvmlSuccess) {
    return std::unexpected(problem_of(code));
  }
  if (count == 0) return std::unexpected(problem_of(kNvmlErrorGpuNotFound));
  if (count > kMaxGpus) {
    return std::unexpected(LibraryProblem{
        ProblemKind::kNotNvml,
        fmt::format("{} reports {} GPUs; at most {} are supported", path_, count, kMaxGpus)});
  }
  return count;
}

}  // namespace gpu_platform::hardware
