#include "scheduling/pools/lending.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"

namespace gpu_platform::scheduling {

Lending::Lending(Guarantees guarantees)
    : balance_(std::make_shared<const Guarantees>(std::move(guarantees))) {}

// Moves the border between what is the holder's own and what is borrowed to where it belongs.
void Lending::settle(Rows::iterator entry, Changes& changes) {
  auto& [holder, of] = *entry;
  const base::GpuShare most =
      std::max(base::GpuShare(), balance_.guarantee_of(holder) - balance_.firm_of(holder));
  while (of.own > most) {
    --of.first_borrowed;
    of.own -= of.first_borrowed->second;
    ++borrowed_;
    changes.push_back({of.first_borrowed->first.attempt, true});
  }
  while (of.first_borrowed != of.row.end() && of.own + of.first_borrowed->second <= most) {
    of.own += of.first_borrowed->second;
    --borrowed_;
    changes.push_back({of.first_borrowed->first.attempt, false});
    ++of.first_borrowed;
  }
  if (of.row.empty()) rows_.erase(entry);
}

Lending::Changes Lending::add(const Held& held) {
  Changes changes;
  if (!is_active() || held.what.gpus == base::GpuShare()) return changes;
  balance_.add(held.what);
  const auto entry = rows_.try_emplace(held.what.holder).first;
  Preemptible& of = entry->second;
  if (held.what.may_borrow) {
    const auto [place, is_new] =
        of.row.emplace(Age{held.requested_at, held.attempt}, held.what.gpus);
    CHECK(is_new);
    const bool is_later =
        of.first_borrowed != of.row.end() && of.first_borrowed->first < place->first;
    if (is_later) {
      ++borrowed_;
      changes.push_back({held.attempt, true});
    } else {
      of.own += held.what.gpus;
    }
  }
  settle(entry, changes);
  return changes;
}

Lending::Changes Lending::remove(const Held& held) {
  Changes changes;
  if (!is_active() || held.what.gpus == base::GpuShare()) return changes;
  balance_.remove(held.what);
  const auto entry = rows_.try_emplace(held.what.holder).first;
  Preemptible& of = entry->second;
  if (held.what.may_borrow) {
    const auto place = of.row.find({held.requested_at, held.attempt});
    CHECK(place != of.row.end());
    const bool is_borrowed =
        of.first_borrowed != of.row.end() && !(place->first < of.first_borrowed->first);
    if (is_borrowed) {
      --borrowed_;
      if (place == of.first_borrowed) ++of.first_borrowed;
    } else {
      of.own -= place->second;
    }
    of.row.erase(place);
  }
  settle(entry, changes);
  return changes;
}

}  // namespace gpu_platform::scheduling
