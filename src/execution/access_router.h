#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "execution/attempt_access.h"
#include "model/engine_kind.h"
#include "model/job.h"

namespace gpu_platform::execution {

// Finds the engine that an attempt is, or was, in: the one of its nodes. Unlike an EngineRouter, it
// knows attempts of all times.
//
// Ownership: refers to the engines, which must outlive it. Thread: any. Cost: a look-up of a node.
class AccessRouter {
 public:
  // The engine that a node belongs to; nothing: there is no such node.
  using EngineOfNode = std::function<std::optional<model::EngineKind>(model::NodeId)>;

  // `engines`: at least one.
  AccessRouter(std::map<model::EngineKind, AttemptAccess*> engines, EngineOfNode engine_of_node);

  // Returns the engine of the attempt's first node. An attempt that had no node, or one that is not
  // known any more, is the first engine's, as is one whose engine is not there: that one has
  // nothing of it, and says so.
  AttemptAccess& of(const model::Job& job, std::uint32_t attempt) const;
  // Returns the engine that is asked about an attempt of a job that is not known.
  AttemptAccess& of_unknown() const { return *engines_.begin()->second; }

  // Whether any engine keeps output of the job, and an order to remove it that goes to all of them:
  // a job may have had attempts in several.
  bool has_output(model::JobId job) const;
  void remove_output(const std::vector<model::JobId>& jobs) const;

 private:
  const std::map<model::EngineKind, AttemptAccess*> engines_;
  const EngineOfNode engine_of_node_;
};

}  // namespace gpu_platform::execution
