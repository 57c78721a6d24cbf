#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "model/caller.h"

namespace gpu_platform::api {

enum class IdentityKind : std::uint8_t { kCertificate, kOpenId };

// What a credential proves that an authority or an issuer has signed.
struct ProvenIdentity {
  std::vector<std::string> names;  // "email:ada@example.org"
  base::Instant not_after;         // until then it is accepted
  IdentityKind kind = IdentityKind::kCertificate;
  std::string issuer = {};  // of an OpenID Connect token
  std::string claim = {};   // of it that has the name
  // As it says itself, without the skew of clocks that is forgiven. Nothing that is made with it
  // lasts longer.
  base::Instant ends_at = {};
  // Returns whether those who have signed it still count: an authority or a key may leave the site
  // while a connection is open. Asked for each request. Safe from any thread. Null: always.
  std::function<bool(base::Instant now)> is_still_signed = {};
};

// The client at the other end, by the socket's peer credentials or what it has shown.
struct Peer {
  model::Caller caller;
  std::uint32_t gid = 0;
  // False: the user database does not answer, and the name is the number. Calls that depend on the
  // name are refused.
  bool is_name_known = true;
  bool has_account = true;                         // on this machine
  std::shared_ptr<const ProvenIdentity> identity;  // null: it came otherwise
};

// Returns kUnavailable for a caller without a known name at the moment.
base::Status check_named(const Peer& peer);

}  // namespace gpu_platform::api
