#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "api/identity/web_token.h"
#include "api/peer.h"

namespace gpu_platform::api {

// What the bearer tokens of an OpenID Connect issuer prove here. The issuer's keys are read again
// when a token comes, at most every two seconds, so that new keys count without a reload; if they
// cannot be read, those before them count for a day. Safe from any thread. It outlives what it has
// proven, which asks it whether the key still counts.
class WebTokenProver {
 public:
  // Returns the text of the issuer's keys (WebKeys); an error says what cannot be read.
  using ReadKeys = std::function<base::Result<std::string>()>;

  // kFailedPrecondition: the keys cannot be read, or are none.
  static base::Result<std::unique_ptr<WebTokenProver>> make(WebTokenRules rules, ReadKeys read,
                                                            base::Instant now);

  // Errors are those of check_web_token().
  base::Result<ProvenIdentity> prove(std::string_view token, base::Instant now);

 private:
  WebTokenProver(WebTokenRules rules, ReadKeys read)
      : rules_(std::move(rules)), read_(std::move(read)) {}
  base::Status read_keys(base::Instant now);
  struct Current {
    std::shared_ptr<const WebKeys> keys;  // null: none count
    std::uint64_t turn = 0;               // grows when they change
  };
  Current keys_at(base::Instant now);
  std::function<bool(base::Instant)> asking_again(std::string_view token, std::uint64_t turn);

  const WebTokenRules rules_;
  const ReadKeys read_;
  std::mutex mutex_;
  std::shared_ptr<const WebKeys> keys_;
  std::string text_;  // of the keys
  std::uint64_t turn_ = 0;
  base::Instant looked_at_;
  base::Instant read_at_;
};

}  // namespace gpu_platform::api
