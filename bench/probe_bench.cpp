// Figures of the probe on emulated boards, beside a bare loop over the same NVML functions.
//
//   discovery   from ProbeRunner::watch() to the inventory: process start, NVML, host, protocol
//   polling     CPU time of the probe process in each second, polling 8 GPUs once a second, while
//               each call on a GPU costs nothing and then 50 µs, as in a real driver; the floor is
//               a process that calls the same functions, those of GPM too, on the same board as
//               often and throws the answers away. The memory is what the probe has resident. The
//               probe's slow readings are in its share, not in the floor: they come every 30 s, so
//               that shorter times show too few of them. A line for each thread of the probe says
//               where its time goes
//
// Needs gpu-emulator and its library beside this program. `probe_bench [SECONDS]`: how long to poll
// (default 20, 60 for a result). `probe_bench driver [SECONDS]`: polling alone, of the GPUs of this
// machine's driver.

#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "hardware/nvml/nvml_session.h"
#include "node/probe/probe_runner.h"

namespace {

using gpu_platform::hardware::NvmlDevice;
using gpu_platform::hardware::NvmlFunctions;
using gpu_platform::hardware::NvmlSession;
namespace hardware = gpu_platform::hardware;
namespace node = gpu_platform::node;

const std::filesystem::path kOwn = std::filesystem::read_symlink("/proc/self/exe").parent_path();

class Inventories final : public node::ProbeListener {
 public:
  void on_report(node::ProbeReport report) override {
    const auto* inventory = std::get_if<hardware::Inventory>(&report.content);
    if (inventory == nullptr) return;
    const std::lock_guard lock(mutex_);
    nodes_.insert(report.node_name);
    gpus_ += inventory->gpus.size();
    changed_.notify_all();
  }

  bool wait_for(std::size_t nodes) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(120),
                             [&] { return nodes_.size() >= nodes; });
  }

  std::size_t gpus() {
    const std::lock_guard lock(mutex_);
    return gpus_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::string> nodes_;
  std::size_t gpus_ = 0;
};

node::ProbeTarget make_node(const std::string& folder, int number) {
  const std::string name = fmt::format("dgx-h100-{}", number);
  const std::string dir = folder + "/emulated/" + name;
  const std::string command = fmt::format(
      "{}/gpu-emulator create --board dgx-h100 --node-name {} --dir {}", kOwn.string(), name, dir);
  if (std::system(command.c_str()) != 0) std::exit(1);
  return node::emulated_target(name, dir, (kOwn / "emulator/libnvidia-ml.so.1").string());
}

std::unique_ptr<node::ProbeRunner> runner(node::ProbeListener& listener) {
  node::ProbeRunnerOptions options;
  options.executable = (kOwn / "gpu-platform-probe").string();
  options.interval = gpu_platform::base::seconds(1);
  auto started = node::ProbeRunner::start(options, listener);
  if (!started) std::exit(1);
  return std::move(*started);
}

void discovery(const std::vector<node::ProbeTarget>& targets) {
  Inventories seen;
  const auto probes = runner(seen);
  const auto start = std::chrono::steady_clock::now();
  for (const auto& target : targets) probes->watch(target);
  const bool is_done = seen.wait_for(targets.size());
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  fmt::print("discovery of {} nodes, {} GPUs: {:.0f} ms{}\n", targets.size(), seen.gpus(),
             took.count(), is_done ? "" : " (not finished)");
}

double cpu_ms(pid_t pid) {
  clockid_t clock{};
  timespec time{};
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

// Milliseconds of CPU of each thread of a process, by the thread's name.
std::map<std::string, double> cpu_ms_by_thread(pid_t pid) {
  std::map<std::string, double> threads;
  std::error_code error;
  const std::filesystem::path tasks = fmt::format("/proc/{}/task", pid);
  for (const auto& task : std::filesystem::directory_iterator(tasks, error)) {
    std::string name;
    double ns = 0;
    std::getline(std::ifstream(task.path() / "comm"), name);
    std::ifstream(task.path() / "schedstat") >> ns;
    threads[name] += ns / 1e6;
  }
  return threads;
}

template <class Info>
void list(hardware::NvmlListFunction<Info> function, NvmlDevice* device) {
  Info found[16];
  unsigned count = std::size(found);
  if (function != nullptr) function(device, &count, found);
}

// A GPU of the bare loop, with the samples of GPM if it has that.
struct BareGpu {
  NvmlDevice* device = nullptr;
  hardware::NvmlGpmSample* last = nullptr;
  hardware::NvmlGpmSample* now = nullptr;
};

BareGpu bare_gpu(const NvmlFunctions& f, unsigned index) {
  BareGpu gpu;
  f.handle_by_index(index, &gpu.device);
  hardware::NvmlGpmSupport support{hardware::kNvmlGpmSupportVersion, 0};
  if (f.gpm_support == nullptr || f.gpm_support(gpu.device, &support) != 0) return gpu;
  if (support.is_supported == 0) return gpu;
  f.gpm_alloc(&gpu.last);
  f.gpm_alloc(&gpu.now);
  f.gpm_sample(gpu.device, gpu.last);
  return gpu;
}

void ask_gpm(const NvmlFunctions& f, BareGpu& gpu) {
  static hardware::NvmlGpmMetrics question;
  constexpr unsigned kMetrics[] = {hardware::kNvmlGpmGraphics,  hardware::kNvmlGpmSm,
                                   hardware::kNvmlGpmOccupancy, hardware::kNvmlGpmAnyTensor,
                                   hardware::kNvmlGpmDram,      hardware::kNvmlGpmFp64,
                                   hardware::kNvmlGpmFp32,      hardware::kNvmlGpmFp16};
  f.gpm_sample(gpu.device, gpu.now);
  question.version = hardware::kNvmlGpmMetricsVersion;
  question.count = std::size(kMetrics);
  question.first = gpu.last;
  question.second = gpu.now;
  for (std::size_t i = 0; i < std::size(kMetrics); ++i) question.metrics[i].metric = kMetrics[i];
  f.gpm_metrics(&question);
  std::swap(gpu.last, gpu.now);
}

// The same questions as one round of the probe's.
void ask_everything(const NvmlFunctions& f, BareGpu& gpu) {
  NvmlDevice* const device = gpu.device;
  hardware::NvmlUtilization rates{};
  hardware::NvmlMemoryV2 memory{};
  memory.version = hardware::nvml_version<hardware::NvmlMemoryV2>(2);
  hardware::NvmlTemperatureV1 temperature{};
  temperature.version = hardware::nvml_version<hardware::NvmlTemperatureV1>(1);
  hardware::NvmlFieldValue fields[2] = {};
  fields[0].field = hardware::kNvmlFieldMemoryTemperature;
  fields[1].field = hardware::kNvmlFieldRecoveryAction;
  unsigned number = 0;
  unsigned long long wide = 0;
  unsigned period = 0;
  f.utilization(device, &rates);
  f.encoder(device, &number, &period);
  f.decoder(device, &number, &period);
  f.memory_v2(device, &memory);
  f.temperature_v(device, &temperature);
  f.power(device, &number);
  f.clock(device, hardware::kNvmlClockSm, &number);
  f.clock(device, hardware::kNvmlClockMemory, &number);
  f.throttle_reasons(device, &wide);
  f.ecc_errors(device, hardware::kNvmlEccCorrected, hardware::kNvmlEccVolatile, &wide);
  f.ecc_errors(device, hardware::kNvmlEccUncorrected, hardware::kNvmlEccVolatile, &wide);
  f.fields(device, 2, fields);
  list(f.processes_v2, device);
  list(f.graphics_v2, device);
  list(f.mps_v2, device);
  if (gpu.last != nullptr) ask_gpm(f, gpu);
}

// Never returns; in a process of its own.
[[noreturn]] void bare_loop(const node::ProbeTarget& target) {
  for (const std::string& entry : target.environment) putenv(const_cast<char*>(entry.c_str()));
  auto session = NvmlSession::open(target.library);
  if (!session) std::_Exit(1);
  std::vector<BareGpu> gpus;
  for (unsigned i = 0; i < session->gpu_count().value_or(0); ++i) {
    gpus.push_back(bare_gpu(session->functions(), i));
  }
  auto next = std::chrono::steady_clock::now();
  while (true) {
    for (BareGpu& gpu : gpus) ask_everything(session->functions(), gpu);
    next += std::chrono::seconds(1);
    std::this_thread::sleep_until(next);
  }
}

constexpr int kGpus = 8;

void set_work(const std::string& folder, const std::string& node, int microseconds) {
  for (int gpu = 0; gpu < kGpus; ++gpu) {
    const std::string command =
        fmt::format("{}/gpu-emulator inject work --data-dir {} --gpu {}:{} {}", kOwn.string(),
                    folder, node, gpu, microseconds);
    if (std::system(command.c_str()) != 0) std::exit(1);
  }
}

// Milliseconds of CPU of a process in each second, past what it does only at its start. Prints
// those of its threads where there are several.
double cpu_ms_each_second(pid_t pid, int seconds) {
  std::this_thread::sleep_for(std::chrono::seconds(3));
  const double before = cpu_ms(pid);
  std::map<std::string, double> threads_before = cpu_ms_by_thread(pid);
  std::this_thread::sleep_for(std::chrono::seconds(seconds));
  const double each_second = (cpu_ms(pid) - before) / seconds;
  const std::map<std::string, double> threads = cpu_ms_by_thread(pid);
  if (threads.size() < 2) return each_second;
  for (const auto& [name, ms] : threads) {
    fmt::print("  thread {}: {:.3f} ms of CPU each second\n", name,
               (ms - threads_before[name]) / seconds);
  }
  return each_second;
}

double resident_mib(pid_t pid) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::atof(line.c_str() + 6) / 1024;
  }
  return 0;
}

double probe_ms_each_second(const node::ProbeTarget& target, int seconds, std::size_t& gpus) {
  Inventories seen;
  const auto probes = runner(seen);
  probes->watch(target);
  if (!seen.wait_for(1)) return 0;
  gpus = seen.gpus();
  const pid_t pid = probes->status().at(0).pid;
  const double ms = cpu_ms_each_second(pid, seconds);
  fmt::print("  the probe has {:.1f} MiB resident\n", resident_mib(pid));
  return ms;
}

double bare_ms_each_second(const node::ProbeTarget& target, int seconds) {
  const pid_t bare = fork();
  if (bare == 0) bare_loop(target);
  const double ms = cpu_ms_each_second(bare, seconds);
  kill(bare, SIGKILL);
  waitpid(bare, nullptr, 0);
  return ms;
}

// One after the other: a driver keeps what it has read for a moment, so of two that ask at the same
// time one pays for both.
void polling(const node::ProbeTarget& target, const std::string& what, int seconds) {
  std::size_t gpus = 0;
  const double probe_ms = probe_ms_each_second(target, seconds, gpus);
  if (gpus == 0) return;
  const double bare_ms = bare_ms_each_second(target, seconds);
  fmt::print(
      "polling {} GPUs at 1 Hz for {} s{}: probe {:.3f} ms of CPU each second, bare "
      "loop {:.3f} ms: {:.2f}, {:.3f} % of a core more\n",
      gpus, seconds, what, probe_ms, bare_ms, probe_ms / bare_ms, (probe_ms - bare_ms) / 10);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  const bool is_of_driver = !words.empty() && words[0] == "driver";
  if (is_of_driver) words.erase(words.begin());
  const int asked = words.empty() ? 20 : std::atoi(words[0].c_str());
  const int seconds = asked > 0 ? asked : 20;
  if (is_of_driver) {
    polling({.node_name = "host"}, "", seconds);
    return 0;
  }
  char path[] = "/tmp/probe_bench.XXXXXX";
  if (mkdtemp(path) == nullptr) return 1;
  const std::string folder = path;
  std::vector<node::ProbeTarget> targets;
  for (int i = 1; i <= 128; ++i) targets.push_back(make_node(folder, i));
  discovery({targets.begin(), targets.begin() + 1});
  discovery(targets);
  for (const int work_us : {0, 50}) {
    set_work(folder, targets[0].node_name, work_us);
    polling(targets[0], fmt::format(", {} µs a call", work_us), seconds);
  }
  std::filesystem::remove_all(folder);
  return 0;
}
