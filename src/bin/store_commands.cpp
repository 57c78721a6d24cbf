#include <string>
#include <vector>

#include "bin/store_state.h"
#include "bin/verbs.h"
#include "cli/arguments.h"
#include "client/exit_code.h"
#include "client/session.h"
#include "store/sqlite/repair.h"

namespace gpu_platform::bin {

namespace {

int report_failure(client::Console& console, const base::Error& error) {
  console.error(error.message);
  switch (error.code) {
    case base::ErrorCode::kNotFound:
      return client::kNotFound;
    case base::ErrorCode::kAlreadyExists:
    case base::ErrorCode::kFailedPrecondition:
      return client::kRefused;
    default:
      return client::kFailure;
  }
}

void print_report(client::Console& console, const store::StoreReport& report) {
  console.out(
      fmt::format("{}: schema {}, events {} to {}, {} ended jobs, {} snapshots, {} environments, "
                  "{} audit entries\n",
                  report.file.string(), report.schema_version, report.first_event.value,
                  report.last_event.value, report.jobs, report.snapshots, report.environments,
                  report.audit_entries));
  for (const std::string& damage : report.damages) console.out("damaged: " + damage + "\n");
  for (const std::string& missing : report.missing) console.out("missing: " + missing + "\n");
}

int check(client::Console& console, const std::string& data_dir) {
  const auto report = store::check_store(data_dir, needed_environments);
  if (!report) return report_failure(console, report.error());
  print_report(console, *report);
  if (!report->has_mark) {
    console.out(
        "note: store.marker does not say what was durable, so that it cannot be seen whether the "
        "store is an older one; the next start of the daemon makes it anew\n");
  }
  if (!report->missing.empty()) {
    console.out("a job is held when it is to start without its environment\n");
    return client::kFailure;
  }
  if (report->is_sound()) {
    console.out("sound\n");
    return client::kOk;
  }
  console.out(
      "`gpu-platform store recover --data-dir " + data_dir +
      "` builds a new database from everything that can be read and keeps the damaged one\n");
  return client::kFailure;
}

int recover(client::Console& console, const std::string& data_dir) {
  const auto report =
      store::recover_store(data_dir, {last_job_with_output(data_dir), needed_environments});
  if (!report) return report_failure(console, report.error());
  console.out("the damaged database is kept as " + report->put_aside.string() + "\n");
  print_report(console, report->kept);
  for (const std::string& loss : report->lost) console.out("lost: " + loss + "\n");
  if (report->next_job.valid()) {
    console.out(fmt::format("the next job gets id {}\n", report->next_job.value));
  }
  if (!report->lost.empty()) return client::kFailure;
  console.out("nothing that was acknowledged is lost\n");
  return client::kOk;
}

}  // namespace

int store_main(int argc, char** argv) {
  const client::ProcessEnvironment process_environment = client::environment_of_process();
  client::Console console(process_environment);
  std::optional<std::string> data_dir;
  std::vector<std::string> action;
  cli::Arguments arguments({"store", "[options] check|recover",
                            "Check or recover the store of a daemon that is not running",
                            "  gpu-platform store check --data-dir /var/lib/gpu-platform\n"
                            "  gpu-platform store recover --data-dir /var/lib/gpu-platform\n"});
  arguments.option("--data-dir", data_dir, "DIR", "the daemon's data directory")
      .words("ACTION", action, 1, 1,
             "check: verify every record. recover: build a new database of "
             "what can be read");
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (const auto code = arguments.parse(words, console)) return *code;
  const std::string directory = data_dir ? *data_dir : default_data_dir();
  if (action.front() == "check") return check(console, directory);
  if (action.front() == "recover") return recover(console, directory);
  return cli::usage_error(console, "\"" + action.front() + "\" is not check or recover", "store");
}

}  // namespace gpu_platform::bin
