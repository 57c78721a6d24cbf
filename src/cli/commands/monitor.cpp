#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "api/convert/use.h"
#include "base/parse.h"
#include "base/percent.h"
#include "cli/client_names.h"
#include "cli/commands.h"
#include "cli/jobs/gpu_sampler.h"
#include "cli/jobs/monitored_command.h"
#include "cli/screen/repeat.h"
#include "cli/submission/text_file.h"
#include "cli/text/monitor_json.h"
#include "cli/text/text.h"
#include "cli/text/use_text.h"
#include "client/follow.h"
#include "node/probe/gpu_watchers.h"

// `monitor`, of a command on this machine or of a job, and `monitor diff`.

namespace gpu_platform::cli {

namespace {

constexpr base::Duration kShortestInterval = base::milliseconds(100);
constexpr base::Duration kLongestInterval = base::hours(1);
constexpr std::size_t kMaxRecordBytes = 16 << 20;

struct MonitorAsked {
  std::optional<std::string> gpus, interval, file;
  std::vector<std::string> words;
  Output output;
  bool follows = false;
  base::Duration every = base::seconds(1);
};

// Empty: it was written.
std::string write_file(const std::string& path, const Json& document) {
  std::ofstream out(path, std::ios::trunc);
  out << json_text(document) << '\n';
  out.flush();
  return out ? std::string() : fmt::format("{}: it cannot be written", harmless(path));
}

// Whether a file can be written there, without a change to one that is there. A command that runs
// for days must not end without its summary. Empty: it can be written.
std::string check_writable(const std::string& path) {
  std::error_code ignored;
  const auto found = std::filesystem::status(path, ignored);
  const bool was_there = std::filesystem::exists(found);
  // A pipe is opened once: its reader would take the end of a trial for the end of it.
  if (was_there && std::filesystem::is_fifo(found)) return {};
  std::ofstream out(path, std::ios::app);
  if (!out) return fmt::format("--output: {}: it cannot be written", harmless(path));
  if (!was_there) std::filesystem::remove(path, ignored);
  return {};
}

// The GPUs of our own job, or all.
std::vector<hardware::GpuDescription> own_gpus(const std::vector<hardware::GpuDescription>& gpus,
                                               const client::ProcessEnvironment& around) {
  for (const std::string_view name : {"GPU_PLATFORM_GPU_UUIDS", "CUDA_VISIBLE_DEVICES"}) {
    const auto value = client::variable(around, name);
    if (!value) continue;
    // Another numbering, or a part of a GPU: all are read then.
    if (auto chosen = chosen_gpus(gpus, *value)) return *std::move(chosen);
  }
  return gpus;
}

// What to read; an error is of --gpus. Without a driver the command runs all the same.
std::expected<MonitoredGpus, std::string> gpus_to_read(const MonitorAsked& asked,
                                                       Console& console) {
  MonitoredGpus monitored;
  monitored.interval = asked.every;
  auto opened = node::open_library({"libnvidia-ml.so.1", "nvidia-smi"});
  const auto warn = [&](const std::string& why) {
    console.warning(fmt::format("the GPUs are not read: {}", why));
  };
  if (!opened) {
    warn(opened.error().message);
    return monitored;
  }
  const auto gpus = opened->library->list_gpus();
  if (!gpus) {
    warn(gpus.error().message);
    return monitored;
  }
  if (asked.gpus) {
    auto chosen = chosen_gpus(*gpus, *asked.gpus);
    if (!chosen) return std::unexpected("--gpus: " + chosen.error());
    monitored.gpus = *std::move(chosen);
  } else {
    monitored.gpus = own_gpus(*gpus, console.process_environment());
  }
  monitored.library = std::move(opened->library);
  return monitored;
}

// The command's own output has stdout: the summary goes to the file, or to stderr.
int monitor_command(const MonitorAsked& asked, const CommandText& text, Console& console) {
  if (const std::string unwritable = asked.file ? check_writable(*asked.file) : std::string();
      !unwritable.empty()) {
    console.error(unwritable);
    return kFailure;
  }
  auto monitored = gpus_to_read(asked, console);
  if (!monitored) return usage_error(console, monitored.error(), text.name);
  const MonitoredEnd end = run_monitored(asked.words, *std::move(monitored));
  if (!end.problem.empty()) {
    console.error(end.problem);
    return end.exit_code;
  }
  v1::AttemptUse use;
  if (end.use) api::to_proto(*end.use, 1, use);
  const Json document = monitor_json(use);
  if (asked.file) {
    const std::string problem = write_file(*asked.file, document);
    if (!problem.empty()) console.error(problem);
    if (!problem.empty() && end.exit_code == kOk) return kFailure;
  } else if (asked.output.is_document()) {
    console.err(json_text(document) + "\n");
  } else if (end.use) {
    TableStyle style = asked.output.style(console);
    style.has_colors = false;
    console.err(use_page(use, style));
  }
  return end.exit_code;
}

// What is told where no reading came.
Failure nothing_read(const std::string& id) {
  Failure failure;
  failure.kind = Failure::Kind::kProblem;
  failure.code = base::ErrorCode::kNotFound;
  failure.message = fmt::format(
      "nothing was read of GPUs of job {}: it has none, or has not run yet, or its node "
      "has no readings",
      harmless(id));
  return failure;
}

// Asked before the use of a job that is followed: what is said of it after its end is the last.
Called<bool> has_ended(Client& client, const std::string& id) {
  const auto job =
      client.ask<v1::Job>(fmt::format("/v1/jobs/{}", base::percent_encoded(id)), "a job");
  if (!job) return std::unexpected(job.error());
  return client::is_ended(job->state());
}

// Without attempts: nothing was read yet.
Called<v1::JobUse> use_so_far(Client& client, const std::string& id) {
  return client.ask<v1::JobUse>(fmt::format("/v1/jobs/{}/use", base::percent_encoded(id)),
                                "the use of a job");
}

Called<v1::JobUse> use_of(Client& client, const std::string& id) {
  auto use = use_so_far(client, id);
  if (use && use->attempts().empty()) return std::unexpected(nothing_read(id));
  return use;
}

int monitor_job(const MonitorAsked& asked, const client::ServerChoice& server, Console& console) {
  auto client = client_for(server, console);
  if (!client) return client.error();
  const std::string& id = asked.words.front();
  bool is_over = false;
  const Look look = [&](Console& shown, int) -> Called<void> {
    if (asked.follows) {
      const auto ended = has_ended(*client, id);
      if (!ended) return std::unexpected(ended.error());
      is_over = *ended;
    }
    const bool may_begin_yet = asked.follows && !is_over;
    const auto use = may_begin_yet ? use_so_far(*client, id) : use_of(*client, id);
    if (!use) return std::unexpected(use.error());
    if (use->attempts().empty()) {
      if (!asked.output.is_document()) shown.out("nothing was read of its GPUs yet\n");
      return {};
    }
    const Json document = monitor_json(*use->attempts().rbegin());
    const std::string problem = asked.file ? write_file(*asked.file, document) : std::string();
    if (!problem.empty()) shown.error(problem);
    if (asked.output.is_document()) {
      print_document(shown, asked.output, json_text(document));
    } else if (!asked.file) {
      shown.out(use_page(*use, asked.output.style(shown)));
    }
    return {};
  };
  Output output = asked.output;
  if (asked.follows) output.watch = asked.every;
  return show_until(console, output, look, [&] { return is_over; });
}

// What stands before the dashes, and the command behind them; none: there are no dashes.
struct MonitorWords {
  std::span<const std::string> options;
  std::optional<std::vector<std::string>> command;
};
MonitorWords split_at_dashes(std::span<const std::string> words) {
  const auto dashes = std::ranges::find(words, "--");
  if (dashes == words.end()) return {words, std::nullopt};
  return {{words.begin(), dashes}, std::vector<std::string>(std::next(dashes), words.end())};
}

// Why one side of a comparison is not there.
struct DiffProblem {
  std::string message;
  int exit_code = kFailure;
};

// A file that `monitor` has written, or a job, where there is a client.
std::expected<Json, DiffProblem> document_of(const std::string& word, Client* client,
                                             const ProcessEnvironment& process_environment) {
  std::error_code ignored;
  if (client != nullptr && !std::filesystem::exists(word, ignored)) {
    const auto use = use_of(*client, word);
    if (use) return monitor_json(*use->attempts().rbegin());
    return std::unexpected(DiffProblem{use.error().message, client::exit_code_of(use.error())});
  }
  const auto text = read_text_file(process_environment, word, kMaxRecordBytes);
  if (!text) {
    return std::unexpected(
        DiffProblem{fmt::format("{}: {}", harmless(word), text.error().message)});
  }
  auto document = parse_object(*text);
  if (document && !object_at(*document, "gpu_stats").empty()) return *std::move(document);
  return std::unexpected(
      DiffProblem{fmt::format("{}: it is no document of 'gpu-platform monitor'", harmless(word))});
}

// "42" or "40_3".
bool is_job(std::string_view word) {
  return !word.empty() &&
         std::ranges::all_of(word, [](char c) { return (c >= '0' && c <= '9') || c == '_'; });
}

}  // namespace

int run_monitor(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  MonitorAsked asked;
  client::ServerChoice server;
  Arguments arguments(text);
  arguments
      .option(
          "--gpus", asked.gpus, "GPU[,GPU]",
          "which GPUs of this machine: indices, UUIDs or all (default: those of the job that it "
          "runs in, else all)")
      .option("--interval", asked.interval, "DURATION",
              "time between two readings: 1s (default), 100ms to 1h")
      .option("--output", asked.file, "FILE", "write the summary to this file, as JSON")
      .flag("--follow", asked.follows, "with a job: show it again and again until it ends")
      .output(asked.output, {}, kFormatOption);
  arguments.words("JOB", asked.words, 0, 64, "a job; or a command behind '--'");
  add_server_options(arguments, server);
  // Options may follow a job; what follows the dashes is the command's own.
  const MonitorWords given_words = split_at_dashes(invocation.words);
  if (const auto code = arguments.parse(given_words.options, console)) return *code;
  const bool is_command = given_words.command.has_value();
  if (is_command && !asked.words.empty()) {
    return usage_error(console,
                       fmt::format("'{}': name a job, or a command behind '--', and not both",
                                   harmless(asked.words.front())),
                       text.name);
  }
  if (is_command) asked.words = *given_words.command;
  if (!server.server) server.server = invocation.server;
  if (asked.interval) {
    const auto given = base::parse_short_duration(*asked.interval);
    if (!given) return usage_error(console, "--interval: " + given.error().message, text.name);
    if (*given < kShortestInterval || *given > kLongestInterval) {
      return usage_error(
          console, fmt::format("--interval: '{}' is out of range: 100ms to 1h", *asked.interval),
          text.name);
    }
    asked.every = *given;
  }
  if (asked.words.empty()) {
    return usage_error(console, "name a job, or a command behind '--'", text.name);
  }
  if (is_command && asked.words.front().empty()) {
    return usage_error(console, "the command behind '--' has an empty name", text.name);
  }
  if (is_command) return monitor_command(asked, text, console);
  if (asked.words.size() != 1 || !is_job(asked.words.front())) {
    return usage_error(
        console,
        fmt::format("'{}' is no job; a command stands behind '--': gpu-platform monitor -- {}",
                    harmless(asked.words.front()), shell_quoted(asked.words)),
        text.name);
  }
  if (asked.gpus) {
    return usage_error(console, "--gpus: a job has its own GPUs; leave it out", text.name);
  }
  return monitor_job(asked, server, console);
}

int run_monitor_diff(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  std::vector<std::string> words;
  Output output;
  client::ServerChoice server;
  Arguments arguments(text);
  arguments.words("JOB | FILE", words, 2, 2, "two jobs, or files that 'monitor --output' wrote")
      .output(output, {});
  add_server_options(arguments, server);
  if (const auto code = arguments.parse(invocation.words, console)) return *code;
  if (!server.server) server.server = invocation.server;
  std::optional<Client> client;
  if (std::ranges::any_of(words, is_job)) {
    auto opened = client_for(server, console);
    if (!opened) return opened.error();
    client.emplace(*std::move(opened));
  }
  std::vector<Json> documents;
  for (const std::string& word : words) {
    auto document = document_of(word, client && is_job(word) ? &*client : nullptr,
                                console.process_environment());
    if (!document) {
      console.error(document.error().message);
      return document.error().exit_code;
    }
    documents.push_back(*std::move(document));
  }
  if (output.is_document()) {
    return print_document(console, output, json_text(diff_json(documents[0], documents[1])));
  }
  const std::string page = diff_page(documents[0], documents[1], output.style(console));
  console.out(page.empty() ? "the two have no metric in common\n" : page);
  return console.out_failed() ? kFailure : kOk;
}

}  // namespace gpu_platform::cli
