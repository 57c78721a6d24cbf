#include "shims/text/shared_gres.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/parse.h"
#include "shims/text/slurm_values.h"

namespace gpu_platform::shims {

namespace {

constexpr std::string_view kShard = "shard";
constexpr std::string_view kMps = "mps";
constexpr const char* kPartLabel = "slurm.gres";  // "shard.4": its name, and how many a GPU has
constexpr std::uint64_t kThousandths = 1000;

std::string_view without_prefix(std::string_view item) {
  if (item.starts_with("gres/")) item.remove_prefix(5);
  return item;
}

// Its name before the count; empty if it is another resource.
std::string_view shared_name(std::string_view item) {
  const std::string_view name = item.substr(0, item.find_first_of(":="));
  return name == kShard || name == kMps ? name : std::string_view();
}

}  // namespace

bool is_shared_gres(std::string_view item) {
  return !shared_name(without_prefix(item)).empty();
}

base::Result<std::optional<SharedGres>> parse_shared_gres(std::string_view gres) {
  std::optional<SharedGres> found;
  for (const std::string& each : comma_separated(gres)) {
    const std::string_view item = without_prefix(each);
    const std::string_view name = shared_name(item);
    if (name.empty()) continue;
    if (found) {
      return base::invalid({}, fmt::format("'{}' asks for two parts of GPUs; a job has one", gres));
    }
    std::uint64_t count = 1;
    if (item.size() > name.size()) {
      const auto read = base::parse_count(item.substr(name.size() + 1), 0, 1'000'000);
      if (!read) {
        return base::invalid({},
                             fmt::format("'{}' is not a part of a GPU: write {}:N", each, name));
      }
      count = *read;
    }
    if (count > 0) found = SharedGres{name == kMps, static_cast<std::uint32_t>(count)};
  }
  return found;
}

base::Status put_shared_gres(const SharedGres& part, std::uint32_t shards_per_gpu,
                             v1::JobSpec& spec) {
  const std::uint32_t all = part.is_mps ? kMpsPerGpu : std::max(1U, shards_per_gpu);
  const std::string_view name = part.is_mps ? kMps : kShard;
  if (part.count > all) {
    return base::invalid("--gres",
                         fmt::format("{}:{} is more than one GPU, which has {}; write gpu:N for "
                                     "whole GPUs",
                                     name, part.count, all));
  }
  spec.set_gpus(1);
  if (part.count == all) return {};
  // Rounded down, so that as many as a GPU has fit on it.
  const std::uint64_t share = std::max<std::uint64_t>(1, kThousandths * part.count / all);
  spec.set_gpu_share(static_cast<double>(share) / static_cast<double>(kThousandths));
  if (part.is_mps) spec.set_share_mode(v1::SHARE_MODE_MPS);
  (*spec.mutable_labels())[kPartLabel] = fmt::format("{}.{}", name, all);
  return {};
}

std::string shared_gres_of(const v1::JobSpec& spec) {
  if (!spec.has_gpu_share() || spec.gpu_share() >= 1) return {};
  std::string_view name = kMps;
  std::uint64_t all = kMpsPerGpu;
  if (const auto label = spec.labels().find(kPartLabel); label != spec.labels().end()) {
    const std::string& text = label->second;
    const std::size_t dot = std::min(text.find('.'), text.size());
    const auto count = base::parse_count(text.substr(std::min(dot + 1, text.size())), 1, 1'000'000);
    if (count && text.substr(0, dot) == kShard) name = kShard;
    if (count) all = *count;
  }
  const auto count = std::llround(spec.gpu_share() * static_cast<double>(all));
  return fmt::format("{}:{}", name, std::max<long long>(1, count));
}

}  // namespace gpu_platform::shims
