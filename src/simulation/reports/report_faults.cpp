#include "simulation/reports/report_faults.h"

#include <atomic>
#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <unistd.h>

#include "simulation/reports/fault_report.h"

namespace gpu_platform::simulation {

namespace {

// Only the handler below reads this.
std::atomic<std::uint64_t> seed_under_way = 0;
std::atomic<Plant> plant_under_way = Plant::kNone;

// A broken assumption stops the program wherever it is; the world that broke it must be named. Only
// calls that are allowed in a signal handler.
void name_the_world(int) {
  char digits[20];
  std::size_t size = 0;
  for (std::uint64_t left = seed_under_way; left > 0; left /= 10) {
    digits[size++] = static_cast<char>('0' + left % 10);
  }
  std::string_view before = "repeat: gpu-platform simulate faults --seeds 1 --first-seed ";
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, before.data(), before.size());
  while (size > 0) written = write(STDERR_FILENO, &digits[--size], 1);
  if (plant_under_way != Plant::kNone) {
    const std::string_view plant = to_string(plant_under_way);
    written = write(STDERR_FILENO, " --plant ", 9);
    written = write(STDERR_FILENO, plant.data(), plant.size());
  }
  written = write(STDERR_FILENO, "\n", 1);
  std::signal(SIGABRT, SIG_DFL);
  std::raise(SIGABRT);
}

}  // namespace

bool report_faults(FaultOptions options, FaultReportAs as, bool shows_progress) {
  plant_under_way = options.plant;
  shows_progress = shows_progress && isatty(STDERR_FILENO) == 1;
  options.before_seed = [&](std::uint64_t seed) {
    seed_under_way = seed;
    if (shows_progress && (seed - options.first_seed) % 100 == 0) {
      fmt::print(stderr, "\r{} of {} seeds", seed - options.first_seed, options.seeds);
    }
  };
  const auto former = std::signal(SIGABRT, name_the_world);
  const FaultReport report = run_faults(options);
  std::signal(SIGABRT, former);
  if (shows_progress) fmt::print(stderr, "\r\033[K");
  const std::string text = as == FaultReportAs::kJson ? fault_report_json(report, options.plant)
                                                      : fault_report_text(report, options.plant);
  std::fputs(text.c_str(), stdout);
  return report.violations.empty();
}

}  // namespace gpu_platform::simulation
