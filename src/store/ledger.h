#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "model/ids.h"
#include "model/ledger.h"

namespace gpu_platform::store {

// Which lines of the ledger a reader wants.
struct LedgerQuery {
  // Those that have a moment in common with [from, to). A correction counts at its moment, and so
  // does a line without length.
  model::Millis from = 0;
  model::Millis to = 0;
  std::string user;  // not empty: held lines and corrections of this user alone
  // Valid: none of batches that begin after this event. With that of a snapshot, no line is found
  // of what still runs in the snapshot.
  model::EventSeq upto = {};
};
bool is_wanted(const LedgerQuery& query, const model::LedgerLine& line);

// The reading side of the ledger. A line is found here before a snapshot with what it is about is
// published. Safe from any thread; never blocks the writer.
class Ledger {
 public:
  using Visit = std::function<base::Status(const model::LedgerLine&)>;

  virtual ~Ledger() = default;
  // Calls visit for each line that is wanted, in the order in which they were added, until it
  // returns an error, which is passed on. Cost: the lines of batches that may have some. What visit
  // refers to is valid until it returns. The log of a database grows as long as it takes.
  virtual base::Status visit(const LedgerQuery& query, const Visit& visit) const = 0;
  // The last event whose lines are here. It is that of the journal, but for a store of a version
  // without a ledger, until the lines are made from the journal.
  virtual base::Result<model::EventSeq> ledger_upto() const = 0;
};

}  // namespace gpu_platform::store
