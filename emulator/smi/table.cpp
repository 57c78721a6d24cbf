#include "smi/table.h"

#include <fmt/format.h>

#include "smi/readings.h"

namespace gpu_emulator {

namespace {

// The widths that differ between branches, without the borders.
struct TableForm {
  int whole;       // the width of the table
  int version;     // of the driver, in the heading
  int middle;      // the column of bus and memory
  int bus;         // up to the end of the bus id
  int used;        // up to the end of the used memory
  int size;        // of the whole memory
  int draw;        // up to the end of the power that is drawn
  int limit;       // of the power
  int pid;         // of a process
  int name;        // of a process, with the room behind it
  bool is_ruled;   // a line of '+' below the heading
  bool is_spaced;  // the line before the processes is full of spaces
};

constexpr TableForm kNarrow{87, 12, 22, 17, 10, 8, 17, 4, 10, 40, false, true};
constexpr TableForm kWide{89, 14, 24, 19, 11, 9, 16, 5, 10, 42, false, true};
constexpr TableForm kNewest{89, 14, 24, 19, 11, 9, 16, 5, 16, 36, true, false};

constexpr int kLeft = 41;
constexpr int kRight = 22;

const TableForm& form_of(unsigned int branch) {
  if (branch < 550) return kNarrow;
  return branch < 580 ? kWide : kNewest;
}

// The left end may differ from the right one: "|----+----+----+".
std::string rule(char left, char right, const TableForm& form, char dash) {
  const auto dashes = [&](int count) { return std::string(static_cast<std::size_t>(count), dash); };
  return fmt::format("{}{}+{}+{}{}\n", left, dashes(kLeft), dashes(form.middle), dashes(kRight),
                     right);
}

std::string whole_rule(const TableForm& form, char corner, char dash) {
  return fmt::format("{}{}{}\n", corner, std::string(static_cast<std::size_t>(form.whole), dash),
                     corner);
}

std::string heading(const TableForm& form, const DriverFacts& driver) {
  std::string out = whole_rule(form, '+', '-');
  out += fmt::format("| NVIDIA-SMI {:<22} Driver Version: {:<{}} CUDA Version: {:<9}|\n",
                     driver.version, driver.version, form.version, driver.cuda_version);
  out += rule(form.is_ruled ? '+' : '|', '+', form, '-');
  const int pad = form.middle - 22;
  out += fmt::format(
      "| GPU  Name                 Persistence-M | {:<{}} Disp.A | Volatile Uncorr. ECC |\n",
      "Bus-Id", 13 + pad);
  out +=
      fmt::format("| Fan  Temp   Perf          Pwr:Usage/Cap | {:>{}} | GPU-Util  Compute M. |\n",
                  "Memory-Usage", 20 + pad);
  out += fmt::format("|{:{}}|{:{}}|{:>{}} |\n", "", kLeft, "", form.middle, "MIG M.", kRight - 1);
  return out + rule('|', '|', form, '=');
}

// "NVIDIA RTX 6000 Ada Gene..."
std::string shortened(const std::string& name) {
  constexpr std::size_t kMost = 27;
  return name.size() <= kMost ? name : name.substr(0, kMost - 3) + "...";
}

std::string on_or_off(const Reading& reading) {
  if (reading.status != kSuccess) return "N/A";
  return reading.value == "Enabled" ? "On" : "Off";
}

// "81559MiB", "0%", "30C"
std::string joined(const Reading& reading) {
  return reading.status == kSuccess ? reading.value + std::string(reading.unit) : in_words(reading);
}

// "71W" of "71.35 W"
std::string whole_watts(const Reading& reading) {
  if (reading.status != kSuccess) return "N/A";
  return reading.value.substr(0, reading.value.find('.')) + "W";
}

std::string uncorrected_errors(const Gpu& gpu) {
  const Reading ecc = mode_of(gpu, "nvmlDeviceGetEccMode", Pending::kCurrent);
  if (ecc.status == kSuccess && ecc.value == "Disabled") return "Off";
  return in_words(ecc_of(gpu, EccKind::kUncorrected, EccTime::kVolatile, EccPlace::kTotal));
}

std::string compute_word(const Gpu& gpu) {
  const std::string mode = in_words(compute_mode(gpu));
  if (mode == "Exclusive_Process") return "E. Process";
  return mode == "Exclusive_Thread" ? "E. Thread" : mode;
}

std::string mig_word(const Gpu& gpu) {
  const Reading current = mode_of(gpu, "nvmlDeviceGetMigMode", Pending::kCurrent);
  const Reading pending = mode_of(gpu, "nvmlDeviceGetMigMode", Pending::kPending);
  return in_words(current) + (current.value == pending.value ? "" : "*");
}

std::string rows_of_gpu(const TableForm& form, const Gpu& gpu) {
  std::string out;
  out += fmt::format("|{:>4}  {:<31}{:<4}|{:>{}} {:>3} |{:>21} |\n", gpu.index(),
                     shortened(in_words(gpu.text("nvmlDeviceGetName"))),
                     on_or_off(enabled_mode<"nvmlDeviceGetPersistenceMode">(gpu)), gpu.bus_id(),
                     form.bus, on_or_off(enabled_mode<"nvmlDeviceGetDisplayActive">(gpu)),
                     uncorrected_errors(gpu));
  const std::string drawn = whole_watts(power<"nvmlDeviceGetPowerUsage">(gpu));
  const std::string limit = whole_watts(power<"nvmlDeviceGetEnforcedPowerLimit">(gpu));
  out += fmt::format("|{:>4}{:>6}{:>6}{:>{}} / {:>{}} |{:>{}} / {:>{}} |{:>8} {:>12} |\n",
                     joined(fan_speed(gpu)), joined(temperature(gpu)),
                     in_words(performance_state(gpu)), drawn, form.draw, limit, form.limit,
                     joined(memory_of(gpu, MemoryPart::kUsed)), form.used,
                     joined(memory_of(gpu, MemoryPart::kTotal)), form.size,
                     joined(gpu_utilization(gpu)), compute_word(gpu));
  out += fmt::format("|{:{}}|{:{}}|{:>21} |\n", "", kLeft, "", form.middle, mig_word(gpu));
  return out + rule('+', '+', form, '-');
}

// "...envs/work/bin/python": the end of a path tells more.
std::string end_of(const std::string& name, int most) {
  const auto size = static_cast<std::size_t>(most);
  return name.size() <= size ? name : "..." + name.substr(name.size() - (size - 3));
}

std::string process_rows(const TableForm& form, std::span<const Gpu> gpus) {
  std::string out;
  constexpr int kBehindName = 4;
  for (const Gpu& gpu : gpus) {
    for (const GpuProcess& process : gpu.processes().value) {
      const std::string name = process.name.empty() ? "[Not Found]" : process.name;
      out += fmt::format("|{:>5}{:>6}{:>5}{:>{}}{:>7}   {:<{}}{:>10} |\n", gpu.index(),
                         in_words(process.gpu_instance), in_words(process.compute_instance),
                         process.pid, form.pid, process.is_graphics ? "G" : "C",
                         end_of(name, form.name - kBehindName), form.name,
                         joined(process.used_memory));
    }
  }
  if (!out.empty()) return out;
  return fmt::format("|{:<{}}|\n", "  No running processes found", form.whole);
}

std::string process_table(const TableForm& form, std::span<const Gpu> gpus) {
  std::string out = whole_rule(form, '+', '-');
  out += fmt::format("|{:<{}}|\n", " Processes:", form.whole);
  out += fmt::format("|  GPU   GI   CI{:>{}}   Type   {:<{}}{:>10} |\n", "PID", form.pid + 1,
                     "Process name", form.name, "GPU Memory");
  const std::string ids = "        ID   ID";
  out += fmt::format("|{}{:>{}} |\n", ids, "Usage     ",
                     form.whole - static_cast<int>(ids.size()) - 1);
  out += whole_rule(form, '|', '=');
  out += process_rows(form, gpus);
  return out + whole_rule(form, '+', '-');
}

}  // namespace

std::string summary_table(const DriverFacts& driver, std::span<const Gpu> gpus,
                          const std::string& now) {
  const TableForm& form = form_of(driver.branch);
  std::string out = fmt::format("{}       \n", now) + heading(form, driver);
  for (const Gpu& gpu : gpus) out += rows_of_gpu(form, gpu);
  out += std::string(form.is_spaced ? 89 : 0, ' ') + "\n";
  return out + process_table(form, gpus);
}

}  // namespace gpu_emulator
