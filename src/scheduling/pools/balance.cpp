#include "scheduling/pools/balance.h"

#include <algorithm>

#include "base/check.h"

namespace gpu_platform::scheduling {

namespace {

using base::GpuShare;

GpuShare above(GpuShare amount, GpuShare limit) {
  return std::max(GpuShare(), amount - limit);
}

std::uint64_t thousandths(GpuShare gpus) {
  const std::int64_t whole = base::kWholeGpu.value();
  return static_cast<std::uint64_t>((gpus.value() * 1000 + whole - 1) / whole);
}

}  // namespace

PoolAsk pool_ask(const Guarantees& guarantees, const model::Policy& policy,
                 const model::JobSpec& spec) {
  return {holder_of(guarantees, *policy.organisation, spec), gpu_share_of(spec.request),
          model::may_borrow(spec, policy)};
}

PoolBalance::PoolBalance(std::shared_ptr<const Guarantees> guarantees)
    : guarantees_(std::move(guarantees)) {
  for (const auto& [holder, guarantee] : guarantees_->of) lendable_ += guarantee.lend_limit;
}

GpuShare PoolBalance::guarantee_of(const QuotaSubject& holder) const {
  const Guarantee* own = guarantees_->find(holder);
  return own == nullptr ? GpuShare() : own->gpus;
}

PoolBalance::Use PoolBalance::use_of(const QuotaSubject& holder) const {
  const auto found = uses_.find(holder);
  return found == uses_.end() ? Use() : found->second;
}

GpuShare PoolBalance::firm_of(const QuotaSubject& holder) const {
  return use_of(holder).firm;
}

PoolBalance::Sums PoolBalance::sums_of(const QuotaSubject& holder, const Use& use) const {
  const Guarantee* own = guarantees_->find(holder);
  if (own == nullptr) return {use.firm, use.all(), {}};
  return {above(use.firm, own->gpus), above(use.all(), own->gpus),
          std::min(own->lend_limit, above(own->gpus, use.all()))};
}

void PoolBalance::become(const QuotaSubject& holder, const Use& use) {
  const Sums before = sums_of(holder, use_of(holder));
  const Sums after = sums_of(holder, use);
  firm_above_ = firm_above_ - before.firm_above + after.firm_above;
  above_ = above_ - before.above + after.above;
  lendable_ = lendable_ - before.lendable + after.lendable;
  if (use == Use()) {
    uses_.erase(holder);
  } else {
    uses_[holder] = use;
  }
}

void PoolBalance::add(const PoolAsk& held) {
  Use use = use_of(held.holder);
  (held.may_borrow ? use.preemptible : use.firm) += held.gpus;
  become(held.holder, use);
}

void PoolBalance::remove(const PoolAsk& held) {
  Use use = use_of(held.holder);
  GpuShare& part = held.may_borrow ? use.preemptible : use.firm;
  CHECK(part >= held.gpus);
  part -= held.gpus;
  become(held.holder, use);
}

Judgement PoolBalance::judge(const PoolAsk& asked) const {
  if (!is_active() || asked.gpus == GpuShare()) return {};
  const Use use = use_of(asked.holder);
  Use then = use;
  (asked.may_borrow ? then.preemptible : then.firm) += asked.gpus;
  const GpuShare own = guarantee_of(asked.holder);
  if (then.all() <= own) return {};
  const Guarantee* guarantee = guarantees_->find(asked.holder);
  if (guarantee != nullptr && guarantee->borrow_limit &&
      then.all() > own + *guarantee->borrow_limit) {
    return {PoolVerdict::kKeptBack, model::QuotaKind::kBorrowLimit, *guarantee->borrow_limit};
  }
  const Sums before = sums_of(asked.holder, use);
  const Sums after = sums_of(asked.holder, then);
  const GpuShare firm = firm_above_ - before.firm_above + after.firm_above;
  if (firm > firm_above_ && firm > shared()) {
    return {PoolVerdict::kKeptBack, model::QuotaKind::kGuarantee, above(shared(), firm_above_)};
  }
  const GpuShare all = above_ - before.above + after.above;
  const GpuShare most = shared() + (lendable_ - before.lendable + after.lendable);
  if (all > most) {
    return {PoolVerdict::kKeptBack, model::QuotaKind::kLendLimit, above(most, above_)};
  }
  const bool is_shared = !asked.may_borrow || all <= shared();
  return {is_shared ? PoolVerdict::kShared : PoolVerdict::kBorrows, {}, {}};
}

std::optional<model::QuotaExcess> PoolBalance::excess_of(const PoolAsk& asked) const {
  const Judgement found = judge(asked);
  if (found.verdict != PoolVerdict::kKeptBack) return std::nullopt;
  return model::QuotaExcess{asked.holder.holder,
                            asked.holder.name,
                            found.limit,
                            thousandths(use_of(asked.holder).all()),
                            thousandths(asked.gpus),
                            thousandths(found.most),
                            thousandths(guarantee_of(asked.holder))};
}

bool operator==(const PoolBalance& a, const PoolBalance& b) {
  if (a.is_active() != b.is_active()) return false;
  if (a.is_active() && a.guarantees() != b.guarantees()) return false;
  return a.uses_ == b.uses_ && a.firm_above_ == b.firm_above_ && a.above_ == b.above_ &&
         a.lendable_ == b.lendable_;
}

}  // namespace gpu_platform::scheduling
