#include "api/history_question.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "api/call_context.h"
#include "api/convert/gpu_selector.h"
#include "api/gpu_places.h"
#include "api/job_reader.h"
#include "base/suggest.h"
#include "base/utc.h"
#include "model/granted.h"
#include "model/job_spec.h"
#include "telemetry/metric.h"

namespace gpu_platform::api {

namespace {

using telemetry::MetricId;
using telemetry::Of;

constexpr base::Duration kDefaultWindow = base::hours(1);
constexpr base::Duration kMaxWindow = base::hours(24 * 3653);
constexpr std::int64_t kPointsByDefault = 1500;
// The steps that an answer chooses from, and names in errors. In seconds.
constexpr std::array<std::int64_t, 12> kSteps = {5,    10,    30,    60,     300,     900,
                                                 3600, 21600, 86400, 604800, 2592000, 31536000};
constexpr std::int64_t kDefaultStep = 60;

struct Alias {
  std::string_view word;
  std::string_view name;
};
constexpr std::array<Alias, 4> kAliases = {{{"utilization", "utilization_percent"},
                                            {"memory", "memory_used_bytes"},
                                            {"temperature", "temperature_c"},
                                            {"power", "power_watts"}}};
constexpr std::array<std::string_view, 2> kHostDefaults = {"cpu_percent", "memory_available_bytes"};

std::string_view full_name(std::string_view word) {
  const auto alias = std::ranges::find(kAliases, word, &Alias::word);
  return alias == kAliases.end() ? word : alias->name;
}

base::Status unknown_metric(const std::string& word) {
  std::vector<std::string_view> known = {kGpusAllocated};
  for (const Alias& alias : kAliases) known.push_back(alias.word);
  for (const telemetry::Metric& metric : telemetry::metrics()) {
    if (metric.of != Of::kUse) known.push_back(metric.name);
  }
  return base::invalid("metric", fmt::format("metric: there is no metric '{}'{}", word,
                                             base::did_you_mean(word, known)));
}

void add_once(std::vector<MetricId>& metrics, MetricId metric) {
  if (std::ranges::find(metrics, metric) == metrics.end()) metrics.push_back(metric);
}

base::Status put_default_metrics(HistoryQuestion& out) {
  if (!out.team.empty()) {
    out.wants_allocated = true;
    add_once(out.gpu_metrics, *telemetry::metric_named(Of::kGpu, "utilization_percent"));
    return {};
  }
  for (const Alias& alias : kAliases) {
    add_once(out.gpu_metrics, *telemetry::metric_named(Of::kGpu, alias.name));
  }
  for (const std::string_view name : kHostDefaults) {
    add_once(out.host_metrics, *telemetry::metric_named(Of::kHost, name));
  }
  return {};
}

base::Status put_metrics(const v1::QueryHistoryRequest& request, HistoryQuestion& out) {
  if (request.metric().empty()) return put_default_metrics(out);
  for (const std::string& word : request.metric()) {
    const std::string_view name = full_name(word);
    const auto of_gpu = telemetry::metric_named(Of::kGpu, name);
    const auto of_host = telemetry::metric_named(Of::kHost, name);
    const bool is_allocated = name == kGpusAllocated && !out.team.empty();
    if (!of_gpu && !of_host && !is_allocated) return unknown_metric(word);
    if (!of_gpu && of_host && request.node().empty()) {
      return base::invalid(
          "metric", fmt::format("metric: {} is measured of hosts alone: ask for a node", name));
    }
    if (!out.team.empty() && !is_allocated &&
        (!of_gpu || telemetry::metric(*of_gpu).kind == telemetry::MetricKind::kCounter)) {
      return base::invalid("metric", fmt::format("metric: {} cannot be told of a team", name));
    }
    if (of_gpu) add_once(out.gpu_metrics, *of_gpu);
    if (of_host) add_once(out.host_metrics, *of_host);
    if (is_allocated) out.wants_allocated = true;
  }
  return {};
}

// Exactly one kind of thing.
base::Status check_kinds(const v1::QueryHistoryRequest& request) {
  const int kinds = static_cast<int>(!request.gpu().empty() || !request.gpu_id().empty()) +
                    static_cast<int>(!request.node().empty()) +
                    static_cast<int>(!request.job().empty()) +
                    static_cast<int>(!request.team().empty());
  if (kinds == 1) return {};
  return base::invalid("gpu", kinds == 0 ? "gpu, gpu_id, node, job, team: say whose history"
                                         : "gpu, gpu_id, node, job, team: give one kind of them");
}

base::Status put_step(const v1::QueryHistoryRequest& request, HistoryQuestion& out) {
  if (request.has_step_seconds() && request.has_window_seconds()) {
    return base::invalid("window_seconds",
                         "window_seconds: is the same as step_seconds: give one of them");
  }
  if (request.has_step_seconds() || request.has_window_seconds()) {
    const bool is_step = request.has_step_seconds();
    const double seconds = is_step ? request.step_seconds() : request.window_seconds();
    if (seconds > 0 && seconds < 1) {
      const std::string field = is_step ? "step_seconds" : "window_seconds";
      return base::invalid(field, fmt::format("{}: must be 0, or at least 1", field));
    }
    out.step = base::nanoseconds(std::llround(seconds * 1e9));
    return {};
  }
  for (const std::int64_t step : kSteps) {
    if (step < kDefaultStep) continue;
    out.step = base::seconds(step);
    if ((out.to - out.from).value() / out.step.value() <= kPointsByDefault) break;
  }
  return {};
}

// `earliest`: where the window begins unless it is said.
base::Status put_window(const v1::QueryHistoryRequest& request, base::Instant now,
                        std::optional<base::Instant> earliest, base::Instant latest,
                        HistoryQuestion& out) {
  out.to = request.has_to() ? std::min(to_model(request.to()), now) : latest;
  if (request.has_from()) {
    out.from = to_model(request.from());
  } else {
    out.from = earliest && *earliest < out.to ? *earliest : out.to + kDefaultWindow * -1;
  }
  if (out.from >= now) {
    return base::invalid("from", fmt::format("from: {} lies in the future", base::utc(out.from)));
  }
  if (out.from >= out.to) {
    return base::invalid("from", fmt::format("from: {} is not before the end of the window, {}",
                                             base::utc(out.from), base::utc(out.to)));
  }
  if (out.to - out.from > kMaxWindow) {
    return base::invalid("from", "from: the window is longer than ten years");
  }
  return {};
}

base::Status put_percentiles(const v1::QueryHistoryRequest& request, HistoryQuestion& out) {
  for (const double percentile : request.percentile()) {
    // Not a number is refused, too.
    if (!(percentile > 0 && percentile <= 100)) {
      return base::invalid("percentile", "percentile: must be above 0 and at most 100");
    }
    out.percentiles.push_back(percentile);
  }
  return {};
}

// ---- the things

AskedThing gpu_thing(const std::string& uuid, const HistoryQuestion& question) {
  AskedThing thing;
  thing.subject.uuid = uuid;
  thing.from = question.from;
  thing.to = question.to;
  return thing;
}

AskedThing gpu_thing(const model::Node& node, std::uint32_t index,
                     const HistoryQuestion& question) {
  AskedThing thing = gpu_thing(node.gpus[index].info.uuid, question);
  thing.node = node.name;
  thing.index = index;
  return thing;
}

base::Status add_gpus(const v1::QueryHistoryRequest& request, const controller::Snapshot& snapshot,
                      HistoryQuestion& out) {
  std::set<std::string> seen;
  for (const std::string& place : request.gpu()) {
    TRY_ASSIGN(const model::GpuSelector which, parse_gpu_place(place));
    TRY_ASSIGN(const FoundGpu found, find_gpu(snapshot, which));
    if (!seen.insert(found.info().uuid).second) continue;
    out.things.push_back(gpu_thing(*found.node, found.index, out));
  }
  for (const std::string& uuid : request.gpu_id()) {
    if (!seen.insert(uuid).second) continue;
    // One that has left the cluster may have a history.
    const auto found = find_gpu(snapshot, {.uuid = uuid});
    out.things.push_back(found ? gpu_thing(*found->node, found->index, out) : gpu_thing(uuid, out));
  }
  return {};
}

base::Status add_nodes(const v1::QueryHistoryRequest& request, const controller::Snapshot& snapshot,
                       HistoryQuestion& out) {
  std::set<std::string> seen;
  for (const std::string& name : request.node()) {
    if (!seen.insert(name).second) continue;
    TRY_ASSIGN(const model::Node* node, find_node(snapshot, name, "node"));
    AskedThing host;
    host.subject = {.of = Of::kHost, .node = name};
    host.from = out.from;
    host.to = out.to;
    host.node = name;
    out.things.push_back(std::move(host));
    for (std::uint32_t i = 0; i < node->gpus.size(); ++i) {
      out.things.push_back(gpu_thing(*node, i, out));
    }
  }
  return {};
}

// The GPUs of an attempt while it had them, as far as that lies in the window.
void add_attempt(const model::Job& job, const model::Attempt& attempt,
                 const controller::Snapshot& snapshot, HistoryQuestion& out) {
  if (!attempt.started_at.is_set()) return;
  const base::Instant from = std::max(attempt.started_at, out.from);
  const base::Instant to = attempt.ended_at.is_set() ? std::min(attempt.ended_at, out.to) : out.to;
  if (from >= to) return;
  const model::Granted granted = model::is_of(*attempt.granted, attempt.allocation)
                                     ? *attempt.granted
                                     : model::granted_of(attempt.allocation, snapshot.nodes);
  for (std::size_t n = 0; n < granted.size(); ++n) {
    const auto& grants = attempt.allocation.nodes[n].grants;
    for (std::size_t i = 0; i < grants.size(); ++i) {
      if (granted[n].gpus[i].uuid.empty()) continue;
      AskedThing thing = gpu_thing(granted[n].gpus[i].uuid, out);
      thing.from = from;
      thing.to = to;
      thing.node = granted[n].name;
      thing.index = grants[i].gpu_index;
      thing.job = model::name_of(job);
      thing.attempt = {job.id, attempt.number};
      thing.share = grants[i].share;
      out.things.push_back(std::move(thing));
    }
  }
}

base::Status check_team_size(const HistoryQuestion& question) {
  if (question.things.size() <= kMaxTeamGpus) return {};
  return base::invalid(
      "from", fmt::format("from: the team's jobs had GPUs more than {} times in this window: ask "
                          "for a shorter one",
                          kMaxTeamGpus));
}

void add_gpus_of(const model::Job& job, const controller::Snapshot& snapshot,
                 HistoryQuestion& out) {
  for (const model::Attempt& attempt : job.attempts) add_attempt(job, attempt, snapshot, out);
}

bool is_seen(const model::View& view, const model::Caller& caller, const model::JobSpec& spec) {
  return spec.uid == caller.uid || view.sees(model::Sight::kJobs, spec);
}

base::Status add_team(const CallContext& context, const model::Caller& caller,
                      const controller::Snapshot& snapshot, HistoryQuestion& out) {
  const model::View view = context.reader.view_of(caller);
  snapshot.jobs.for_each([&](std::uint64_t, const model::Job& job) {
    if (job.spec->team == out.team && is_seen(view, caller, *job.spec))
      add_gpus_of(job, snapshot, out);
  });
  TRY(check_team_size(out));
  store::ArchiveQuery query;
  query.team = out.team;
  query.ended_since = out.from;
  while (true) {
    TRY_ASSIGN(const std::vector<model::Job> page, context.core.archive.list(query));
    for (const model::Job& job : page) {
      // It may have left the core since the snapshot.
      if (snapshot.jobs.find(job.id.value) != nullptr) continue;
      if (is_seen(view, caller, *job.spec)) add_gpus_of(job, snapshot, out);
    }
    TRY(check_team_size(out));
    if (page.size() < query.limit) return {};
    query.before = page.back().id;
  }
}

// ---- the size

// The number of points that the answer is made of, at most: samples are a second apart or more.
double points_of(const HistoryQuestion& question, base::Duration step) {
  const double seconds = std::max(1.0, static_cast<double>(step.value()) / 1e9);
  double points = 0;
  for (const AskedThing& thing : question.things) {
    const auto& metrics =
        thing.subject.of == Of::kHost ? question.host_metrics : question.gpu_metrics;
    const double window = static_cast<double>((thing.to - thing.from).value()) / 1e9;
    points += static_cast<double>(metrics.size()) * std::ceil(window / seconds);
  }
  if (question.team.empty()) return points;
  // Those of the answer, which has its own limit.
  const double window = static_cast<double>((question.to - question.from).value()) / 1e9;
  const double shown = static_cast<double>(question.gpu_metrics.size()) + 1;
  return points + shown * std::ceil(window / seconds) * kMaxTeamPoints / kMaxHistoryPoints;
}

base::Status check_size(const HistoryQuestion& question) {
  const double limit = question.team.empty() ? kMaxHistoryPoints : kMaxTeamPoints;
  const double points = points_of(question, question.step);
  if (points <= limit) return {};
  std::string advice = "ask for a shorter window, or for less at a time";
  for (const std::int64_t step : kSteps) {
    if (points_of(question, base::seconds(step)) > limit) continue;
    advice = fmt::format("ask for step_seconds={} or more, or for a shorter window", step);
    break;
  }
  return base::invalid("step_seconds",
                       fmt::format("step_seconds: the answer would be made of up to {:.0f} points, "
                                   "and the limit is {:.0f}: {}",
                                   points, limit, advice));
}

base::Result<HistoryQuestion> question_of_job(const v1::QueryHistoryRequest& request,
                                              const CallContext& context,
                                              const model::Caller& caller, base::Instant now) {
  TRY_ASSIGN(const FoundJob found, context.reader.find(caller, request.job()));
  TRY(check_is_one(found));
  const model::Job& job = *found.job;
  HistoryQuestion out;
  std::optional<base::Instant> begin;
  if (!job.attempts.empty() && job.attempts.front().started_at.is_set()) {
    begin = job.attempts.front().started_at;
  }
  const bool has_ended = model::is_ended(job.state) && job.ended_at.is_set();
  TRY(put_window(request, now, begin, has_ended ? std::min(job.ended_at, now) : now, out));
  TRY(put_metrics(request, out));
  add_gpus_of(job, *found.snapshot, out);
  return out;
}

}  // namespace

base::Result<HistoryQuestion> to_question(const v1::QueryHistoryRequest& request,
                                          const CallContext& context, const model::Caller& caller,
                                          base::Instant now) {
  TRY(check_kinds(request));
  HistoryQuestion out;
  if (!request.job().empty()) {
    TRY_ASSIGN(out, question_of_job(request, context, caller, now));
  } else {
    out.team = request.team();
    TRY(put_window(request, now, std::nullopt, now, out));
    TRY(put_metrics(request, out));
    const auto snapshot = context.core.snapshots.snapshot();
    TRY(add_gpus(request, *snapshot, out));
    TRY(add_nodes(request, *snapshot, out));
    if (!out.team.empty()) TRY(add_team(context, caller, *snapshot, out));
  }
  TRY(put_step(request, out));
  TRY(put_percentiles(request, out));
  TRY(check_size(out));
  return out;
}

std::optional<MetricId> metric_of_use(MetricId gpu_metric) {
  return telemetry::metric_named(Of::kUse, telemetry::metric(gpu_metric).name);
}

}  // namespace gpu_platform::api
