#include "shims/views/partitions.h"

#include <algorithm>

#include "cli/text/text.h"
#include "client/answer.h"
#include "shims/steps/step_variables.h"

namespace gpu_platform::shims {

namespace {

template <class Named>
const Named* named(const std::vector<Named>& list, std::string_view name) {
  const auto found = std::ranges::find(list, name, &Named::name);
  return found == list.end() ? nullptr : &*found;
}

template <class Named>
std::string names(const std::vector<Named>& list) {
  std::vector<std::string> result;
  for (const Named& entry : list) result.push_back(entry.name);
  return cli::joined(result, ", ");
}

base::Duration duration_of(double seconds) {
  return base::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

Partition partition_of_message(const v1::SlurmPartition& told) {
  Partition partition;
  partition.name = told.name();
  partition.is_default = told.is_default();
  partition.gpu_types.assign(told.gpu_types().begin(), told.gpu_types().end());
  partition.priority = told.priority();
  if (told.has_max_time_seconds()) partition.max_time = duration_of(told.max_time_seconds());
  if (told.has_default_time_seconds())
    partition.default_time = duration_of(told.default_time_seconds());
  if (told.has_max_gpus()) partition.max_gpus = told.max_gpus();
  if (told.has_max_nodes()) partition.max_nodes = told.max_nodes();
  return partition;
}

Qos qos_of_message(const v1::SlurmQos& told) {
  Qos qos;
  qos.name = told.name();
  qos.priority = told.priority();
  if (told.has_max_time_seconds()) qos.max_time = duration_of(told.max_time_seconds());
  if (told.has_max_gpus()) qos.max_gpus = told.max_gpus();
  return qos;
}

}  // namespace

Site usual_site() {
  Site site;
  site.partitions.push_back({std::string(kPartition), true, {}, {}, {}, {}, {}, {}, {}});
  site.qos = {{"normal", "MEDIUM", {}, {}},
              {"low", "LOW", {}, {}},
              {"medium", "MEDIUM", {}, {}},
              {"high", "HIGH", {}, {}},
              {"critical", "CRITICAL", {}, {}}};
  return site;
}

Site site_in(const v1::SlurmNames& names) {
  Site site = usual_site();
  site.names_partitions = !names.partitions().empty();
  if (site.names_partitions) site.partitions.clear();
  for (const v1::SlurmPartition& told : names.partitions())
    site.partitions.push_back(partition_of_message(told));
  if (names.max_time_seconds() > 0) {
    for (Partition& partition : site.partitions)
      partition.site_max_time = duration_of(names.max_time_seconds());
  }
  site.names_qos = !names.qos().empty();
  if (site.names_qos) site.qos.clear();
  site.can_notify = names.can_notify();
  if (names.shards_per_gpu() > 0) site.shards_per_gpu = names.shards_per_gpu();
  site.weights = billing_weights_in(names);
  for (const v1::SlurmQos& told : names.qos()) site.qos.push_back(qos_of_message(told));
  return site;
}

client::Called<Site> site_of(client::Client& client) {
  const auto body = client.get("/v1/slurm");
  if (!body) return std::unexpected(body.error());
  const auto names = client::message_of<v1::SlurmNames>(*body);
  return names ? site_in(*names) : usual_site();
}

const Partition* partition_named(const Site& site, std::string_view name) {
  return named(site.partitions, name);
}

const Partition& default_partition(const Site& site) {
  const auto found = std::ranges::find(site.partitions, true, &Partition::is_default);
  return found == site.partitions.end() ? site.partitions.front() : *found;
}

const Qos* qos_named(const Site& site, std::string_view name) {
  return named(site.qos, name);
}

std::string partition_names(const Site& site) {
  return names(site.partitions);
}

std::string qos_names(const Site& site) {
  return names(site.qos);
}

}  // namespace gpu_platform::shims
