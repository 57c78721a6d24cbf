#pragma once

#include <expected>
#include <string>

#include "hardware/nvml/nvml_functions.h"
#include "hardware/readings.h"

namespace gpu_platform::hardware {

// An NVML that was opened and initialised; shut down when this goes. NVML counts initialisations,
// so several sessions of one process do not disturb each other.
class NvmlSession {
 public:
  static std::expected<NvmlSession, LibraryProblem> open(const std::string& path);
  NvmlSession(NvmlSession&& other) noexcept;
  NvmlSession& operator=(NvmlSession&&) = delete;
  ~NvmlSession();

  const NvmlFunctions& functions() const { return module_.functions(); }
  bool has(const char* name) const { return module_.has(name); }

  // Returns NVML's text for a return code: "GPU is lost (15)".
  std::string words(int code) const;

  // The same as a problem of the machine, saying what to do about it.
  LibraryProblem problem_of(int code) const;

  // The number of GPUs, if it is one that can be believed.
  std::expected<unsigned, LibraryProblem> gpu_count() const;

 private:
  NvmlSession(NvmlModule module, std::string path);

  NvmlModule module_;
  std::string path_;
  bool is_initialised_ = false;
};

}  // namespace gpu_platform::hardware
