#include <fmt/format.h>
#include <getopt.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "base/parse.h"
#include "stated_load.h"
#include "workload/workload.h"

// gpu-workload: a program that uses emulated GPUs as a CUDA program would use real ones. It is on
// the GPUs that CUDA_VISIBLE_DEVICES names as long as it runs.

namespace {

using gpu_emulator::Curve;
using gpu_emulator::CurveKind;
using gpu_emulator::Result;
using gpu_emulator::StateFile;
using gpu_emulator::Status;
using gpu_platform::base::Duration;
using gpu_platform::base::ErrorCode;
using gpu_platform::base::fail;
using gpu_platform::base::invalid;

constexpr int kUsage = 2;
constexpr int kNoGpus = 3;
constexpr int kRefused = 4;

struct Options {
  std::string memory = "1G";
  std::string grow;
  std::string grow_every = "1s";
  std::string grow_to;
  std::string processes = "1";
  std::string utilization = "90";
  std::string curve = "constant";
  std::string period = "60s";
  std::string duration;
};

struct Plan {
  gpu_emulator::MemorySteps memory;
  Curve curve;
  std::optional<Duration> duration;
};

// The written value, with the option's name in the error.
template <class T>
Result<T> named(const char* option, Result<T> value) {
  if (value) return value;
  return invalid(option, fmt::format("--{}: {}", option, value.error().message));
}

Status plan_growth(const Options& options, gpu_emulator::MemorySteps& memory) {
  if (options.grow.empty()) return {};
  TRY_ASSIGN(const auto step, named("grow", gpu_platform::base::parse_size(options.grow)));
  memory.step_bytes = static_cast<std::uint64_t>(step.value());
  TRY_ASSIGN(memory.every,
             named("grow-every", gpu_platform::base::parse_duration(options.grow_every)));
  if (memory.every <= Duration()) return invalid("grow-every", "--grow-every: 0 is not a time");
  if (options.grow_to.empty()) return {};
  TRY_ASSIGN(const auto most, named("grow-to", gpu_platform::base::parse_size(options.grow_to)));
  memory.max_bytes = static_cast<std::uint64_t>(most.value());
  return {};
}

Result<Plan> plan_of(const Options& options) {
  Plan plan;
  TRY_ASSIGN(const auto memory, named("memory", gpu_platform::base::parse_size(options.memory)));
  plan.memory.first_bytes = static_cast<std::uint64_t>(memory.value());
  TRY(plan_growth(options, plan.memory));
  TRY_ASSIGN(plan.curve.kind, gpu_emulator::parse_curve(options.curve));
  TRY_ASSIGN(const std::uint64_t percent,
             named("utilization", gpu_platform::base::parse_count(options.utilization, 0, 100)));
  plan.curve.peak_percent = static_cast<std::uint32_t>(percent);
  TRY_ASSIGN(plan.curve.period,
             named("period", gpu_platform::base::parse_duration(options.period)));
  if (plan.curve.period <= Duration()) return invalid("period", "--period: 0 is not a period");
  if (!options.duration.empty()) {
    TRY_ASSIGN(plan.duration,
               named("duration", gpu_platform::base::parse_duration(options.duration)));
  }
  return plan;
}

struct OpenBoard {
  StateFile file;
  bool is_ours = true;  // to change
};

// A board of another user's daemon is told of this process by that daemon, which reads the load in
// the process's name.
Result<OpenBoard> open_state() {
  const char* path = std::getenv("GPU_EMULATOR_STATE");
  if (path == nullptr || *path == '\0') {
    return fail(ErrorCode::kNotFound,
                "GPU_EMULATOR_STATE is not set: no emulated GPUs here. gpu-workload uses emulated "
                "GPUs alone; run it in a job on an emulated node, or under `gpu-emulator env`");
  }
  auto file = StateFile::open(path, StateFile::Access::kWrite);
  if (file) return OpenBoard{*std::move(file)};
  if (file.error().code != ErrorCode::kPermissionDenied) return std::unexpected(file.error());
  TRY_ASSIGN(StateFile readable, StateFile::open(path, StateFile::Access::kRead));
  return OpenBoard{std::move(readable), false};
}

Result<std::vector<std::uint32_t>> gpus_to_use(const StateFile& file) {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  TRY_ASSIGN(auto gpus,
             gpu_emulator::visible_gpus(
                 file.state(),
                 visible == nullptr ? std::optional<std::string_view>()
                                    : std::optional<std::string_view>(visible),
                 gpu_emulator::known_gpus(file.state(), std::getenv("GPU_EMULATOR_DEVICES"))));
  if (!gpus.empty()) return gpus;
  return fail(ErrorCode::kNotFound, "CUDA_VISIBLE_DEVICES is empty: no GPU may be used");
}

// Is on its GPUs from construction to destruction.
class Use {
 public:
  Use(OpenBoard& board, const std::vector<std::uint32_t>& gpus)
      : file_(board.file), is_ours_(board.is_ours), gpus_(gpus) {}
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  // An entry that cannot be removed any more (the node was made again) ends with the process.
  ~Use() {
    if (!is_ours_) return;
    for (const std::uint32_t gpu : gpus_) (void)file_.clear(gpu, self_);
  }

  Status set(std::uint64_t memory_bytes, std::uint32_t percent) {
    if (!is_ours_) return state_load(memory_bytes, percent);
    for (const std::uint32_t gpu : gpus_) TRY(file_.load(gpu, self_, memory_bytes, percent));
    return {};
  }

 private:
  static Status state_load(std::uint64_t memory_bytes, std::uint32_t percent) {
    char name[32];
    snprintf(name, sizeof name, gpu_emulator::kStatedLoad, static_cast<unsigned>(percent),
             static_cast<unsigned>(std::min<std::uint64_t>(memory_bytes >> 20, 999'999)));
    prctl(PR_SET_NAME, name);
    return {};
  }

  StateFile& file_;
  const bool is_ours_;
  const std::vector<std::uint32_t>& gpus_;
  const std::uint64_t self_ = static_cast<std::uint64_t>(::getpid());
};

Duration since(const timespec& start) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return gpu_platform::base::nanoseconds((now.tv_sec - start.tv_sec) * 1'000'000'000 + now.tv_nsec -
                                         start.tv_nsec);
}

// Waits for one of the signals at most so long; 0 when none came.
int wait_for_signal(const sigset_t& signals, Duration limit) {
  const timespec time{static_cast<time_t>(limit.value() / 1'000'000'000),
                      static_cast<long>(limit.value() % 1'000'000'000)};
  const int signal = sigtimedwait(&signals, nullptr, &time);
  return signal > 0 ? signal : 0;
}

// Follows the curve until the time is over (0) or a signal comes (its number).
Result<int> follow(const Plan& plan, Use& use, const sigset_t& signals) {
  const bool changes = plan.curve.kind != CurveKind::kConstant || plan.memory.step_bytes != 0;
  const Duration step =
      changes ? gpu_platform::base::milliseconds(100) : gpu_platform::base::seconds(3600);
  timespec start{};
  clock_gettime(CLOCK_MONOTONIC, &start);
  std::optional<std::pair<std::uint64_t, std::uint32_t>> shown;
  while (true) {
    const Duration elapsed = since(start);
    if (plan.duration && elapsed >= *plan.duration) return 0;
    const std::pair now(memory_at(plan.memory, elapsed), utilization_at(plan.curve, elapsed));
    if (shown != now) TRY(use.set(now.first, now.second));
    shown = now;
    const Duration left = plan.duration ? *plan.duration - elapsed : step;
    if (const int signal = wait_for_signal(signals, std::min(step, left))) return signal;
  }
}

Result<int> run(const Options& options) {
  TRY_ASSIGN(const Plan plan, plan_of(options));
  // Blocked before the first entry, so that no signal can leave it behind.
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  TRY_ASSIGN(OpenBoard board, open_state());
  TRY_ASSIGN(const auto gpus, gpus_to_use(board.file));
  int signal = 0;
  {
    Use use(board, gpus);
    TRY_ASSIGN(signal, follow(plan, use, signals));
  }
  sigprocmask(SIG_UNBLOCK, &signals, nullptr);
  // A signal is the ordinary end of a workload without a duration; one with a duration was cut
  // short, and shows it.
  if (signal != 0 && plan.duration) raise(signal);
  return 0;
}

int exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return kUsage;
    case ErrorCode::kNotFound:
      return kNoGpus;
    case ErrorCode::kPermissionDenied:
    case ErrorCode::kResourceExhausted:
      return kRefused;
    default:
      return 1;
  }
}

constexpr char kHelp[] =
    "Uses the emulated GPUs that CUDA_VISIBLE_DEVICES names, for a time or until a signal comes.\n"
    "\n"
    "Usage: gpu-workload [options]\n"
    "\n"
    "  --memory SIZE          memory on each GPU: 16G, 16GB, 512 (MiB) (default: 1G)\n"
    "  --grow SIZE            take so much more again and again; exit 4 when none is left\n"
    "  --grow-every TIME      how often (default: 1s)\n"
    "  --grow-to SIZE         no more than this\n"
    "  --processes N          so many processes, each of which does the same (default: 1)\n"
    "  --utilization PERCENT  the peak of a curve (default: 90)\n"
    "  --curve NAME           constant, ramp (once) or sine (default: constant)\n"
    "  --period TIME          of the curve: 90s, 15m, a bare number is minutes (default: 60s)\n"
    "  --duration TIME        how long; without it until a signal comes\n"
    "  -h, --help             print this\n";

// The options as they were written. An exit code instead after --help or a mistake, which has been
// reported.
std::expected<Options, int> read_options(int argc, char** argv) {
  Options options;
  constexpr option kLong[] = {{"memory", required_argument, nullptr, 'm'},
                              {"grow", required_argument, nullptr, 'g'},
                              {"grow-every", required_argument, nullptr, 'e'},
                              {"grow-to", required_argument, nullptr, 't'},
                              {"processes", required_argument, nullptr, 'n'},
                              {"utilization", required_argument, nullptr, 'u'},
                              {"curve", required_argument, nullptr, 'c'},
                              {"period", required_argument, nullptr, 'p'},
                              {"duration", required_argument, nullptr, 'd'},
                              {"help", no_argument, nullptr, 'h'},
                              {}};
  for (int found = 0; (found = getopt_long(argc, argv, "h", kLong, nullptr)) != -1;) {
    switch (found) {
      case 'm':
        options.memory = optarg;
        break;
      case 'g':
        options.grow = optarg;
        break;
      case 'e':
        options.grow_every = optarg;
        break;
      case 't':
        options.grow_to = optarg;
        break;
      case 'n':
        options.processes = optarg;
        break;
      case 'u':
        options.utilization = optarg;
        break;
      case 'c':
        options.curve = optarg;
        break;
      case 'p':
        options.period = optarg;
        break;
      case 'd':
        options.duration = optarg;
        break;
      case 'h':
        std::fputs(kHelp, stdout);
        return std::unexpected(0);
      default:  // which getopt_long has reported
        return std::unexpected(kUsage);
    }
  }
  if (optind == argc) return options;
  std::fprintf(stderr, "gpu-workload: unexpected argument '%s' (see --help)\n", argv[optind]);
  return std::unexpected(kUsage);
}

int told(const gpu_platform::base::Error& error) {
  std::fprintf(stderr, "gpu-workload: %s\n", error.message.c_str());
  return exit_code(error.code);
}

int run_one(const Options& options) {
  const auto result = run(options);
  return result ? *result : told(result.error());
}

// Ends with the first process. A failure of any one is one of all.
int run_several(const Options& options, std::uint64_t processes) {
  const pid_t first = ::getpid();
  std::vector<pid_t> others;
  for (std::uint64_t i = 1; i < processes; ++i) {
    const pid_t child = ::fork();
    if (child < 0) return told(gpu_platform::base::system_error("start a process", errno));
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGTERM);
      // A parent that has ended by now sends nothing.
      std::_Exit(::getppid() == first ? run_one(options) : 0);
    }
    others.push_back(child);
  }
  int code = run_one(options);
  for (const pid_t child : others) kill(child, SIGTERM);
  for (const pid_t child : others) {
    int status = 0;
    if (waitpid(child, &status, 0) == child && WIFEXITED(status) && code == 0) {
      code = WEXITSTATUS(status);
    }
  }
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  const auto options = read_options(argc, argv);
  if (!options) return options.error();
  const auto processes =
      named("processes",
            gpu_platform::base::parse_count(options->processes, 1, gpu_emulator::kMaxProcesses));
  if (!processes) return told(processes.error());
  return *processes == 1 ? run_one(*options) : run_several(*options, *processes);
}
