#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/units.h"
#include "model/evidence.h"

namespace gpu_platform::monitoring {

// Joins equal pieces that follow each other closely, so that a storm of them reaches the core as a
// handful: the first is told at once, the others once in each window, with their count. Pieces are
// equal when GPU, kind, code, job, source and MIG instance are. Cost of a piece: O(log of what is
// open). Pure; one owner.
class EvidenceStorm {
 public:
  static constexpr base::Duration kWindow = base::seconds(10);
  // So many different pieces are joined at a time; what is more is told as it comes.
  static constexpr std::size_t kMaxOpen = 4096;

  struct Piece {
    std::string node;
    std::string gpu_uuid;
    model::Evidence evidence;

    friend bool operator==(const Piece&, const Piece&) = default;
  };

  // Returns the piece if it is to be told now. `boot_ns` is on the boot clock.
  std::optional<Piece> take(Piece piece, std::int64_t boot_ns);
  // Returns what was joined in windows that are over.
  std::vector<Piece> take_due(std::int64_t boot_ns);
  // Ends all windows of the GPU, so that its next piece is told at once. Returns what was joined in
  // them.
  std::vector<Piece> forget(const std::string& node, const std::string& gpu_uuid);

 private:
  using Key = std::tuple<std::string, std::string, model::EvidenceKind, model::EvidenceSource,
                         std::uint32_t, std::uint64_t, std::optional<std::uint32_t>>;
  struct Window {
    std::int64_t opened_ns = 0;
    std::optional<Piece> joined;
  };

  std::map<Key, Window> open_;
  std::int64_t due_ns_ = 0;  // no window ends before
};

}  // namespace gpu_platform::monitoring
