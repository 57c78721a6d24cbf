#include "api/calls.h"
#include "config/slurm_names.h"

// The names of Slurm's commands.

namespace gpu_platform::api {

namespace {

double seconds_of(base::Duration duration) {
  return static_cast<double>(base::whole_milliseconds(duration)) / 1000;
}

template <class Limits, class Message>
void put_limits(const Limits& from, Message& out) {
  out.set_name(from.name);
  if (from.priority) out.set_priority(std::string(to_string(*from.priority)));
  if (from.max_time) out.set_max_time_seconds(seconds_of(*from.max_time));
  if (from.max_gpus) out.set_max_gpus(*from.max_gpus);
}

void to_proto(const config::SlurmPartition& partition, v1::SlurmPartition& out) {
  put_limits(partition, out);
  out.set_is_default(partition.is_default);
  for (const std::string& type : partition.gpu_types) out.add_gpu_types(type);
  if (partition.default_time) out.set_default_time_seconds(seconds_of(*partition.default_time));
  if (partition.max_nodes) out.set_max_nodes(*partition.max_nodes);
}

}  // namespace

v1::SlurmNames Calls::slurm_names() const {
  v1::SlurmNames out;
  const auto names = core_.slurm_names ? core_.slurm_names() : nullptr;
  if (names == nullptr) return out;
  for (const config::SlurmPartition& partition : names->partitions)
    to_proto(partition, *out.add_partitions());
  for (const config::SlurmQos& qos : names->qos) put_limits(qos, *out.add_qos());
  return out;
}

}  // namespace gpu_platform::api
