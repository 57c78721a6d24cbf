#include <algorithm>
#include <variant>

#include "base/check.h"
#include "controller/apply/events.h"
#include "controller/state.h"

namespace gpu_platform::controller {

namespace {

void forget_expired_requests(State& state) {
  while (!state.expiring_requests.empty()) {
    const auto [expires, key] = state.expiring_requests.first();
    if (expires > state.at) break;
    state.requests.erase(key);
    state.expiring_requests.erase(expires, key);
  }
}

}  // namespace

void apply(State& state, const model::EventRecord& record, Outbox outbox) {
  CHECK(record.seq.value == state.seq.value + 1);
  CHECK(record.at >= state.at || std::holds_alternative<model::StoreRepaired>(record.event));
  state.seq = record.seq;
  state.at = std::max(state.at, record.at);
  if (record.seq.value == 1) state.accounts_since = state.at;
  forget_expired_requests(state);
  Application application{state, state.at, outbox};
  std::visit([&](const auto& event) { apply(application, event); }, record.event);
}

}  // namespace gpu_platform::controller
