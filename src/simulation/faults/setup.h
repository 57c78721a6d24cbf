#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/prng.h"
#include "base/units.h"
#include "controller/controller.h"
#include "execution/virtual_engine.h"
#include "model/command.h"
#include "model/node.h"
#include "model/policy.h"

namespace gpu_platform::simulation {

// In how many of a thousand cases something goes wrong with a message.
struct MessageFaults {
  std::uint64_t lost = 0;
  std::uint64_t late = 0;
  std::uint64_t repeated = 0;
};

// In how many of a thousand cases something goes wrong on the way to an API server and back.
struct PodFaults {
  std::uint64_t call_lost = 0;    // nothing happens, and there is no answer
  std::uint64_t answer_lost = 0;  // it happens, and there is no answer, or one of trouble
  std::uint64_t refused = 0;      // 409, 429, 500, 503
  std::uint64_t repeated = 0;     // a watch tells again what it has told
  std::uint64_t reordered = 0;    // of two objects the later change comes first
  std::uint64_t expired = 0;      // a watch ends, and all is listed anew
};

// The frequency of each action in a world. The numbers are weights among all actions. Each world
// has only some of the faults, so that rare combinations are not drowned by the frequent ones.
struct Weights {
  std::uint64_t submit = 30;
  std::uint64_t stop = 8;
  std::uint64_t repeat_submission = 4;
  std::uint64_t policy = 2;
  std::uint64_t crash = 0;
  std::uint64_t node = 0;
  std::uint64_t clock = 0;
  std::uint64_t disk = 0;
  std::uint64_t snapshot = 0;
  std::uint64_t supervisor = 0;
  std::uint64_t operators = 0;
  std::uint64_t unmanaged_processes = 0;
  std::uint64_t change = 0;
  std::uint64_t crossing = 0;
  std::uint64_t cluster = 0;  // what a cluster, or others there, do with its nodes
};

// Everything about one world that follows from its seed before it begins to run.
struct Setup {
  std::vector<model::NodeInfo> nodes;  // with all their GPUs
  model::Policy policy;
  controller::ControllerOptions controller;
  Weights weights;
  MessageFaults orders;
  MessageFaults news;
  // The nodes of the cluster run pods, by the engine of the daemon; else they are virtual ones.
  bool has_pods = false;
  PodFaults pods;
  std::uint64_t launch_failures = 0;  // of a thousand starts, by fault of the host
  std::uint64_t hook_failures = 0;    // of a thousand of the site's prologs, and of its epilogs
  std::uint64_t actions = 0;
  base::Duration mean_gap;  // between two actions
};

Setup draw_setup(base::Prng& random);
model::Policy draw_policy(base::Prng& random);
// Returns whether nodes of a cluster are among them.
bool has_cluster(const Setup& setup);
// A request that mostly fits some node of the cluster; `name` becomes the job's name.
model::JobSpec draw_submission(base::Prng& random, const Setup& setup, std::string name);
// Draws what the attempt does: the same for the same seed, job name and attempt, whenever it is
// asked.
execution::VirtualRun draw_run(std::uint64_t seed, std::string_view job_name, std::uint32_t attempt,
                               base::Duration time_limit);

std::uint32_t uid_of(std::string_view user);

}  // namespace gpu_platform::simulation
