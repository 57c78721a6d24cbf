#include "bin/event_log.h"

#include "base/parse.h"
#include "base/utc.h"
#include "logging/line.h"
#include "model/job_spec.h"

namespace gpu_platform::bin {

namespace {

// Cleans text that is not ours: the output of a site's program about a user's job, and causes that
// people wrote.
std::string text_of_others(const std::string& text) {
  return logging::one_line(text, 1024);
}

// A line about a job counts for its owner.
class Owners {
 public:
  Owners(const controller::Snapshot& snapshot, const controller::DepartedJobs& departed)
      : snapshot_(snapshot), departed_(departed) {}

  logging::Source of(model::JobId id) const {
    const model::Job* job = snapshot_.jobs.find(id.value);
    if (job == nullptr) job = departed_.find(id);
    return job != nullptr ? logging::of_user(job->spec->uid)
                          : logging::Source{"jobs that have left", true};
  }

 private:
  const controller::Snapshot& snapshot_;
  const controller::DepartedJobs& departed_;
};

void log_budget(logging::Log& log, std::uint64_t seq, const model::BudgetSet& set) {
  const model::Budget& budget = set.budget;
  const auto source = logging::of_platform("events of budgets");
  const std::string whose = fmt::format("budget of {}={}", to_string(budget.key.holder),
                                        logging::quoted(budget.key.name));
  log.info(source, "event={} {} amount={} period={} at_limit={} set by={}", seq, whose,
           base::written(budget.amount), to_string(budget.period), to_string(budget.act),
           logging::quoted(set.by));
  if (!budget.over.until.is_set()) return;
  log.info(source, "event={} {} overridden until={} by={} why={}", seq, whose,
           base::utc(budget.over.until), logging::quoted(budget.over.by),
           logging::quoted(budget.over.why, 1024));
}

// The levels that budgets passed with the event.
void log_levels(logging::Log& log, const controller::Snapshot& snapshot,
                const model::EventRecord& record) {
  for (const auto& [key, state] : *snapshot.budgets) {
    if (state.level_since != record.at) continue;
    log.info(logging::of_platform("levels of budgets"),
             "event={} budget of {}={} level={} spent={} amount={}", record.seq.value,
             to_string(key.holder), logging::quoted(key.name), to_string(state.level),
             base::written(state.counted), base::written(state.budget.amount));
  }
}

// Returns whether it is an event of money.
bool log_money(logging::Log& log, const controller::Snapshot& snapshot,
               const model::EventRecord& record) {
  const std::uint64_t seq = record.seq.value;
  if (const auto* price = std::get_if<model::PriceSet>(&record.event)) {
    log.info(logging::of_platform("events of prices"),
             "event={} price of type={} node={} per_gpu_hour={} set by={}", seq,
             logging::quoted(price->price.gpu_type), logging::quoted(price->price.node),
             base::written(price->price.per_hour), logging::quoted(price->by));
  } else if (const auto* withdrawn = std::get_if<model::PriceWithdrawn>(&record.event)) {
    log.info(logging::of_platform("events of prices"), "event={} price={} withdrawn by={}", seq,
             withdrawn->id, logging::quoted(withdrawn->by));
  } else if (const auto* corrected = std::get_if<model::LedgerCorrected>(&record.event)) {
    log.info(logging::of_platform("corrections of the ledger"),
             "event={} ledger corrected user={} team={} project={} amount={} by={} text={}", seq,
             logging::quoted(corrected->user), logging::quoted(corrected->team),
             logging::quoted(corrected->project), base::written(corrected->amount),
             logging::quoted(corrected->by), logging::quoted(corrected->text, 1024));
    log_levels(log, snapshot, record);
  } else if (const auto* set = std::get_if<model::BudgetSet>(&record.event)) {
    log_budget(log, seq, *set);
  } else if (const auto* removed = std::get_if<model::BudgetRemoved>(&record.event)) {
    log.info(logging::of_platform("events of budgets"), "event={} budget of {}={} removed by={}",
             seq, to_string(removed->key.holder), logging::quoted(removed->key.name),
             logging::quoted(removed->by));
  } else if (std::holds_alternative<model::BudgetsCounted>(record.event)) {
    log_levels(log, snapshot, record);
  } else {
    return false;
  }
  return true;
}

void log_event(logging::Log& log, const Owners& owners, const controller::Snapshot& snapshot,
               const model::EventRecord& record) {
  if (log_money(log, snapshot, record)) return;
  const std::uint64_t seq = record.seq.value;
  if (const auto* ended = std::get_if<model::AttemptEnded>(&record.event);
      ended != nullptr && ended->reason == model::EndReason::kPrologFailed) {
    log.warn(owners.of(ended->attempt.job), "event={} job={} attempt={} not started: {}", seq,
             ended->attempt.job.value, ended->attempt.attempt, text_of_others(ended->detail));
  } else if (const auto* released = std::get_if<model::AttemptReleased>(&record.event);
             released != nullptr && !released->epilog_failure.empty()) {
    log.warn(owners.of(released->attempt.job), "event={} job={} attempt={} the site's epilog: {}",
             seq, released->attempt.job.value, released->attempt.attempt,
             text_of_others(released->epilog_failure));
  } else if (const auto* change = std::get_if<model::TaintChanged>(&record.event)) {
    const std::uint64_t node = change->node.value;
    const auto source =
        logging::of_platform(change->gpu ? fmt::format("events of GPU {}:{}", node, *change->gpu)
                                         : fmt::format("events of node {}", node));
    const std::string gpu = change->gpu ? fmt::format(" gpu={}", *change->gpu) : std::string();
    log.info(source, "event={} node_id={}{} party={} effect={} cause={} by={}", seq, node, gpu,
             to_string(change->taint.source),
             change->is_lifted ? "LIFTED" : to_string(change->taint.effect),
             logging::quoted(change->taint.text, 1024), logging::quoted(change->taint.by));
  } else if (const auto* seen = std::get_if<model::EvidenceRecorded>(&record.event)) {
    const model::Evidence& piece = seen->evidence;
    const std::uint64_t node = seen->node.value;
    const std::string gpu = seen->gpu ? fmt::format(" gpu={}", *seen->gpu) : std::string();
    log.info(logging::of_platform(fmt::format("evidence of node {}", node)),
             "event={} node_id={}{} evidence={} code={} count={}{} text={}", seq, node, gpu,
             to_string(piece.kind), piece.code, piece.count, piece.is_over ? " over" : "",
             logging::quoted(piece.text, 256));
  } else if (const auto* withheld = std::get_if<model::VerdictWithheld>(&record.event);
             withheld != nullptr && !withheld->text.empty()) {
    log.warn(logging::of_platform(fmt::format("verdicts of node {}", withheld->gpu.node.value)),
             "event={} node_id={} gpu={} health does nothing: {}", seq, withheld->gpu.node.value,
             withheld->gpu.index, logging::quoted(withheld->text, 1024));
  } else if (const auto* team = std::get_if<model::TeamSet>(&record.event)) {
    log.info(logging::of_platform("events of teams"), "event={} team={} set by={}", seq,
             logging::quoted(team->team.name), logging::quoted(team->team.set_by));
  } else if (const auto* removed = std::get_if<model::TeamRemoved>(&record.event)) {
    log.info(logging::of_platform("events of teams"), "event={} team={} removed by={}", seq,
             logging::quoted(removed->name), logging::quoted(removed->by));
  } else if (const model::JobId job = model::job_of(record.event); job.valid()) {
    log.write(spdlog::level::debug, owners.of(job), "event={} kind={} job={}", seq,
              model::name_of(record.event), job.value);
  } else if (std::holds_alternative<model::CallAudited>(record.event)) {
    // The audit trail has it, with all that there is to tell.
    log.write(spdlog::level::debug, logging::of_platform("audited calls"), "event={} kind={}", seq,
              model::name_of(record.event));
  } else {
    const std::string kind(model::name_of(record.event));
    log.info(logging::of_platform("events of kind " + kind), "event={} kind={}", seq, kind);
  }
}

}  // namespace

void EventLog::published(const std::shared_ptr<const controller::Snapshot>& snapshot,
                         std::span<const model::EventRecord> events,
                         const controller::DepartedJobs& departed) {
  const Owners owners(*snapshot, departed);
  for (const model::EventRecord& record : events) log_event(log_, owners, *snapshot, record);
}

}  // namespace gpu_platform::bin
