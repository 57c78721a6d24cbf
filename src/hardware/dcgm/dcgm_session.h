#pragma once

#include <cstdint>
#include <expected>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "hardware/dcgm/dcgm_functions.h"
#include "hardware/dcgm/dcgm_source.h"
#include "hardware/readings.h"
#include "model/gpu_metrics.h"

namespace gpu_platform::hardware {

// DCGM, opened and initialised; shut down when this goes. DCGM initialises once for a process, so
// there is one of these at a time. Used by one thread. Calls may block as long as DCGM does.
class DcgmSession {
 public:
  // kNoLibrary: DCGM is not installed.
  static std::expected<std::unique_ptr<DcgmSession>, LibraryProblem> open(const DcgmSource& source);
  DcgmSession(const DcgmSession&) = delete;
  DcgmSession& operator=(const DcgmSession&) = delete;
  ~DcgmSession();

  // Has DCGM read these GPUs at this interval from now on; to be called once. A GPU that DCGM does
  // not know, or of which it cannot read a value, lacks it later. A problem ends the session.
  std::expected<void, LibraryProblem> watch(const std::vector<DcgmGpu>& gpus,
                                            base::Duration interval);

  // Returns by UUID what DCGM read last: the activity of its last interval, memory temperature,
  // energy. Values that are older than three intervals are left out. A problem ends the session.
  std::expected<std::map<std::string, model::GpuMetrics>, LibraryProblem> read();

 private:
  struct Watched {
    std::string uuid;
    std::uint32_t id = 0;  // DCGM's
  };

  explicit DcgmSession(DcgmModule module) : module_(std::move(module)) {}
  int connect(const std::string& address);
  std::expected<std::vector<Watched>, LibraryProblem> find_gpus();
  std::string uuid_of(std::uint32_t id);
  int create_field_groups();
  int watch_gpu(const Watched& gpu, bool wants_activity);
  LibraryProblem problem_of(const char* what, int code) const;
  const DcgmFunctions& f() const { return module_.functions(); }

  const DcgmModule module_;
  bool is_initialised_ = false;
  bool is_connected_ = false;  // to an engine elsewhere, not started here
  DcgmHandle handle_ = 0;      // valid once it is open
  bool has_engine_ = false;
  DcgmFieldGroup device_fields_ = 0;
  DcgmFieldGroup activity_fields_ = 0;
  DcgmFieldGroup plain_activity_fields_ = 0;
  base::Duration interval_;
  std::vector<Watched> watched_;
  std::vector<DcgmFieldValue> values_;  // 4 KiB each
};

}  // namespace gpu_platform::hardware
