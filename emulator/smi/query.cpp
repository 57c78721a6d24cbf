#include "smi/query.h"

#include <fmt/format.h>

#include <algorithm>

#include "smi/gpu_fields.h"
#include "smi/readings.h"

namespace gpu_emulator {

namespace {

std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t comma = text.find(',');
    std::string_view part = text.substr(0, comma);
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    parts.push_back(part);
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

// True for one of names that are separated by spaces.
bool is_among(std::string_view wanted, std::string_view names) {
  while (!names.empty()) {
    const std::size_t space = std::min(names.find(' '), names.size());
    if (names.substr(0, space) == wanted) return true;
    names.remove_prefix(std::min(space + 1, names.size()));
  }
  return false;
}

std::string_view first_of(std::string_view names) {
  return names.substr(0, names.find(' '));
}

void add(std::string& line, std::string_view cell) {
  if (!line.empty()) line += ", ";
  line += cell;
}

std::string title(std::string_view name, std::string_view unit) {
  return unit.empty() ? std::string(name) : fmt::format("{} [{}]", name, unit);
}

// The fields that are the same for every GPU.
constexpr std::string_view kMachineFields[] = {"timestamp", "driver_version", "count"};

std::string value_of_machine(const Subjects& subjects, std::string_view field) {
  if (field == "timestamp") return subjects.now;
  if (field == "driver_version") return subjects.driver.version;
  return fmt::format("{}", subjects.count);
}

const GpuField* find_field(std::string_view name) {
  for (const GpuField& field : gpu_fields()) {
    if (is_among(name, field.names)) return &field;
  }
  return nullptr;
}

bool is_of_machine(std::string_view name) {
  return std::ranges::find(kMachineFields, name) != std::end(kMachineFields);
}

// One column of a query about processes.
struct ProcessField {
  std::string_view names;
  std::string_view unit;
  Reading (*read)(const Subjects& subjects, const Gpu& gpu, const GpuProcess& process);
};

constexpr ProcessField kProcessFields[] = {
    {"timestamp", "",
     [](const Subjects& all, const Gpu&, const GpuProcess&) { return Reading{kSuccess, all.now}; }},
    {"gpu_name", "",
     [](const Subjects&, const Gpu& gpu, const GpuProcess&) {
       return gpu.text("nvmlDeviceGetName");
     }},
    {"gpu_bus_id", "",
     [](const Subjects&, const Gpu& gpu, const GpuProcess&) { return bus_id(gpu); }},
    {"gpu_serial", "",
     [](const Subjects&, const Gpu& gpu, const GpuProcess&) {
       return gpu.text("nvmlDeviceGetSerial");
     }},
    {"gpu_uuid", "",
     [](const Subjects&, const Gpu& gpu, const GpuProcess&) {
       return gpu.text("nvmlDeviceGetUUID");
     }},
    {"pid", "",
     [](const Subjects&, const Gpu&, const GpuProcess& process) { return number(process.pid); }},
    {"process_name name", "",
     [](const Subjects&, const Gpu&, const GpuProcess& process) {
       return process.name.empty() ? Reading{kNotFound, {}} : Reading{kSuccess, process.name};
     }},
    {"used_gpu_memory used_memory", "MiB",
     [](const Subjects&, const Gpu&, const GpuProcess& process) { return process.used_memory; }},
};

std::string names_line(std::string_view names) {
  std::string line;
  while (!names.empty()) {
    const std::size_t space = std::min(names.find(' '), names.size());
    line += fmt::format("{}\"{}\"", line.empty() ? "" : " or ", names.substr(0, space));
    names.remove_prefix(std::min(space + 1, names.size()));
  }
  return line + "\n";
}

}  // namespace

bool read_csv_format(std::string_view text, CsvFormat& format) {
  bool is_csv = false;
  for (const std::string_view part : parts_of(text)) {
    if (part == "csv") {
      is_csv = true;
    } else if (part == "noheader") {
      format.has_header = false;
    } else if (part == "nounits") {
      format.has_units = false;
    } else {
      return false;
    }
  }
  return is_csv;
}

std::string query_gpus(const Subjects& subjects, std::string_view fields, CsvFormat format,
                       std::string& out) {
  const auto names = parts_of(fields);
  std::string header;
  for (const std::string_view name : names) {
    const GpuField* field = find_field(name);
    if (field == nullptr && !is_of_machine(name)) return std::string(name);
    add(header, field == nullptr ? std::string(name) : title(first_of(field->names), field->unit));
  }
  if (format.has_header) out += header + "\n";
  for (const Gpu& gpu : subjects.gpus) {
    std::string line;
    for (const std::string_view name : names) {
      const GpuField* field = find_field(name);
      if (field == nullptr) {
        add(line, value_of_machine(subjects, name));
        continue;
      }
      // A unit that the header does not name stays away: temperatures have none.
      add(line, in_csv(field->read(gpu), format.has_units && !field->unit.empty()));
    }
    out += line + "\n";
  }
  return "";
}

std::string query_processes(const Subjects& subjects, std::string_view fields, CsvFormat format,
                            std::string& out) {
  std::vector<const ProcessField*> columns;
  std::string header;
  for (const std::string_view name : parts_of(fields)) {
    const auto* field = std::ranges::find_if(
        kProcessFields, [&](const ProcessField& each) { return is_among(name, each.names); });
    if (field == std::end(kProcessFields)) return std::string(name);
    columns.push_back(field);
    add(header, title(first_of(field->names), field->unit));
  }
  if (format.has_header) out += header + "\n";
  for (const Gpu& gpu : subjects.gpus) {
    for (const GpuProcess& process : gpu.processes().value) {
      if (process.is_graphics) continue;
      std::string line;
      for (const ProcessField* column : columns) {
        add(line, in_csv(column->read(subjects, gpu, process), format.has_units));
      }
      out += line + "\n";
    }
  }
  return "";
}

std::string names_of_gpu_fields() {
  std::string text;
  for (const std::string_view name : kMachineFields) text += names_line(name);
  for (const GpuField& field : gpu_fields()) text += names_line(field.names);
  return text;
}

std::string names_of_process_fields() {
  std::string text;
  for (const ProcessField& field : kProcessFields) text += names_line(field.names);
  return text;
}

}  // namespace gpu_emulator
