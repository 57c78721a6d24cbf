#include "controller/apply/events.h"

#include "base/check.h"
#include "controller/apply/borrowing.h"
#include "controller/apply/preemption_holds.h"
#include "controller/quota_use.h"
#include "controller/use.h"
#include "scheduling/trial.h"

namespace gpu_platform::controller {

void apply(Application& a, const model::PolicyApplied& event) {
  change_policy(a.state, event.policy, a.at);
  follow_limits(a.state, a.at);
  lend_anew(a);
  update_held_attempts(a);
  // Victims that may not be stopped any more are spared.
  drop_holds_that_outrank_nobody(a);
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
  a.state.books.put(event.reservation);
}

// Its next occurrence was known before.
void apply(Application& a, const model::ReservationChanged& event) {
  CHECK(a.state.books->reservations.find(event.reservation.name) != nullptr);
  if (!event.by.empty()) {
    drop_holds_that(a, [&](const model::PreemptionHold& hold) {
      return scheduling::touches(event.reservation, hold.allocation);
    });
  }
  a.state.books.put(event.reservation);
}

void apply(Application& a, const model::ReservationEnded& event) {
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
