#include <algorithm>
#include <charconv>
#include <climits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/convert/text_forms.h"
#include "base/parse.h"
#include "base/result.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/follow.h"
#include "cli/input.h"
#include "cli/job_text.h"
#include "cli/json_view.h"
#include "cli/members.h"
#include "cli/plan_text.h"
#include "cli/sitting.h"
#include "cli/submission.h"

namespace gpu_platform::cli {

namespace {

constexpr std::uint64_t kMostGpus = 65535;
constexpr std::uint64_t kMostNodes = 4096;
constexpr std::uint64_t kMostRetries = 100;
constexpr base::Duration kUsualWaitForGpus = base::minutes(5);

struct SubmitOptions {
  std::optional<std::string> gpus, gpu_memory, cpus, memory, priority, name, team, project, time,
      retries, workdir, output, error, open_mode, signal, request_id, kind, user, prolog, epilog,
      idle_timeout, begin, deadline, array, nodes, gpus_per_node, network_level, reservation,
      expected_time, wait_timeout;
  std::vector<std::string> gpu_types, environment, labels, notify, dependencies, nodelist, exclude;
  std::vector<std::string> command;
  bool allow_cross_numa = false;
  bool strict_numa = false;
  bool allow_cross_node = false;
  bool per_gpu = false;
  bool hold = false;
  bool preemptible = false;
  bool no_preemptible = false;
  bool complete_on_exit_zero = false;
  std::optional<model::TerminalSize> terminal;
  bool takes_input = false;
};

void define(Arguments& arguments, SubmitOptions& o) {
  arguments.option("--gpus", o.gpus, "N", "GPUs, on all nodes together (default: 0)")
      .option("--nodes", o.nodes, "N", "on so many nodes, all at once (default: 1)")
      .option("--gpus-per-node", o.gpus_per_node, "N", "GPUs on each node, instead of --gpus")
      .flag("--allow-cross-node", o.allow_cross_node,
            "its GPUs may lie on several nodes: as few as can be, equally many on each")
      .option("--network-level", o.network_level, "LEVEL",
              "its nodes lie in one domain, rack or zone, or it waits (default: as near as can be)")
      .many("--nodelist", o.nodelist, "NODE[,NODE]", "only on these: dgx-[1-4]")
      .many("--exclude", o.exclude, "NODE[,NODE]", "not on these")
      .flag("--per-gpu", o.per_gpu,
            "one process for each GPU, with RANK, LOCAL_RANK and WORLD_SIZE (default: one for each "
            "node)")
      .many(
          "--gpu-type", o.gpu_types, "TYPE[:SPEED][,TYPE]",
          "the first of these that has room: H100, A100-80GB, …; H100:1,A100:0.5 lets the job run "
          "twice as long on an A100 (default: any)")
      .option("--gpu-memory", o.gpu_memory, "SIZE", "least memory of each GPU: 40G")
      .option("--cpus", o.cpus, "N", "CPUs (default: the node's share for the GPUs)")
      .option("--memory", o.memory, "SIZE", "host memory: 64G (default: the node's share)")
      .flag("--allow-cross-numa", o.allow_cross_numa, "its GPUs may lie on several sockets")
      .flag("--strict-numa", o.strict_numa, "its GPUs never lie on several sockets")
      .option("--priority", o.priority, "CLASS|0-9", "critical, high, medium, low, or a number")
      .option("--time", o.time, "DURATION", "time limit: 90s 15m 2h 1d HH:MM:SS, or minutes")
      .option("--expected-time", o.expected_time, "DURATION",
              "how long you expect it to run: for estimates, never to stop it (default: as long as "
              "its like ran)")
      .option("--retries", o.retries, "N", "further attempts when the program fails (default: 0)")
      .option("--name", o.name, "NAME", "name of the job (default: the program's)")
      .option("--team", o.team, "NAME", "team to which it belongs")
      .option("--project", o.project, "NAME", "project to which it belongs")
      .option("--kind", o.kind, "KIND", "training, inference, interactive or batch (default)")
      .many("--label", o.labels, "KEY=VALUE", "label; may be repeated")
      .many("--env", o.environment, "NAME=VALUE", "environment variable; may be repeated")
      .option("--workdir", o.workdir, "DIR", "directory to start in (default: this one)")
      .option("--output", o.output, "FILE",
              "where its output goes: /logs/%x-%j.log (default: kept; see jobs logs)")
      .option("--error", o.error, "FILE", "where its standard error goes (default: as its output)")
      .option("--open-mode", o.open_mode, "MODE", "append (default) or truncate these files")
      .option("--signal", o.signal, "[B:]SIG[@SECONDS]",
              "signal to the job before its time limit: USR1@120 (default: 60 seconds)")
      .option("--prolog", o.prolog, "FILE",
              "program run as the job before its command; where it fails, so does the job")
      .option("--epilog", o.epilog, "FILE",
              "program run as the job after its command, however that ended")
      .many("--notify", o.notify, "start|end|fail",
            "tell the site's notification command; several with commas")
      .option("--begin", o.begin, "TIME", "start no earlier: now+2h, 16:00, 2026-01-31T12:00")
      .option("--deadline", o.deadline, "TIME", "cancel it when it can no longer end by then")
      .option("--reservation", o.reservation, "NAME",
              "in this reservation: on its GPUs alone, within its time")
      .option("--wait-timeout", o.wait_timeout, "DURATION",
              "cancel it when it has not started after so long")
      .many("--dependency", o.dependencies, "KIND:ID[:ID][,…]",
            "start after other jobs: afterok, afterany or afternotok, as in afterok:12:14")
      .option("--array", o.array, "INDICES", "one job for each index: 0-99, 1,3,5-9:2, 0-99%8")
      .flag("--hold", o.hold, "held until 'jobs release'")
      .flag("--preemptible", o.preemptible,
            "may be stopped, and queued again, for a job of a higher class (default: if low)")
      .flag("--no-preemptible", o.no_preemptible, "never stopped for another job")
      .flag("--complete-on-exit-zero", o.complete_on_exit_zero,
            "when it was stopped so as to be queued again, exit code 0 completes it all the same")
      .option(
          "--idle-timeout", o.idle_timeout, "DURATION",
          "of a job with --pty or --stdin: end it when nothing was typed or printed for so long")
      .option("--request-id", o.request_id, "KEY", "a repeat with the same key submits nothing new")
      .option("--user", o.user, "NAME", "whose job it is to be (root only)");
}

// The words before "--" are options, those after it the job's command.
std::span<const std::string> split_command(std::span<const std::string> words, SubmitOptions& o) {
  const auto dashes = std::ranges::find(words, "--");
  if (dashes == words.end()) return words;
  o.command.assign(dashes + 1, words.end());
  return words.first(static_cast<std::size_t>(dashes - words.begin()));
}

base::Status put_count(Json& body, const char* key, const std::optional<std::string>& text,
                       std::uint64_t least, std::uint64_t most) {
  if (!text.has_value()) return {};
  TRY_ASSIGN(const std::uint64_t count, base::parse_count(*text, least, most));
  body[key] = count;
  return {};
}

base::Status put_seconds(Json& body, const char* key, const std::optional<std::string>& text) {
  if (!text.has_value()) return {};
  TRY_ASSIGN(const base::Duration duration, base::parse_duration(*text));
  body[key] = static_cast<double>(base::whole_milliseconds(duration)) / 1000;
  return {};
}

base::Status put_size(Json& body, const char* key, const std::optional<std::string>& text) {
  if (!text.has_value()) return {};
  TRY_ASSIGN(const base::Bytes size, base::parse_size(*text));
  body[key] = size.value();
  return {};
}

// Runs `put` and names the option in its error.
base::Status for_option(std::string_view option, base::Status status) {
  if (!status && status.error().field.empty()) status.error().field = option;
  return status;
}

base::Status put_chains(Json& body, const SubmitOptions& o, base::Instant now) {
  TRY(put_moment(body, "begin", o.begin, now));
  TRY(put_moment(body, "deadline", o.deadline, now));
  TRY(for_option("--wait-timeout", put_seconds(body, "wait_timeout_seconds", o.wait_timeout)));
  if (!o.dependencies.empty())
    body["dependency"] = fmt::format("{}", fmt::join(o.dependencies, ","));
  if (o.array.has_value()) body["array"] = *o.array;
  if (o.reservation.has_value()) body["reservation"] = *o.reservation;
  return {};
}

// "H100:1.0,A100:0.5": a type without a number is as fast as the first.
base::Status put_types(Json& body, const SubmitOptions& o) {
  Json speeds = Json::array();
  bool has_speeds = false;
  for (const std::string& word : words_of_lists(o.gpu_types)) {
    const std::size_t colon = word.find(':');
    body["gpu_types"].push_back(word.substr(0, colon));
    double speed = 1;
    if (colon != std::string::npos) {
      has_speeds = true;
      const char* const begin = word.data() + colon + 1;
      const char* const end = word.data() + word.size();
      const auto [stop, code] = std::from_chars(begin, end, speed);
      if (code != std::errc() || stop != end || !(speed >= 0.001 && speed <= 1000)) {
        return base::invalid("--gpu-type", fmt::format("'{}': a speed is a number from 0.001 to "
                                                       "1000, as in A100:0.5",
                                                       word));
      }
    }
    speeds.push_back(speed);
  }
  if (has_speeds) body["gpu_speeds"] = speeds;
  return {};
}

// Lists as they are written: the daemon knows the nodes.
void put_lists(Json& body, const char* key, const std::vector<std::string>& lists) {
  for (const std::string& list : lists) {
    if (!list.empty()) body[key].push_back(list);
  }
}

// --gpus is what the job has on all nodes, the request's "gpus" what it has on each.
base::Status put_nodes(Json& body, const SubmitOptions& o) {
  TRY(for_option("--nodes", put_count(body, "nodes", o.nodes, 1, kMostNodes)));
  put_lists(body, "nodelist", o.nodelist);
  put_lists(body, "exclude", o.exclude);
  if (o.allow_cross_node) body["allow_cross_node"] = true;
  if (o.per_gpu) body["per_gpu"] = true;
  if (o.network_level.has_value()) body["network_level"] = upper(*o.network_level);
  if (o.gpus_per_node.has_value()) {
    if (o.gpus.has_value()) {
      return base::invalid("--gpus-per-node", "cannot be used together with --gpus");
    }
    return for_option("--gpus-per-node", put_count(body, "gpus", o.gpus_per_node, 0, kMostGpus));
  }
  const std::uint64_t nodes = body.value("nodes", std::uint64_t{1});
  const std::uint64_t gpus = body.value("gpus", std::uint64_t{0});
  if (gpus % nodes != 0) {
    return base::invalid("--gpus", fmt::format("{} GPUs cannot be divided among {} nodes; say "
                                               "--gpus-per-node",
                                               gpus, nodes));
  }
  if (gpus > 0) body["gpus"] = gpus / nodes;
  return {};
}

base::Status put_resources(Json& body, const SubmitOptions& o) {
  TRY(for_option("--gpus", put_count(body, "gpus", o.gpus, 0, kMostGpus)));
  TRY(for_option("--gpu-memory", put_size(body, "gpu_memory_bytes", o.gpu_memory)));
  TRY(for_option("--cpus", put_count(body, "cpus", o.cpus, 1, UINT32_MAX)));
  TRY(for_option("--memory", put_size(body, "memory_bytes", o.memory)));
  if (o.allow_cross_numa && o.strict_numa) {
    return base::invalid("--strict-numa", "cannot be used together with --allow-cross-numa");
  }
  if (o.preemptible && o.no_preemptible) {
    return base::invalid("--no-preemptible", "cannot be used together with --preemptible");
  }
  if (o.preemptible || o.no_preemptible) body["preemptible"] = o.preemptible;
  if (o.complete_on_exit_zero) body["complete_on_exit_zero"] = true;
  if (o.allow_cross_numa) body["numa"] = "ALLOW_CROSS";
  if (o.strict_numa) body["numa"] = "STRICT";
  TRY(for_option("--retries", put_count(body, "retries", o.retries, 0, kMostRetries)));
  if (o.time.has_value()) {
    TRY_ASSIGN(const double seconds, limit_seconds(*o.time));
    body["time_limit_seconds"] = seconds;
  }
  TRY(for_option("--idle-timeout", put_seconds(body, "idle_timeout_seconds", o.idle_timeout)));
  TRY(put_expected_time(body, o.expected_time));
  TRY(put_types(body, o));
  TRY(put_nodes(body, o));
  // A type or a memory size without a number asks for one such GPU.
  if (!body.contains("gpus") && (!o.gpu_types.empty() || o.gpu_memory.has_value())) {
    body["gpus"] = 1;
  }
  return {};
}

void put_texts(Json& body, const SubmitOptions& o) {
  const std::pair<const char*, const std::optional<std::string>*> texts[] = {
      {"name", &o.name},     {"team", &o.team},           {"project", &o.project},
      {"output", &o.output}, {"user", &o.user},           {"priority", &o.priority},
      {"error", &o.error},   {"limit_signal", &o.signal}, {"prolog", &o.prolog},
      {"epilog", &o.epilog}};
  for (const auto& [key, value] : texts) {
    if (value->has_value()) body[key] = **value;
  }
  if (o.kind.has_value()) body["kind"] = upper(*o.kind);
  if (o.open_mode.has_value()) body["open_mode"] = upper(*o.open_mode);
  if (o.hold) body["hold"] = true;
  if (o.takes_input) body["takes_input"] = true;
  if (o.terminal.has_value()) {
    body["terminal"] = true;
    body["columns"] = o.terminal->columns;
    body["rows"] = o.terminal->rows;
    if (!o.kind.has_value()) body["kind"] = "INTERACTIVE";
  }
  for (const std::string& when : words_of_lists(o.notify)) body["notify"].push_back(upper(when));
}

base::Result<Json> request_body(Console& console, const SubmitOptions& o) {
  const Surroundings& surroundings = console.surroundings();
  Json body;
  body["command"] = o.command;
  TRY(put_resources(body, o));
  TRY(put_chains(body, o, surroundings.now()));
  put_texts(body, o);
  if (o.workdir.has_value() && o.workdir->starts_with('/')) {
    body["workdir"] = *o.workdir;
  } else {
    if (surroundings.directory.empty()) {
      return base::invalid("--workdir", "the current directory cannot be found; name one");
    }
    body["workdir"] =
        surroundings.directory + (o.workdir.has_value() ? "/" + *o.workdir : std::string());
  }
  body["umask"] = surroundings.umask;
  body["environment"] = environment_of(console);
  TRY(put_pairs(body["environment"], o.environment, "--env"));
  Json labels = Json::object();
  TRY(put_pairs(labels, o.labels, "--label"));
  if (!labels.empty()) body["labels"] = labels;
  const std::string key = o.request_id.has_value() ? *o.request_id : random_request_id();
  if (!key.empty()) body["request_id"] = key;
  return body;
}

base::Status check_utf8(const SubmitOptions& o) {
  const std::pair<std::string_view, const std::optional<std::string>*> single[] = {
      {"--priority", &o.priority},
      {"--name", &o.name},
      {"--team", &o.team},
      {"--project", &o.project},
      {"--workdir", &o.workdir},
      {"--output", &o.output},
      {"--user", &o.user},
      {"--request-id", &o.request_id},
      {"--kind", &o.kind},
      {"--error", &o.error},
      {"--signal", &o.signal},
      {"--open-mode", &o.open_mode},
      {"--prolog", &o.prolog},
      {"--epilog", &o.epilog},
      {"--idle-timeout", &o.idle_timeout},
      {"--network-level", &o.network_level},
      {"--array", &o.array},
      {"--reservation", &o.reservation}};
  for (const auto& [option, value] : single) {
    if (value->has_value()) TRY(check_text(option, **value));
  }
  const std::pair<std::string_view, const std::vector<std::string>*> lists[] = {
      {"command", &o.command},     {"--gpu-type", &o.gpu_types}, {"--env", &o.environment},
      {"--label", &o.labels},      {"--notify", &o.notify},      {"--dependency", &o.dependencies},
      {"--nodelist", &o.nodelist}, {"--exclude", &o.exclude}};
  for (const auto& [option, values] : lists) {
    for (const std::string& value : *values) TRY(check_text(option, value));
  }
  return {};
}

struct Submission {
  SubmitOptions options;
  bool wait = false;
  bool json = false;
  bool wants_terminal = false;
  bool is_question = false;  // nothing is submitted: which command it is does not matter
};

struct Prepared {
  Client client;
  Json body;
};

struct Submitted {
  Client client;
  std::string id;
  std::string document;
};

// The client and the request's body. Otherwise the exit code.
std::expected<Prepared, int> prepare(const CommandText& text, Invocation& invocation,
                                     Arguments& arguments, Submission& s) {
  Console& console = invocation.console;
  invocation.words = split_command(invocation.words, s.options);
  std::vector<std::string> stray;
  arguments.words("-- COMMAND", stray, 0, SIZE_MAX, "the job's program and its arguments");
  auto client = open_client(arguments, invocation);
  if (!client) return std::unexpected(client.error());
  if (!stray.empty()) {
    return std::unexpected(usage_error(
        console,
        fmt::format("unexpected argument '{}': the job's command stands after '--'", stray.front()),
        text.name));
  }
  if (s.options.command.empty() && s.is_question) s.options.command = {"true"};
  if (s.options.command.empty()) {
    return std::unexpected(usage_error(
        console, "no command: write it after '--', as in -- python train.py", text.name));
  }
  if (s.wants_terminal) {
    s.options.terminal = terminal_size(console.surroundings());
    if (!s.options.terminal.has_value()) {
      return std::unexpected(usage_error(
          console, "--pty: standard input is not a terminal; --stdin passes it on as it is",
          text.name));
    }
  }
  base::Result<Json> body = base::invalid({}, {});
  if (const auto checked = check_utf8(s.options); checked) {
    body = request_body(console, s.options);
  } else {
    body = std::unexpected(checked.error());
  }
  if (!body) {
    return std::unexpected(usage_error(
        console, fmt::format("{}: {}", body.error().field, body.error().message), text.name));
  }
  return Prepared{*std::move(client), *std::move(body)};
}

// Everything up to the acknowledgement. Otherwise the exit code.
std::expected<Submitted, int> submit_from(const CommandText& text, Invocation& invocation,
                                          Arguments& arguments, Submission& s) {
  Console& console = invocation.console;
  auto prepared = prepare(text, invocation, arguments, s);
  if (!prepared) return std::unexpected(prepared.error());
  if (!prepared->body.contains("gpus")) {
    console.warning(
        "nothing asks for a GPU: this is a CPU job (--gpus N asks for GPUs, --gpus 0 "
        "silences this)");
  }
  auto answer = submit_job(console, prepared->client, prepared->body);
  if (!answer) return std::unexpected(report(console, answer.error(), s.json));
  const auto job = parse_object(*answer);
  const std::string id = job ? text_at(*job, "id") : std::string();
  if (id.empty()) {
    console.error("the daemon's answer has no job id");
    return std::unexpected(kFailure);
  }
  return Submitted{std::move(prepared->client), id, std::move(*answer)};
}

// What a question asks: the environment does not matter, and stays here.
Json question(Json job, base::Duration timeout) {
  job.erase("environment");
  job.erase("request_id");
  return {{"job", std::move(job)},
          {"timeout_seconds", static_cast<double>(base::whole_milliseconds(timeout)) / 1000}};
}

// The daemon's last answer: when such a job would start, or after so long.
Called<std::string> wait_for_start(Console& console, Client& client, const Json& job,
                                   base::Duration at_most) {
  const auto& steady = console.surroundings().steady;
  const base::Instant began = steady();
  Patience patience(console, kMostPatience);
  while (true) {
    const base::Duration left = std::max(at_most - (steady() - began), base::Duration());
    const base::Duration wait = std::min(left, kOneWait);
    auto answer = client.post_slow("/v1/check", json_text(question(job, wait)), wait, -1);
    if (answer) {
      patience.reset();
      const auto result = parse_object(*answer);
      const bool is_settled =
          !result || flag_at(*result, "starts_now") || flag_at(*result, "never");
      if (is_settled || left <= kOneWait) return answer;
    } else if (!answer.error().is_passing() || !patience.wait(answer.error(), -1)) {
      return answer;
    }
  }
}

std::string with_newline(std::string document) {
  if (!document.ends_with('\n')) document.push_back('\n');
  return document;
}

// 0 when all of its members ended COMPLETED.
int wait_for_array(Console& console, Client& client, const std::string& id, bool json) {
  const auto members = members_of(client, id);
  if (!members) return as_run(report(console, members.error(), json));
  int result = kOk;
  Interrupts none;
  for (const std::string& member : *members) {
    const auto ended = wait_for_end(console, client, member, std::nullopt, none);
    if (!ended) return as_run(report(console, ended.error(), json));
    if (json) console.out(with_newline((*ended)->document));
    if (text_at((*ended)->job, "state") != "COMPLETED") result = kFailure;
  }
  return result;
}

// Prints it; the exit code is `otherwise` for a job that would start some time.
int tell_answer(Console& console, const Called<std::string>& answer, bool json, int otherwise) {
  if (!answer) return report(console, answer.error(), json);
  const auto result = parse_object(*answer);
  if (json || !result) {
    console.out(with_newline(*answer));
  } else {
    console.out(check_page(*result, console.surroundings().now()));
  }
  if (console.out_failed()) return kFailure;
  if (result && flag_at(*result, "starts_now")) return kOk;
  return result && flag_at(*result, "never") ? static_cast<int>(kRefused) : otherwise;
}

}  // namespace

int run_submit(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  Submission s;
  Arguments arguments(text);
  define(arguments, s.options);
  arguments.flag("--wait", s.wait, "wait for the end and exit as 'run' does")
      .flag("--json", s.json, "print the job as JSON (with --wait: as it ended)");
  auto submitted = submit_from(text, invocation, arguments, s);
  if (!submitted) return s.wait ? as_run(submitted.error()) : submitted.error();
  if (!s.json) {
    console.out(submitted->id + "\n");
  } else if (!s.wait) {
    console.out(with_newline(submitted->document));
  }
  if (console.out_failed()) return kFailure;
  if (!s.wait) return kOk;
  if (s.options.array.has_value()) {
    return wait_for_array(console, submitted->client, submitted->id, s.json);
  }
  Interrupts none;
  auto ended = wait_for_end(console, submitted->client, submitted->id, std::nullopt, none);
  if (ended && s.json) console.out(with_newline((*ended)->document));
  return tell_end(console, ended);
}

int run_run(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  Submission s;
  Arguments arguments(text);
  define(arguments, s.options);
  arguments.flag("-t,--pty", s.wants_terminal, "with a terminal: a shell, an editor, a debugger")
      .flag("-i,--stdin", s.options.takes_input,
            "standard input goes to the job (else it has none)");
  auto submitted = submit_from(text, invocation, arguments, s);
  if (!submitted) return as_run(submitted.error());
  if (s.options.array.has_value()) {
    console.note(fmt::format("array {}", submitted->id));
    return wait_for_array(console, submitted->client, submitted->id, false);
  }
  console.note(fmt::format("job {}", submitted->id));
  if (s.options.terminal.has_value()) {
    return sit_at(console, submitted->client, {submitted->id, s.options.terminal, true});
  }
  if (s.options.takes_input) return run_with_input(console, submitted->client, submitted->id);
  Interrupts interrupts(console, submitted->client, submitted->id);
  const auto failure = follow_output(console, submitted->client, submitted->id,
                                     {OutputPlace::kNone, 0, false, true}, interrupts);
  if (failure) return as_run(report(console, *failure, false));
  return tell_end(
      console, wait_for_end(console, submitted->client, submitted->id, std::nullopt, interrupts));
}

int run_check(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  Submission s;
  s.is_question = true;
  Arguments arguments(text);
  define(arguments, s.options);
  arguments.flag("--json", s.json, "print JSON");
  auto prepared = prepare(text, invocation, arguments, s);
  if (!prepared) return prepared.error();
  const Json asked = question(std::move(prepared->body), {});
  const auto answer = prepared->client.post("/v1/check", json_text(asked));
  return tell_answer(console, answer, s.json, kRefused);
}

int run_jobs_wait_gpus(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  Submission s;
  s.is_question = true;
  std::optional<std::string> timeout;
  Arguments arguments(text);
  define(arguments, s.options);
  arguments
      .option("--timeout", timeout, "DURATION", "give up after this (exit code 124; default: 5m)")
      .flag("--json", s.json, "print JSON");
  auto prepared = prepare(text, invocation, arguments, s);
  if (!prepared) return prepared.error();
  base::Duration at_most = kUsualWaitForGpus;
  if (timeout.has_value()) {
    const auto duration = base::parse_duration(*timeout);
    if (!duration) return usage_error(console, "--timeout: " + duration.error().message, text.name);
    at_most = *duration;
  }
  const auto answer = wait_for_start(console, prepared->client, prepared->body, at_most);
  return tell_answer(console, answer, s.json, kTimedOut);
}

}  // namespace gpu_platform::cli
