#include "hardware/nvidia_smi/smi_text.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include <fmt/format.h>

namespace gpu_platform::hardware {
namespace {

constexpr std::string_view kBlank = " \t\r\n";

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

// Cut at every `separator`.
std::vector<std::string> parts_of(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.emplace_back(trimmed(text.substr(0, end)));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

struct Quantity {
  std::uint64_t thousandths = 0;
  std::string_view unit;
};

// A decimal number of at most three places and what follows it.
std::optional<Quantity> quantity(std::string_view text) {
  text = trimmed(text);
  std::uint64_t whole = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), whole);
  if (error != std::errc{} || whole > std::numeric_limits<std::uint64_t>::max() / 1000 - 1) {
    return std::nullopt;
  }
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  std::uint64_t thousandths = whole * 1000;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    for (std::uint64_t place = 100; !text.empty() && text[0] >= '0' && text[0] <= '9';
         place /= 10) {
      thousandths += static_cast<std::uint64_t>(text[0] - '0') * place;
      text.remove_prefix(1);
    }
  }
  return Quantity{thousandths, trimmed(text)};
}

std::optional<std::uint32_t> percent(std::string_view text) {
  const auto value = smi_number(text);
  return value && *value <= 100 ? value : std::nullopt;
}

std::optional<std::int32_t> degrees(std::string_view text) {
  const auto value = smi_number(text);
  if (!value || *value > 1000) return std::nullopt;
  return static_cast<std::int32_t>(*value);
}

// "0x0000000000000004".
std::optional<std::uint64_t> bits(std::string_view text) {
  if (!text.starts_with("0x")) return std::nullopt;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data() + 2, text.data() + text.size(), value, 16);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<ComputeCapability> capability(std::string_view text) {
  const auto both = quantity(text);
  if (!both || !both->unit.empty() || both->thousandths % 100 != 0) return std::nullopt;
  return ComputeCapability{static_cast<std::uint32_t>(both->thousandths / 1000),
                           static_cast<std::uint32_t>(both->thousandths / 100 % 10)};
}

// A refusal stands in the place of every value: "[GPU is lost]", "[Unknown Error]".
GpuCondition condition_of(std::string_view text) {
  if (text.find("GPU is lost") != std::string_view::npos) return GpuCondition::kLost;
  if (text.find("requires reset") != std::string_view::npos) return GpuCondition::kResetRequired;
  return GpuCondition::kAnswering;
}

std::vector<GpuProcess> processes_of(const SmiTable& processes, std::string_view uuid) {
  std::vector<GpuProcess> out;
  for (std::size_t row = 0; row < processes.rows(); ++row) {
    const auto pid = smi_number(processes.at(row, "pid"));
    if (!pid || processes.at(row, "gpu_uuid") != uuid) continue;
    out.push_back({*pid, smi_bytes(processes.at(row, "used_gpu_memory")), kComputeProcess});
  }
  std::ranges::sort(out, {}, &GpuProcess::pid);
  return out;
}

}  // namespace

const std::string_view kSmiDescriptionColumns =
    "index,uuid,name,serial,pci.bus_id,memory.total,compute_cap,power.limit,power.min_limit,"
    "power.max_limit,mig.mode.current,ecc.mode.current,persistence_mode,pcie.link.gen.max,"
    "pcie.link.width.max";
const std::string_view kSmiReadingColumns =
    "index,uuid,memory.total,memory.used,memory.reserved,utilization.gpu,utilization.memory,"
    "utilization.encoder,utilization.decoder,temperature.gpu,temperature.memory,power.draw,clocks."
    "sm,clocks.mem,"
    "clocks_throttle_reasons.active,ecc.errors.corrected.volatile.total,"
    "ecc.errors.uncorrected.volatile.total";
const std::string_view kSmiProcessColumns = "gpu_uuid,pid,used_gpu_memory";

std::optional<std::uint64_t> smi_count(std::string_view text) {
  const auto value = quantity(text);
  if (!value || value->thousandths % 1000 != 0) return std::nullopt;
  return value->thousandths / 1000;
}

std::optional<std::uint32_t> smi_number(std::string_view text) {
  const auto count = smi_count(text);
  if (!count || *count > std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
  return static_cast<std::uint32_t>(*count);
}

std::optional<base::Bytes> smi_bytes(std::string_view text) {
  const auto value = quantity(text);
  if (!value || value->unit != "MiB" || value->thousandths > (std::uint64_t{1} << 52)) {
    return std::nullopt;
  }
  return base::Bytes(static_cast<std::int64_t>(value->thousandths / 1000) * base::kMiB.value());
}

std::optional<base::Milliwatts> smi_watts(std::string_view text) {
  const auto value = quantity(text);
  if (!value || value->unit != "W" || value->thousandths > 1'000'000'000) return std::nullopt;
  return base::Milliwatts(static_cast<std::int64_t>(value->thousandths));
}

std::optional<bool> smi_switch(std::string_view text) {
  text = trimmed(text);
  if (text == "Enabled" || text == "Yes") return true;
  if (text == "Disabled" || text == "No") return false;
  return std::nullopt;
}

std::optional<std::string> smi_text(std::string_view text) {
  text = trimmed(text);
  if (text.empty() || text == "N/A" || text.starts_with('[')) return std::nullopt;
  return std::string(text);
}

base::Result<SmiTable> SmiTable::parse(std::string_view text) {
  SmiTable table;
  for (const std::string& line : parts_of(text, '\n')) {
    if (line.empty()) continue;
    std::vector<std::string> cells = parts_of(line, ',');
    if (table.columns_.empty()) {
      for (std::string& cell : cells) {
        table.columns_.push_back(cell.substr(0, cell.find(" [")));
      }
      continue;
    }
    if (cells.size() != table.columns_.size()) {
      return base::fail(base::ErrorCode::kDataLoss,
                        fmt::format("nvidia-smi: \"{}\" has {} values, not {}", line.substr(0, 200),
                                    cells.size(), table.columns_.size()));
    }
    table.rows_.push_back(std::move(cells));
  }
  if (table.columns_.empty()) {
    return base::fail(base::ErrorCode::kDataLoss, "nvidia-smi printed nothing");
  }
  return table;
}

std::string_view SmiTable::at(std::size_t row, std::string_view column) const {
  const auto found = std::ranges::find(columns_, column);
  if (found == columns_.end()) return {};
  return rows_[row][static_cast<std::size_t>(found - columns_.begin())];
}

std::vector<GpuDescription> smi_descriptions(const SmiTable& gpus) {
  std::vector<GpuDescription> out;
  for (std::size_t row = 0; row < gpus.rows(); ++row) {
    const auto at = [&](std::string_view column) { return gpus.at(row, column); };
    const auto index = smi_number(at("index"));
    if (!index) continue;
    GpuDescription gpu;
    gpu.index = *index;
    gpu.uuid = smi_text(at("uuid"));
    gpu.model = smi_text(at("name"));
    gpu.serial = smi_text(at("serial"));
    gpu.pci_address = smi_text(at("pci.bus_id"));
    gpu.memory = smi_bytes(at("memory.total"));
    gpu.compute_capability = capability(at("compute_cap"));
    gpu.power_limit = smi_watts(at("power.limit"));
    gpu.power_limit_min = smi_watts(at("power.min_limit"));
    gpu.power_limit_max = smi_watts(at("power.max_limit"));
    gpu.mig_enabled = smi_switch(at("mig.mode.current"));
    gpu.ecc_enabled = smi_switch(at("ecc.mode.current"));
    gpu.persistence_enabled = smi_switch(at("persistence_mode"));
    gpu.pcie_generation_max = smi_number(at("pcie.link.gen.max"));
    gpu.pcie_width_max = smi_number(at("pcie.link.width.max"));
    if (condition_of(at("memory.total")) != GpuCondition::kAnswering) {
      gpu.problem = at("memory.total");
    }
    out.push_back(std::move(gpu));
  }
  std::ranges::sort(out, {}, &GpuDescription::index);
  return out;
}

std::vector<GpuReading> smi_readings(const SmiTable& gpus, const SmiTable& processes) {
  std::vector<GpuReading> out;
  for (std::size_t row = 0; row < gpus.rows(); ++row) {
    const auto at = [&](std::string_view column) { return gpus.at(row, column); };
    const auto either = [&](std::string_view one, std::string_view other) {
      return at(one).empty() ? at(other) : at(one);
    };
    const auto index = smi_number(at("index"));
    if (!index) continue;
    GpuReading gpu;
    gpu.index = *index;
    gpu.condition = condition_of(at("memory.total"));
    if (gpu.condition != GpuCondition::kAnswering) {
      gpu.problem = at("memory.total");
      out.push_back(std::move(gpu));
      continue;
    }
    gpu.utilization_percent = percent(at("utilization.gpu"));
    gpu.memory_utilization_percent = percent(at("utilization.memory"));
    gpu.encoder_percent = percent(at("utilization.encoder"));
    gpu.decoder_percent = percent(at("utilization.decoder"));
    gpu.memory_total = smi_bytes(at("memory.total"));
    gpu.memory_used = smi_bytes(at("memory.used"));
    gpu.memory_reserved = smi_bytes(at("memory.reserved"));
    gpu.temperature_c = degrees(at("temperature.gpu"));
    gpu.memory_temperature_c = degrees(at("temperature.memory"));
    gpu.power = smi_watts(at("power.draw"));
    // Asked for by their short or old names, which headers write out and newer versions replace.
    gpu.clock_sm_mhz = smi_number(either("clocks.sm", "clocks.current.sm"));
    gpu.clock_memory_mhz = smi_number(either("clocks.mem", "clocks.current.memory"));
    gpu.throttle_reasons =
        bits(either("clocks_throttle_reasons.active", "clocks_event_reasons.active"));
    gpu.ecc_corrected = smi_count(at("ecc.errors.corrected.volatile.total"));
    gpu.ecc_uncorrected = smi_count(at("ecc.errors.uncorrected.volatile.total"));
    gpu.processes = processes_of(processes, at("uuid"));
    out.push_back(std::move(gpu));
  }
  std::ranges::sort(out, {}, &GpuReading::index);
  return out;
}

std::string smi_refused_column(std::string_view text) {
  constexpr std::string_view kBefore = "Field \"";
  constexpr std::string_view kAfter = "\" is not a valid field to query";
  const std::size_t first = text.find(kBefore);
  if (first == std::string_view::npos) return {};
  text.remove_prefix(first + kBefore.size());
  const std::size_t last = text.find(kAfter);
  return last == std::string_view::npos ? std::string() : std::string(text.substr(0, last));
}

}  // namespace gpu_platform::hardware
