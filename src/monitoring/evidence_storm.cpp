#include "monitoring/evidence_storm.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

namespace gpu_platform::monitoring {

namespace {

using model::Evidence;

void join(Evidence& into, const Evidence& piece) {
  const std::uint64_t count = std::uint64_t{into.count} + piece.count;
  into.count = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(count, std::numeric_limits<std::uint32_t>::max()));
  // Only counters have a value here: it is what was added.
  if (into.value > std::numeric_limits<std::int64_t>::max() - piece.value) {
    into.value = std::numeric_limits<std::int64_t>::max();
  } else {
    into.value += piece.value;
  }
  into.at = std::min(into.at, piece.at);
  into.last = std::max(into.last, piece.last);
}

}  // namespace

std::optional<EvidenceStorm::Piece> EvidenceStorm::take(Piece piece, std::int64_t boot_ns) {
  const Evidence& evidence = piece.evidence;
  Key key{piece.node,    piece.gpu_uuid,     evidence.kind,        evidence.source,
          evidence.code, evidence.job.value, evidence.gpu_instance};
  const auto found = open_.find(key);
  if (found == open_.end()) {
    if (open_.size() < kMaxOpen) {
      open_.emplace(std::move(key), Window{boot_ns, {}});
      if (open_.size() == 1) due_ns_ = boot_ns + kWindow.value();
    }
    return piece;
  }
  std::optional<Piece>& joined = found->second.joined;
  if (joined) {
    join(joined->evidence, evidence);
  } else {
    joined = std::move(piece);
  }
  return std::nullopt;
}

std::vector<EvidenceStorm::Piece> EvidenceStorm::take_due(std::int64_t boot_ns) {
  std::vector<Piece> due;
  if (open_.empty() || boot_ns < due_ns_) return due;
  std::int64_t next = std::numeric_limits<std::int64_t>::max();
  for (auto entry = open_.begin(); entry != open_.end();) {
    Window& window = entry->second;
    if (boot_ns - window.opened_ns >= kWindow.value()) {
      if (!window.joined) {
        entry = open_.erase(entry);
        continue;
      }
      due.push_back(*std::exchange(window.joined, std::nullopt));
      window.opened_ns = boot_ns;
    }
    next = std::min(next, window.opened_ns + kWindow.value());
    ++entry;
  }
  due_ns_ = next;
  return due;
}

std::vector<EvidenceStorm::Piece> EvidenceStorm::forget(const std::string& node,
                                                        const std::string& gpu_uuid) {
  std::vector<Piece> joined;
  auto entry = open_.lower_bound(Key{node, gpu_uuid, {}, {}, 0, 0, std::nullopt});
  while (entry != open_.end() && std::get<0>(entry->first) == node &&
         std::get<1>(entry->first) == gpu_uuid) {
    if (entry->second.joined) joined.push_back(*std::move(entry->second.joined));
    entry = open_.erase(entry);
  }
  return joined;
}

}  // namespace gpu_platform::monitoring
