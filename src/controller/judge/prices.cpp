#include "controller/judge/prices.h"

namespace gpu_platform::controller {

namespace {

std::unexpected<base::Error> not_yet() {
  return base::fail(base::ErrorCode::kUnimplemented, "not built yet");
}

}  // namespace

base::Result<model::PriceSet> judge_price(const State&, const model::Caller&,
                                          const model::SetPrice&, base::Instant) {
  return not_yet();
}

base::Result<model::PriceWithdrawn> judge_withdrawal(const State&, const model::Caller&,
                                                     const model::WithdrawPrice&, base::Instant) {
  return not_yet();
}

base::Result<model::LedgerCorrected> judge_correction(const State&, const model::Caller&,
                                                      const model::CorrectLedger&, base::Instant) {
  return not_yet();
}

}  // namespace gpu_platform::controller
