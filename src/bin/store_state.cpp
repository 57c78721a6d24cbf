#include "bin/store_state.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "accounting/balance.h"
#include "accounting/live_lines.h"
#include "controller/core.h"
#include "controller/state.h"
#include "execution/process/kept_output.h"
#include "model/job_spec.h"
#include "model/states.h"

namespace gpu_platform::bin {

namespace {

// The core with the state of the source; visit sees each event and its lines.
base::Result<controller::Core> replayed_core(const store::StateSource& source,
                                             const store::VisitMadeLines& visit) {
  controller::Core core;
  if (source.snapshot) {
    TRY_ASSIGN(controller::State state, controller::decode_state(source.snapshot->state));
    core = controller::Core(std::move(state));
  }
  TRY(source.replay([&](const model::EventRecord& record) -> base::Status {
    if (record.seq.value != core.state().seq.value + 1) {
      return base::fail(
          base::ErrorCode::kDataLoss,
          fmt::format("event {} follows event {}", record.seq.value, core.state().seq.value));
    }
    return visit(record.seq, core.replay(record));
  }));
  return core;
}

}  // namespace

base::Result<std::map<std::string, model::JobId>> needed_environments(
    const store::StateSource& source) {
  TRY_ASSIGN(const controller::Core core,
             replayed_core(source, [](auto, auto) { return base::Status{}; }));
  std::map<std::string, model::JobId> needed;
  core.state().jobs.for_each([&](std::uint64_t, const model::Job& job) {
    const std::string& ref = job.spec->environment_ref;
    if (!ref.empty() && !model::is_ended(job.state)) needed.emplace(ref, job.id);
  });
  return needed;
}

base::Status made_lines(const store::StateSource& source, const store::VisitMadeLines& visit) {
  TRY(replayed_core(source, visit));
  return {};
}

base::Result<std::vector<std::string>> unbalanced_books(const store::StateSource& source,
                                                        const store::VisitLedger& visit_all) {
  TRY_ASSIGN(const controller::Core core,
             replayed_core(source, [](auto, auto) { return base::Status{}; }));
  const controller::State& state = core.state();
  const model::Millis now = model::millis_of(state.at);
  std::optional<accounting::Balance> balance;
  TRY(visit_all([&](const model::LedgerLine& line) -> base::Status {
    if (!balance) balance.emplace(accounting::Span{line.to, now}, *state.prices);
    balance->add(line);
    return {};
  }));
  if (!balance) return std::vector<std::string>();
  const accounting::LiveView live{
      state.jobs, {state.nodes, *state.prices, *state.policy}, state.books->reservations.all()};
  for (const model::LedgerLine& line : accounting::live_lines(live, state.at)) balance->add(line);
  return balance->report().differences.named;
}

model::JobId last_job_with_output(const std::string& data_dir) {
  return std::max(execution::last_kept_output(data_dir + "/node"),
                  execution::last_kept_output(data_dir + "/kubernetes"));
}

}  // namespace gpu_platform::bin
