#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "shims/steps/gpu_binding.h"
#include "shims/steps/step_variables.h"
#include "shims/steps/task_layout.h"

// The nodes of a job and of its steps, and what a task on one of them has. The emulated nodes of a
// job are all on this host, and so its processes are all in its one cgroup. Pure.

namespace gpu_platform::shims {

struct StepNode {
  std::string name;
  std::vector<Gpu> gpus;
  std::uint32_t cpus = 1;
  std::optional<std::uint64_t> memory_bytes;
  Variables variables;  // that differ between nodes; none for a job on one node
};

// Those of the job, with all of its GPUs.
std::vector<StepNode> nodes_of_job(const Variables& variables);

// The places where the tasks of a step run.
struct StepPlaces {
  std::vector<StepNode> nodes;  // with the GPUs that the step has there
  Layout layout;                // beside them
};

struct TaskPlace {
  std::size_t node = 0;     // of the step's nodes
  std::uint32_t local = 0;  // among the node's tasks
};
TaskPlace place_of(const Layout& layout, std::uint32_t rank);

// Puts a task on its node: the node's own variables, and those that tell the task of its place.
void add_place_variables(Variables& variables, const StepPlaces& places, const TaskPlace& place);

}  // namespace gpu_platform::shims
