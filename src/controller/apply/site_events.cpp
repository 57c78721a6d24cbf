#include "controller/apply/events.h"

#include "base/check.h"
#include "controller/apply/attempt_limits.h"
#include "controller/apply/borrowing.h"
#include "controller/apply/gpu_clocks.h"
#include "controller/apply/preemption_holds.h"
#include "controller/budget_use.h"
#include "controller/quota_use.h"
#include "controller/use.h"
#include "scheduling/trial.h"

namespace gpu_platform::controller {

namespace {

void follow_policy(Application& a, const model::Policy& policy) {
  const bool shares_anew = policy.sharing != a.state.policy->sharing;
  change_policy(a.state, policy, a.at);
  follow_limits(a.state, a.at);
  lend_anew(a);
  update_held_attempts(a);
  // They were held by other rules.
  if (shares_anew) drop_holds_of_parts(a);
  // Victims that may not be stopped any more are spared.
  drop_holds_that_outrank_nobody(a);
  follow_budgets(a.state, a.at);
  shorten_limits(a);
}

void follow_prices(Application& a, const model::Billing& billing) {
  model::PriceBook prices = *a.state.prices;
  prices.follow(billing, a.at);
  a.state.prices = std::move(prices);
}

void follow_teams(Application& a, model::RunTimeTeams run_time) {
  model::TeamSources sources{a.state.teams->configured, std::move(run_time)};
  model::Policy policy = *a.state.policy;
  policy.organisation = model::organisation_in_force(sources);
  const bool is_same = policy.organisation == a.state.policy->organisation;
  a.state.teams = std::move(sources);
  if (!is_same) follow_policy(a, policy);
}

}  // namespace

void apply(Application& a, const model::PolicyApplied& event) {
  model::TeamSources sources{*event.policy.organisation, a.state.teams->run_time};
  model::Policy policy = event.policy;
  if (!sources.run_time.empty()) policy.organisation = model::organisation_in_force(sources);
  a.state.teams = std::move(sources);
  follow_prices(a, *policy.billing);
  follow_policy(a, policy);
}

void apply(Application& a, const model::TeamSet& event) {
  model::RunTimeTeams teams = a.state.teams->run_time;
  teams[event.team.name] = event.team;
  follow_teams(a, std::move(teams));
}

void apply(Application& a, const model::TeamRemoved& event) {
  model::RunTimeTeams teams = a.state.teams->run_time;
  CHECK(teams.erase(event.name) == 1);
  follow_teams(a, std::move(teams));
}

void apply(Application& a, const model::QuotaPeriodBegan& event) {
  begin_period(a.state, event.begin);
}

void apply(Application& a, const model::UseCounted&) {
  count_use(a.state, a.at);
}

// A preemption hold on its GPUs may last into it, so room is made anew, elsewhere or in time.
void apply(Application& a, const model::ReservationMade& event) {
  CHECK(a.state.books->reservations.find(event.reservation.name) == nullptr);
  drop_holds_that(a, [&](const model::PreemptionHold& hold) {
    return scheduling::touches(event.reservation, hold.allocation);
  });
  end_intervals_before_change(a, event.reservation);
  a.state.books.put(event.reservation);
}

// Its next occurrence was known before.
void apply(Application& a, const model::ReservationChanged& event) {
  const model::Reservation* former = a.state.books->reservations.find(event.reservation.name);
  CHECK(former != nullptr);
  end_intervals_before_change(a, *former);
  end_intervals_before_change(a, event.reservation);
  if (!event.by.empty()) {
    drop_holds_that(a, [&](const model::PreemptionHold& hold) {
      return scheduling::touches(event.reservation, hold.allocation);
    });
  }
  a.state.books.put(event.reservation);
}

void apply(Application& a, const model::ReservationEnded& event) {
  const model::Reservation* former = a.state.books->reservations.find(event.name);
  if (former != nullptr) end_intervals_before_change(a, *former);
  a.state.books.erase_reservation(event.name);
}

void apply(Application& a, const model::TokenCreated& event) {
  const model::Token& token = event.token;
  CHECK(token.id.value == a.state.last_token_id + 1);
  a.state.last_token_id = token.id.value;
  a.state.tokens.put(token.id.value, token);
  a.state.token_index.enter(token);
}

void apply(Application& a, const model::TokenRevoked& event) {
  const model::Token* token = a.state.tokens.find(event.token.value);
  CHECK(token != nullptr);
  a.state.token_index.leave(*token);
  a.state.tokens.erase(event.token.value);
}

void apply(Application& a, const model::TokenUsed& event) {
  model::Token* token = a.state.tokens.find_mutable(event.token.value);
  CHECK(token != nullptr);
  token->used_at = event.used_at;
}

}  // namespace gpu_platform::controller
