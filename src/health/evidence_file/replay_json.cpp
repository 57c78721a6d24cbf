#include "health/evidence_file/replay_json.h"

#include <nlohmann/json.hpp>

#include "base/utc.h"

namespace gpu_platform::health {

namespace {

using Json = nlohmann::ordered_json;

Json time_of(base::Instant at) {
  return at.is_set() ? Json(base::utc(at)) : Json();
}

std::string text_of(const Json& value) {
  return value.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json gpu_json(const ReplayedGpu& gpu) {
  Json entry;
  entry["gpu"] = gpu.gpu;
  entry["node"] = gpu.node;
  entry["gpu_type"] = gpu.type.empty() ? Json() : Json(gpu.type);
  entry["taken_out"] = gpu.taken_out_at.is_set();
  entry["taken_out_at"] = time_of(gpu.taken_out_at);
  entry["taken_out_action"] = gpu.taken_out_at.is_set() ? Json(to_string(gpu.taken_out_by.action))
                                                        : Json();
  entry["taken_out_rule"] = gpu.taken_out_at.is_set() ? Json(gpu.taken_out_by.rule) : Json();
  entry["is_out"] = gpu.is_out;
  entry["action"] = to_string(gpu.verdict.action);
  entry["class"] = to_string(gpu.verdict.fault);
  entry["confidence_percent"] = gpu.verdict.confidence_percent;
  entry["rule"] = gpu.verdict.rule.empty() ? Json() : Json(gpu.verdict.rule);
  entry["text"] = gpu.verdict.text;
  entry["next"] = gpu.verdict.next;
  entry["reasons"] = gpu.verdict.reasons;
  Json history = Json::array();
  for (const ReplayedChange& change : gpu.history) {
    Json each;
    each["at"] = time_of(change.at);
    each["action"] = to_string(change.action);
    each["rule"] = change.rule.empty() ? Json() : Json(change.rule);
    each["text"] = change.text;
    history.push_back(std::move(each));
  }
  entry["history"] = std::move(history);
  entry["evidence"] = gpu.lines;
  return entry;
}

Json job_json(const ReplayedJob& job) {
  Json entry;
  entry["job"] = job.job;
  entry["user"] = job.user;
  entry["program"] = job.program;
  entry["gpus"] = job.gpus;
  entry["at"] = time_of(job.at);
  entry["failed"] = job.failed;
  entry["charged"] = job.is_charged;
  entry["charged_at_once"] = job.is_charged_at_once;
  entry["class"] = to_string(job.verdict.fault);
  entry["confidence_percent"] = job.verdict.confidence_percent;
  entry["reasons"] = job.verdict.reasons;
  entry["suspect_gpus"] = job.verdict.suspect_gpus;
  return entry;
}

}  // namespace

std::string replay_json(const Replay& replay) {
  Json document;
  document["gpus"] = Json::array();
  for (const ReplayedGpu& gpu : replay.gpus) document["gpus"].push_back(gpu_json(gpu));
  document["jobs"] = Json::array();
  for (const ReplayedJob& job : replay.jobs) document["jobs"].push_back(job_json(job));
  document["breaker"] = Json::array();
  for (const StoppedAct& act : replay.breaker) {
    Json entry;
    entry["at"] = time_of(act.at);
    entry["gpu"] = act.gpu;
    entry["text"] = act.text;
    document["breaker"].push_back(std::move(entry));
  }
  document["notes"] = replay.notes;
  return text_of(document);
}

std::string rules_json(const Rules& rules, std::string_view gpu_type) {
  Json document;
  document["profile"] = to_string(rules.profile());
  document["gpu_type"] = gpu_type.empty() ? Json() : Json(gpu_type);
  document["rules"] = Json::array();
  for (const Rule& rule : rules.rows(gpu_type)) {
    Json entry;
    entry["rule"] = rule.name;
    entry["xid"] = rule.code != 0 ? Json(rule.code) : Json();
    entry["what"] = rule.what;
    entry["class"] = to_string(rule.fault);
    entry["action"] = to_string(rule.action);
    entry["repeat"] = rule.repeat == Repeat::kNever   ? Json()
                      : rule.repeat == Repeat::kJobs ? Json("OTHER_JOBS")
                                                     : Json("AGAIN");
    entry["repeated_action"] =
        rule.repeat == Repeat::kNever ? Json() : Json(to_string(rule.repeated));
    entry["confidence_percent"] = rule.confidence_percent;
    entry["recovery_action_decides"] = rule.trusts_driver;
    entry["mode"] = to_string(rule.mode);
    entry["source"] = rule.source;
    entry["changed_by"] = rule.changed_by.empty() ? Json() : Json(rule.changed_by);
    document["rules"].push_back(std::move(entry));
  }
  return text_of(document);
}

}  // namespace gpu_platform::health
