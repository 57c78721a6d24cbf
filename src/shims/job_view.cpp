#include "shims/job_view.h"

#include <algorithm>
#include <ctime>

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include "api/convert/text_forms.h"
#include "cli/follow.h"
#include "cli/http.h"
#include "cli/job_text.h"
#include "cli/members.h"
#include "shims/step_variables.h"

namespace gpu_platform::shims {

namespace {

using cli::Json;
using cli::text_at;

constexpr StateName kOutOfMemory{"OOM", "OUT_OF_MEMORY"};
constexpr StateName kNodeFail{"NF", "NODE_FAIL"};
constexpr StateName kDeadline{"DL", "DEADLINE"};

struct StateRow {
  std::string_view platform;
  StateName slurm;
};
constexpr StateRow kStates[] = {
    {"HELD", {"PD", "PENDING"}},        {"PENDING", {"PD", "PENDING"}},
    {"QUEUED", {"PD", "PENDING"}},      {"STARTING", {"CF", "CONFIGURING"}},
    {"RUNNING", {"R", "RUNNING"}},      {"STOPPING", {"CG", "COMPLETING"}},
    {"SUSPENDED", {"S", "SUSPENDED"}},  {"PREEMPTED", {"PR", "PREEMPTED"}},
    {"COMPLETED", {"CD", "COMPLETED"}}, {"FAILED", {"F", "FAILED"}},
    {"CANCELLED", {"CA", "CANCELLED"}}, {"TIMED_OUT", {"TO", "TIMEOUT"}},
    {"FAILED", kOutOfMemory},           {"FAILED", kNodeFail},
    {"CANCELLED", kDeadline},
};

// States of Slurm that no job here ever has: filters may name them and find nothing.
constexpr StateName kNever[] = {
    {"BF", "BOOT_FAIL"}, {"RD", "RESV_DEL_HOLD"}, {"RF", "REQUEUE_FED"}, {"RH", "REQUEUE_HOLD"},
    {"RQ", "REQUEUED"},  {"RS", "RESIZING"},      {"RV", "REVOKED"},     {"SE", "SPECIAL_EXIT"},
    {"SI", "SIGNALING"}, {"SO", "STAGE_OUT"},     {"ST", "STOPPED"},
};

std::string upper(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
  });
  return result;
}

const Json* latest_attempt(const Json& job) {
  const Json& attempts = cli::list_at(job, "attempts");
  return attempts.empty() ? nullptr : &attempts.back();
}

}  // namespace

StateName state_of(const Json& job) {
  const std::string state = text_at(job, "state");
  if (state == "FAILED") {
    if (text_at(job, "reason") == "OUT_OF_MEMORY") return kOutOfMemory;
    if (!text_at(job, "lost").empty()) return kNodeFail;
  }
  if (state == "CANCELLED" && text_at(job, "reason") == "DEADLINE") return kDeadline;
  const auto row = std::ranges::find(kStates, std::string_view(state), &StateRow::platform);
  return row == std::end(kStates) ? StateName{"?", "UNKNOWN"} : row->slurm;
}

std::string array_task_id(const Json& job) {
  return cli::shown_id(job);
}

StateName recorded_state_of(const Json& job) {
  const StateName state = state_of(job);
  if (state.code == "CF") return {"PD", "PENDING"};
  if (state.code == "CG") return {"R", "RUNNING"};
  return state;
}

std::optional<std::vector<std::string>> platform_states(std::string_view name) {
  const std::string wanted = upper(name);
  std::vector<std::string> states;
  for (const StateRow& row : kStates) {
    if (row.slurm.code == wanted || row.slurm.name == wanted) states.emplace_back(row.platform);
  }
  const bool is_known = !states.empty() || std::ranges::any_of(kNever, [&](const StateName& state) {
    return state.code == wanted || state.name == wanted;
  });
  return is_known ? std::optional(states) : std::nullopt;
}

bool is_in_state(const StateName& state, const std::vector<std::string>& names) {
  return std::ranges::any_of(names, [&](const std::string& name) {
    const std::string wanted = upper(name);
    return wanted == state.code || wanted == state.name;
  });
}

bool has_ended(const Json& job) {
  return cli::is_ended_state(text_at(job, "state"));
}

std::string reason_of(const Json& job) {
  constexpr std::pair<std::string_view, std::string_view> kWaiting[] = {
      {"NO_CAPACITY", "Resources"},
      {"PRIORITY", "Priority"},
      {"BACKOFF", "BeginTime"},
      {"HELD", "JobHeldUser"},
      {"HELD_BY_USER", "JobHeldUser"},
      {"HELD_BY_ADMINISTRATOR", "JobHeldAdmin"},
      {"NO_NODE", "ReqNodeNotAvail"},
      {"NOT_EVALUATED", "None"},
      {"HELD_BY_PLATFORM", "JobHeldAdmin"},
      {"PREEMPTING", "Resources"},
      {"BEGIN_TIME", "BeginTime"},
      {"DEPENDENCY", "Dependency"},
      {"ARRAY_LIMIT", "JobArrayTaskLimit"}};
  if (const std::string code = text_at(cli::object_at(job, "wait_reason"), "code"); !code.empty()) {
    const auto row = std::ranges::find(kWaiting, std::string_view(code),
                                       &std::pair<std::string_view, std::string_view>::first);
    return row == std::end(kWaiting) ? code : std::string(row->second);
  }
  const StateName state = state_of(job);
  if (state.code == "DL") return "DeadLine";
  if (text_at(job, "reason") == "DEPENDENCY_FAILED") return "DependencyNeverSatisfied";
  if (state.code == "TO") return "TimeLimit";
  if (state.code == "OOM") return "OutOfMemory";
  if (state.code == "NF") return "NodeDown";
  if (text_at(job, "reason") == "LAUNCH_FAILED") return "JobLaunchFailure";
  if (state.code == "F") return "NonZeroExitCode";
  return "None";
}

std::string node_of(const Json& job) {
  const Json* attempt = latest_attempt(job);
  const auto nodes =
      attempt != nullptr ? cli::texts_at(*attempt, "nodes") : std::vector<std::string>();
  const std::string_view code = state_of(job).code;
  return nodes.empty() || code == "PD" || code == "PR" ? std::string() : nodes.front();
}

std::string partition_of(const Json& job) {
  const std::string label = text_at(cli::object_at(cli::spec_of(job), "labels"), "slurm.partition");
  return label.empty() ? std::string(kPartition) : label;
}

std::string comment_of(const Json& job) {
  return text_at(cli::spec_of(job), "comment");
}

std::string gpus_asked(const Json& job) {
  const std::uint64_t count = cli::total_gpus(cli::spec_of(job));
  if (count == 0) return {};
  const auto types = cli::texts_at(cli::spec_of(job), "gpu_types");
  return types.size() == 1 ? fmt::format("gpu:{}:{}", types.front(), count)
                           : fmt::format("gpu:{}", count);
}

std::optional<std::int64_t> cpus_of(const Json& job) {
  const auto held = cli::integer_at(job, "cpus");
  return held ? held : cli::integer_at(cli::spec_of(job), "cpus");
}

std::optional<std::int64_t> memory_of(const Json& job) {
  const auto held = cli::integer_at(job, "memory_bytes");
  return held ? held : cli::integer_at(cli::spec_of(job), "memory_bytes");
}

std::string trackable(const Json& job) {
  std::string text;
  if (const auto cpus = cpus_of(job)) text += fmt::format("cpu={},", *cpus);
  if (const auto memory = memory_of(job)) text += fmt::format("mem={},", slurm_memory(*memory));
  text += "node=1";
  if (const auto gpus = cli::total_gpus(cli::spec_of(job)); gpus > 0)
    text += fmt::format(",gres/gpu={}", gpus);
  return text;
}

base::Duration run_time(const Json& job, base::Instant now) {
  const auto started = cli::time_at(job, "started_at");
  if (!started) return {};
  return cli::time_at(job, "ended_at").value_or(now) - *started;
}

base::Duration time_limit(const Json& job) {
  return base::milliseconds(static_cast<std::int64_t>(
      cli::number_at(cli::spec_of(job), "time_limit_seconds").value_or(0) * 1000));
}

std::string slurm_time(const std::optional<base::Instant>& at, std::string_view none) {
  if (!at) return std::string(none);
  const std::time_t seconds = at->unix_ns() / 1'000'000'000;
  std::tm parts{};
  ::localtime_r(&seconds, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts)};
}

std::string exit_and_signal(const Json& job) {
  const auto signal = api::signal_number(text_at(job, "signal"));
  return fmt::format("{}:{}", cli::integer_at(job, "exit_code").value_or(0), signal.value_or(0));
}

std::string slurm_memory(std::int64_t bytes) {
  constexpr std::int64_t kGiB = base::kGiB.value();
  return bytes % kGiB == 0 && bytes > 0 ? fmt::format("{}G", bytes / kGiB)
                                        : fmt::format("{}M", bytes / base::kMiB.value());
}

cli::Called<std::vector<Json>> list_jobs(cli::Client& client, const std::string& query) {
  std::vector<Json> jobs;
  std::string token;
  do {
    std::string page = query;
    cli::append_query(page, "limit", "10000");
    if (!token.empty()) cli::append_query(page, "page_token", token);
    const auto body = client.get("/v1/jobs?" + page);
    if (!body) return std::unexpected(body.error());
    const auto document = cli::parse_object(*body);
    if (!document)
      return std::unexpected(
          cli::Failure{cli::Failure::Kind::kBadAnswer, "a list is no JSON object", {}, {}});
    for (const Json& job : cli::list_at(*document, "jobs")) jobs.push_back(job);
    token = text_at(*document, "next_page");
  } while (!token.empty());
  std::ranges::reverse(jobs);
  return jobs;
}

cli::Called<std::vector<Json>> get_jobs(cli::Client& client, const std::string& id) {
  const auto members = cli::members_of(client, id);
  if (!members) return std::unexpected(members.error());
  std::vector<Json> jobs;
  for (const std::string& member : *members) {
    auto job = get_job(client, member);
    if (!job) return std::unexpected(job.error());
    jobs.push_back(std::move(*job));
  }
  return jobs;
}

cli::Called<Json> get_job(cli::Client& client, const std::string& id) {
  const auto body = client.get("/v1/jobs/" + cli::percent_encoded(id));
  if (!body) return std::unexpected(body.error());
  auto job = cli::parse_object(*body);
  if (!job)
    return std::unexpected(
        cli::Failure{cli::Failure::Kind::kBadAnswer, "a job is no JSON object", {}, {}});
  return std::move(*job);
}

std::string own_user() {
  const passwd* entry = ::getpwuid(::getuid());
  return entry != nullptr ? entry->pw_name : fmt::format("{}", ::getuid());
}

}  // namespace gpu_platform::shims
