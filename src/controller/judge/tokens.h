#pragma once

#include <optional>

#include "base/result.h"
#include "controller/judge/events.h"
#include "controller/state.h"
#include "model/command.h"
#include "store/store.h"

// Tokens: the rights to make and revoke them, and their end by time.

namespace gpu_platform::controller {

// Refused: the token that the caller came with has ended meanwhile.
base::Status check_credential(const State& state, const model::Caller& caller, base::Instant now);

struct TokenMade {
  model::TokenId id;
  std::optional<model::TokenCreated> event;  // none: an earlier request with its id made it
};
base::Result<TokenMade> judge_token(const State& state, const model::Caller& caller,
                                    const model::MakeToken& command, base::Instant now,
                                    store::Headroom headroom);

// Returns the end of the token, and of all that were made with it. Refused for a caller whose own
// token may do less than the other one.
base::Result<Events> judge_revocation(const State& state, const model::Caller& caller,
                                      const model::RevokeToken& command);

// Returns nothing for a use that is no news.
std::optional<model::Event> judge_token_use(const State& state,
                                            const model::RecordTokenUse& command,
                                            store::Headroom headroom);

// Returns the end of the next token whose time is over.
std::optional<model::Event> next_expired_token(const State& state, base::Instant now);

}  // namespace gpu_platform::controller
