#pragma once

#include <map>
#include <utility>

#include "model/claim.h"
#include "model/ids.h"

namespace gpu_platform::scheduling {

// What is kept for whom while others are stopped for it. One claim to a job at most; claims never
// overlap.
//
// Ownership: holds copies. Thread: one owner.
class Claims {
 public:
  using Map = std::map<model::JobId, model::Claim>;  // by beneficiary

  void put(model::Claim claim) { claims_.insert_or_assign(claim.beneficiary, std::move(claim)); }
  bool erase(model::JobId beneficiary) { return claims_.erase(beneficiary) > 0; }

  const model::Claim* find(model::JobId beneficiary) const {
    const auto found = claims_.find(beneficiary);
    return found == claims_.end() ? nullptr : &found->second;
  }
  const Map& all() const { return claims_; }
  bool empty() const { return claims_.empty(); }

  friend bool operator==(const Claims&, const Claims&) = default;

 private:
  Map claims_;
};

}  // namespace gpu_platform::scheduling
