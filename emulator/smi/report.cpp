#include "smi/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "smi/readings.h"
#include "smi/report_rows.h"

namespace gpu_emulator {

namespace {

struct DisplayName {
  std::string_view name;
  Displays bits;
};

constexpr DisplayName kDisplays[] = {
    {"MEMORY", kMemoryDisplay},
    {"UTILIZATION", kUtilizationDisplay},
    {"ECC", kEccDisplay},
    {"TEMPERATURE", kTemperatureDisplay},
    {"POWER", kPowerDisplay},
    {"CLOCK", kClockDisplay},
    {"COMPUTE", kComputeDisplay},
    {"PIDS", kPidsDisplay},
    {"PERFORMANCE", kPerformanceDisplay},
    {"SUPPORTED_CLOCKS", kSupportedClocksDisplay},
    {"PAGE_RETIREMENT", kPageRetirementDisplay},
    {"ACCOUNTING", kAccountingDisplay},
    {"ENCODER_STATS", kEncoderDisplay},
    {"VOLTAGE", kVoltageDisplay},
    {"FBC_STATS", kFbcDisplay},
    {"ROW_REMAPPER", kRowRemapperDisplay},
    {"RESET_STATUS", kResetDisplay},
    {"GSP_FIRMWARE_VERSION", kGspDisplay},
    {"FABRIC", kFabricDisplay},
};

constexpr int kLabelWidth = 42;

std::string text_line(int depth, std::string_view label, std::string_view value) {
  const std::string indented = std::string(static_cast<std::size_t>(depth) * 4, ' ');
  return fmt::format("{:<{}}: {}\n", indented + std::string(label), kLabelWidth, value);
}

std::string text_heading(int depth, std::string_view label) {
  return fmt::format("{}{}\n", std::string(static_cast<std::size_t>(depth) * 4, ' '), label);
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&apos;";
        break;
      default:
        // A process may call itself anything; XML has no other characters below the space.
        if (static_cast<unsigned char>(c) >= ' ' || c == '\t') out += c;
    }
  }
  return out;
}

// An XML document in the making. Elements that contain others are closed by their depth.
class Document {
 public:
  void open(int depth, std::string_view tag, std::string_view attributes = {}) {
    close_to(depth);
    out_ += fmt::format("{}<{}{}>\n", indent(depth), tag, attributes);
    open_.emplace_back(depth, tag);
  }
  void element(int depth, std::string_view tag, std::string_view value) {
    close_to(depth);
    out_ += fmt::format("{}<{}>{}</{}>\n", indent(depth), tag, escaped(value), tag);
  }
  void line(int depth, std::string_view text) { out_ += indent(depth) + std::string(text) + "\n"; }
  // Closes all that are at that depth or below it.
  void close_to(int depth) {
    while (!open_.empty() && open_.back().first >= depth) {
      out_ += fmt::format("{}</{}>\n", indent(open_.back().first), open_.back().second);
      open_.pop_back();
    }
  }
  std::string take() { return std::move(out_); }

 private:
  static std::string indent(int depth) {
    return std::string(static_cast<std::size_t>(depth), '\t');
  }

  std::string out_;
  std::vector<std::pair<int, std::string>> open_;
};

RowFacts facts_of(const Gpu& gpu, unsigned int branch, Displays displays) {
  constexpr unsigned int kShutdownDistance = 193;
  RowFacts facts;
  facts.branch = branch;
  facts.architecture = gpu.architecture().value;
  facts.tells_distances = gpu.field(kShutdownDistance).status == kSuccess;
  facts.remaps_rows = remapped_of(gpu, RemappedPart::kPending).status == kSuccess;
  facts.is_whole = displays == kEverything;
  return facts;
}

// The rows that a GPU has, in those displays, without those of the other form.
std::vector<const ReportRow*> rows_of(const RowFacts& facts, Displays displays, RowForm left_out) {
  std::vector<const ReportRow*> rows;
  int skipped_below = 0;  // the depth of a row whose parts go with it; 0: none
  for (const ReportRow& row : report_rows()) {
    if (skipped_below != 0 && row.depth > skipped_below) continue;
    skipped_below = 0;
    const bool is_shown = row.displays == 0 || (row.displays & displays) != 0;
    const bool applies = row.applies == nullptr || row.applies(facts);
    if (!is_shown || !applies || row.form == left_out) {
      skipped_below = row.depth;
      continue;
    }
    rows.push_back(&row);
  }
  return rows;
}

struct SupportedClocks {
  unsigned int memory_mhz = 0;
  std::vector<unsigned int> graphics_mhz;
};

std::vector<SupportedClocks> supported_clocks(const Gpu& gpu) {
  std::vector<SupportedClocks> found;
  std::vector<unsigned int> memory(64);
  auto count = static_cast<unsigned int>(memory.size());
  if (gpu.call<decltype(nvmlDeviceGetSupportedMemoryClocks)>("nvmlDeviceGetSupportedMemoryClocks",
                                                             &count, memory.data()) != kSuccess) {
    return found;
  }
  memory.resize(count);
  for (const unsigned int mhz : memory) {
    SupportedClocks clocks{mhz, std::vector<unsigned int>(512)};
    auto graphics = static_cast<unsigned int>(clocks.graphics_mhz.size());
    const Return status = gpu.call<decltype(nvmlDeviceGetSupportedGraphicsClocks)>(
        "nvmlDeviceGetSupportedGraphicsClocks", mhz, &graphics, clocks.graphics_mhz.data());
    clocks.graphics_mhz.resize(status == kSuccess ? graphics : 0);
    found.push_back(std::move(clocks));
  }
  return found;
}

std::string process_type(const GpuProcess& process) {
  return process.is_graphics ? "G" : "C";
}

std::string name_of(const GpuProcess& process) {
  return process.name.empty() ? "[Not Found]" : process.name;
}

std::string text_of_processes(const Gpu& gpu) {
  const auto told = gpu.processes();
  if (told.status != kSuccess) {
    return text_line(1, "Processes", in_words(Reading::failure(told.status)));
  }
  if (told.value.empty()) return text_line(1, "Processes", "None");
  std::string out = text_heading(1, "Processes");
  for (const GpuProcess& process : told.value) {
    out += text_line(2, "GPU instance ID", "N/A");
    out += text_line(2, "Compute instance ID", "N/A");
    out += text_line(2, "Process ID", fmt::format("{}", process.pid));
    out += text_line(3, "Type", process_type(process));
    out += text_line(3, "Name", name_of(process));
    out += text_line(3, "Used GPU Memory", in_words(process.used_memory));
  }
  return out;
}

std::string text_of_supported_clocks(const Gpu& gpu) {
  const auto clocks = supported_clocks(gpu);
  if (clocks.empty()) return text_line(1, "Supported Clocks", "N/A");
  std::string out = text_heading(1, "Supported Clocks");
  for (const SupportedClocks& each : clocks) {
    out += text_line(2, "Memory", fmt::format("{} MHz", each.memory_mhz));
    for (const unsigned int mhz : each.graphics_mhz) {
      out += text_line(3, "Graphics", fmt::format("{} MHz", mhz));
    }
  }
  return out;
}

void put_processes(Document& out, const Gpu& gpu) {
  out.open(2, "processes");
  for (const GpuProcess& process : gpu.processes().value) {
    out.open(3, "process_info");
    out.element(4, "gpu_instance_id", "N/A");
    out.element(4, "compute_instance_id", "N/A");
    out.element(4, "pid", fmt::format("{}", process.pid));
    out.element(4, "type", process_type(process));
    out.element(4, "process_name", name_of(process));
    out.element(4, "used_memory", in_words(process.used_memory));
    out.close_to(3);
  }
  out.close_to(2);
}

void put_supported_clocks(Document& out, const Gpu& gpu) {
  const auto clocks = supported_clocks(gpu);
  if (clocks.empty()) {
    out.element(2, "supported_clocks", "N/A");
    return;
  }
  out.open(2, "supported_clocks");
  for (const SupportedClocks& each : clocks) {
    out.open(3, "supported_mem_clock");
    out.element(4, "value", fmt::format("{} MHz", each.memory_mhz));
    for (const unsigned int mhz : each.graphics_mhz) {
      out.element(4, "supported_graphics_clock", fmt::format("{} MHz", mhz));
    }
  }
  out.close_to(2);
}

std::string text_of_gpu(const Gpu& gpu, unsigned int branch, Displays displays) {
  std::string out = fmt::format("GPU {}\n", gpu.bus_id());
  const RowFacts facts = facts_of(gpu, branch, displays);
  for (const ReportRow* row : rows_of(facts, displays, RowForm::kXml)) {
    if (row->form == RowForm::kNothing) continue;
    out += row->read == nullptr ? text_heading(row->depth, row->label)
                                : text_line(row->depth, row->label, in_words(row->read(gpu)));
  }
  // The list of clocks is long: the text has it only where it is asked for.
  if (!facts.is_whole && (displays & kSupportedClocksDisplay) != 0) {
    out += text_of_supported_clocks(gpu);
  }
  if ((displays & kPidsDisplay) != 0) out += text_of_processes(gpu);
  if (facts.is_whole && branch >= 565) {
    out += text_heading(1, "Capabilities") + text_line(2, "EGM", "disabled");
  }
  return out + "\n";
}

void put_gpu(Document& out, const Gpu& gpu, unsigned int branch, Displays displays) {
  out.open(1, "gpu", fmt::format(" id=\"{}\"", gpu.bus_id()));
  const RowFacts facts = facts_of(gpu, branch, displays);
  for (const ReportRow* row : rows_of(facts, displays, RowForm::kText)) {
    const int depth = row->depth + 1;
    if (row->form == RowForm::kNothing) {
      out.open(depth, row->tag);
      out.line(depth + 1, "None");
    } else if (row->read == nullptr) {
      out.open(depth, row->tag);
    } else {
      std::string value = in_words(row->read(gpu));
      if (row->form == RowForm::kHex && value.starts_with("0x")) value.erase(0, 2);
      out.element(depth, row->tag, value);
    }
  }
  out.close_to(2);
  if ((displays & kSupportedClocksDisplay) != 0) put_supported_clocks(out, gpu);
  if ((displays & kPidsDisplay) != 0) put_processes(out, gpu);
  if (facts.is_whole) {
    out.open(2, "accounted_processes");
    out.close_to(2);
  }
  if (facts.is_whole && branch >= 565) {
    out.open(2, "capabilities");
    out.element(3, "egm", "disabled");
  }
  out.close_to(1);
  out.line(0, "");
}

}  // namespace

std::optional<Displays> read_displays(std::string_view text) {
  Displays displays = 0;
  while (true) {
    const std::size_t comma = text.find(',');
    const auto* found = std::ranges::find(kDisplays, text.substr(0, comma), &DisplayName::name);
    if (found == std::end(kDisplays)) return std::nullopt;
    displays |= found->bits;
    if (comma == std::string_view::npos) return displays;
    text.remove_prefix(comma + 1);
  }
}

std::string names_of_displays() {
  std::string names;
  for (const DisplayName& each : kDisplays) {
    names += (names.empty() ? "" : ", ") + std::string(each.name);
  }
  return names;
}

std::string text_report(const ReportHead& head, std::span<const Gpu> gpus, Displays displays) {
  std::string out = "\n==============NVSMI LOG==============\n\n";
  out += text_line(0, "Timestamp", head.now);
  out += text_line(0, "Driver Version", head.driver.version);
  out += text_line(0, "CUDA Version", head.driver.cuda_version) + "\n";
  out += text_line(0, "Attached GPUs", fmt::format("{}", head.attached_gpus));
  for (const Gpu& gpu : gpus) out += text_of_gpu(gpu, head.driver.branch, displays);
  return out;
}

std::string xml_report(const ReportHead& head, std::span<const Gpu> gpus, Displays displays) {
  constexpr unsigned int kNewDefinition = 580;
  Document out;
  out.line(0, "<?xml version=\"1.0\" ?>");
  out.line(0, fmt::format("<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v{}.dtd\">",
                          head.driver.branch >= kNewDefinition ? 13 : 12));
  out.open(0, "nvidia_smi_log");
  out.element(1, "timestamp", head.now);
  out.element(1, "driver_version", head.driver.version);
  out.element(1, "cuda_version", head.driver.cuda_version);
  out.element(1, "attached_gpus", fmt::format("{}", head.attached_gpus));
  for (const Gpu& gpu : gpus) put_gpu(out, gpu, head.driver.branch, displays);
  out.close_to(0);
  return out.take();
}

}  // namespace gpu_emulator
