#include "hardware/nvidia_smi/smi_xml.h"

#include <limits>
#include <string_view>

#include <fmt/format.h>
#include <pugixml.hpp>

#include "hardware/nvidia_smi/smi_text.h"

namespace gpu_platform::hardware {
namespace {

// The text at the first of the paths ("pci/pci_bus_id") that is there: names have changed with the
// versions of the driver.
std::string_view at(const pugi::xml_node& gpu, std::initializer_list<const char*> paths) {
  for (const char* path : paths) {
    const pugi::xml_node found = gpu.first_element_by_path(path);
    if (found) return found.text().get();
  }
  return {};
}

// "450 KB/s".
std::optional<std::uint64_t> rate(std::string_view text) {
  const auto count = smi_count(text);
  if (!count || text.find("KB/s") == std::string_view::npos || *count > (1ull << 50)) {
    return std::nullopt;
  }
  return *count * 1000;
}

// "12.4" is 12040.
std::optional<std::uint32_t> cuda_version(std::string_view text) {
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const auto major = smi_number(text.substr(0, dot));
  const auto minor = smi_number(text.substr(dot + 1));
  if (!major || !minor || *major > 1000 || *minor > 99) return std::nullopt;
  return *major * 1000 + *minor * 10;
}

std::optional<std::int32_t> threshold(std::string_view text) {
  const auto value = smi_number(text);
  if (!value || *value == 0 || *value > 1000) return std::nullopt;
  return static_cast<std::int32_t>(*value);
}

GpuDescription description_of(const pugi::xml_node& gpu, std::uint32_t index) {
  GpuDescription out;
  out.index = index;
  out.uuid = smi_text(at(gpu, {"uuid"}));
  out.model = smi_text(at(gpu, {"product_name"}));
  out.serial = smi_text(at(gpu, {"serial"}));
  out.pci_address = smi_text(at(gpu, {"pci/pci_bus_id"}));
  out.minor = smi_number(at(gpu, {"minor_number"}));
  out.memory = smi_bytes(at(gpu, {"fb_memory_usage/total"}));
  out.power_limit =
      smi_watts(at(gpu, {"gpu_power_readings/current_power_limit", "power_readings/power_limit"}));
  out.power_limit_min =
      smi_watts(at(gpu, {"gpu_power_readings/min_power_limit", "power_readings/min_power_limit"}));
  out.power_limit_max =
      smi_watts(at(gpu, {"gpu_power_readings/max_power_limit", "power_readings/max_power_limit"}));
  out.mig_enabled = smi_switch(at(gpu, {"mig_mode/current_mig"}));
  out.ecc_enabled = smi_switch(at(gpu, {"ecc_mode/current_ecc"}));
  out.persistence_enabled = smi_switch(at(gpu, {"persistence_mode"}));
  out.pcie_generation_max = smi_number(at(gpu, {"pci/pci_gpu_link_info/pcie_gen/max_link_gen"}));
  out.pcie_width_max = smi_number(at(gpu, {"pci/pci_gpu_link_info/link_widths/max_link_width"}));
  out.slowdown_c = threshold(at(gpu, {"temperature/gpu_temp_slow_threshold"}));
  return out;
}

model::GpuSlowMetrics reading_of(const pugi::xml_node& gpu) {
  model::GpuSlowMetrics out;
  out.pcie_generation = smi_number(at(gpu, {"pci/pci_gpu_link_info/pcie_gen/current_link_gen"}));
  out.pcie_width = smi_number(at(gpu, {"pci/pci_gpu_link_info/link_widths/current_link_width"}));
  out.pcie_replays = smi_count(at(gpu, {"pci/replay_counter"}));
  out.pcie_sent_bytes_per_second = rate(at(gpu, {"pci/tx_util"}));
  out.pcie_received_bytes_per_second = rate(at(gpu, {"pci/rx_util"}));
  out.remapped_rows_corrected = smi_number(at(gpu, {"remapped_rows/remapped_row_corr"}));
  out.remapped_rows_uncorrected = smi_number(at(gpu, {"remapped_rows/remapped_row_unc"}));
  out.remap_pending = smi_switch(at(gpu, {"remapped_rows/remapped_row_pending"}));
  out.remap_failed = smi_switch(at(gpu, {"remapped_rows/remapped_row_failure"}));
  out.retired_pages_corrected =
      smi_number(at(gpu, {"retired_pages/multiple_single_bit_retirement/retired_count"}));
  out.retired_pages_uncorrected =
      smi_number(at(gpu, {"retired_pages/double_bit_retirement/retired_count"}));
  out.retirement_pending =
      smi_switch(at(gpu, {"retired_pages/pending_blacklist", "retired_pages/pending_retirement"}));
  return out;
}

}  // namespace

base::Result<SmiReport> parse_smi_report(const std::string& xml) {
  pugi::xml_document document;
  // The document type is not parsed: nothing outside the text is ever read.
  const pugi::xml_parse_result parsed = document.load_buffer(xml.data(), xml.size());
  if (!parsed) {
    return base::fail(base::ErrorCode::kDataLoss,
                      fmt::format("nvidia-smi -q -x gave no XML: {} at byte {}",
                                  parsed.description(), parsed.offset));
  }
  const pugi::xml_node log = document.child("nvidia_smi_log");
  if (!log) {
    return base::fail(base::ErrorCode::kDataLoss,
                      "nvidia-smi -q -x gave XML without nvidia_smi_log");
  }
  SmiReport report;
  report.driver.driver_version = smi_text(at(log, {"driver_version"}));
  report.driver.cuda_version = cuda_version(at(log, {"cuda_version"}));
  for (const pugi::xml_node& gpu : log.children("gpu")) {
    const auto index = static_cast<std::uint32_t>(report.gpus.size());
    report.gpus.push_back(description_of(gpu, index));
    report.readings.push_back(reading_of(gpu));
  }
  return report;
}

}  // namespace gpu_platform::hardware
