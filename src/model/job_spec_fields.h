#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "model/job.h"
#include "model/spec_patch.h"

// The one table of the fields of a job's specification. The journal, patches, the conversion from
// and to the API, scenario files, the size of a specification and the tests' random values use
// it. A member without a row does not compile (stored_fields.h).

namespace gpu_platform::model {

// The effect that an update of an existing job may have on a member.
enum class Change : std::uint8_t {
  kNever,
  kSet,         // give it another value
  kSetOrClear,  // also take it back to its default, which means "none"
};

// One row. `number` and `name` are those of the field of the API's JobSpec (zero and empty: it is
// not there); the number also names the member in the journal's patches, so it is never reused.
// `option` is what the command line and scenario files call it, without dashes; empty where no
// single option gives the value.
template <class Owner, class Value>
struct SpecField {
  std::uint32_t number = 0;
  std::string_view name;
  std::string_view option;
  Value Owner::* member = nullptr;
  Change change = Change::kNever;

  using Type = Value;
  // The member of that specification.
  template <class Spec>
  constexpr auto& of(Spec& spec) const {
    if constexpr (std::is_same_v<Owner, JobSpec>) {
      return spec.*member;
    } else {
      return spec.request.*member;
    }
  }
};

template <class Owner, class Value>
constexpr SpecField<Owner, Value> spec_field(std::uint32_t number, std::string_view name,
                                             std::string_view option, Value Owner::* member,
                                             Change change = Change::kNever) {
  return {number, name, option, member, change};
}

// The order is that of the bytes in the journal: append only.
inline constexpr auto kRequestFields = std::tuple{
    spec_field(2, "gpus", "gpus-per-node", &ResourceRequest::gpus, Change::kSet),
    spec_field(76, "gpu_share", "", &ResourceRequest::share_per_gpu, Change::kSet),
    spec_field(9, "gpu_types", "gpu-type", &ResourceRequest::gpu_types, Change::kSetOrClear),
    spec_field(11, "gpu_memory_bytes", "gpu-memory", &ResourceRequest::gpu_memory,
               Change::kSetOrClear),
    spec_field(12, "cpus", "cpus", &ResourceRequest::cpus, Change::kSetOrClear),
    spec_field(13, "memory_bytes", "memory", &ResourceRequest::memory, Change::kSetOrClear),
    spec_field(14, "numa", "", &ResourceRequest::numa, Change::kSet),
    spec_field(3, "nodes", "nodes", &ResourceRequest::nodes, Change::kSet),
    spec_field(4, "allow_cross_node", "allow-cross-node", &ResourceRequest::cross_node,
               Change::kSet),
    spec_field(5, "network_level", "network-level", &ResourceRequest::within, Change::kSetOrClear),
    spec_field(6, "nodelist", "nodelist", &ResourceRequest::nodelist, Change::kSetOrClear),
    spec_field(7, "exclude", "exclude", &ResourceRequest::exclude, Change::kSetOrClear),
    spec_field(10, "gpu_speeds", "", &ResourceRequest::gpu_speeds, Change::kSetOrClear),
    spec_field(43, "reservation", "reservation", &ResourceRequest::reservation),
    spec_field(0, "", "", &ResourceRequest::reserve_percent),
    spec_field(0, "", "", &ResourceRequest::engines),
    spec_field(63, "capacity", "capacity", &ResourceRequest::capacity, Change::kSetOrClear),
    spec_field(69, "gpus_avoid", "gpus-avoid", &ResourceRequest::gpus_avoid, Change::kSetOrClear),
    spec_field(70, "gpus_only", "gpus-only", &ResourceRequest::gpus_only, Change::kSetOrClear),
    spec_field(71, "accept_degraded", "accept-degraded", &ResourceRequest::accept_degraded,
               Change::kSet),
    spec_field(77, "share_mode", "share", &ResourceRequest::share_mode, Change::kSet),
    spec_field(74, "require_isolation", "require-isolation", &ResourceRequest::require_isolation,
               Change::kSet),
    spec_field(75, "slice_seconds", "slice", &ResourceRequest::slice, Change::kSetOrClear),
    spec_field(0, "", "", &ResourceRequest::tenant),
};

// The same. `request` comes first; the table above has its members.
inline constexpr auto kJobSpecFields = std::tuple{
    spec_field(20, "name", "name", &JobSpec::name, Change::kSet),
    spec_field(21, "user", "user", &JobSpec::user),
    spec_field(0, "", "", &JobSpec::uid),
    spec_field(0, "", "", &JobSpec::gid),
    spec_field(22, "team", "team", &JobSpec::team),
    spec_field(23, "project", "project", &JobSpec::project),
    spec_field(15, "priority", "priority", &JobSpec::priority, Change::kSet),
    spec_field(24, "kind", "kind", &JobSpec::kind),
    spec_field(1, "command", "", &JobSpec::command),
    spec_field(27, "workdir", "workdir", &JobSpec::workdir),
    spec_field(29, "output", "output", &JobSpec::output),
    spec_field(28, "umask", "", &JobSpec::umask),
    spec_field(0, "", "", &JobSpec::environment_ref),
    spec_field(17, "time_limit_seconds", "time", &JobSpec::time_limit, Change::kSet),
    spec_field(19, "retries", "retries", &JobSpec::retries),
    spec_field(25, "labels", "label", &JobSpec::labels, Change::kSet),
    spec_field(50, "request_id", "request-id", &JobSpec::request_id),
    spec_field(32, "limit_signal", "signal", &JobSpec::limit_signal),
    spec_field(30, "error", "error", &JobSpec::error),
    spec_field(31, "open_mode", "open-mode", &JobSpec::truncate_output),
    spec_field(40, "notify", "notify", &JobSpec::notify),
    spec_field(33, "prolog", "prolog", &JobSpec::prolog),
    spec_field(34, "epilog", "epilog", &JobSpec::epilog),
    spec_field(35, "takes_input", "", &JobSpec::takes_input),
    spec_field(36, "terminal", "", &JobSpec::terminal),
    spec_field(39, "idle_timeout_seconds", "idle-timeout", &JobSpec::idle_timeout),
    spec_field(48, "preemptible", "preemptible", &JobSpec::preemptible, Change::kSetOrClear),
    spec_field(41, "begin", "begin", &JobSpec::begin, Change::kSetOrClear),
    spec_field(42, "deadline", "deadline", &JobSpec::deadline, Change::kSetOrClear),
    spec_field(45, "dependency", "dependency", &JobSpec::dependencies, Change::kSetOrClear),
    spec_field(46, "array", "array", &JobSpec::array),
    spec_field(8, "per_gpu", "per-gpu", &JobSpec::per_gpu),
    spec_field(18, "expected_time_seconds", "expected-time", &JobSpec::expected_time,
               Change::kSetOrClear),
    spec_field(44, "wait_timeout_seconds", "wait-timeout", &JobSpec::wait_timeout),
    spec_field(49, "complete_on_exit_zero", "complete-on-exit-zero",
               &JobSpec::complete_on_exit_zero),
    spec_field(51, "comment", "comment", &JobSpec::comment, Change::kSetOrClear),
    spec_field(0, "", "", &JobSpec::time_limit_default_of),
    spec_field(52, "first_node_only", "first-node-only", &JobSpec::first_node_only),
    spec_field(53, "image", "image", &JobSpec::image),
    spec_field(54, "mounts", "mount", &JobSpec::mounts),
    spec_field(55, "tmpfs", "tmpfs", &JobSpec::tmpfs),
    spec_field(56, "shm_size_bytes", "shm-size", &JobSpec::shm_size),
    spec_field(57, "container_network", "network", &JobSpec::container_network),
    spec_field(58, "entrypoint", "entrypoint", &JobSpec::entrypoint),
    spec_field(59, "pull", "pull", &JobSpec::pull),
    spec_field(60, "container_workdir", "container-workdir", &JobSpec::container_workdir),
    spec_field(61, "container_platform", "platform", &JobSpec::container_platform),
    spec_field(62, "annotations", "annotation", &JobSpec::annotations),
    spec_field(66, "workload", "", &JobSpec::workload),
    spec_field(67, "workload_pods", "", &JobSpec::workload_pods),
    spec_field(68, "notify_to", "notify-to", &JobSpec::notify_to),
    spec_field(72, "hang_timeout_seconds", "hang-timeout", &JobSpec::hang_timeout),
    spec_field(73, "preflight", "preflight", &JobSpec::preflight),
    spec_field(79, "monitor", "monitor", &JobSpec::monitor),
    spec_field(80, "budget", "budget", &JobSpec::budget, Change::kSetOrClear),
};

inline constexpr std::size_t kSpecFieldCount =
    std::tuple_size_v<decltype(kRequestFields)> + std::tuple_size_v<decltype(kJobSpecFields)>;

// Calls visit(field) with every row, in the tables' order.
template <class Visit>
constexpr void for_each_spec_field(Visit&& visit) {
  const auto each = [&](const auto&... field) { (visit(field), ...); };
  std::apply(each, kRequestFields);
  std::apply(each, kJobSpecFields);
}

// Calls visit(field) with the row of each member that is in the patch, in the tables' order; its
// value is field.of(patch.values()).
template <class Visit>
void for_each_given(const SpecPatch& patch, Visit&& visit) {
  std::size_t row = 0;
  for_each_spec_field([&](const auto& field) {
    if (patch.given().test(row++)) visit(field);
  });
}

}  // namespace gpu_platform::model
