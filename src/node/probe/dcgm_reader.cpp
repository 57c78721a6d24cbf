#include "node/probe/dcgm_reader.h"

#include <algorithm>
#include <utility>

#include "hardware/dcgm/dcgm_fields.h"
#include "os/clock.h"

namespace gpu_platform::node {
namespace {

// DCGM counts activity over no less.
constexpr base::Duration kMinDcgmInterval = base::milliseconds(100);
constexpr int kDcgmIntervalsKept = 3;
constexpr base::Duration kAfterDcgmProblem = base::seconds(60);
// It may be installed while the daemon runs.
constexpr base::Duration kAfterNoDcgm = base::minutes(10);

}  // namespace

DcgmReader::DcgmReader(hardware::DcgmSource source, base::Duration interval)
    : DriverThread("dcgm-readings"),
      source_(std::move(source)),
      interval_(std::max(interval, kMinDcgmInterval)) {}

void DcgmReader::set_gpus(std::vector<hardware::DcgmGpu> gpus) {
  const std::lock_guard lock(mutex_);
  gpus_ = std::move(gpus);
}

void DcgmReader::complete(const std::string& uuid, hardware::GpuReading& reading) const {
  const std::lock_guard lock(mutex_);
  const auto found = values_.find(uuid);
  if (found == values_.end()) return;
  if (os::boot_ns() - read_ns_ > interval_.value() * kDcgmIntervalsKept) return;
  hardware::fill_gaps(found->second, reading);
}

base::Duration DcgmReader::turn() {
  std::vector<hardware::DcgmGpu> gpus;
  {
    const std::lock_guard lock(mutex_);
    gpus = gpus_;
  }
  if (session_ && gpus != watched_) release();
  if (!session_) {
    auto opened = hardware::DcgmSession::open(source_);
    if (!opened) {
      const bool is_missing = opened.error().kind == hardware::ProblemKind::kNoLibrary;
      return is_missing ? kAfterNoDcgm : kAfterDcgmProblem;
    }
    session_ = std::move(*opened);
    watched_ = std::move(gpus);
    if (!session_->watch(watched_, interval_)) {
      release();
      return kAfterDcgmProblem;
    }
  }
  auto values = session_->read();
  if (!values) {
    release();
    return kAfterDcgmProblem;
  }
  const std::lock_guard lock(mutex_);
  values_ = std::move(*values);
  read_ns_ = os::boot_ns();
  return interval_;
}

void DcgmReader::release() {
  session_.reset();
  watched_.clear();
  const std::lock_guard lock(mutex_);
  values_.clear();
}

}  // namespace gpu_platform::node
