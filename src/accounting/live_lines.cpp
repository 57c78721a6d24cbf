#include "accounting/live_lines.h"

namespace gpu_platform::accounting {

void append_live_lines(const LineTerms& terms, const model::Job& job, base::Instant now,
                       std::vector<model::LedgerLine>& lines) {
  for (const model::Attempt& attempt : job.attempts) {
    if (!attempt.released_at.is_set()) append_lines(terms, job, attempt, now, lines);
  }
}

std::vector<model::LedgerLine> live_lines(const LiveView& view, base::Instant now) {
  std::vector<model::LedgerLine> lines;
  view.jobs.for_each([&](std::uint64_t, const model::Job& job) {
    append_live_lines(view.terms, job, now, lines);
  });
  view.terms.nodes.for_each([&](std::uint64_t, const model::Node& node) {
    for (std::uint32_t index = 0; index < node.gpus.size(); ++index) {
      append_rest_lines(resting_gpu(node, index), view.reservations, view.terms.prices, now, lines);
    }
  });
  return lines;
}

}  // namespace gpu_platform::accounting
