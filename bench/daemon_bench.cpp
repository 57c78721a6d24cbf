// Figures of the whole daemon, as a client sees them, each beside a floor measured in the same run:
//   daemon_bench [submit] [latency] [turnaround] [throughput] [memory] [idle] [restart]
// (default: all)
// Prints one line per figure. Data lies under the build folder, on its disk; syncing is on.

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "harness.h"
#include "http_load.h"

namespace gpu_platform::bench {
namespace {

using e2e::Daemon;
using e2e::get;
using e2e::LoadResult;
using e2e::percentile;
using e2e::post;
using e2e::run_load;
using SteadyClock = std::chrono::steady_clock;

double seconds_since(SteadyClock::time_point begin) {
  return std::chrono::duration<double>(SteadyClock::now() - begin).count();
}

// One thread overwriting a preallocated 4 KiB block and syncing it, per second.
double fdatasync_rate(const std::string& directory) {
  const std::string path = directory + "/fdatasync";
  const int fd = open(path.c_str(), O_RDWR | O_CREAT, 0600);
  if (fd < 0) return 0;
  const std::string block(4096, 'x');
  int count = 0;
  if (pwrite(fd, block.data(), block.size(), 0) != 4096 || fsync(fd) != 0) return 0;
  const auto begin = SteadyClock::now();
  while (seconds_since(begin) < 2) {
    if (pwrite(fd, block.data(), block.size(), 0) != 4096 || fdatasync(fd) != 0) return 0;
    ++count;
  }
  const double rate = count / seconds_since(begin);
  close(fd);
  unlink(path.c_str());
  return rate;
}

// posix_spawn of /bin/true from this small process, 16 in flight, per second.
double spawn_rate() {
  constexpr int kTotal = 3000;
  constexpr int kInFlight = 16;
  int started = 0;
  int running = 0;
  char name[] = "/bin/true";
  char* arguments[] = {name, nullptr};
  const auto begin = SteadyClock::now();
  while (started < kTotal || running > 0) {
    while (started < kTotal && running < kInFlight) {
      pid_t pid = 0;
      if (posix_spawn(&pid, name, nullptr, nullptr, arguments, environ) != 0) std::exit(1);
      ++started;
      ++running;
    }
    wait(nullptr);
    --running;
  }
  return kTotal / seconds_since(begin);
}

// CPU seconds that a process has used, with its waited-for children.
double process_cpu(pid_t pid) {
  const std::string stat = e2e::read_file("/proc/" + std::to_string(pid) + "/stat");
  const std::size_t after_name = stat.rfind(')');
  if (after_name == std::string::npos) return 0;
  unsigned long user = 0;
  unsigned long system = 0;
  std::sscanf(stat.c_str() + after_name + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
              &user, &system);
  return static_cast<double>(user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double resident_kib(pid_t pid) {
  const std::string status = e2e::read_file("/proc/" + std::to_string(pid) + "/status");
  const std::size_t at = status.find("VmRSS:");
  return at == std::string::npos ? 0 : std::atof(status.c_str() + at + 6);
}

std::string submission(int gpus, const std::string& program, const std::string& more = "") {
  return post("/v1/jobs", R"({"name":"bench","command":[")" + program + R"("],"gpus":)" +
                              std::to_string(gpus) + R"(,"cpus":1,"memory_bytes":67108864)" + more +
                              "}");
}

constexpr const char* kLargeQueue =
    "scheduling:\n  max_queue_size: 200000\n  max_specification_bytes: 4G\n";

void require_daemon(Daemon& daemon) {
  if (daemon.start()) return;
  std::fprintf(stderr, "the daemon does not start:\n%s\n", daemon.log().c_str());
  std::exit(1);
}

void require_accepted(const LoadResult& result) {
  if (result.refused == 0) return;
  std::fprintf(stderr, "%zu requests were refused, the first with:\n%s\n", result.refused,
               result.first_refusal.c_str());
  std::exit(1);
}

// Fills the node, so that what is submitted next waits.
void occupy(Daemon& daemon, int nodes) {
  for (int i = 0; i < nodes; ++i) {
    require_accepted(run_load({daemon.socket(), 1, 1}, [](std::size_t) {
      return post("/v1/jobs", R"({"command":["/bin/sleep","1000"],"gpus":8})");
    }));
  }
  const bool full = e2e::eventually([&] {
    const auto status = daemon.json({"status"});
    return status.is_object() && status["available_gpus"] == 0;
  });
  if (!full) std::exit(1);
}

void bench_submit() {
  Daemon daemon({.emulate = "dgx-h100", .config = kLargeQueue});
  require_daemon(daemon);
  occupy(daemon, 1);
  const double floor = fdatasync_rate(daemon.directory());
  std::printf("submit: fdatasync floor %.0f/s\n", floor);
  for (const std::size_t clients : {std::size_t{1}, std::size_t{64}}) {
    const double cpu_before = process_cpu(daemon.pid());
    const LoadResult result = run_load({daemon.socket(), clients, clients == 1 ? 5000U : 60000U},
                                       [](std::size_t) { return submission(1, "/bin/true"); });
    require_accepted(result);
    const double rate = static_cast<double>(result.answered) / result.seconds;
    std::printf(
        "submit: %zu clients %.0f/s, %.2f of the floor, p50 %.2f ms, p99 %.2f ms, "
        "daemon CPU %.1f us each, generator CPU %.1f us each\n",
        clients, rate, rate / floor, percentile(result.latencies_ms, 50),
        percentile(result.latencies_ms, 99),
        (process_cpu(daemon.pid()) - cpu_before) / static_cast<double>(result.answered) * 1e6,
        result.generator_cpu_seconds / static_cast<double>(result.answered) * 1e6);
  }
  const LoadResult reads = run_load({daemon.socket(), 8, 20000}, [](std::size_t n) {
    return get("/v1/jobs/" + std::to_string(2 + n % 1000));
  });
  require_accepted(reads);
  std::printf("read: GET job, 8 clients %.0f/s\n",
              static_cast<double>(reads.answered) / reads.seconds);
}

// From RFC 3339 with milliseconds to seconds.
double instant(const nlohmann::json& text) {
  const std::string s = text.get<std::string>();
  tm parts{};
  const char* rest = strptime(s.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  return static_cast<double>(timegm(&parts)) + (rest == nullptr ? 0 : std::atof(rest));
}

// The job itself writes the time at which it runs, so the figure is what a user gets.
void bench_latency() {
  Daemon daemon({.emulate = "dgx-h100"});
  require_daemon(daemon);
  const std::string stamp = daemon.directory() + "/stamp";
  std::vector<double> latencies;
  for (int i = 0; i < 200; ++i) {
    unlink(stamp.c_str());
    const std::string body = R"({"command":["/bin/sh","-c","exec 3>)" + stamp +
                             R"("],"gpus":1,"cpus":1,"memory_bytes":67108864})";
    const auto begin = SteadyClock::now();
    const LoadResult sent =
        run_load({daemon.socket(), 1, 1}, [&](std::size_t) { return post("/v1/jobs", body); });
    require_accepted(sent);
    while (access(stamp.c_str(), F_OK) != 0 && seconds_since(begin) < 10) {
    }
    latencies.push_back(seconds_since(begin) * 1e3);
    e2e::eventually([&] { return daemon.processes("gp-supervisor").empty(); });
  }
  std::printf("latency: submit -> job's own first action, idle node: p50 %.2f ms, p99 %.2f ms\n",
              percentile(latencies, 50), percentile(latencies, 99));
}

void bench_turnaround() {
  Daemon daemon({.emulate = "dgx-h100"});
  require_daemon(daemon);
  constexpr int kJobs = 300;
  require_accepted(run_load({daemon.socket(), 1, kJobs},
                            [](std::size_t) { return submission(8, "/bin/true"); }));
  e2e::eventually(
      [&] {
        const auto status = daemon.json({"status"});
        return status.is_object() && status["queued_jobs"] == 0 && status["running_jobs"] == 0;
      },
      std::chrono::seconds(120));
  auto jobs = daemon.json({"jobs", "list", "--all"})["jobs"];
  std::vector<std::pair<double, double>> runs;
  for (const auto& job : jobs)
    runs.emplace_back(instant(job["started_at"]), instant(job["ended_at"]));
  std::ranges::sort(runs);
  std::vector<double> gaps;
  for (std::size_t i = 1; i < runs.size(); ++i) {
    gaps.push_back((runs[i].first - runs[i - 1].second) * 1e3);
  }
  std::printf("turnaround: GPU exit -> next start: p50 %.1f ms, p99 %.1f ms (%zu pairs)\n",
              percentile(gaps, 50), percentile(gaps, 99), gaps.size());
}

void bench_throughput() {
  const double floor = spawn_rate();
  Daemon daemon({.emulate = "16xdgx-h100", .config = kLargeQueue});
  require_daemon(daemon);
  constexpr int kJobs = 10'000;
  const double cpu_before = process_cpu(daemon.pid());
  const auto begin = SteadyClock::now();
  require_accepted(run_load({daemon.socket(), 16, kJobs},
                            [](std::size_t) { return submission(1, "/bin/true"); }));
  const bool done = e2e::eventually(
      [&] {
        poll(nullptr, 0, 50);
        const auto status = daemon.json({"status"});
        return status.is_object() && status["queued_jobs"] == 0 && status["running_jobs"] == 0;
      },
      std::chrono::seconds(300));
  const double elapsed = seconds_since(begin);
  const double cpu = process_cpu(daemon.pid()) - cpu_before;
  std::printf(
      "throughput: %d x /bin/true on 128 GPUs %s in %.1f s: %.0f/s, %.2f of the posix_spawn floor "
      "(%.0f/s); daemon CPU %.2f ms per job\n",
      kJobs, done ? "done" : "NOT DONE", elapsed, kJobs / elapsed, kJobs / elapsed / floor, floor,
      cpu / kJobs * 1e3);
}

void bench_memory() {
  Daemon daemon({.emulate = "dgx-h100", .config = kLargeQueue});
  require_daemon(daemon);
  occupy(daemon, 1);
  require_accepted(run_load({daemon.socket(), 16, 2000},
                            [](std::size_t) { return submission(1, "/bin/true"); }));
  const double before = resident_kib(daemon.pid());
  constexpr int kJobs = 100'000;
  require_accepted(run_load({daemon.socket(), 64, kJobs},
                            [](std::size_t) { return submission(1, "/bin/true"); }));
  std::printf("memory: %.2f KiB per waiting job (100,000 waiting, daemon RSS %.0f MiB)\n",
              (resident_kib(daemon.pid()) - before) / kJobs, resident_kib(daemon.pid()) / 1024);
}

// A million jobs are submitted and cancelled, so that each went through the daemon.
void bench_restart() {
  constexpr std::size_t kJobs = 1'000'000;
  constexpr std::size_t kAtOnce = 100'000;
  Daemon daemon({.emulate = "dgx-h100", .config = kLargeQueue});
  require_daemon(daemon);
  occupy(daemon, 1);
  for (std::size_t done = 0; done < kJobs; done += kAtOnce) {
    require_accepted(run_load({daemon.socket(), 64, kAtOnce},
                              [](std::size_t) { return submission(1, "/bin/true"); }));
    require_accepted(run_load({daemon.socket(), 64, kAtOnce}, [&](std::size_t n) {
      return post("/v1/jobs/" + std::to_string(done + n + 2) + "/cancel", "{}");
    }));
  }
  const auto restarted = [&](const char* after) {
    const auto begin = SteadyClock::now();
    require_daemon(daemon);
    std::printf("restart: %zu jobs of history, ready %.2f s after a start that follows %s\n", kJobs,
                seconds_since(begin), after);
  };
  daemon.kill_now();
  restarted("SIGKILL");
  daemon.terminate();
  restarted("SIGTERM");
}

void bench_idle() {
  Daemon daemon({.emulate = "dgx-h100"});
  require_daemon(daemon);
  constexpr double kSpan = 30;
  std::vector<pid_t> pids = daemon.processes("probe");
  for (const pid_t pid : daemon.processes("launcher")) pids.push_back(pid);
  pids.push_back(daemon.pid());
  auto total = [&] {
    double sum = 0;
    for (const pid_t pid : pids) sum += process_cpu(pid);
    return sum;
  };
  const double before = total();
  poll(nullptr, 0, static_cast<int>(kSpan * 1000));
  std::printf(
      "idle: daemon, launcher and probe together %.3f %% of a core over %.0f s; daemon RSS %.1f "
      "MiB\n",
      (total() - before) / kSpan * 100, kSpan, resident_kib(daemon.pid()) / 1024);
}

}  // namespace
}  // namespace gpu_platform::bench

int main(int argc, char** argv) {
  using namespace gpu_platform::bench;
  const std::vector<std::pair<std::string, void (*)()>> all = {
      {"submit", bench_submit},         {"latency", bench_latency},
      {"turnaround", bench_turnaround}, {"throughput", bench_throughput},
      {"memory", bench_memory},         {"idle", bench_idle},
      {"restart", bench_restart}};
  std::set<std::string> wanted(argv + 1, argv + argc);
  for (const auto& [name, run] : all) {
    if (wanted.empty() || wanted.contains(name)) run();
    std::fflush(stdout);
  }
}
