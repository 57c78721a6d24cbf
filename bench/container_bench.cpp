// Jobs with an image, beside the container engine's own client:
//   container_bench [start] [many] [--pairs N] [--jobs N]
// (default: both, 30 pairs, 200 jobs). As root, where Podman, runc and a static busybox are. The
// engine is a Podman service of its own with one small image, warm before anything is measured.
//   start: a job of `true` from its submission (REST) until the answer that it has ended, then
//   `podman run
//          --rm` of the same image with the same options, in turns; the median of the pairs'
//          ratios. Beside them what the engine takes for create, start, wait and remove over its
//          REST interface, and the same job without an image.
//   many:  so many jobs with an image at once, each with an exit code of its own. Ends with 1 if a
//   job is
//          lost, ends otherwise, or leaves anything with the engine.

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "containers_fixture.h"
#include "execution/container/engine_calls.h"
#include "harness.h"

namespace gpu_platform::bench {
namespace {

using e2e::Daemon;
using e2e::Engine;
using e2e::kImage;
using execution::EngineCalls;
using Json = nlohmann::json;
using SteadyClock = std::chrono::steady_clock;

constexpr const char* kUser = "34:34";

[[noreturn]] void give_up(const std::string& why) {
  fmt::print(stderr, "container_bench: {}\n", why);
  std::exit(1);
}

double ms_since(SteadyClock::time_point begin) {
  return std::chrono::duration<double, std::milli>(SteadyClock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

Json require(execution::Answered<> answer, std::string_view what) {
  if (!answer) give_up(fmt::format("{}: {}", what, answer.error().message));
  return *std::move(answer);
}

// A daemon with the engine, on so many emulated nodes.
class Place {
 public:
  explicit Place(const std::string& emulate) {
    if (std::string why = engine_.start(); !why.empty()) give_up(why);
    chmod(site_.path().c_str(), 0755);
    const std::string rules = site_.path() + "/rules";
    std::ofstream(rules) << "socket " << engine_.socket()
                         << "\nulimit nofile 1024\nulimit nproc 1024\nimage localhost/*\n";
    chmod(rules.c_str(), 0644);
    daemon_ = std::make_unique<Daemon>(e2e::DaemonOptions{
        .emulate = emulate, .config = "execution:\n  containers: " + rules + "\n"});
    if (!daemon_->start()) give_up("the daemon does not start: " + daemon_->log());
    rest_ = std::make_unique<EngineCalls>(daemon_->socket(), -1, [] { return false; });
    podman_ = std::make_unique<EngineCalls>(engine_.socket(), -1, [] { return false; });
    require(podman_->open(), "the engine");
  }

  const Engine& engine() const { return engine_; }

  std::string submit(const std::vector<std::string>& command, bool in_image) {
    Json spec = {{"command", command}, {"gpus", 0},         {"cpus", 1},
                 {"user", "backup"},   {"workdir", "/tmp"}, {"memory_bytes", 64 << 20}};
    if (in_image) spec["image"] = kImage;
    return require(rest_->post("/v1/jobs", spec), "submit")["id"].get<std::string>();
  }
  Json wait(const std::string& id) {
    while (true) {
      const Json job =
          require(rest_->get("/v1/jobs/" + id + "/wait?timeout_seconds=30"), "wait for " + id);
      if (!job["ended_at"].is_null()) return job;
    }
  }

  double job_ms(bool in_image) {
    const auto begin = SteadyClock::now();
    const Json job = wait(submit({"true"}, in_image));
    const double took = ms_since(begin);
    if (job["state"] != "COMPLETED") give_up(job.dump(2));
    return took;
  }
  double podman_run_ms() const {
    const auto command = engine_.tool({"run",
                                       "--rm",
                                       "--network",
                                       "none",
                                       "--cap-drop",
                                       "all",
                                       "--security-opt",
                                       "no-new-privileges",
                                       "--user",
                                       kUser,
                                       "--ipc",
                                       "private",
                                       "--log-driver",
                                       "none",
                                       "--memory",
                                       "64m",
                                       "--ulimit",
                                       "nofile=1024:1024",
                                       "--ulimit",
                                       "nproc=1024:1024",
                                       kImage,
                                       "true"});
    const auto begin = SteadyClock::now();
    const e2e::Finished done = e2e::run_command(command);
    const double took = ms_since(begin);
    if (done.exit_code != 0) give_up("podman run: " + done.err);
    return took;
  }
  double podman_rest_ms() {
    const Json limits = {{{"Name", "nofile"}, {"Soft", 1024}, {"Hard", 1024}},
                         {{"Name", "nproc"}, {"Soft", 1024}, {"Hard", 1024}}};
    const Json body = {{"Image", kImage},
                       {"Cmd", {"true"}},
                       {"User", kUser},
                       {"HostConfig",
                        {{"NetworkMode", "none"},
                         {"IpcMode", "private"},
                         {"CapDrop", {"ALL"}},
                         {"SecurityOpt", {"no-new-privileges"}},
                         {"LogConfig", {{"Type", "none"}}},
                         {"Memory", 64 << 20},
                         {"MemorySwap", 64 << 20},
                         {"Ulimits", limits}}}};
    const auto begin = SteadyClock::now();
    const auto id =
        require(podman_->post("/containers/create", body), "create")["Id"].get<std::string>();
    require(podman_->post("/containers/" + id + "/start"), "start");
    require(podman_->post("/containers/" + id + "/wait"), "wait");
    require(podman_->remove("/containers/" + id + "?force=1&v=1"), "remove");
    return ms_since(begin);
  }

 private:
  Engine engine_;
  e2e::TemporaryDirectory site_;
  std::unique_ptr<Daemon> daemon_;
  std::unique_ptr<EngineCalls> rest_;
  std::unique_ptr<EngineCalls> podman_;
};

void print_times(const char* what, const std::vector<double>& ms) {
  const auto [least, most] = std::ranges::minmax(ms);
  fmt::print("  {:<44} median {:4.0f} ms ({:.0f}-{:.0f})\n", what, median(ms), least, most);
}

void bench_start(std::size_t pairs) {
  Place place("dgx-h100");
  place.job_ms(true);
  place.podman_run_ms();
  place.podman_rest_ms();
  std::vector<double> ours;
  std::vector<double> theirs;
  std::vector<double> rest;
  std::vector<double> plain;
  std::vector<double> ratios;
  for (std::size_t i = 0; i < pairs; ++i) {
    const bool is_first = i % 2 == 0;  // who is first has the caches as the other left them
    if (is_first) ours.push_back(place.job_ms(true));
    theirs.push_back(place.podman_run_ms());
    if (!is_first) ours.push_back(place.job_ms(true));
    ratios.push_back(ours.back() / theirs.back());
    rest.push_back(place.podman_rest_ms());
    plain.push_back(place.job_ms(false));
  }
  fmt::print("start: {} pairs\n", pairs);
  print_times("job with an image, submit to end", ours);
  print_times("podman run --rm", theirs);
  print_times("Podman's REST: create, start, wait, remove", rest);
  print_times("job without an image, submit to end", plain);
  const auto [least, most] = std::ranges::minmax(ratios);
  fmt::print("  job / podman run: median {:.2f} ({:.2f}-{:.2f})\n", median(ratios), least, most);
}

bool bench_many(std::size_t jobs) {
  Place place("4xdgx-h100");
  place.job_ms(true);
  const auto code_of = [](std::size_t job) { return 1 + job % 100; };
  const auto begin = SteadyClock::now();
  std::vector<std::string> ids;
  for (std::size_t job = 0; job < jobs; ++job) {
    ids.push_back(place.submit({"sh", "-c", fmt::format("exit {}", code_of(job))}, true));
  }
  const double submitted = ms_since(begin) / 1000;
  std::size_t right = 0;
  std::string first_wrong;
  for (std::size_t job = 0; job < jobs; ++job) {
    const Json ended = place.wait(ids[job]);
    if (ended["exit_code"] == code_of(job)) {
      ++right;
    } else if (first_wrong.empty()) {
      first_wrong = ended.dump(2);
    }
  }
  const double took = ms_since(begin) / 1000;
  const bool is_clean = e2e::eventually([&] { return place.engine().containers().empty(); });
  fmt::print("many: {} jobs with an image, submitted in {:.2f} s, ended in {:.1f} s ({:.1f}/s)\n",
             jobs, submitted, took, static_cast<double>(jobs) / took);
  fmt::print("  {} with their own exit code, {} otherwise; {} left with the engine\n", right,
             jobs - right, place.engine().containers().size());
  if (!first_wrong.empty()) fmt::print(stderr, "the first of the others: {}\n", first_wrong);
  return right == jobs && is_clean;
}

}  // namespace
}  // namespace gpu_platform::bench

int main(int argc, char** argv) {
  using namespace gpu_platform::bench;
  std::size_t pairs = 30;
  std::size_t jobs = 200;
  bool has_start = false;
  bool has_many = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const bool has_number = i + 1 < argc && std::atoi(argv[i + 1]) > 0;
    if (word == "start") {
      has_start = true;
    } else if (word == "many") {
      has_many = true;
    } else if ((word == "--pairs" || word == "--jobs") && has_number) {
      (word == "--pairs" ? pairs : jobs) = static_cast<std::size_t>(std::atoi(argv[++i]));
    } else {
      std::fprintf(stderr, "usage: container_bench [start] [many] [--pairs N] [--jobs N]\n");
      return 2;
    }
  }
  const bool has_all = !has_start && !has_many;
  if (has_start || has_all) bench_start(pairs);
  return (has_many || has_all) && !bench_many(jobs) ? 1 : 0;
}
