#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <unistd.h>

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bin/program_paths.h"
#include "bin/verbs.h"
#include "cli/arguments.h"
#include "cli/table.h"
#include "client/exit_code.h"
#include "client/profiles.h"
#include "client/session.h"
#include "doctor/findings.h"
#include "execution/process/process_engine.h"
#include "http/connection.h"
#include "node/probe/probe_runner.h"

// Gathers the facts that doctor/ judges, by trying what the daemon would do, in a folder of its
// own.

namespace gpu_platform::bin {

namespace {

namespace fs = std::filesystem;
using doctor::Finding;

constexpr std::chrono::seconds kDriverPatience{100};
constexpr base::Duration kDaemonPatience = base::seconds(10);

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (fs::temp_directory_path() / "gpu-platform-doctor.XXXXXX").string();
    if (mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class NoEnvironments final : public execution::EnvironmentSource {
 public:
  base::Result<std::string> environment(std::string_view) const override { return std::string(); }
};

class NoObserver final : public execution::ObservationSink {
 public:
  void observe(execution::Observation) override {}
};

// Returns the guards of a launcher of this user. If none starts, prints an error and returns
// nothing.
std::vector<node::GuardState> try_launcher(const ProgramPaths& paths, client::Console& console) {
  const TemporaryFolder folder;
  const NoEnvironments environments;
  NoObserver observer;
  execution::ProcessEngineOptions options;
  options.data_dir = folder.path();
  options.node_program = paths.node;
  options.private_folders = true;
  options.hide_processes = true;
  const auto engine = execution::ProcessEngine::open(options, environments, observer);
  if (engine) return (*engine)->node_part().guards;
  console.error(engine.error().message);
  return {};
}

// The first that a probe says of this host.
class FirstInventory final : public node::ProbeListener {
 public:
  void on_report(node::ProbeReport report) override {
    const std::lock_guard lock(mutex_);
    if (auto* inventory = std::get_if<hardware::Inventory>(&report.content)) {
      inventory_ = std::move(*inventory);
    } else if (const auto* problem = std::get_if<node::ProbeProblem>(&report.content)) {
      inventory_.emplace().problem = {hardware::ProblemKind::kOther, problem->message};
    }
    changed_.notify_all();
  }

  hardware::Inventory wait() {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, kDriverPatience, [&] { return inventory_.has_value(); })) {
      return *inventory_;
    }
    hardware::Inventory none;
    none.problem = {hardware::ProblemKind::kOther, "the driver does not answer"};
    return none;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<hardware::Inventory> inventory_;
};

hardware::Inventory try_driver(const ProgramPaths& paths) {
  FirstInventory seen;
  node::ProbeRunnerOptions options;
  options.executable = paths.probe;
  const auto runner = node::ProbeRunner::start(options, seen);
  if (!runner) {
    hardware::Inventory none;
    none.problem = {hardware::ProblemKind::kOther, runner.error().message};
    return none;
  }
  (*runner)->watch({.node_name = "host"});
  return seen.wait();
}

// Returns the file system of the longest mount point in /proc/self/mounts that holds the path.
std::string file_system_of(const std::string& path) {
  std::ifstream mounts("/proc/self/mounts");
  std::string line;
  std::string best;
  std::string type = "unknown";
  while (std::getline(mounts, line)) {
    std::istringstream fields(line);
    std::string device;
    std::string point;
    std::string kind;
    fields >> device >> point >> kind;
    const bool holds = point == "/" || path == point || path.starts_with(point + "/");
    if (holds && point.size() >= best.size()) {
      best = point;
      type = kind;
    }
  }
  return type;
}

doctor::DiskFacts look_at_disk(const std::string& data_dir) {
  fs::path path = fs::absolute(data_dir);
  std::error_code error;
  while (!fs::exists(path, error) && path.has_relative_path()) path = path.parent_path();
  doctor::DiskFacts disk;
  disk.path = path.string();
  disk.file_system = file_system_of(disk.path);
  disk.is_writable = access(disk.path.c_str(), W_OK) == 0;
  struct statvfs about{};
  if (statvfs(disk.path.c_str(), &about) == 0) {
    disk.available = base::Bytes(static_cast<std::int64_t>(about.f_bavail * about.f_frsize));
  }
  return disk;
}

doctor::KernelFacts look_at_kernel() {
  doctor::KernelFacts kernel;
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) kernel.open_files = files.rlim_cur;
  timex clock{};
  kernel.is_clock_synchronised = adjtimex(&clock) != TIME_ERROR;
  return kernel;
}

// Asks the daemon that the command line would ask.
void look_for_daemon(const client::ProcessEnvironment& process_environment,
                     doctor::ServiceFacts& service) {
  const auto servers = client::servers_to_try({}, process_environment);
  if (!servers) {
    service.server = fmt::format("the server that is set ({})", servers.error().message);
    service.is_of_this_host = false;
    return;
  }
  for (const http::Server& server : *servers) {
    service.daemon_answers = http::Connection::open(server, {kDaemonPatience, -1}).has_value();
    if (service.daemon_answers) {
      service.server = server.text();
      return;
    }
    service.server += (service.server.empty() ? "" : " or ") + server.text();
    service.is_of_this_host &= !server.is_network();
  }
}

doctor::ServiceFacts look_at_service(const client::ProcessEnvironment& process_environment) {
  doctor::ServiceFacts service;
  std::error_code error;
  look_for_daemon(process_environment, service);
  service.has_systemd = fs::is_directory("/run/systemd/system", error);
  for (const char* folder :
       {"/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"}) {
    service.has_units |= fs::exists(fs::path(folder) / "gpu-platform.service", error);
  }
  return service;
}

std::vector<Finding> examine(const std::string& data_dir, client::Console& console) {
  const ProgramPaths paths = find_program_paths();
  std::vector<Finding> findings = doctor::judge_isolation(try_launcher(paths, console));
  for (Finding& finding : doctor::judge_gpus(try_driver(paths))) findings.push_back(finding);
  findings.push_back(doctor::judge_disk(look_at_disk(data_dir)));
  for (Finding& finding : doctor::judge_kernel(look_at_kernel())) findings.push_back(finding);
  findings.push_back(doctor::judge_service(look_at_service(console.process_environment())));
  return findings;
}

void print_json(client::Console& console, const cli::Output& output,
                const std::vector<Finding>& findings) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    list.push_back({{"check", finding.check},
                    {"verdict", to_string(finding.verdict)},
                    {"text", finding.text},
                    {"advice", finding.advice}});
  }
  const nlohmann::ordered_json out = {{"verdict", to_string(doctor::overall(findings))},
                                      {"findings", list}};
  cli::print_document(console, output,
                      out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

void print_table(client::Console& console, const std::vector<Finding>& findings) {
  cli::Table table({{.title = "CHECK"}, {.title = "VERDICT"}, {.title = "FOUND", .cut_to = 24}});
  for (const Finding& finding : findings) {
    table.add({finding.check, to_string(finding.verdict), finding.text});
  }
  console.out(table.render(console.process_environment().width));
  bool is_first = true;
  for (const doctor::Advice& advice : doctor::advice_of(findings)) {
    console.out(fmt::format("{}{}: {}\n", is_first ? "\nWhat to do\n  " : "  ", advice.checks,
                            advice.text));
    is_first = false;
  }
}

}  // namespace

int doctor_main(int argc, char** argv) {
  const client::ProcessEnvironment process_environment = client::environment_of_process();
  client::Console console(process_environment);
  std::optional<std::string> data_dir;
  cli::Output output;
  cli::Arguments arguments(
      {"doctor", "[options]",
       "Check what this host offers a daemon of this user (isolation of jobs, driver, disk, "
       "service) and say what to fix. It needs no daemon and changes nothing. It exits with 1 if "
       "jobs would not run",
       "  sudo gpu-platform doctor\n  gpu-platform doctor --json\n"});
  arguments
      .option("--data-dir", data_dir, "DIR",
              "data directory of the daemon (default " + default_data_dir() + ")")
      .output(output, {});
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (const auto code = arguments.parse(words, console)) return *code;
  const std::vector<Finding> findings = examine(data_dir.value_or(default_data_dir()), console);
  if (output.is_document()) {
    print_json(console, output, findings);
  } else {
    print_table(console, findings);
  }
  return doctor::overall(findings) == doctor::Verdict::kBad ? client::kFailure : client::kOk;
}

}  // namespace gpu_platform::bin
