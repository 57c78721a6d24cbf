#pragma once

#include <map>
#include <mutex>

#include "base/units.h"
#include "model/token.h"

namespace gpu_platform::api {

// When tokens were used last, to the minute, since the daemon began. The journal has it less often
// (model::kTokenUseInterval), so that uses cost it next to nothing. Bounded by model::kMaxTokens.
// Safe from any thread.
class TokenUses {
 public:
  // Notes a use. True: it is time that the core is told.
  bool note(const model::Token& token, base::Instant now);
  // Returns the later of what was noted and what the token itself has; unset: none.
  base::Instant last_of(const model::Token& token) const;

 private:
  struct Use {
    base::Instant last;
    base::Instant told;  // to the core
  };
  mutable std::mutex mutex_;
  std::map<model::TokenId, Use> uses_;
};

}  // namespace gpu_platform::api
