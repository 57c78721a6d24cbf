// This program measures what it costs to start a process as a job: /bin/true through posix_spawn
// with 16 in flight (the floor), then through the process engine with 128 slots (launcher,
// supervisor, cgroup, record), in one run.
//   spawn_bench [jobs = 10000] [rounds = 3]
// CPU per job is that of everything in the machine's process tree that is not the load itself:
// engine thread, launcher and supervisors, from the kernel's own counts.

#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "bench_directory.h"
#include "execution/process/process_engine.h"
#include "model/job_spec.h"

namespace gpu_platform::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::uint64_t kSlots = 128;
constexpr int kFloorInFlight = 16;

double seconds_since(SteadyClock::time_point begin) {
  return std::chrono::duration<double>(SteadyClock::now() - begin).count();
}

double seconds(const timeval& t) {
  return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
}

double cpu_of(int who) {
  rusage usage{};
  getrusage(who, &usage);
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// CPU time of a cgroup and all below it, in seconds.
double cpu_of_cgroup(const std::string& path) {
  std::ifstream file(path + "/cpu.stat");
  std::string key;
  double us = 0;
  file >> key >> us;
  return us * 1e-6;
}

struct Figure {
  double rate = 0;
  double cpu_per_job = 0;  // seconds
};

Figure floor_figure(int jobs) {
  const auto begin = SteadyClock::now();
  const double cpu_before = cpu_of(RUSAGE_CHILDREN) + cpu_of(RUSAGE_SELF);
  char name[] = "/bin/true";
  char* argv[] = {name, nullptr};
  int started = 0;
  int running = 0;
  while (started < jobs || running > 0) {
    if (started < jobs && running < kFloorInFlight) {
      pid_t pid = -1;
      if (posix_spawn(&pid, name, nullptr, nullptr, argv, environ) != 0) std::abort();
      ++started;
      ++running;
    } else if (wait(nullptr) > 0) {
      --running;
    }
  }
  const double cpu = cpu_of(RUSAGE_CHILDREN) + cpu_of(RUSAGE_SELF) - cpu_before;
  return {jobs / seconds_since(begin), cpu / jobs};
}

class NoEnvironment : public execution::EnvironmentSource {
 public:
  base::Result<std::string> environment(std::string_view) const override { return std::string(); }
};

// Keeps 128 jobs under way: a slot is free again when its attempt is cleaned.
class Load : public execution::ObservationSink {
 public:
  void observe(execution::Observation observation) override {
    const auto* cleaned = std::get_if<execution::Cleaned>(&observation);
    if (cleaned == nullptr) return;
    const std::lock_guard lock(mutex_);
    freed_.push_back(cleaned->attempt);
    changed_.notify_one();
  }

  std::vector<model::AttemptId> wait_for_freed() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !freed_.empty(); });
    return std::exchange(freed_, {});
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<model::AttemptId> freed_;
};

std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

Figure engine_figure(execution::ProcessEngine& engine, Load& load, std::uint64_t first,
                     std::uint64_t jobs) {
  auto spec = std::make_shared<model::JobSpec>();
  spec->command = {"/bin/true"};
  spec->workdir = "/";
  spec->uid = geteuid();
  spec->gid = getegid();
  execution::StartOrder order;
  order.spec = spec;
  order.nodes = {execution::LaunchNode{model::NodeId(1), "bench", true, {}, 1, base::kGiB, {}, {}}};
  order.boot_id = boot_id();
  order.stop_grace = base::seconds(30);
  const std::string cgroup = engine.node_part().has_cgroups ? engine.node_part().detail : "";

  const double own_before = cpu_of(RUSAGE_SELF);
  const double tree_before = cgroup.empty() ? 0 : cpu_of_cgroup(cgroup);
  const auto begin = SteadyClock::now();
  std::uint64_t started = 0;
  const auto start_one = [&] {
    order.attempt = {model::JobId(first + started++), 1};
    engine.start(order);
  };
  while (started < std::min(kSlots, jobs)) start_one();
  for (std::uint64_t done = 0; done < jobs;) {
    for (const model::AttemptId attempt : load.wait_for_freed()) {
      engine.forget({attempt});
      ++done;
      if (started < jobs) start_one();
    }
  }
  const double elapsed = seconds_since(begin);
  const double tree = cgroup.empty() ? 0 : cpu_of_cgroup(cgroup) - tree_before;
  const double own = cpu_of(RUSAGE_SELF) - own_before;
  return {static_cast<double>(jobs) / elapsed, (tree + own) / static_cast<double>(jobs)};
}

int run(std::uint64_t jobs, int rounds, const std::string& program_folder) {
  const BenchDirectory directory;
  const std::string data = directory.path();
  execution::ProcessEngineOptions options;
  options.data_dir = data;
  options.node_program = program_folder + "/gpu-platform-node";
  options.max_processes = 16'384;  // as a daemon that is not configured otherwise
  options.private_folders = true;
  const NoEnvironment environment;
  Load load;
  auto engine = execution::ProcessEngine::open(options, environment, load);
  if (!engine) {
    std::fprintf(stderr, "%s\n", engine.error().message.c_str());
    return 1;
  }
  std::vector<double> ratios;
  for (int round = 0; round < rounds; ++round) {
    const Figure floor = floor_figure(static_cast<int>(jobs));
    const Figure ours =
        engine_figure(**engine, load, 1 + static_cast<std::uint64_t>(round) * jobs, jobs);
    ratios.push_back(ours.rate / floor.rate);
    std::printf(
        "posix_spawn %.0f/s %.3f ms CPU each; engine %.0f/s %.3f ms CPU each; %.1f %% of the "
        "floor\n",
        floor.rate, floor.cpu_per_job * 1e3, ours.rate, ours.cpu_per_job * 1e3,
        ratios.back() * 100);
  }
  std::sort(ratios.begin(), ratios.end());
  std::printf("median: %.1f %% of the posix_spawn rate\n", ratios[ratios.size() / 2] * 100);
  engine->reset();
  return 0;
}

}  // namespace
}  // namespace gpu_platform::bench

int main(int argc, char** argv) {
  const std::uint64_t jobs = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 10'000;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 3;
  const std::string folder = std::filesystem::canonical("/proc/self/exe").parent_path();
  return gpu_platform::bench::run(std::max<std::uint64_t>(jobs, 1), std::max(rounds, 1), folder);
}
