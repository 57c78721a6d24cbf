#include "model/spec_checks.h"
#include "model/job_spec.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "model/policy.h"

namespace gpu_platform::model {

namespace {

// What it says of single GPUs.
base::Status check_named_gpus(const ResourceRequest& request) {
  if (request.gpus == 0 && (names_gpus(request) || request.accept_degraded)) {
    return base::invalid(!request.gpus_avoid.empty()  ? "gpus_avoid"
                         : !request.gpus_only.empty() ? "gpus_only"
                                                      : "accept_degraded",
                         "gpus_avoid, gpus_only, accept_degraded: the job asks for no GPU; leave "
                         "them out, or ask for GPUs");
  }
  if (request.gpus_only.empty()) return {};
  const auto left = static_cast<std::uint64_t>(std::ranges::count_if(
      request.gpus_only, [&](const std::string& uuid) { return may_use_gpu(request, uuid); }));
  if (left >= total_gpus(request)) return {};
  return base::invalid(
      "gpus_only", fmt::format("gpus_only: leaves the job {} GPU{}, and it asks for {}; name at "
                               "least as many as it asks for",
                               left, left == 1 ? "" : "s", total_gpus(request)));
}

base::Status check_slice(const ResourceRequest& request) {
  if (request.slice == base::Duration()) return {};
  const auto refused = [](std::string_view why) {
    return base::invalid("slice_seconds", fmt::format("slice_seconds: {}", why));
  };
  if (!is_part(request)) {
    return refused(
        "is for parts of a GPU that take turns; leave it out, or ask for a part "
        "(gpu_share)");
  }
  if (request.share_mode == ShareMode::kMps) {
    return refused("jobs under MPS take no turns; leave it out, or leave out share_mode");
  }
  if (request.slice >= kMinSlice && request.slice <= kMaxSlice) return {};
  return refused(fmt::format("a slice lasts {} ms to {} s", base::whole_milliseconds(kMinSlice),
                             base::whole_milliseconds(kMaxSlice) / 1000));
}

// What it says of parts of a GPU.
base::Status check_part(const ResourceRequest& request) {
  TRY(check_slice(request));
  const base::GpuShare share = request.share_per_gpu;
  if (share == base::kWholeGpu) {
    if (request.share_mode.value_or(ShareMode::kNone) == ShareMode::kNone) return {};
    return base::invalid("share_mode",
                         fmt::format("share_mode {}: is for a part of a GPU; ask for a part such "
                                     "as 0.5 of one, or leave it out",
                                     to_string(*request.share_mode)));
  }
  if (share <= base::GpuShare() || share > base::kWholeGpu || share.value() % 7 != 0) {
    return base::invalid("gpu_share",
                         "gpu_share: a part of a GPU is 0.001 to 1, to three decimals");
  }
  if (request.gpus != 1 || is_gang(request)) {
    return base::invalid("gpu_share",
                         fmt::format("gpu_share {}: a part is for jobs of one GPU on one node; ask "
                                     "for one GPU, or for whole ones",
                                     written(share)));
  }
  if (!request.reservation.empty()) {
    return base::invalid("gpu_share",
                         fmt::format("gpu_share {}: reservations hold whole GPUs; leave out "
                                     "reservation, or ask for a whole GPU",
                                     written(share)));
  }
  if (request.require_isolation == Isolation::kHardware) {
    return base::invalid("require_isolation",
                         "require_isolation hardware: no part of a GPU has such a wall; ask for a "
                         "whole GPU, or for memory");
  }
  if (request.share_mode != ShareMode::kNone) return {};
  return base::invalid("share_mode",
                       "share_mode none: a part of a GPU is shared with others; leave it out, or "
                       "ask for whole GPUs");
}

}  // namespace

base::Status check_request(const ResourceRequest& request) {
  TRY(check_named_gpus(request));
  TRY(check_part(request));
  const bool has_speeds = !request.gpu_speeds.empty();
  if (has_speeds && request.gpu_speeds.size() != request.gpu_types.size()) {
    return base::invalid("gpu_speeds",
                         fmt::format("gpu_speeds: {} given for {} gpu_types (none may be named "
                                     "twice); give one for each, with 1 for the first",
                                     request.gpu_speeds.size(), request.gpu_types.size()));
  }
  const bool asks_for_gpu_kind = !request.gpu_types.empty() || request.gpu_memory != base::Bytes();
  if (request.gpus == 0 && asks_for_gpu_kind) {
    return base::invalid("gpus",
                         "gpus: must be at least 1 when a GPU's type or memory is asked for");
  }
  if (request.cross_node && request.nodes > 1) {
    return base::invalid("nodes",
                         "nodes: with allow_cross_node the platform chooses how many; leave one "
                         "of them out");
  }
  if (request.cross_node && request.gpus == 0) {
    return base::invalid("gpus", "gpus: must be at least 1 with allow_cross_node");
  }
  if (request.within != NetworkLevel::kAnywhere && !is_gang(request)) {
    return base::invalid("network_level",
                         "network_level: is for jobs of several nodes (nodes, allow_cross_node)");
  }
  return {};
}

namespace {

// The platform sees idle GPUs, and output that it keeps.
base::Status check_watchdog(const JobSpec& spec) {
  if (spec.hang_timeout == base::Duration()) return {};
  if (spec.request.gpus == 0) {
    return base::invalid("hang_timeout_seconds",
                         "hang_timeout_seconds: the job asks for no GPU that could be idle; leave "
                         "it out, or ask for GPUs");
  }
  if (spec.output.empty() && spec.error.empty()) return {};
  return base::invalid(
      "hang_timeout_seconds",
      "hang_timeout_seconds: needs kept output, because the platform does not "
      "watch files of the user; leave out output and error, or hang_timeout_seconds");
}

base::Status check_preflight(const JobSpec& spec) {
  if (spec.preflight == Preflight::kNone || spec.request.gpus > 0) return {};
  return base::invalid("preflight",
                       "preflight: the job asks for no GPU that could be checked; leave it out, or "
                       "ask for GPUs");
}

base::Status check_monitor(const JobSpec& spec) {
  if (!spec.monitor || spec.request.gpus > 0) return {};
  return base::invalid("monitor",
                       "monitor: the job asks for no GPU that could be read; leave it out, or ask "
                       "for GPUs");
}

}  // namespace

// A job with several processes has no single process for a terminal.
base::Status check_processes(const JobSpec& spec) {
  TRY(check_watchdog(spec));
  TRY(check_preflight(spec));
  TRY(check_monitor(spec));
  if (spec.per_gpu && spec.request.gpus == 0) {
    return base::invalid("per_gpu", "per_gpu: the job asks for no GPU");
  }
  if (spec.per_gpu && is_part(spec.request)) {
    return base::invalid("per_gpu",
                         "per_gpu: a job with a part of a GPU has one process; leave it out, or "
                         "ask for whole GPUs");
  }
  if (spec.per_gpu && spec.first_node_only) {
    return base::invalid(
        "first_node_only",
        "first_node_only: the job has one process, and with per_gpu it has one for "
        "each GPU; leave one of them out");
  }
  const bool has_ranks = model::has_ranks(spec);
  if (has_ranks && spec.takes_input) {
    return base::invalid(spec.terminal ? "terminal" : "takes_input",
                         "terminal, takes_input: a job of several processes (nodes, "
                         "allow_cross_node, per_gpu) cannot have them, except with "
                         "first_node_only");
  }
  if (has_ranks && spec.limit_signal && spec.limit_signal->first_process_only) {
    return base::invalid("limit_signal",
                         "limit_signal: 'B:' is for jobs of one process; leave it out, and all "
                         "of them get the signal");
  }
  return {};
}

}  // namespace gpu_platform::model
