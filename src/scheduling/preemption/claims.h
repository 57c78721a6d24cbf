#pragma once

#include <cstdint>
#include <map>

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

  void put(model::Claim claim) {
    ++version_;
    claims_.insert_or_assign(claim.beneficiary, std::move(claim));
  }
  void erase(model::JobId beneficiary) { version_ += claims_.erase(beneficiary); }

  const model::Claim* find(model::JobId beneficiary) const {
    const auto found = claims_.find(beneficiary);
    return found == claims_.end() ? nullptr : &found->second;
  }
  const Map& all() const { return claims_; }
  bool empty() const { return claims_.empty(); }
  // Changes with everything that is told.
  std::uint64_t version() const { return version_; }

  friend bool operator==(const Claims& a, const Claims& b) { return a.claims_ == b.claims_; }

 private:
  Map claims_;
  std::uint64_t version_ = 1;
};

}  // namespace gpu_platform::scheduling
