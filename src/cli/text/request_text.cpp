#include "cli/text/request_text.h"

#include <fmt/format.h>

#include "base/letters.h"
#include "base/parse.h"
#include "cli/text/job_text.h"
#include "cli/text/message_text.h"
#include "cli/text/share_text.h"
#include "cli/text/text.h"

namespace gpu_platform::cli {

namespace {

std::string brief_time(double seconds) {
  return age(base::seconds(static_cast<std::int64_t>(seconds)));
}

// "2 GPUs", "0.5 of a GPU".
std::string gpus_asked_for(const v1::JobSpec& spec) {
  if (is_part(spec)) return share_text(spec.gpu_share()) + " of a GPU";
  return counted(total_gpus(spec), "GPU");
}

// ", shared by mps", and the wall that it needs.
std::string sharing_asked_for(const v1::JobSpec& spec) {
  std::string line;
  if (spec.share_mode() == v1::SHARE_MODE_NONE) {
    line += ", never shared";
  } else if (spec.share_mode() != v1::SHARE_MODE_UNSPECIFIED) {
    line += fmt::format(", shared by {}", mode_word(spec.share_mode()));
  }
  if (spec.require_isolation() == v1::REQUIRED_ISOLATION_MEMORY) {
    line += ", its memory kept by the driver or the hardware";
  } else if (spec.require_isolation() == v1::REQUIRED_ISOLATION_HARDWARE) {
    line += ", no other job on its GPUs";
  }
  if (spec.has_slice_seconds()) {
    const auto slice = base::milliseconds(static_cast<std::int64_t>(spec.slice_seconds() * 1000));
    line += fmt::format(", turns of {}", base::written_short(slice));
  }
  return line;
}

}  // namespace

std::uint64_t total_gpus(const v1::JobSpec& spec) {
  return std::uint64_t{spec.gpus()} * (spec.has_nodes() ? spec.nodes() : 1);
}

double gpus_in_all(const v1::JobSpec& spec) {
  return is_part(spec) ? spec.gpu_share() : static_cast<double>(total_gpus(spec));
}

std::string asked_for(const v1::JobSpec& spec) {
  std::string line = gpus_asked_for(spec);
  if (spec.nodes() > 1) line += fmt::format(" on {} nodes", spec.nodes());
  if (spec.allow_cross_node()) line += " on as few nodes as possible";
  if (const std::string level = name_at(spec, v1::JobSpec::kNetworkLevelFieldNumber);
      !level.empty() && spec.network_level() != v1::NETWORK_LEVEL_ANYWHERE) {
    line += " in one " + base::to_lower(level);
  }
  if (const std::string capacity = name_at(spec, v1::JobSpec::kCapacityFieldNumber);
      !capacity.empty() && spec.capacity() != v1::CAPACITY_REQUEST_ANY) {
    line += fmt::format(" on {} capacity", as_word(capacity));
  }
  const auto named = [&](const TextList& names, std::string_view before) {
    if (!names.empty()) line += fmt::format(", {}{}", before, joined(texts_of(names), ","));
  };
  if (!spec.gpu_types().empty()) line += " of type " + joined(texts_of(spec.gpu_types()), " or ");
  if (spec.has_gpu_memory_bytes()) {
    const std::string size = size_text(spec.gpu_memory_bytes());
    line += is_part(spec) ? " with " + size : fmt::format(" with at least {} each", size);
  }
  line += sharing_asked_for(spec);
  if (spec.has_cpus()) line += ", " + counted(spec.cpus(), "CPU");
  if (spec.has_memory_bytes()) line += ", " + size_text(spec.memory_bytes());
  if (!spec.has_cpus() || !spec.has_memory_bytes()) {
    line += fmt::format(", the node's share of {}{}{}", spec.has_cpus() ? "" : "CPUs",
                        spec.has_cpus() || spec.has_memory_bytes() ? "" : " and ",
                        spec.has_memory_bytes() ? "" : "memory");
  }
  named(spec.nodelist(), "only on ");
  named(spec.exclude(), "not on ");
  named(spec.gpus_only(), "only GPUs ");
  named(spec.gpus_avoid(), "not GPUs ");
  if (spec.accept_degraded()) line += ", also DEGRADED GPUs";
  if (spec.has_time_limit_seconds()) {
    line += ", time limit " + brief_time(spec.time_limit_seconds());
  }
  if (spec.has_expected_time_seconds()) {
    line += ", expected " + brief_time(spec.expected_time_seconds());
  }
  return line;
}

}  // namespace gpu_platform::cli
