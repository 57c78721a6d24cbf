#include "execution/kubernetes/lease/lease_keeper.h"

#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "os/clock.h"

namespace gpu_platform::execution {

using kubernetes::Answer;

void LeaseKeeper::advance(std::int64_t now_ns) {
  if (is_under_way_ || is_lost_ || now_ns < due_ns_) return;
  due_ns_ = now_ns + terms_.duration.value() / 3;
  is_under_way_ = true;
  read();
}

// A lease that waits behind the requests of thousands of starts is lost to a standby.
void LeaseKeeper::read() {
  kubernetes::Request request{.path = lease_path(terms_), .turn = kubernetes::Turn::kAtOnce};
  client_.send(std::move(request), [this](const Answer& answer) {
    is_under_way_ = false;
    if (!answer.is_ok() && answer.status != 404) return;
    const LeaseState state =
        answer.is_ok() ? state_of_lease(nlohmann::json::parse(answer.body, nullptr, false))
                       : LeaseState();
    if (!state.holder.empty() && state.holder != terms_.identity) return lose(state);
    is_under_way_ = true;
    write(state, answer.is_ok());
  });
}

// A conflict is another's write: the next turn sees whose.
void LeaseKeeper::write(const LeaseState& state, bool is_there) {
  client_.send(lease_write(terms_, state, is_there, os::wall_now()), [this](const Answer& answer) {
    is_under_way_ = false;
    if (answer.status == 409) due_ns_ = 1;
  });
}

void LeaseKeeper::lose(const LeaseState& state) {
  is_lost_ = true;
  on_lost_({base::ErrorCode::kFailedPrecondition,
            fmt::format("another controller, {}, has taken the lease {}/{}", state.holder,
                        terms_.namespace_name, terms_.name),
            {}});
}

}  // namespace gpu_platform::execution
