#pragma once

#include "base/result.h"
#include "controller/state.h"
#include "model/caller.h"
#include "model/command.h"
#include "model/event.h"

// Judges changes of prices and corrections of the ledger. Only administrators make them.

namespace gpu_platform::controller {

base::Result<model::PriceSet> judge_price(const State& state, const model::Caller& caller,
                                          const model::SetPrice& command, base::Instant now);
base::Result<model::PriceWithdrawn> judge_withdrawal(const State& state,
                                                     const model::Caller& caller,
                                                     const model::WithdrawPrice& command,
                                                     base::Instant now);
base::Result<model::LedgerCorrected> judge_correction(const State& state,
                                                      const model::Caller& caller,
                                                      const model::CorrectLedger& command,
                                                      base::Instant now);

}  // namespace gpu_platform::controller
