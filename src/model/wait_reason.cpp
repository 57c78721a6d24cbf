#include "model/wait_reason.h"

#include <utility>

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "base/check.h"
#include "base/utc.h"
#include "model/gpu_part.h"

namespace gpu_platform::model {

namespace {

// Shortages that no end of other jobs mends come first, then those that people can act on.
constexpr Shortage kTellingOrder[] = {
    Shortage::kNodeState, Shortage::kGpusOffline,    Shortage::kSockets,   Shortage::kGpus,
    Shortage::kGpuShare,  Shortage::kSharedByOthers, Shortage::kCpus,      Shortage::kGpuPartMemory,
    Shortage::kMemory,    Shortage::kKeptFromRoot,   Shortage::kNotShared, Shortage::kGpuMemory,
    Shortage::kGpuType,   Shortage::kCapacity,       Shortage::kFits,      Shortage::kReserved,
    Shortage::kExcluded,  Shortage::kEngine};
static_assert(std::size(kTellingOrder) == kShortages);

std::string counted(std::uint64_t n, std::string_view singular, std::string_view plural) {
  return fmt::format("{} {}", n, n == 1 ? singular : plural);
}

std::string memory_amount(std::uint32_t mib) {
  return mib % 1024 == 0 ? fmt::format("{} GiB", mib / 1024) : fmt::format("{} MiB", mib);
}

std::string thousandths(std::uint32_t n) {
  return written(base::GpuShare(std::int64_t{n} * base::kWholeGpu.value() / 1000));
}

// "4 GPUs short". short_by is the least of several nodes: only of a single one is it the exact
// amount.
std::string missing(const WaitCount& count, const std::string& amount) {
  return fmt::format("{}{} short", count.nodes == 1 ? "" : "at least ", amount);
}

// Returns the text about the nodes of one count, after "1 node " or "2 nodes ".
std::string predicate(const WaitCount& count) {
  const bool one = count.nodes == 1;
  const std::string_view are = one ? "is" : "are";
  const std::string_view have = one ? "has" : "have";
  switch (count.shortage) {
    case Shortage::kExcluded:
      return fmt::format("{} not among those it may use", are);
    case Shortage::kEngine:
      return fmt::format("{} of another engine", are);
    case Shortage::kCapacity:
      return fmt::format("{} not of the requested capacity (--capacity)", are);
    case Shortage::kNodeState:
      return fmt::format("{} draining or down", are);
    case Shortage::kGpuType:
      return fmt::format("{} no GPU of a requested type", have);
    case Shortage::kGpuMemory:
      return fmt::format("{} only GPUs with less memory than requested", have);
    case Shortage::kGpusOffline:
      return fmt::format(
          "{} {}{} that {} offline, draining, degraded or used by unmanaged processes",
          one ? "needs" : "need", one ? "" : "at least ", counted(count.short_by, "GPU", "GPUs"),
          count.short_by == 1 ? "is" : "are");
    case Shortage::kGpus:
      return fmt::format("{} {}", are, missing(count, counted(count.short_by, "GPU", "GPUs")));
    case Shortage::kSharedByOthers:
      return fmt::format("{} room only on GPUs that other users share, or jobs in another mode",
                         have);
    case Shortage::kGpuShare:
      return fmt::format("{} {}", are,
                         missing(count, fmt::format("{} of a GPU", thousandths(count.short_by))));
    case Shortage::kGpuPartMemory:
      return fmt::format("{} {}", are,
                         missing(count, memory_amount(count.short_by) + " of a GPU's memory"));
    case Shortage::kNotShared:
      return fmt::format("{} no GPU that may be shared in this way (--share, --require-isolation)",
                         have);
    case Shortage::kKeptFromRoot:
      return fmt::format(
          "{} GPUs to share, but not with jobs of root, which can undo the walls of "
          "their parts (sharing.weakest_rung: advisory allows it)",
          have);
    case Shortage::kSockets:
      return fmt::format("{} the GPUs free only on different sockets (--allow-cross-numa)", have);
    case Shortage::kCpus:
      return fmt::format("{} {}", are, missing(count, counted(count.short_by, "CPU", "CPUs")));
    case Shortage::kMemory:
      return fmt::format("{} {}", are,
                         missing(count, memory_amount(count.short_by) + " of memory"));
    case Shortage::kFits:
      return fmt::format("{} enough free now", have);
    case Shortage::kReserved:
      return fmt::format("{} enough free, but {} reserved for others before its time limit ends",
                         have, are);
  }
  CHECK(false);
  std::unreachable();
}

// "2 of 3 nodes are at least 4 GPUs short, 1 is draining or down"; empty when there are no counts.
std::string describe_counts(const std::vector<WaitCount>& counts) {
  std::uint64_t total = 0;
  for (const WaitCount& count : counts) total += count.nodes;
  std::string text;
  for (const Shortage shortage : kTellingOrder) {
    const auto found = std::ranges::find(counts, shortage, &WaitCount::shortage);
    if (found == counts.end() || found->nodes == 0) continue;
    if (!text.empty()) {
      text += fmt::format(", {} {}", found->nodes, predicate(*found));
    } else if (found->nodes == total) {
      text = fmt::format("{}{} {}", total == 1 ? "" : "all ", counted(total, "node", "nodes"),
                         predicate(*found));
    } else {
      text = fmt::format("{} of {} nodes {}", found->nodes, total, predicate(*found));
    }
  }
  return text;
}

// "needs 16 nodes with 8 free GPUs each; 12 have them"; empty for a job of one node.
std::string describe_gang(const WaitReason& reason) {
  if (reason.nodes_needed < 2) return {};
  const auto fits = std::ranges::find(reason.counts, Shortage::kFits, &WaitCount::shortage);
  const std::uint32_t able = fits == reason.counts.end() ? 0 : fits->nodes;
  const std::string part = reason.gpus_per_node == 0
                               ? std::string("room for a part of it")
                               : counted(reason.gpus_per_node, "free GPU", "free GPUs") + " each";
  const bool has_level = reason.within != NetworkLevel::kAnywhere;
  const std::string level =
      has_level ? fmt::format(" in one {}", to_string(reason.within)) : std::string();
  const std::string text =
      fmt::format("needs {} nodes with {}{}; {} {} {}", reason.nodes_needed, part, level,
                  able == 0 ? "none" : std::to_string(able), able <= 1 ? "has" : "have",
                  reason.gpus_per_node == 1 || reason.gpus_per_node == 0 ? "it" : "them");
  if (able < reason.nodes_needed) return text;
  return text + (has_level ? fmt::format(", but not{}", level)
                           : std::string(", but not with GPUs of one type"));
}

std::string describe_queue(const WaitReason& reason, const NameOfJob& name_of) {
  if (reason.jobs_ahead == 0) return {};
  std::string text = counted(reason.jobs_ahead, "job", "jobs") + " ahead";
  const std::string first = reason.blocked_by.valid() ? name_of(reason.blocked_by) : std::string();
  if (first.empty()) return text;
  return text + fmt::format(", {} {}", reason.jobs_ahead == 1 ? "which is" : "the first is", first);
}

// "enough is free, but it is kept for job 12, which starts there by 2026-11-22T18:00:00Z"
std::string describe_kept(const WaitReason& reason, const NameOfJob& name_of) {
  if (!reason.kept_for.valid()) return {};
  const std::string name = name_of(reason.kept_for);
  return fmt::format("enough is free, but it is kept for {}, which starts there {}",
                     name.empty() ? "a job of another user" : "job " + name,
                     reason.kept_until.is_set() ? "by " + base::utc(reason.kept_until)
                                                : std::string("at any moment"));
}

std::string describe_preemption(const WaitReason& reason, const NameOfJob& name_of) {
  if (reason.stopping.empty()) return "enough has been freed for it by preemption";
  std::string text =
      counted(reason.stopping.size(), "job is", "jobs are") + " being stopped for it";
  std::string_view separator = ": ";
  for (const JobId job : reason.stopping) {
    const std::string name = name_of(job);
    if (!name.empty()) text += fmt::format("{}{}", std::exchange(separator, ", "), name);
  }
  return text;
}

// "waits for job 12 to end COMPLETED; it is RUNNING"
std::string describe_dependency(const WaitReason& reason, const NameOfJob& name_of) {
  constexpr std::string_view kEnds[kDependencyKinds] = {
      "end COMPLETED", "end",           "end in a state other than COMPLETED",
      "start",         "end COMPLETED", "end"};
  const Dependency& dependency = *reason.waits_for;
  if (dependency.kind == DependencyKind::kSingleton) {
    return "waits until no earlier job of its name and user is left (singleton)";
  }
  const std::string_view how = kEnds[static_cast<std::size_t>(dependency.kind)];
  if (dependency.on.whole_array) {
    return fmt::format("waits for array {} to {}; {} not ended yet", dependency.on.job.value, how,
                       counted(reason.target.open, "job of it has", "jobs of it have"));
  }
  const std::string name = name_of(dependency.on.job);
  return fmt::format("waits for job {} to {}; it is {}",
                     name.empty() ? std::to_string(dependency.on.job.value) : name, how,
                     to_string(reason.target_state));
}

// "reservation driver-update keeps it back from … to …"
std::string describe_reservation(const WaitReason& reason) {
  if (reason.code != WaitCode::kReserved) return {};
  if (reason.is_own_reservation) {
    return fmt::format("its reservation {} begins at {}", reason.reservation,
                       base::utc(reason.reservation_begin));
  }
  return fmt::format("reservation {} keeps it back from {} to {}", reason.reservation,
                     base::utc(reason.reservation_begin), base::utc(reason.reservation_end));
}

std::string joined(std::initializer_list<std::string> parts) {
  std::string text;
  for (const std::string& part : parts) {
    if (part.empty()) continue;
    if (!text.empty()) text += "; ";
    text += part;
  }
  return text;
}

std::string_view opening(WaitCode code) {
  switch (code) {
    case WaitCode::kNotEvaluated:
      return "the scheduler has not considered it yet";
    case WaitCode::kBackoff:
      return "waits until its next attempt is due";
    case WaitCode::kHeldByUser:
      return "held by its owner until it is released (jobs release)";
    case WaitCode::kHeldByAdministrator:
      return "held by an operator; an operator or a coordinator of its team can release it";
    case WaitCode::kNoNode:
      return "no node that is up could hold it, even with nothing else running";
    case WaitCode::kNoCapacity:
    case WaitCode::kPriority:
    case WaitCode::kPreempting:
    case WaitCode::kBeginTime:
    case WaitCode::kDependency:
    case WaitCode::kArrayLimit:
    case WaitCode::kQuota:
    case WaitCode::kReserved:
    case WaitCode::kHeldByPlatform:
      return {};
  }
  CHECK(false);
  std::unreachable();
}

std::string_view describe(HeldFor held_for) {
  switch (held_for) {
    case HeldFor::kProlog:
      return "held because the site's prolog failed for it too often (see its attempts in jobs "
             "describe), until it is released (jobs release)";
    case HeldFor::kEnvironment:
      return "held because its environment variables were lost when the store was damaged: cancel "
             "it and submit it again";
    case HeldFor::kRepair:
      return "held because the store was damaged and lost what happened to it: it may have run. "
             "Release it (jobs release) or cancel it";
  }
  CHECK(false);
  std::unreachable();
}

}  // namespace

std::string_view to_string(WaitCode code) {
  switch (code) {
    case WaitCode::kNotEvaluated:
      return "NOT_EVALUATED";
    case WaitCode::kNoCapacity:
      return "NO_CAPACITY";
    case WaitCode::kPriority:
      return "PRIORITY";
    case WaitCode::kBackoff:
      return "BACKOFF";
    case WaitCode::kHeldByUser:
      return "HELD_BY_USER";
    case WaitCode::kHeldByAdministrator:
      return "HELD_BY_ADMINISTRATOR";
    case WaitCode::kNoNode:
      return "NO_NODE";
    case WaitCode::kHeldByPlatform:
      return "HELD_BY_PLATFORM";
    case WaitCode::kPreempting:
      return "PREEMPTING";
    case WaitCode::kBeginTime:
      return "BEGIN_TIME";
    case WaitCode::kDependency:
      return "DEPENDENCY";
    case WaitCode::kArrayLimit:
      return "ARRAY_LIMIT";
    case WaitCode::kQuota:
      return "QUOTA";
    case WaitCode::kReserved:
      return "RESERVED";
  }
  CHECK(false);
  std::unreachable();
}

std::string_view to_string(Shortage shortage) {
  switch (shortage) {
    case Shortage::kExcluded:
      return "excluded";
    case Shortage::kEngine:
      return "other_engine";
    case Shortage::kCapacity:
      return "other_capacity";
    case Shortage::kNodeState:
      return "not_up";
    case Shortage::kGpuType:
      return "other_gpu_type";
    case Shortage::kGpuMemory:
      return "gpu_memory_short";
    case Shortage::kGpusOffline:
      return "gpus_offline";
    case Shortage::kGpus:
      return "gpus_short";
    case Shortage::kNotShared:
      return "gpus_not_shared";
    case Shortage::kKeptFromRoot:
      return "gpus_kept_from_root";
    case Shortage::kSharedByOthers:
      return "gpus_shared_by_others";
    case Shortage::kGpuShare:
      return "gpu_share_short";
    case Shortage::kGpuPartMemory:
      return "gpu_part_memory_short";
    case Shortage::kSockets:
      return "gpus_across_sockets";
    case Shortage::kCpus:
      return "cpus_short";
    case Shortage::kMemory:
      return "memory_short";
    case Shortage::kFits:
      return "fits";
    case Shortage::kReserved:
      return "reserved";
  }
  CHECK(false);
  std::unreachable();
}

std::string describe(const WaitReason& reason) {
  return describe(reason, [](JobId job) { return std::to_string(job.value); });
}

std::string describe(const WaitReason& reason, const NameOfJob& name_of) {
  const std::string counts = describe_counts(reason.counts);
  const std::string queue = describe_queue(reason, name_of);
  // Other types are left to it than those that a limit by type keeps it from.
  const std::string by_type = reason.quota ? describe(*reason.quota) : std::string();
  const std::string surplus = reason.surplus ? describe(*reason.surplus) : std::string();
  if (reason.code == WaitCode::kPriority) {
    const std::string text = joined({describe_kept(reason, name_of), surplus, by_type, queue});
    return text.empty() ? "jobs ahead of it go first" : text;
  }
  if (reason.code == WaitCode::kPreempting) return describe_preemption(reason, name_of);
  if (reason.code == WaitCode::kHeldByPlatform) return std::string(describe(reason.held_for));
  if (reason.code == WaitCode::kBeginTime) {
    return fmt::format("starts no earlier than {}", base::utc(reason.not_before));
  }
  if (reason.code == WaitCode::kDependency && reason.waits_for) {
    return describe_dependency(reason, name_of);
  }
  if (reason.code == WaitCode::kArrayLimit) {
    return fmt::format("at most {} jobs of array {} may be active or in the queue at once",
                       reason.array_limit, reason.array_id.value);
  }
  if (reason.code == WaitCode::kQuota && reason.quota) return joined({by_type, surplus});
  const std::string reservation = describe_reservation(reason);
  if (reason.is_own_reservation) return reservation;
  const std::string gang =
      reason.code == WaitCode::kNoCapacity ? describe_gang(reason) : std::string();
  std::string text = joined(
      {reservation, std::string(opening(reason.code)), gang, counts, surplus, by_type, queue});
  return text.empty() ? "no node has what it needs free" : text;
}

}  // namespace gpu_platform::model
