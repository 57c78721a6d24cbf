#include "health/evidence_file/replay_json.h"

#include <nlohmann/json.hpp>

#include "base/utc.h"

namespace gpu_platform::health {

namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson time_of(base::Instant at) {
  return at.is_set() ? OrderedJson(base::utc(at)) : OrderedJson();
}

std::string text_of(const OrderedJson& value) {
  return value.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

OrderedJson gpu_json(const ReplayedGpu& gpu) {
  OrderedJson entry;
  entry["gpu"] = gpu.gpu;
  entry["node"] = gpu.node;
  entry["gpu_type"] = gpu.type.empty() ? OrderedJson() : OrderedJson(gpu.type);
  entry["taken_out"] = gpu.taken_out_at.is_set();
  entry["taken_out_at"] = time_of(gpu.taken_out_at);
  entry["taken_out_action"] =
      gpu.taken_out_at.is_set() ? OrderedJson(to_string(gpu.taken_out_by.action)) : OrderedJson();
  entry["taken_out_rule"] =
      gpu.taken_out_at.is_set() ? OrderedJson(gpu.taken_out_by.rule) : OrderedJson();
  entry["is_out"] = gpu.is_out;
  entry["action"] = to_string(gpu.verdict.action);
  entry["class"] = to_string(gpu.verdict.fault);
  entry["confidence_percent"] = gpu.verdict.confidence_percent;
  entry["rule"] = gpu.verdict.rule.empty() ? OrderedJson() : OrderedJson(gpu.verdict.rule);
  entry["text"] = gpu.verdict.text;
  entry["next"] = gpu.verdict.next;
  entry["reasons"] = gpu.verdict.reasons;
  OrderedJson history = OrderedJson::array();
  for (const ReplayedChange& change : gpu.history) {
    OrderedJson each;
    each["at"] = time_of(change.at);
    each["action"] = to_string(change.action);
    each["rule"] = change.rule.empty() ? OrderedJson() : OrderedJson(change.rule);
    each["text"] = change.text;
    history.push_back(std::move(each));
  }
  entry["history"] = std::move(history);
  entry["evidence"] = gpu.lines;
  return entry;
}

OrderedJson job_json(const ReplayedJob& job) {
  OrderedJson entry;
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
  OrderedJson document;
  document["gpus"] = OrderedJson::array();
  for (const ReplayedGpu& gpu : replay.gpus) document["gpus"].push_back(gpu_json(gpu));
  document["jobs"] = OrderedJson::array();
  for (const ReplayedJob& job : replay.jobs) document["jobs"].push_back(job_json(job));
  document["breaker"] = OrderedJson::array();
  for (const StoppedAct& act : replay.breaker) {
    OrderedJson entry;
    entry["at"] = time_of(act.at);
    entry["gpu"] = act.gpu;
    entry["text"] = act.text;
    document["breaker"].push_back(std::move(entry));
  }
  document["notes"] = replay.notes;
  return text_of(document);
}

std::string rules_json(const Rules& rules, std::string_view gpu_type, std::string_view node) {
  OrderedJson document;
  document["profile"] = to_string(rules.profile());
  document["gpu_type"] = gpu_type.empty() ? OrderedJson() : OrderedJson(gpu_type);
  document["node"] = node.empty() ? OrderedJson() : OrderedJson(node);
  document["rules"] = OrderedJson::array();
  for (const Rule& row : rules.rows(gpu_type)) {
    const Rule& rule = rules.of(row.name, gpu_type, node);
    OrderedJson entry;
    entry["rule"] = rule.name;
    entry["xid"] = rule.code != 0 ? OrderedJson(rule.code) : OrderedJson();
    entry["what"] = rule.what;
    entry["class"] = to_string(rule.fault);
    entry["action"] = to_string(rule.action);
    entry["repeat"] = rule.repeat == Repeat::kNever  ? OrderedJson()
                      : rule.repeat == Repeat::kJobs ? OrderedJson("OTHER_JOBS")
                                                     : OrderedJson("AGAIN");
    entry["repeated_action"] =
        rule.repeat == Repeat::kNever ? OrderedJson() : OrderedJson(to_string(rule.repeated));
    entry["confidence_percent"] = rule.confidence_percent;
    entry["recovery_action_decides"] = rule.trusts_driver;
    entry["mode"] = to_string(rule.mode);
    entry["source"] = rule.source;
    entry["changed_by"] = rule.changed_by.empty() ? OrderedJson() : OrderedJson(rule.changed_by);
    document["rules"].push_back(std::move(entry));
  }
  return text_of(document);
}

}  // namespace gpu_platform::health
