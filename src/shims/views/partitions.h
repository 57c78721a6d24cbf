#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "client/client.h"
#include "gpu_platform/v1/slurm.pb.h"
#include "shims/views/billing_weights.h"

// The partitions and qualities of service that a site gives names to. Without any there is one
// partition of all nodes, and the classes of priority are the qualities of service.

namespace gpu_platform::shims {

struct Partition {
  std::string name;
  bool is_default = false;
  std::vector<std::string> gpu_types;  // of its nodes; empty: all nodes
  std::string priority;                // class of its jobs where they name none; empty: the usual
  std::optional<base::Duration> max_time;
  std::optional<base::Duration> default_time;
  std::optional<std::uint32_t> max_gpus;   // of one job
  std::optional<std::uint32_t> max_nodes;  // of one job
  // The site's longest, which is what is shown where the partition has none.
  std::optional<base::Duration> site_max_time;

  const std::optional<base::Duration>& shown_max_time() const {
    return max_time ? max_time : site_max_time;
  }
};

struct Qos {
  std::string name;
  std::string priority;  // class; empty: the partition's
  std::optional<base::Duration> max_time;
  std::optional<std::uint32_t> max_gpus;
};

struct Site {
  std::vector<Partition> partitions;  // at least one; one is the default
  std::vector<Qos> qos;               // at least one
  // The site gives these names, and so there are no others. Otherwise any name is taken for a note.
  bool names_partitions = false;
  bool names_qos = false;
  bool can_notify = false;  // it has a command for --mail-type
  std::uint32_t shards_per_gpu = 4;
  BillingWeights weights;  // the prices of now
};

// What the platform has without names of the site.
Site usual_site();

// The same with the names that the daemon tells.
Site site_in(const v1::SlurmNames& names);

// What the daemon says; the usual where its site names nothing.
client::Called<Site> site_of(client::Client& client);

const Partition* partition_named(const Site& site, std::string_view name);
const Partition& default_partition(const Site& site);
const Qos* qos_named(const Site& site, std::string_view name);

// "gpu, long": for messages.
std::string partition_names(const Site& site);
std::string qos_names(const Site& site);

}  // namespace gpu_platform::shims
