#include "cli/jobs/gpu_sampler.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/name_list.h"
#include "cli/text/text.h"
#include "telemetry/frame_values.h"

namespace gpu_platform::cli {

namespace {

// One without an UUID is known by its index.
std::string uuid_of(const hardware::GpuDescription& gpu) {
  return gpu.uuid.value_or(fmt::format("index-{}", gpu.index));
}

telemetry::UseSummary begun(const std::vector<hardware::GpuDescription>& gpus,
                            base::Duration interval, base::Instant begin) {
  telemetry::UseSummary summary;
  summary.from = begin;
  summary.to = begin;
  summary.interval = interval;
  for (const hardware::GpuDescription& gpu : gpus) {
    telemetry::GpuUse use;
    use.index = gpu.index;
    use.uuid = uuid_of(gpu);
    use.model = gpu.model.value_or("");
    use.memory = gpu.memory.value_or(base::Bytes());
    summary.gpus.push_back(std::move(use));
  }
  return summary;
}

bool is_meant(const hardware::GpuDescription& gpu, std::string_view word) {
  // A driver takes a UUID's beginning, as CUDA_VISIBLE_DEVICES does.
  const bool is_uuid = word.size() > 4 && gpu.uuid && gpu.uuid->starts_with(word);
  return is_uuid || word == fmt::format_int(gpu.index).str();
}

}  // namespace

std::expected<std::vector<hardware::GpuDescription>, std::string> chosen_gpus(
    const std::vector<hardware::GpuDescription>& gpus, std::string_view words) {
  if (words == "all") return gpus;
  std::vector<hardware::GpuDescription> chosen;
  for (std::size_t start = 0; start <= words.size();) {
    const std::size_t comma = std::min(words.find(',', start), words.size());
    const std::string_view word = words.substr(start, comma - start);
    start = comma + 1;
    const auto found =
        std::ranges::find_if(gpus, [&](const auto& gpu) { return is_meant(gpu, word); });
    if (found == gpus.end()) {
      return std::unexpected(
          fmt::format("there is no GPU '{}' on this machine, which has {}; name indices or UUIDs "
                      "between commas, or all",
                      harmless(word), counted(gpus.size(), "GPU")));
    }
    if (std::ranges::find(chosen, found->index, &hardware::GpuDescription::index) == chosen.end()) {
      chosen.push_back(*found);
    }
  }
  return chosen;
}

GpuSampler::GpuSampler(hardware::GpuLibrary& library,
                       const std::vector<hardware::GpuDescription>& gpus, base::Duration interval,
                       base::Instant begin)
    : library_(library),
      recorder_(begun(gpus, interval, begin), {.are_counters_fresh = true}),
      next_slow_(begin) {
  for (const hardware::GpuDescription& gpu : gpus) {
    indices_.push_back(gpu.index);
    uuids_.push_back(uuid_of(gpu));
  }
}

void GpuSampler::read(base::Instant now) {
  const bool is_slow_due = now >= next_slow_;
  if (is_slow_due) next_slow_ = now + kSlowEvery;
  read_gpus(now, is_slow_due);
}

void GpuSampler::end(base::Instant now) {
  read_gpus(now, true);
  recorder_.end(now);
}

void GpuSampler::read_gpus(base::Instant now, bool wants_slow) {
  for (std::size_t i = 0; i < indices_.size(); ++i) {
    hardware::GpuReading reading = library_.read(indices_[i]);
    if (reading.condition != hardware::GpuCondition::kAnswering) continue;
    if (wants_slow) reading.slow = library_.read_slow(indices_[i]);
    telemetry::Frame frame;
    frame.subject = {telemetry::Of::kGpu, "", uuids_[i], {}};
    frame.at = now;
    frame.values = telemetry::values_of(static_cast<const model::GpuMetrics&>(reading));
    recorder_.take(frame);
  }
}

}  // namespace gpu_platform::cli
