#include "hardware/nvidia_smi/nvidia_smi_library.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "hardware/nvidia_smi/run_tool.h"
#include "hardware/nvidia_smi/smi_text.h"
#include "hardware/nvidia_smi/smi_xml.h"
#include "os/clock.h"

namespace gpu_platform::hardware {
namespace {

using base::ErrorCode;
using base::Result;

// Columns that one version may lack before we no longer believe that it is nvidia-smi.
constexpr int kMaxRefusedColumns = 16;

constexpr base::Duration kTimeLimit = base::seconds(10);

std::string first_line(std::string_view text) {
  return std::string(text.substr(0, std::min<std::size_t>(text.find('\n'), 300)));
}

LibraryProblem problem_of(const base::Error& error) {
  const bool is_missing = error.code == ErrorCode::kNotFound;
  return {is_missing ? ProblemKind::kNoLibrary : ProblemKind::kOther, error.message};
}

// Copies what `from` knows and `into` does not.
template <class T>
void fill(std::optional<T>& into, const std::optional<T>& from) {
  if (!into) into = from;
}

void fill(GpuDescription& into, const GpuDescription& from) {
  fill(into.serial, from.serial);
  fill(into.pci_address, from.pci_address);
  fill(into.minor, from.minor);
  fill(into.memory, from.memory);
  fill(into.power_limit, from.power_limit);
  fill(into.power_limit_min, from.power_limit_min);
  fill(into.power_limit_max, from.power_limit_max);
  fill(into.mig_enabled, from.mig_enabled);
  fill(into.ecc_enabled, from.ecc_enabled);
  fill(into.persistence_enabled, from.persistence_enabled);
  fill(into.pcie_generation_max, from.pcie_generation_max);
  fill(into.pcie_width_max, from.pcie_width_max);
  fill(into.slowdown_c, from.slowdown_c);
}

class NvidiaSmi final : public GpuLibrary {
 public:
  explicit NvidiaSmi(std::string program) : program_(std::move(program)) {}

  DriverDescription describe_driver() override {
    if (!report_) refresh_report();
    return report_ ? report_->driver : DriverDescription{};
  }

  std::expected<std::vector<GpuDescription>, LibraryProblem> list_gpus() override {
    refresh_report();
    auto table = query("--query-gpu", kSmiDescriptionColumns);
    std::vector<GpuDescription> gpus;
    if (table) gpus = smi_descriptions(*table);
    if (gpus.empty() && report_) gpus = report_->gpus;
    if (gpus.empty() && !table) return std::unexpected(problem_of(table.error()));
    if (gpus.empty()) {
      return std::unexpected(
          LibraryProblem{ProblemKind::kNoGpu, fmt::format("{} lists no GPU", program_)});
    }
    for (GpuDescription& gpu : gpus) {
      const GpuDescription* same = gpu.uuid && report_ ? find(report_->gpus, *gpu.uuid) : nullptr;
      if (same != nullptr) fill(gpu, *same);
    }
    return gpus;
  }

  std::vector<GpuLink> links() override { return {}; }

  GpuReading read(std::uint32_t index) override {
    // One run of the program serves one round over all GPUs.
    if (!has_round_ || !served_.insert(index).second) {
      refresh_readings();
      has_round_ = true;
      served_ = {index};
    }
    const auto found = std::ranges::find(readings_, index, &GpuReading::index);
    if (found != readings_.end()) return *found;
    GpuReading reading;
    reading.index = index;
    reading.condition = GpuCondition::kNotAnswering;
    reading.problem = trouble_.empty() ? fmt::format("{} does not list it", program_) : trouble_;
    return reading;
  }

  model::GpuSlowMetrics read_slow(std::uint32_t index) override {
    if (!slow_served_.insert(index).second) {
      refresh_report();
      slow_served_ = {index};
    }
    return report_ && index < report_->readings.size() ? report_->readings[index]
                                                       : model::GpuSlowMetrics{};
  }

  std::optional<std::uint64_t> read_energy(std::uint32_t) override { return std::nullopt; }

  std::vector<ProcessLoad> read_loads(std::uint32_t) override { return {}; }

 private:
  static const GpuDescription* find(const std::vector<GpuDescription>& gpus,
                                    const std::string& uuid) {
    const auto found = std::ranges::find(gpus, std::optional(uuid), &GpuDescription::uuid);
    return found == gpus.end() ? nullptr : &*found;
  }

  // A program that hung is not asked again at once: the rounds of the caller would add up.
  Result<ToolOutput> run(const std::vector<std::string>& command) {
    const std::int64_t now = os::monotonic_ns();
    if (now < hung_until_ns_) {
      return base::fail(ErrorCode::kUnavailable, fmt::format("{} hangs", program_));
    }
    auto output = run_tool(command, {kTimeLimit});
    if (!output && os::monotonic_ns() - now >= kTimeLimit.value()) {
      hung_until_ns_ = os::monotonic_ns() + kTimeLimit.value();
    }
    return output;
  }

  Result<SmiTable> query(std::string_view what, std::string_view columns) {
    for (int attempt = 0; attempt <= kMaxRefusedColumns; ++attempt) {
      TRY_ASSIGN(
          const ToolOutput output,
          run({program_, fmt::format("{}={}", what, without_refused(columns)), "--format=csv"}));
      if (output.exit_code == 0) return SmiTable::parse(output.text);
      const std::string refused = smi_refused_column(output.text);
      if (refused.empty() || !refused_.insert(refused).second) {
        return base::fail(ErrorCode::kUnavailable,
                          fmt::format("{} ended with exit code {}: {}", program_, output.exit_code,
                                      first_line(output.text)));
      }
    }
    return base::fail(ErrorCode::kDataLoss, fmt::format("{} refuses too many columns", program_));
  }

  // Older versions know fewer columns, and refuse the whole question for one they do not know.
  std::string without_refused(std::string_view columns) const {
    std::string kept;
    while (!columns.empty()) {
      const std::string_view column = columns.substr(0, columns.find(','));
      if (!refused_.contains(column)) kept += fmt::format("{}{}", kept.empty() ? "" : ",", column);
      columns.remove_prefix(std::min(columns.size(), column.size() + 1));
    }
    return kept;
  }

  void refresh_report() {
    report_.reset();
    const auto output = run({program_, "-q", "-x"});
    if (!output || output->exit_code != 0) return;
    auto report = parse_smi_report(output->text);
    if (report) report_ = std::move(*report);
  }

  void refresh_readings() {
    readings_.clear();
    trouble_.clear();
    const auto gpus = query("--query-gpu", kSmiReadingColumns);
    if (!gpus) {
      trouble_ = gpus.error().message;
      return;
    }
    const auto processes = query("--query-compute-apps", kSmiProcessColumns);
    readings_ = smi_readings(*gpus, processes ? *processes : SmiTable());
    if (processes) return;
    // Which processes there are is not known, which is not the same as none.
    for (GpuReading& reading : readings_) reading.processes.reset();
  }

  const std::string program_;
  std::int64_t hung_until_ns_ = 0;
  std::optional<SmiReport> report_;
  std::vector<GpuReading> readings_;
  std::string trouble_;  // why there are no readings
  bool has_round_ = false;
  std::set<std::uint32_t> served_;
  std::set<std::uint32_t> slow_served_;
  std::set<std::string, std::less<>> refused_;
};

}  // namespace

std::expected<std::unique_ptr<GpuLibrary>, LibraryProblem> open_nvidia_smi(
    const std::string& program) {
  auto library = std::make_unique<NvidiaSmi>(program);
  auto gpus = library->list_gpus();
  if (!gpus) return std::unexpected(std::move(gpus).error());
  return library;
}

}  // namespace gpu_platform::hardware
