#pragma once

#include <functional>
#include <map>

#include "base/result.h"
#include "config/configuration.h"
#include "execution/attempt_access.h"
#include "execution/engine.h"
#include "model/engine_kind.h"

namespace gpu_platform::bin {

// The engines of the daemon, by kind: each as what takes orders and as what clients ask.
struct EngineEntry {
  execution::Engine* orders = nullptr;
  execution::AttemptAccess* access = nullptr;
};
using EngineTable = std::map<model::EngineKind, EngineEntry>;

// A part of the daemon that has an engine and knows that engine's nodes. The calls come in this
// order, from the thread that starts and stops the daemon. A part whose engine the site does not
// have does nothing.
class EnginePart {
 public:
  virtual ~EnginePart() = default;

  // Once the part is open.
  virtual void add_engine(EngineTable& engines) = 0;
  // Once the core is recovered: from here on it hears what the engine observes.
  virtual void connect() = 0;
  // Once the core is started.
  virtual base::Status start(const config::Configuration& configuration) = 0;
  // Waits until the nodes are known, within the limit of nodes_wait.h, and logs if they are not.
  // `must_end`: the process is to end, so that nothing is waited for; may be empty.
  virtual void wait_for_nodes(const std::function<bool()>& must_end) = 0;
  // Logs where less was found than the site expects. What was found is published.
  virtual void warn_of_what_is_missing(const config::Configuration& configuration) const = 0;
  // Ends what uses the core; at any time, and more than once. Jobs go on.
  virtual void stop() = 0;
};

}  // namespace gpu_platform::bin
