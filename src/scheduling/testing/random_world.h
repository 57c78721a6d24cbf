#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "model/job.h"
#include "model/node.h"
#include "scheduling/waiting_queue.h"

// Worlds for property tests and benchmarks: clusters of mixed shapes in mixed use, requests of
// every kind.

namespace gpu_platform::scheduling {

// A number in [0, n). It is the source of all randomness, so that a property test can shrink it.
using Draw = std::function<std::uint64_t(std::uint64_t n)>;

struct World {
  std::vector<model::Node> nodes;  // ascending id
  std::vector<WaitingJob> jobs;
};

struct WorldSize {
  std::uint64_t max_nodes = 8;
  std::uint64_t max_jobs = 12;
};

World random_world(const Draw& draw, WorldSize size = {});
model::Node random_node(const Draw& draw, std::uint64_t id);
model::ResourceRequest random_request(const Draw& draw);  // for one node
// Lets a request for GPUs name some of these nodes' GPUs, to use or avoid, and perhaps accept
// degraded ones.
void add_random_names(const Draw& draw, const std::vector<model::Node>& nodes,
                      model::ResourceRequest& request);
// Any rules that let some GPUs be shared.
model::Sharing random_sharing(const Draw& draw);
// Lets nodes share their GPUs, and jobs that are not of the world have parts of some that are free.
void add_random_parts(const Draw& draw, std::vector<model::Node>& nodes);
// A request of one GPU becomes one for a part of it.
void make_random_part(const Draw& draw, model::ResourceRequest& request);
model::ResourceRequest random_gang(const Draw& draw);
model::NetworkPlace random_place(const Draw& draw);

template <class T>
void shuffle(const Draw& draw, std::vector<T>& values) {
  for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[draw(i)]);
}

}  // namespace gpu_platform::scheduling
