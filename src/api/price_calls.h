#pragma once

#include "api/changing_call.h"
#include "gpu_platform/v1/prices.pb.h"

namespace gpu_platform::api {

struct CallContext;

// What GPUs cost: the calls of PriceService. Safe from any thread.
class PriceCalls {
 public:
  explicit PriceCalls(const CallContext& context) : context_(context) {}

  v1::ListPricesResponse list(const v1::ListPricesRequest& request) const;
  void set(const v1::SetPriceRequest& request, const Peer& peer, Resume resume,
           Done<v1::Price> done) const;
  // The answer is the price as it is then.
  void withdraw(const v1::WithdrawPriceRequest& request, const Peer& peer, Resume resume,
                Done<v1::Price> done) const;
  void correct(const v1::CorrectLedgerRequest& request, const Peer& peer, Resume resume,
               Done<v1::LedgerCorrection> done) const;
  v1::ListInstancesResponse instances(const v1::ListInstancesRequest& request) const;

 private:
  const CallContext& context_;
};

}  // namespace gpu_platform::api
