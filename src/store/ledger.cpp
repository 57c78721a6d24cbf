#include "store/ledger.h"

namespace gpu_platform::store {

bool is_wanted(const LedgerQuery& query, const model::LedgerLine& line) {
  const bool is_of_user = line.kind != model::LedgerKind::kRest && line.user == query.user;
  if (!query.user.empty() && !is_of_user) return false;
  const bool is_moment = line.kind == model::LedgerKind::kCorrection || line.to <= line.from;
  if (is_moment) return line.from >= query.from && line.from < query.to;
  return line.from < query.to && line.to > query.from;
}

}  // namespace gpu_platform::store
