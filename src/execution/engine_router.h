#pragma once

#include <map>
#include <vector>

#include "execution/engine.h"
#include "model/engine_kind.h"

namespace gpu_platform::execution {

// One engine that stands for one of each kind. A start goes to the engine of its nodes, and every
// later order to the engine that has the attempt. An order about an attempt that no start and no
// adoption has named goes to all of them: it holds nothing any more, and each engine says what it
// knows.
//
// Ownership: refers to the engines, which must outlive it. Thread: one, as of every engine. Cost:
// O(log attempts not forgotten).
class EngineRouter final : public Engine {
 public:
  // `engines`: at least one.
  explicit EngineRouter(std::map<model::EngineKind, Engine*> engines);

  void start(const StartOrder& order) override;
  void stop(const StopOrder& order) override;
  void set_limit(const LimitOrder& order) override;
  void signal(const SignalOrder& order) override;
  void forget(const ForgetOrder& order) override;
  // Where no engine has such nodes nothing happens: they are not there, either.
  void reset(const ResetOrder& order) override;
  // Each engine is asked about its attempts, also if there are none. Attempts of an engine that is
  // not there (any more) are named to no engine.
  void adopt(const std::vector<KnownAttempt>& known) override;
  // All engines: each knows its nodes.
  void adopt_conditions(const std::vector<EvidenceObserved>& lasting) override;

 private:
  // Calls send(engine) for those that an order about the attempt goes to.
  template <class Send>
  void route(model::AttemptId attempt, const Send& send);

  std::map<model::EngineKind, Engine*> engines_;
  std::map<model::AttemptId, model::EngineKind> kind_of_;
};

}  // namespace gpu_platform::execution
