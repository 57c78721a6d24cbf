#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/core_access.h"
#include "api/event_hub.h"
#include "api/rest/server.h"
#include "controller/core.h"
#include "store/sqlite/sqlite_store.h"

// A data directory, read and replayed, without what a daemon does beside: nothing is run, probed or
// reconciled, so that all that is seen is what the stored bytes say.

namespace gpu_platform::corpus {

// The state after the last stored event, from the newest snapshot and the events behind it.
base::Result<controller::State> recovered_state(const store::Journal& journal);
// The same from all events, the first on. `before` (may be empty) sees the state before each.
using Before = std::function<void(const controller::State&, const model::EventRecord&)>;
base::Result<controller::State> replayed_state(const store::Journal& journal, const Before& before);

// What the core decides by itself in that state at that time, a line for each event.
std::vector<std::string> decisions_in(const controller::State& state, base::Instant now);

// Judges each command in the state that it began with, and forgets what follows.
class Judge final : public api::CommandSink {
 public:
  Judge(std::string encoded_state, base::Instant now)
      : encoded_state_(std::move(encoded_state)), now_(now) {}
  void submit(model::Command command, Done done) override;

 private:
  const std::string encoded_state_;
  const base::Instant now_;
};

// The API in front of a data directory. Its callers are administrators, for every user that runs
// this. Ownership: refers to the store. Thread: the server's threads read; nothing changes.
class StoredSite {
 public:
  // `now` is the time of its answers; call freeze_time() with it.
  static base::Result<std::unique_ptr<StoredSite>> open(const store::SqliteStore& store,
                                                        base::Instant now, std::string socket_path);
  ~StoredSite();

 private:
  struct Parts;
  explicit StoredSite(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace gpu_platform::corpus
