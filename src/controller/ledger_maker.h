#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/ids.h"
#include "model/ledger.h"
#include "store/store.h"

namespace gpu_platform::controller {

struct State;

// Fills the gap of the ledger while the journal is replayed: with the lines of events that a
// version without a ledger stored. It puts them in steps. What a killed process has put stays, and
// the next one goes on there. Where there is no gap it writes nothing.
class LedgerMaker {
 public:
  explicit LedgerMaker(store::Journal& journal)
      : journal_(journal), gap_(journal.ledger_gap()), upto_(gap_.after) {}

  // Whether a replay may begin with this snapshot: its state makes the right lines from here on,
  // and lacks none that is due. If the journal has lost its beginning, there is no choice.
  bool may_begin_with(const State& snapshot) const;

  // The lines of each event that is replayed, in the order of the journal.
  base::Status take(model::EventSeq seq, std::vector<model::LedgerLine> lines);
  // At the end of the replay. Returns what a person should know; empty: nothing.
  base::Result<std::string> finish();

  // Something was put, and there is no gap any more.
  bool has_closed_gap() const { return gap_.is_open() && !journal_.ledger_gap().is_open(); }

 private:
  base::Status put();

  store::Journal& journal_;
  const store::LedgerGap gap_;  // at the beginning
  model::EventSeq first_;       // that was replayed, of those in the gap
  model::EventSeq upto_;        // all lines up to this event are put or in batches_
  std::vector<store::LedgerBatch> batches_;
  std::size_t lines_ = 0;   // in batches_
  std::size_t events_ = 0;  // since the last step
  bool has_no_room_ = false;
};

}  // namespace gpu_platform::controller
