#include "scheduling/pools/balance.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/check.h"
#include "model/job_spec.h"

namespace gpu_platform::scheduling {

namespace {

using base::GpuShare;

GpuShare above(GpuShare amount, GpuShare limit) {
  return std::max(GpuShare(), amount - limit);
}

}  // namespace

std::uint64_t thousandths_of(base::GpuShare gpus) {
  const std::int64_t whole = base::kWholeGpu.value();
  return static_cast<std::uint64_t>((gpus.value() * 1000 + whole - 1) / whole);
}

PoolAsk pool_ask(const Guarantees& guarantees, const model::Policy& policy,
                 const model::JobSpec& spec, const StopRecord& record) {
  PoolAsk ask{holder_of(guarantees, *policy.organisation, spec), gpu_share_of(spec.request)};
  if (!model::may_borrow(spec, policy) || record.had_others_stopped) return ask;
  ask.is_spared = record.stops >= model::team_rules(policy, spec.team).max_reclaims_per_job;
  ask.may_borrow = !ask.is_spared;
  return ask;
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
  const bool is_too_firm = firm > firm_above_ && firm > shared();
  if (is_too_firm && !asked.is_spared) {
    return {PoolVerdict::kKeptBack, model::QuotaKind::kGuarantee, above(shared(), firm_above_)};
  }
  const GpuShare all = above_ - before.above + after.above;
  const GpuShare most = shared() + (lendable_ - before.lendable + after.lendable);
  if (all > most) {
    return {PoolVerdict::kKeptBack, model::QuotaKind::kLendLimit, above(most, above_)};
  }
  const bool is_shared = asked.may_borrow ? all <= shared() : !is_too_firm;
  return {is_shared ? PoolVerdict::kShared : PoolVerdict::kBorrows, {}, {}};
}

// "team a (4), user ann (2)"; at most kMaxNamed of them.
std::string PoolBalance::guaranteed_to_others(const QuotaSubject& holder) const {
  constexpr std::size_t kMaxNamed = 3;
  std::string names;
  std::size_t named = 0;
  for (const auto& [other, own] : guarantees_->of) {
    if (other == holder || own.gpus == GpuShare()) continue;
    if (named++ == kMaxNamed) return names + " and others";
    names += fmt::format("{}{} {} ({})", names.empty() ? "" : ", ", to_string(other.holder),
                         other.name, own.gpus.value() / base::kWholeGpu.value());
  }
  return names;
}

std::optional<model::QuotaExcess> PoolBalance::excess_of(const PoolAsk& asked) const {
  const Judgement found = judge(asked);
  if (found.verdict != PoolVerdict::kKeptBack) return std::nullopt;
  return model::QuotaExcess{.holder = asked.holder.holder,
                            .name = asked.holder.name,
                            .kind = found.limit,
                            .used = thousandths_of(use_of(asked.holder).all()),
                            .asked = thousandths_of(asked.gpus),
                            .limit = thousandths_of(found.most),
                            .guaranteed = thousandths_of(guarantee_of(asked.holder)),
                            .guaranteed_to = guaranteed_to_others(asked.holder)};
}

bool operator==(const PoolBalance& a, const PoolBalance& b) {
  if (a.is_active() != b.is_active()) return false;
  if (a.is_active() && a.guarantees() != b.guarantees()) return false;
  return a.uses_ == b.uses_ && a.firm_above_ == b.firm_above_ && a.above_ == b.above_ &&
         a.lendable_ == b.lendable_;
}

}  // namespace gpu_platform::scheduling
