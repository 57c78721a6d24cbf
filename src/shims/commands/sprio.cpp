#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "client/answer.h"
#include "shims/command_call.h"
#include "shims/options/common_options.h"
#include "shims/text/columns.h"
#include "shims/text/slurm_values.h"
#include "shims/views/job_state.h"
#include "shims/views/job_view.h"

// sprio: what the places of waiting jobs are made of.

namespace gpu_platform::shims {

namespace {

constexpr std::string_view kPrioritySynopsis = "[options]";
constexpr std::string_view kLongPriority =
    "%.15i %9r %.8u %.8o %.10Y %.10S %.10A %.10B %.10F %.10J %.10P %.10n %.10Q %.11N %.20T";
constexpr std::string_view kLongNormalised =
    "%.15i %9r %.8u %.8o %.10y %.10S %.10a %.10b %.10f %.10j %.10p %.10n %.10q %.11N %.20t";

constexpr Option kSprioAlone[] = {
    {"noheader", 'h', Take::kNothing, Rule::kHonoured, "", ""},
    {"jobs", 'j', Take::kValue, Rule::kHonoured, "", ""},
    {"user", 'u', Take::kValue, Rule::kHonoured, "", ""},
    {"partition", 'p', Take::kValue, Rule::kHonoured, "", ""},
    {"long", 'l', Take::kNothing, Rule::kHonoured, "", ""},
    {"norm", 'n', Take::kNothing, Rule::kHonoured, "", ""},
    {"weights", 'w', Take::kNothing, Rule::kHonoured, "", ""},
    {"format", 'o', Take::kValue, Rule::kHonoured, "", ""},
    {"federation", 0, Take::kNothing, Rule::kAccepted, "", ""},
    {"local", 0, Take::kNothing, Rule::kAccepted, "", ""},
    {"sibling", 0, Take::kNothing, Rule::kAccepted, "", ""},
    {"sort", 'S', Take::kValue, Rule::kRefused, "use squeue -S -p", ""},
};
constexpr auto kSprioOptions =
    joined(kSprioAlone, kVerboseOption, kHelpWithoutLetter, kCommonOptions);

// Slurm's name for the class of priority is the QOS.
struct Parts {
  double age = 0;
  double fair_share = 0;
  double size = 0;
  double qos = 0;

  double sum() const { return age + fair_share + size + qos; }
};

// A job, or the weights.
struct PriorityRow {
  const v1::Job* job = nullptr;  // null: the weights
  Parts points;
  Parts factors;
  std::string_view members = {};  // of a QueueEntry
};

// Of the factors, and of their weights.
template <class Told>
Parts parts_of(const Told& told) {
  return {static_cast<double>(told.age()), static_cast<double>(told.fair_share()),
          static_cast<double>(told.size()), static_cast<double>(told.priority())};
}

// If the order is no sum, the class and the number in it stand alone.
PriorityRow row_of(const QueueEntry& entry, const Parts& weights) {
  PriorityRow row{&entry.job, {}, parts_of(entry.job.order_factors()), entry.members};
  row.points = {row.factors.age * weights.age, row.factors.fair_share * weights.fair_share,
                row.factors.size * weights.size, row.factors.qos * weights.qos};
  if (weights.sum() == 0) row.points.qos = std::stod(priority_of(entry.job));
  return row;
}

std::string whole(double points) {
  return fmt::format("{}", std::llround(points));
}

using PriorityText = std::function<std::string(const PriorityRow&)>;

PriorityText points(double Parts::* part) {
  return [part](const PriorityRow& row) { return whole(row.points.*part); };
}
// The weights have no normalised value of their own.
PriorityText factor(double Parts::* part) {
  return [part](const PriorityRow& row) {
    return row.job == nullptr ? whole(row.points.*part) : fmt::format("{:.7f}", row.factors.*part);
  };
}
PriorityText nothing() {
  return [](const PriorityRow&) { return std::string("0"); };
}
PriorityText of_waiting_job(std::string (*text)(const v1::Job&)) {
  return [text](const PriorityRow& row) {
    return row.job == nullptr ? std::string() : text(*row.job);
  };
}

const std::vector<Field<PriorityRow>>& priority_fields() {
  static const std::vector<Field<PriorityRow>> kFields = {
      {'A', "age", "AGE", points(&Parts::age)},
      {'a', "age_n", "AGE", factor(&Parts::age)},
      {'B', "assoc", "ASSOC", nothing()},
      {'b', "assoc_n", "ASSOC", nothing()},
      {'c', "cluster", "CLUSTER", [](const PriorityRow&) { return std::string("gpu-platform"); }},
      {'F', "fairshare", "FAIRSHARE", points(&Parts::fair_share)},
      {'f', "fairshare_n", "FAIRSHARE", factor(&Parts::fair_share)},
      {'i', "jobid", "JOBID",
       [](const PriorityRow& row) {
         return row.job == nullptr ? std::string("Weights") : array_task_id(*row.job, row.members);
       }},
      {'J', "jobsize", "JOBSIZE", points(&Parts::size)},
      {'j', "jobsize_n", "JOBSIZE", factor(&Parts::size)},
      {'N', "nice", "NICE", of_waiting_job([](const v1::Job&) { return std::string("0"); })},
      {'n', "qosname", "QOSNAME", of_waiting_job(qos_of)},
      {'o', "account", "ACCOUNT",
       of_waiting_job([](const v1::Job& job) { return job.spec().team(); })},
      {'P', "partition", "PARTITION", nothing()},
      {'p', "partition_n", "PARTITION", nothing()},
      {'Q', "qos", "QOS", points(&Parts::qos)},
      {'q', "qos_n", "QOS", factor(&Parts::qos)},
      {'r', "partitionname", "PARTITION", of_waiting_job(partition_of)},
      {'S', "site", "SITE",
       [](const PriorityRow& row) { return std::string(row.job == nullptr ? "1" : "0"); }},
      {'T', "tres", "TRES", [](const PriorityRow&) { return std::string(); }},
      {'t', "tres_n", "TRES", [](const PriorityRow&) { return std::string(); }},
      {'u', "user", "USER", of_waiting_job([](const v1::Job& job) { return job.spec().user(); })},
      {'Y', "priority", "PRIORITY",
       [](const PriorityRow& row) {
         return row.job == nullptr ? std::string() : whole(row.points.sum());
       }},
      {'y', "priority_n", "PRIORITY",
       [](const PriorityRow& row) {
         // As in Slurm, it is a part of the largest number of 32 bits.
         return row.job == nullptr ? std::string()
                                   : fmt::format("{:.14f}", row.points.sum() / 4294967295.0);
       }},
  };
  return kFields;
}

// Those whose weight is not zero.
std::string usual_priority_format(bool is_normalised, const Parts& weights) {
  std::string format = is_normalised ? "%.15i %9r %.16y %.10S" : "%.15i %9r %.10Y %.10S";
  const std::pair<double, std::string_view> parts[] = {
      {weights.age, "Aa"}, {weights.fair_share, "Ff"}, {weights.size, "Jj"}, {weights.qos, "Qq"}};
  for (const auto& [weight, letters] : parts) {
    if (weight != 0) format += fmt::format(" %.10{}", letters[is_normalised ? 1 : 0]);
  }
  return format;
}

base::Result<std::vector<Bound<PriorityRow>>> priority_columns(const Settings& settings,
                                                               const Parts& weights) {
  const std::span<const Field<PriorityRow>> known = priority_fields();
  std::string format = usual_priority_format(settings.has("norm"), weights);
  if (settings.has("long")) format = settings.has("norm") ? kLongNormalised : kLongPriority;
  if (settings.has("format")) format = whole_format(settings.value("format"), known);
  TRY_ASSIGN(const auto columns, letter_columns(format));
  return bound(columns, known);
}

bool is_wanted_priority(const v1::Job& job, const Settings& settings) {
  if (state_of(job).code != "PD" || job.state() == v1::JOB_STATE_HELD) return false;
  const std::string ids[] = {job.id(), array_task_id(job), job.array_id()};
  const bool is_named =
      !settings.has("jobs") || std::ranges::any_of(ids, [&](const std::string& id) {
        return is_listed(id, settings.value("jobs"));
      });
  const bool is_users =
      !settings.has("user") || is_listed(job.spec().user(), settings.value("user"));
  return is_named && is_users &&
         (!settings.has("partition") || is_listed(partition_of(job), settings.value("partition")));
}

}  // namespace

std::span<const Option> sprio_options() {
  return kSprioOptions;
}

int sprio(CommandCall& call) {
  const auto given = call.given({kSprioOptions, kPrioritySynopsis});
  if (!given) return given.error();
  const Settings& settings = given->settings;
  auto client = call.client();
  if (!client) return 1;
  const auto body = client->get("/v1/queue?all=true&limit=10000");
  if (!body) return call.fail(body.error());
  const auto queue = client::message_of<v1::GetQueueResponse>(*body);
  if (!queue) return call.fail("the daemon's answer is not a JSON object");
  const Parts weights = parts_of(queue->order_weights());
  const auto columns = priority_columns(settings, weights);
  if (!columns) return call.fail(columns.error());
  std::vector<v1::Job> jobs;
  for (const v1::Job& job : queue->jobs()) {
    if (is_wanted_priority(job, settings)) jobs.push_back(job);
  }
  std::ranges::stable_sort(jobs, {}, [](const v1::Job& job) { return std::stoll(job.id()); });
  const std::vector<QueueEntry> entries = with_joined_members(std::move(jobs));
  std::vector<PriorityRow> rows;
  if (settings.has("weights")) {
    rows.push_back({nullptr, weights, {}, {}});
  } else {
    for (const QueueEntry& entry : entries) rows.push_back(row_of(entry, weights));
  }
  call.console().out(rendered(*columns, rows, !settings.has("noheader")));
  return call.console().out_failed() ? 1 : 0;
}

}  // namespace gpu_platform::shims
