#include "api/identity/web_token_prover.h"

#include <utility>

namespace gpu_platform::api {

namespace {

constexpr base::Duration kBetweenReads = base::seconds(2);
// A key that the issuer has taken back must not count for ever because its file is gone.
constexpr base::Duration kKeysHold = base::hours(24);

}  // namespace

base::Result<std::unique_ptr<WebTokenProver>> WebTokenProver::make(WebTokenRules rules,
                                                                   ReadKeys read,
                                                                   base::Instant now) {
  std::unique_ptr<WebTokenProver> prover(new WebTokenProver(std::move(rules), std::move(read)));
  TRY(prover->read_keys(now));
  return prover;
}

base::Status WebTokenProver::read_keys(base::Instant now) {
  looked_at_ = now;
  TRY_ASSIGN(std::string text, read_());
  if (keys_ == nullptr || text != text_) {
    auto keys = WebKeys::from_json(text);
    if (!keys) return base::fail(base::ErrorCode::kFailedPrecondition, keys.error().message);
    keys_ = std::make_shared<const WebKeys>(*std::move(keys));
    text_ = std::move(text);
    ++turn_;
  }
  read_at_ = now;
  return {};
}

WebTokenProver::Current WebTokenProver::keys_at(base::Instant now) {
  const std::lock_guard lock(mutex_);
  if (now - looked_at_ >= kBetweenReads || now < looked_at_) {
    // The keys before it stay, for a while.
    (void)read_keys(now);
  }
  return {now - read_at_ < kKeysHold ? keys_ : nullptr, turn_};
}

// The signature is checked once for each set of keys, not for each request.
std::function<bool(base::Instant)> WebTokenProver::asking_again(std::string_view token,
                                                                std::uint64_t turn) {
  struct Known {
    std::mutex mutex;
    std::uint64_t turn = 0;
    bool holds = true;
  };
  const auto known = std::make_shared<Known>();
  known->turn = turn;
  return [this, known, token = std::string(token)](base::Instant now) {
    const Current current = keys_at(now);
    if (current.keys == nullptr) return false;
    const std::lock_guard lock(known->mutex);
    if (known->turn != current.turn) {
      known->turn = current.turn;
      known->holds = check_web_token(token, *current.keys, rules_, now).has_value();
    }
    return known->holds;
  };
}

base::Result<ProvenIdentity> WebTokenProver::prove(std::string_view token, base::Instant now) {
  const auto [keys, turn] = keys_at(now);
  if (keys == nullptr) {
    return base::fail(base::ErrorCode::kUnauthenticated,
                      "the issuer's keys could not be read for a day (access.openid.keys)");
  }
  TRY_ASSIGN(WebToken proven, check_web_token(token, *keys, rules_, now));
  return ProvenIdentity{
      {"openid:" + proven.user}, proven.not_after, IdentityKind::kOpenId,    rules_.issuer,
      rules_.user_claim,         proven.ends_at,   asking_again(token, turn)};
}

}  // namespace gpu_platform::api
