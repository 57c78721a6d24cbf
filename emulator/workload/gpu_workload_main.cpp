#include <fmt/format.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <expected>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/parse.h"
#include "mps/mps_client.h"
#include "os/descriptor.h"
#include "workload/gpu_use.h"
#include "workload/workload.h"

// gpu-workload: a program that uses emulated GPUs as a CUDA program would use real ones. It is on
// the GPUs that CUDA_VISIBLE_DEVICES names as long as it runs.

namespace {

using gpu_emulator::Curve;
using gpu_emulator::CurveKind;
using gpu_emulator::GpuUse;
using gpu_emulator::MpsClient;
using gpu_emulator::OpenBoard;
using gpu_emulator::Result;
using gpu_emulator::Status;
using gpu_platform::base::Duration;
using gpu_platform::base::ErrorCode;
using gpu_platform::base::fail;
using gpu_platform::base::invalid;
using gpu_platform::os::Descriptor;

constexpr int kUsage = 2;
constexpr int kNoGpus = 3;
constexpr int kRefused = 4;
constexpr int kMpsFailed = 5;
constexpr int kFaulted = 6;

constexpr char kFaultOfOwn[] = "an illegal memory address was used (700)";

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
  std::string fault_after;
  bool ignores_terminate = false;
};

struct Plan {
  gpu_emulator::MemorySteps memory;
  Curve curve;
  std::optional<Duration> duration;
  std::optional<Duration> fault_after;
  bool ignores_terminate = false;
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
  if (!options.fault_after.empty()) {
    TRY_ASSIGN(plan.fault_after,
               named("fault-after", gpu_platform::base::parse_duration(options.fault_after)));
  }
  plan.ignores_terminate = options.ignores_terminate;
  return plan;
}

Duration since(const timespec& start) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return gpu_platform::base::nanoseconds((now.tv_sec - start.tv_sec) * 1'000'000'000 + now.tv_nsec -
                                         start.tv_nsec);
}

// What ended a wait; neither: its time is over.
struct Woken {
  int signal = 0;
  bool has_lost_server = false;
};

// Waits at most so long for a signal, or for the end of the service by MPS.
Woken wait_for_end(int signals, const std::optional<MpsClient>& client, Duration limit) {
  const timespec time{static_cast<time_t>(limit.value() / 1'000'000'000),
                      static_cast<long>(limit.value() % 1'000'000'000)};
  pollfd polled[] = {{signals, POLLIN, 0}, {client ? client->descriptor() : -1, POLLIN, 0}};
  if (ppoll(polled, std::size(polled), &time, nullptr) <= 0) return {};
  signalfd_siginfo signal{};
  const bool is_signal = polled[0].revents != 0 && read(signals, &signal, sizeof signal) > 0;
  return {is_signal ? static_cast<int>(signal.ssi_signo) : 0, polled[1].revents != 0};
}

// A process on its GPUs, which are an MPS server's if it is a client of one.
struct Work {
  GpuUse& use;
  std::size_t gpus = 0;
  std::optional<MpsClient>& client;
};

Status show(Work& work, std::uint64_t memory_bytes, std::uint32_t percent) {
  if (!work.client) return work.use.set(memory_bytes, percent);
  const auto most = work.client->max_bytes(work.gpus);
  if (most && memory_bytes > *most) {
    return fail(ErrorCode::kResourceExhausted,
                fmt::format("out of memory (2): {} MiB wanted, the limit of this MPS client is {} "
                            "MiB",
                            memory_bytes >> 20, *most >> 20));
  }
  const std::uint32_t reached = work.client->capped(percent);
  // The server first: what is seen on the GPU, the server knows.
  work.client->state_load(reached);
  return work.use.set(memory_bytes, reached);
}

// The server tells every client of an illegal address, this one too.
Status use_illegal_address(Work& work) {
  if (!work.client) return fail(ErrorCode::kFailedPrecondition, kFaultOfOwn);
  work.client->fault();
  return {};
}

// The next time at which there is something to do, from now on.
Duration next_step(const Plan& plan, Duration elapsed) {
  const bool changes = plan.curve.kind != CurveKind::kConstant || plan.memory.step_bytes != 0;
  Duration step =
      changes ? gpu_platform::base::milliseconds(100) : gpu_platform::base::seconds(3600);
  if (plan.duration) step = std::min(step, *plan.duration - elapsed);
  if (plan.fault_after && elapsed < *plan.fault_after) {
    step = std::min(step, *plan.fault_after - elapsed);
  }
  return step;
}

// Follows the curve until the time is over (0) or a signal comes (its number).
Result<int> follow(const Plan& plan, Work work, int signals) {
  timespec start{};
  clock_gettime(CLOCK_MONOTONIC, &start);
  std::optional<std::pair<std::uint64_t, std::uint32_t>> shown;
  bool has_fault = false;
  while (true) {
    const Duration elapsed = since(start);
    if (plan.duration && elapsed >= *plan.duration) return 0;
    const std::pair now(memory_at(plan.memory, elapsed), utilization_at(plan.curve, elapsed));
    if (shown != now) TRY(show(work, now.first, now.second));
    shown = now;
    if (!has_fault && plan.fault_after && elapsed >= *plan.fault_after) {
      has_fault = true;
      TRY(use_illegal_address(work));
    }
    const Woken woken = wait_for_end(signals, work.client, next_step(plan, elapsed));
    if (woken.signal != 0) return woken.signal;
    if (woken.has_lost_server) return std::unexpected(work.client->error());
  }
}

// CUDA connects to MPS before it does anything else.
Result<std::optional<MpsClient>> connect_to_mps(const Plan& plan) {
  const char* folder = std::getenv("CUDA_MPS_PIPE_DIRECTORY");
  if (folder == nullptr || *folder == '\0') return std::optional<MpsClient>();
  TRY_ASSIGN(MpsClient client,
             MpsClient::connect(folder, gpu_emulator::mps_limits_of_environment()));
  if (plan.ignores_terminate) client.get_stuck();
  return std::optional<MpsClient>(std::move(client));
}

Result<int> run(const Options& options) {
  TRY_ASSIGN(const Plan plan, plan_of(options));
  TRY_ASSIGN(OpenBoard board, gpu_emulator::open_used_board());
  TRY_ASSIGN(const auto gpus, gpu_emulator::gpus_to_use(board.file));
  // A signal ends a process that waits for a server, which may be for ever.
  TRY_ASSIGN(std::optional<MpsClient> client, connect_to_mps(plan));
  // Blocked before the first entry, so that no signal can leave it behind.
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  const Descriptor arrived(signalfd(-1, &signals, SFD_CLOEXEC));
  if (!arrived.is_open()) {
    return std::unexpected(gpu_platform::base::system_error("wait for signals", errno));
  }
  int signal = 0;
  {
    GpuUse use(board, gpus);
    TRY_ASSIGN(signal, follow(plan, {use, gpus.size(), client}, arrived.get()));
  }
  client.reset();
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
    case ErrorCode::kUnavailable:
      return kMpsFailed;
    case ErrorCode::kFailedPrecondition:
      return kFaulted;
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
    "  --fault-after TIME     use an illegal memory address then\n"
    "  --ignore-terminate     work so that no MPS command terminates this client\n"
    "  -h, --help             print this\n"
    "\n"
    "With CUDA_MPS_PIPE_DIRECTORY each process is a client of the MPS server of that folder, "
    "within\n"
    "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE, CUDA_MPS_PINNED_DEVICE_MEM_LIMIT and the server's limits.\n"
    "\n"
    "Exit codes: 2 usage, 3 no emulated GPU, 4 refused (as without memory), 5 MPS failed or has\n"
    "terminated this client, 6 an illegal memory address was used, also by another client.\n";

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
                              {"fault-after", required_argument, nullptr, 'f'},
                              {"ignore-terminate", no_argument, nullptr, 'i'},
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
      case 'f':
        options.fault_after = optarg;
        break;
      case 'i':
        options.ignores_terminate = true;
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
