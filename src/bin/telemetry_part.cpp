#include "bin/telemetry_part.h"

#include <spdlog/spdlog.h>

#include "os/clock.h"

namespace gpu_platform::bin {

namespace {

void tell(bool is_warning, const std::string& line) {
  is_warning ? spdlog::warn("telemetry {}", line) : spdlog::info("telemetry {}", line);
}

}  // namespace

TelemetryPart::TelemetryPart()
    : live_readings_(static_cast<std::uint64_t>(os::wall_now().unix_ns() / 1000)) {
  fanout_.add(live_readings_);
}

std::string history_path(const std::string& data_dir) {
  return data_dir + "/history.db";
}

std::unique_ptr<TelemetryPart> TelemetryPart::open(const std::string& data_dir,
                                                   const config::Configuration& configuration) {
  auto part = std::make_unique<TelemetryPart>();
  const config::TelemetryRules& rules = configuration.telemetry;
  if (rules.history) {
    part->file_ = telemetry::HistoryFile::open({.path = history_path(data_dir),
                                                .bounds = {.max_bytes = rules.max_bytes,
                                                           .keep_samples = rules.keep_samples,
                                                           .keep_minutes = rules.keep_minutes,
                                                           .keep_quarters = rules.keep_quarters},
                                                .log = tell});
    part->fanout_.add(*part->file_);
  }
  part->uses_ = std::make_unique<UseKeeper>(part->notes(), configuration.monitoring_interval);
  part->fanout_.add(*part->uses_);
  return part;
}

void TelemetryPart::follow(CorePart& core) {
  uses_->follow(*core.snapshot());
  core.add_listener(*uses_);
  uses_->start();
  kpis_ = std::make_unique<KpiKeeper>(core.store(), *uses_);
  core.add_listener(*kpis_);
  kpis_->start(*core.snapshot());
}

void TelemetryPart::forget(std::span<const model::JobId> jobs) {
  uses_->forget(jobs);
  kpis_->forget(jobs);
}

void TelemetryPart::stop() {
  uses_->save();
  if (file_ != nullptr) file_->flush();
}

}  // namespace gpu_platform::bin
