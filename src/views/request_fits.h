#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "base/units.h"
#include "model/job.h"
#include "model/wait_reason.h"
#include "scheduling/explain/shortages.h"
#include "scheduling/reservations/reservations.h"
#include "views/snapshot_books.h"

namespace gpu_platform::views {

// Whether a request fits now, and what is missing on how many nodes where it does not.
struct RequestFit {
  model::ResourceRequest request;
  base::Duration runs_for;  // at most, the grace included; zero where nothing is reserved
  std::vector<model::WaitCount> counts;
  std::uint32_t parts = 1;  // of a gang, on a node each
  std::uint32_t gpus = 0;   // of a part
  bool fits = false;
  bool could_hold = false;
  // Without it, and with all others that begin before it, the request would fit.
  std::optional<scheduling::Reserved> in_the_way;
};

// Finds that out once for each class of equal requests.
//
// Ownership: refers to the books, which must outlive it. Thread: one at a time. Cost: all nodes for
// each class, the classes before it for each question.
class RequestFits {
 public:
  explicit RequestFits(SnapshotBooks& books) : books_(&books) {}

  // What is returned stays as long as this.
  const RequestFit& of(const model::JobSpec& spec);

 private:
  using Others = scheduling::Reservations::Others;

  const controller::Snapshot& snapshot() const { return books_->snapshot(); }
  RequestFit find(const model::ResourceRequest& request, base::Duration runs_for);
  void visit(const model::Node& node, Others others, scheduling::ShortageCounter& counter,
             RequestFit& fit) const;
  void place_gang(Others others, RequestFit& fit);
  bool gang_fits(const model::ResourceRequest& request, Others others);

  SnapshotBooks* books_;
  std::deque<RequestFit> known_;
};

}  // namespace gpu_platform::views
