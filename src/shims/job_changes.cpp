#include "shims/job_changes.h"

#include <algorithm>
#include <csignal>

#include <fmt/format.h>

#include "cli/http.h"
#include "shims/columns.h"
#include "shims/job_view.h"
#include "shims/values.h"

namespace gpu_platform::shims {

namespace {

using cli::Json;

constexpr std::string_view kUpdate = "update";

struct Command {
  std::string_view name;
  std::string_view call;  // last part of the daemon's path
  bool holds = false;     // of a requeue
};
constexpr Command kCommands[] = {{"hold", "hold"},       {"uhold", "hold"},
                                 {"release", "release"}, {"requeue", "requeue"},
                                 {kUpdate, kUpdate},     {"requeuehold", "requeue", true}};

// What an update asks for.
struct Change {
  Json body = Json::object();
  bool is_held = false;     // Priority=0
  int limit_direction = 0;  // TimeLimit=+N and -N: 1 and -1, by `limit`
  base::Duration limit;
};

base::Status put_time_limit(std::string_view value, Change& change) {
  if (value.starts_with('+')) change.limit_direction = 1;
  if (value.starts_with('-') && value != "-1") change.limit_direction = -1;
  TRY_ASSIGN(const auto limit, parse_time_limit(value.substr(change.limit_direction != 0 ? 1 : 0)));
  if (!limit)
    return base::invalid({}, "no job runs without a time limit; write the longest allowed");
  change.limit = *limit;
  change.body["spec"]["time_limit_seconds"] = base::whole_milliseconds(*limit) / 1000;
  return {};
}

base::Status put_name(std::string_view value, Change& change) {
  change.body["spec"]["name"] = value;
  return {};
}

base::Status put_comment(std::string_view value, Change& change) {
  if (value.empty()) {
    change.body["clear"].push_back("comment");
  } else {
    change.body["spec"]["comment"] = value;
  }
  return {};
}

base::Status put_qos(std::string_view value, Change& change) {
  const auto priority = priority_of_qos(value);
  if (!priority) return base::invalid({}, "must be critical, high, medium or low");
  change.body["spec"]["priority"] = *priority;
  return {};
}

base::Status put_nice(std::string_view value, Change& change) {
  TRY_ASSIGN(change.body["spec"]["priority"], priority_of_nice(value));
  return {};
}

base::Status put_priority(std::string_view value, Change& change) {
  if (value != "0")
    return base::invalid(
        {}, "0 holds a job; other numbers are not supported, use QOS=high for a priority");
  change.is_held = true;
  return {};
}

struct Key {
  std::string_view name;  // in small letters
  base::Status (*put)(std::string_view value, Change& change);
};
constexpr Key kKeys[] = {{"timelimit", put_time_limit}, {"jobname", put_name}, {"name", put_name},
                         {"comment", put_comment},      {"qos", put_qos},      {"nice", put_nice},
                         {"priority", put_priority}};

bool names_jobs(std::string_view key) {
  return key == "jobid" || key == "job";
}

// "JobId=1,2" as its key in small letters and its value; without "=" all of it is the value.
struct Pair {
  std::string key;
  std::string value;
};
Pair pair_of(const std::string& word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos) return {{}, word};
  return {plain_name(word.substr(0, equals)), word.substr(equals + 1)};
}

struct Asked {
  std::vector<std::string> ids;
  Change change;
};

base::Result<Asked> asked_of(const Command& command, std::span<const std::string> words) {
  Asked asked;
  for (const std::string& word : words) {
    const auto [key, value] = pair_of(word);
    const auto known = std::ranges::find(kKeys, key, &Key::name);
    if (names_jobs(key) || (key.empty() && command.name != kUpdate)) {
      for (std::string& id : comma_separated(value)) asked.ids.push_back(std::move(id));
    } else if (command.name != kUpdate) {
      return base::invalid(word, "is not understood: jobs are named by their ids");
    } else if (known == std::end(kKeys)) {
      return base::invalid(word,
                           "cannot be changed here: TimeLimit, JobName, QOS, Nice, Comment and "
                           "Priority=0 of a JobId can");
    } else if (const auto put = known->put(value, asked.change); !put) {
      return base::invalid(word, put.error().message);
    }
  }
  if (asked.ids.empty()) return base::invalid(std::string(command.name), "no job: name its id");
  if (command.name == kUpdate && asked.change.body.empty() && !asked.change.is_held)
    return base::invalid(std::string(command.name), "nothing to change");
  if (command.call == "requeue") asked.change.body["hold"] = command.holds;
  return asked;
}

// More or less than the limit that the job has.
cli::Called<Json> body_for(cli::Client& client, const std::string& id, const Change& change) {
  Json body = change.body;
  if (change.limit_direction == 0) return body;
  const auto job = get_job(client, id);
  if (!job) return std::unexpected(job.error());
  const base::Duration now = time_limit(*job);
  const base::Duration then = change.limit_direction > 0 ? now + change.limit : now - change.limit;
  body["spec"]["time_limit_seconds"] = base::whole_milliseconds(then) / 1000;
  return body;
}

std::optional<cli::Failure> change_one(cli::Client& client, const Command& command,
                                       const std::string& id, const Change& change) {
  const std::string path = fmt::format("/v1/jobs/{}/", cli::percent_encoded(id));
  if (command.name != kUpdate || !change.body.empty()) {
    const auto body = body_for(client, id, change);
    if (!body) return body.error();
    const std::string text = body->empty() ? std::string() : body->dump();
    const auto done = client.post(path + std::string(command.call), text);
    if (!done) return done.error();
  }
  if (!change.is_held) return std::nullopt;
  const auto held = client.post(path + "hold");
  return held ? std::nullopt : std::optional(held.error());
}

}  // namespace

bool changes_jobs(std::string_view command) {
  return std::ranges::find(kCommands, command, &Command::name) != std::end(kCommands);
}

int change_jobs(Call& call, std::span<const std::string> words) {
  const auto command =
      std::ranges::find(kCommands, std::string_view(words.front()), &Command::name);
  const auto asked = asked_of(*command, words.subspan(1));
  if (!asked) return call.fail(asked.error());
  auto client = call.client();
  if (!client) return 1;
  // A job that puts itself back is told to stop at once, and with it this process, which its caller
  // wants to see succeed.
  if (command->call == "requeue") std::signal(SIGTERM, SIG_IGN);
  int code = 0;
  for (const std::string& id : asked->ids) {
    const auto failure = change_one(*client, *command, id, asked->change);
    if (!failure) continue;
    code = 1;
    const bool is_missing = failure->code == base::ErrorCode::kNotFound;
    call.fail(
        fmt::format("job {}: {}", id, is_missing ? "Invalid job id specified" : failure->message));
    if (failure->kind == cli::Failure::Kind::kNoDaemon) break;
  }
  return code;
}

}  // namespace gpu_platform::shims
