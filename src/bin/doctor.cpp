#include <stdlib.h>

#include <chrono>
#include <filesystem>

#include <fmt/format.h>

#include "bin/mps_control.h"
#include "bin/program_paths.h"
#include "bin/verbs.h"
#include "cli/text/table.h"
#include "cli/words/arguments.h"
#include "client/exit_code.h"
#include "client/profiles.h"
#include "client/session.h"
#include "doctor/facts/first_inventory.h"
#include "doctor/facts/host_facts.h"
#include "doctor/findings.h"
#include "doctor/report.h"
#include "execution/process/process_engine.h"
#include "hardware/dcgm/dcgm_functions.h"
#include "http/connection.h"
#include "node/probe/probe_runner.h"

// Gathers the facts that doctor/ judges, by trying what the daemon would do, in a folder of its
// own.

namespace gpu_platform::bin {

namespace {

namespace fs = std::filesystem;
using doctor::Finding;

constexpr std::chrono::seconds kDriverTimeout{100};
constexpr base::Duration kDaemonTimeout = base::seconds(10);

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

hardware::Inventory try_driver(const ProgramPaths& paths) {
  doctor::FirstInventory seen;
  node::ProbeRunnerOptions options;
  options.executable = paths.probe;
  const auto runner = node::ProbeRunner::start(options, seen);
  if (!runner) {
    hardware::Inventory none;
    none.problem = {hardware::ProblemKind::kOther, runner.error().message};
    return none;
  }
  (*runner)->watch({.node_name = "host"});
  return seen.wait(kDriverTimeout);
}

doctor::DcgmFacts look_for_dcgm() {
  const auto module = hardware::DcgmModule::open(hardware::dcgm_libraries());
  if (module) return {module->path(), ""};
  const bool is_missing = module.error().kind == hardware::ProblemKind::kNoLibrary;
  return {"", is_missing ? "" : module.error().message};
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
    service.daemon_answers = http::Connection::open(server, {kDaemonTimeout, -1}).has_value();
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
  look_for_daemon(process_environment, service);
  doctor::look_at_service_manager(service);
  return service;
}

std::vector<Finding> examine(const std::string& data_dir, client::Console& console) {
  const ProgramPaths paths = find_program_paths();
  const std::vector<node::GuardState> guards = try_launcher(paths, console);
  std::vector<Finding> findings = doctor::judge_isolation(guards);
  const char* const path = getenv("PATH");
  const std::string control =
      find_mps_control({}, mps_control_folders(paths, false, path == nullptr ? "" : path));
  for (Finding& finding : doctor::judge_sharing(guards, control)) findings.push_back(finding);
  for (Finding& finding : doctor::judge_gpus(try_driver(paths))) findings.push_back(finding);
  findings.push_back(doctor::judge_dcgm(look_for_dcgm()));
  findings.push_back(doctor::judge_disk(doctor::look_at_disk(data_dir)));
  for (Finding& finding : doctor::judge_kernel(doctor::look_at_kernel()))
    findings.push_back(finding);
  findings.push_back(doctor::judge_service(look_at_service(console.process_environment())));
  return findings;
}

void print_table(client::Console& console, const std::vector<Finding>& findings) {
  cli::Table table({{.title = "CHECK"}, {.title = "VERDICT"}, {.title = "FOUND", .cut_to = 24}});
  for (const Finding& finding : findings) {
    table.add({finding.check, to_string(finding.verdict), finding.text});
  }
  console.out(table.render({.width = console.process_environment().width,
                            .has_colors = client::wants_color(console.process_environment())}));
  console.out(doctor::advice_text(findings));
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
       "service) and print what to fix. It needs no daemon and changes nothing. It exits with 1 if "
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
    cli::print_document(console, output, doctor::findings_json(findings));
  } else {
    print_table(console, findings);
  }
  return doctor::overall(findings) == doctor::Verdict::kBad ? client::kFailure : client::kOk;
}

}  // namespace gpu_platform::bin
