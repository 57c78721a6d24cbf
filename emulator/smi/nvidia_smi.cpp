#include "smi/nvidia_smi.h"

#include <fmt/format.h>

#include <cctype>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <string_view>
#include <thread>
#include <vector>

#include "smi/arguments.h"
#include "smi/gpu.h"
#include "smi/gpu_reset.h"
#include "smi/mig_instances.h"
#include "smi/mig_profiles.h"
#include "smi/query.h"
#include "smi/readings.h"
#include "smi/report.h"
#include "smi/table.h"
#include "smi/topology.h"

namespace gpu_emulator {

namespace {

// What was printed, and the exit code.
struct Output {
  std::string text;
  int exit_code = kExitOk;
};

struct Machine {
  const NvmlLibrary& nvml;
  DriverFacts driver;
  std::vector<Gpu> all;
  std::vector<Gpu> chosen;
};

std::string local_time(const char* form) {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::localtime_r(&now, &parts);
  char text[64];
  return {text, std::strftime(text, sizeof text, form, &parts)};
}

std::string time_of_report() {
  return local_time("%a %b %e %H:%M:%S %Y");
}

std::string time_of_query() {
  using std::chrono::milliseconds;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return fmt::format("{}.{:03}", local_time("%Y/%m/%d %H:%M:%S"),
                     std::chrono::duration_cast<milliseconds>(now).count() % 1000);
}

Output failed_to_start(const NvmlLibrary& nvml, Return code) {
  if (code == kDriverNotLoaded) {
    return {
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure "
        "that the latest NVIDIA driver is installed and running.\n\n",
        kExitNoDriver};
  }
  return {fmt::format("Failed to initialize NVML: {}\n", nvml.words_for(code)), code};
}

std::string in_upper_case(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return upper;
}

// "0000:18:00.0" is "00000000:18:00.0", too.
bool is_called(const Gpu& gpu, std::string_view id) {
  const bool is_index =
      !id.empty() && id.size() < 4 && id.find_first_not_of("0123456789") == std::string_view::npos;
  if (is_index) return id == fmt::format("{}", gpu.index());
  if (id == gpu.text("nvmlDeviceGetUUID").value || id == gpu.text("nvmlDeviceGetSerial").value) {
    return true;
  }
  const std::string wanted = in_upper_case(id);
  const std::string bus = in_upper_case(gpu.bus_id());
  return wanted == bus || (bus.size() > 4 && wanted == std::string_view(bus).substr(4));
}

Output about_lost(const Gpu& gpu) {
  const std::string bus = gpu.bus_id();
  return {fmt::format("Unable to determine the device handle for GPU{}: {}GPU is lost.  Reboot the "
                      "system to recover this GPU\n",
                      gpu.index(), bus == "N/A" ? "" : bus + ": "),
          kGpuIsLost};
}

// Finds the GPUs. A lost one ends the program, as it ends the original: only resets of GPUs that
// are named go on where it is not among them.
Output find_gpus(const SmiArguments& arguments, Machine& machine) {
  const bool is_for_named = arguments.task == SmiTask::kReset && !arguments.ids.empty();
  std::vector<Gpu> lost;
  unsigned int count = 0;
  machine.nvml.call<decltype(nvmlDeviceGetCount_v2)>("nvmlDeviceGetCount_v2", &count);
  for (unsigned int i = 0; i < count; ++i) {
    nvmlDevice_t device = nullptr;
    Return code = machine.nvml.call<decltype(nvmlDeviceGetHandleByIndex_v2)>(
        "nvmlDeviceGetHandleByIndex_v2", i, &device);
    const Gpu gpu(machine.nvml, device, i);
    if (code == kSuccess) code = gpu.text("nvmlDeviceGetUUID").status;
    if (code == kGpuIsLost) {
      if (!is_for_named) return about_lost(gpu);
      lost.push_back(gpu);
    }
    if (code != kSuccess) continue;
    machine.all.push_back(gpu);
  }
  if (arguments.ids.empty()) machine.chosen = machine.all;
  std::string_view rest = arguments.ids;
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view id = rest.substr(0, comma);
    for (const Gpu& gpu : lost) {
      if (is_called(gpu, id)) return about_lost(gpu);
    }
    bool is_found = false;
    for (const Gpu& gpu : machine.all) {
      if (!is_called(gpu, id)) continue;
      machine.chosen.push_back(gpu);
      is_found = true;
    }
    // A lost one does not say where it is.
    if (!is_found && !lost.empty()) return about_lost(lost.front());
    if (!is_found) return {"No devices were found\n", kExitNotFound};
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  if (machine.chosen.empty()) return {"No devices were found\n", kExitNotFound};
  return {};
}

std::string list_of(const std::vector<Gpu>& gpus) {
  std::string out;
  for (const Gpu& gpu : gpus) {
    out +=
        fmt::format("GPU {}: {} (UUID: {})\n", gpu.index(), in_words(gpu.text("nvmlDeviceGetName")),
                    in_words(gpu.text("nvmlDeviceGetUUID")));
    out += mig_device_lines(gpu);
  }
  return out;
}

Output query(const SmiArguments& arguments, const Machine& machine) {
  CsvFormat format;
  if (!read_csv_format(arguments.format, format)) {
    return {fmt::format("\"{}\" is not a valid format. Please run 'nvidia-smi -h' for help.\n",
                        arguments.format),
            kExitBadArgument};
  }
  const Subjects subjects{machine.driver, machine.chosen, machine.all.size(), time_of_query()};
  Output output;
  const std::string unknown =
      arguments.task == SmiTask::kQueryGpus
          ? query_gpus(subjects, arguments.fields, format, output.text)
          : query_processes(subjects, arguments.fields, format, output.text);
  if (unknown.empty() && !arguments.fields.empty()) return output;
  return {fmt::format("Field \"{}\" is not a valid field to query.\n\n", unknown),
          kExitBadArgument};
}

Output report(const SmiArguments& arguments, const Machine& machine) {
  const ReportHead head{machine.driver, time_of_report(), machine.all.size()};
  const Displays displays =
      arguments.displays.empty() ? kEverything : read_displays(arguments.displays).value_or(0);
  return {arguments.is_xml ? xml_report(head, machine.chosen, displays)
                           : text_report(head, machine.chosen, displays)};
}

std::string versions_of(const DriverFacts& driver) {
  const std::string nvml = driver.nvml_version.substr(driver.nvml_version.find('.') + 1);
  return fmt::format(
      "NVIDIA-SMI version  : {}\nNVML version        : {}\nDRIVER version      : {}\n"
      "CUDA Version        : {}\n",
      driver.version, nvml.substr(0, nvml.rfind('.')), driver.version, driver.cuda_version);
}

Output or_none(std::string text, const char* none) {
  if (text.empty()) return {none, kExitNotFound};
  return {std::move(text)};
}

Output answer(const SmiArguments& arguments, const Machine& machine) {
  switch (arguments.task) {
    case SmiTask::kList:
      return {list_of(machine.chosen)};
    case SmiTask::kReport:
      return report(arguments, machine);
    case SmiTask::kQueryGpus:
    case SmiTask::kQueryProcesses:
      return query(arguments, machine);
    case SmiTask::kTopology:
      return {topology_matrix(machine.chosen)};
    case SmiTask::kMigProfiles:
      return or_none(profile_table(machine.chosen), "No MIG-supported devices found.\n");
    case SmiTask::kMigPlacements:
      return or_none(placement_lines(machine.chosen), "No MIG-supported devices found.\n");
    case SmiTask::kMigInstances:
    case SmiTask::kMigComputeProfiles:
    case SmiTask::kMigComputeInstances:
    case SmiTask::kMigCreate:
    case SmiTask::kMigCreateCompute:
    case SmiTask::kMigDestroy:
    case SmiTask::kMigDestroyCompute:
    case SmiTask::kMigMode: {
      const MigOutcome outcome = run_mig(arguments, machine.chosen);
      return {outcome.text, outcome.exit_code};
    }
    case SmiTask::kReset: {
      const ResetOutcome outcome = reset_emulated(machine.chosen);
      return {outcome.text, outcome.exit_code};
    }
    case SmiTask::kVersions:
      return {versions_of(machine.driver)};
    default:
      return {summary_table(machine.driver, machine.chosen, time_of_report())};
  }
}

// Everything anew: a driver may have gone since the last time.
Output ask(const SmiArguments& arguments) {
  const NvmlLibrary nvml;
  if (!nvml.is_there()) {
    return {
        "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. Please make sure that "
        "the NVIDIA Display Driver is properly installed and present in your system.\n\n",
        kExitNoLibrary};
  }
  const Return code = nvml.call<decltype(nvmlInit_v2)>("nvmlInit_v2");
  if (code != kSuccess) return failed_to_start(nvml, code);
  Machine machine{nvml, facts_of_driver(nvml), {}, {}};
  Output output = find_gpus(arguments, machine);
  if (output.exit_code == kExitOk) output = answer(arguments, machine);
  nvml.call<decltype(nvmlShutdown)>("nvmlShutdown");
  return output;
}

Output help_for(SmiTask task) {
  if (task == SmiTask::kHelpQueryGpus) return {names_of_gpu_fields()};
  if (task == SmiTask::kHelpQueryProcesses) return {names_of_process_fields()};
  return {help_text()};
}

bool needs_no_driver(SmiTask task) {
  return task == SmiTask::kHelp || task == SmiTask::kHelpQueryGpus ||
         task == SmiTask::kHelpQueryProcesses;
}

bool write(std::FILE* out, const std::string& text) {
  const bool is_written = std::fwrite(text.data(), 1, text.size(), out) == text.size();
  return std::fflush(out) == 0 && is_written;
}

}  // namespace

int run_nvidia_smi(std::span<const std::string> words) {
  const auto arguments = read_arguments(words);
  if (!arguments) {
    write(stdout, arguments.error().message + "\n\n");
    return kExitBadArgument;
  }
  std::FILE* out = stdout;
  if (!arguments->file.empty()) {
    out = std::fopen(arguments->file.c_str(), "we");
    if (out == nullptr) {
      write(stdout, fmt::format("Unable to open file {} for writing.\n", arguments->file));
      return kExitBadArgument;
    }
  }
  while (true) {
    const Output output =
        needs_no_driver(arguments->task) ? help_for(arguments->task) : ask(*arguments);
    if (!write(out, output.text)) return kExitNotAvailable;
    if (!arguments->interval_ms || output.exit_code != kExitOk) return output.exit_code;
    std::this_thread::sleep_for(std::chrono::milliseconds(*arguments->interval_ms));
  }
}

}  // namespace gpu_emulator
