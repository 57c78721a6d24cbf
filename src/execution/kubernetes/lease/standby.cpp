#include "execution/kubernetes/lease/standby.h"

#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "execution/kubernetes/caller.h"
#include "kubernetes/client.h"
#include "os/clock.h"

namespace gpu_platform::execution {

namespace {

using kubernetes::Answer;

constexpr base::Duration kCallTimeout = base::seconds(10);  // with one call
constexpr base::Duration kPause = base::milliseconds(500);

LeaseState state_in(const Answer& answer) {
  if (!answer.is_ok()) return {};
  return state_of_lease(nlohmann::json::parse(answer.body, nullptr, false));
}

// A server that is away, or that another try may find in a better state.
bool is_passing(const base::Error& error) {
  return error.code == base::ErrorCode::kUnavailable;
}

class Standby {
 public:
  Standby(const StandbyOptions& options, kubernetes::Client& client)
      : options_(options), client_(client), watch_(options.lease) {}

  base::Result<bool> run() {
    while (true) {
      const base::Status done = is_checked_ ? try_once() : check();
      if (!done && !is_passing(done.error())) return std::unexpected(done.error());
      if (!done) tell(done.error().message);
      if (is_ours_) return true;
      if (!options_.wait(kPause)) return false;
    }
  }

 private:
  base::Status check() {
    const base::Status checked =
        check_access(client_, options_.settings, options_.lease, call_limits());
    is_checked_ = checked.has_value();
    return checked;
  }

  base::Status try_once() {
    Caller caller(client_, call_limits());
    const Answer got = caller.call({.path = lease_path(options_.lease)});
    if (!got.is_ok() && got.status != 404) return failure_of(got, "reading the lease");
    const LeaseState state = state_in(got);
    if (!watch_.is_free(state, os::monotonic_ns())) {
      tell(fmt::format("the lease {}/{} is held by {}", options_.lease.namespace_name,
                       options_.lease.name, state.holder));
      return {};
    }
    const Answer written =
        caller.call(lease_write(options_.lease, state, got.is_ok(), os::wall_now()));
    // A conflict is another's write: the next turn sees whose.
    if (!written.is_ok() && written.status != 409) return failure_of(written, "taking the lease");
    is_ours_ = written.is_ok();
    return {};
  }

  CallLimits call_limits() const { return {kCallTimeout, options_.must_end}; }

  void tell(const std::string& line) {
    if (std::exchange(told_, line) != line) options_.tell(line);
  }

  const StandbyOptions& options_;
  kubernetes::Client& client_;
  LeaseWatch watch_;
  bool is_checked_ = false;
  bool is_ours_ = false;
  std::string told_;
};

}  // namespace

bool LeaseWatch::is_free(const LeaseState& state, std::int64_t now_ns) {
  if (state.holder.empty() || state.holder == terms_.identity) return true;
  std::string seen = state.holder + " " + state.renewed;
  if (seen_ != seen) {
    seen_ = std::move(seen);
    seen_ns_ = now_ns;
  }
  return now_ns - seen_ns_ >= terms_.duration.value();
}

base::Result<bool> stand_by(const StandbyOptions& options) {
  TRY_ASSIGN(const auto client, kubernetes::Client::make(options.access));
  return Standby(options, *client).run();
}

base::Status release_lease(const kubernetes::ClusterAccess& access, const LeaseTerms& terms,
                           base::Duration timeout) {
  TRY_ASSIGN(const auto client, kubernetes::Client::make(access));
  Caller caller(*client, {timeout});
  return give_lease_back(caller, terms);
}

}  // namespace gpu_platform::execution
