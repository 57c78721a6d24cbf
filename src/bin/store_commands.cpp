#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "bin/progress_pace.h"
#include "bin/store_state.h"
#include "bin/telemetry_part.h"
#include "bin/verbs.h"
#include "cli/words/arguments.h"
#include "client/exit_code.h"
#include "client/session.h"
#include "store/sqlite/repair.h"
#include "store/sqlite/report_text.h"
#include "telemetry/history/check_history.h"

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

int print(client::Console& console, const store::ReportText& report) {
  console.out(report.text);
  return report.is_good ? client::kOk : client::kFailure;
}

// Tells a person at a terminal how far it is, unless it is done soon.
store::StoreProgress progress_of(client::Console& console, std::string_view doing) {
  const auto& steady = console.process_environment().steady;
  return [&console, &steady, doing = std::string(doing),
          pace = ProgressPace(steady(), base::seconds(1), base::milliseconds(250))](
             std::string_view what, std::uint64_t records) mutable {
    if (!pace.is_due(steady())) return;
    const std::string count = records == 0 ? "" : fmt::format(", {} records", records);
    console.progress(fmt::format("{}: {}{}", doing, what, count));
  };
}

// The history is not part of the store: nothing that was acknowledged is lost with it.
std::string history_text(const std::string& data_dir) {
  const std::string path = history_path(data_dir);
  const auto check = telemetry::check_history(path);
  if (!check) return path + ": no readings are kept here\n";
  if (!check->problem.empty()) {
    return fmt::format(
        "{}: damaged: {}; a start of the daemon puts a damaged file aside and begins a new one, "
        "which costs the history of readings alone\n",
        path, check->problem);
  }
  const std::string damaged =
      check->is_sound()
          ? "sound"
          : fmt::format("{} more are damaged and left out of answers", check->damaged_blocks);
  return fmt::format("{}: {} bytes, {} notes, {} blocks of readings, {}\n", path, check->bytes,
                     check->notes, check->blocks, damaged);
}

int check(client::Console& console, const std::string& data_dir) {
  const auto report =
      store::check_store(data_dir, {needed_environments, made_lines, unbalanced_books},
                         progress_of(console, "checking"));
  if (!report) return report_failure(console, report.error());
  console.out(history_text(data_dir));
  return print(console, store::check_text(*report, data_dir));
}

int recover(client::Console& console, const std::string& data_dir) {
  const auto report = store::recover_store(data_dir, {last_job_with_output(data_dir),
                                                      {needed_environments, made_lines, {}},
                                                      progress_of(console, "recovering")});
  if (!report) return report_failure(console, report.error());
  return print(console, store::recovery_text(*report));
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
             "check: verify every record, and the history of readings. recover: build a new "
             "database of "
             "what can be read");
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (const auto code = arguments.parse(words, console)) return *code;
  const std::string directory = data_dir ? *data_dir : default_data_dir();
  if (action.front() == "check") return check(console, directory);
  if (action.front() == "recover") return recover(console, directory);
  return cli::usage_error(console, "\"" + action.front() + "\" is not check or recover", "store");
}

}  // namespace gpu_platform::bin
