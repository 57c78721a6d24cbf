#include <algorithm>

#include <fmt/format.h>

#include "base/parse.h"
#include "cli/words/job_options.h"

// The value of --gpus: a number of GPUs, or a part of one.

namespace gpu_platform::cli {

namespace {

constexpr std::uint64_t kMaxGpus = 65535;

bool is_decimal(const std::string& text) {
  return text.find('.') != std::string::npos &&
         std::ranges::all_of(text, [](char c) { return c == '.' || (c >= '0' && c <= '9'); });
}

// What is wrong with a number of GPUs that parse_count() refuses.
std::string error_of_count(const std::string& text, const base::Error& error) {
  const bool is_whole = std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  if (is_whole) return error.message;  // too large
  return error.message + ", or a part from 0.001 to 0.999 with at most three decimals";
}

// "1.5": more than one GPU, and not whole.
std::unexpected<base::Error> beyond_one(const std::string& flag, const std::string& text) {
  const auto below = base::parse_count(text.substr(0, text.find('.')), 0, kMaxGpus - 1);
  const std::uint64_t next = below ? *below + 1 : 2;
  return base::invalid(
      fmt::format("{} {}", flag, text),
      fmt::format("a part is for one GPU; write {} {} or a part such as {} 0.5", flag, next, flag));
}

base::Status put_part_of_gpu(v1::JobSpec& spec, const std::string& flag, const std::string& text,
                             std::uint64_t nodes) {
  const std::string whole = text.substr(0, text.find('.'));
  if (std::ranges::any_of(whole, [](char c) { return c != '0'; })) return beyond_one(flag, text);
  const auto share = base::parse_gpu_share(text);
  if (!share) return base::invalid(flag, share.error().message);
  if (nodes > 1 || spec.allow_cross_node()) {
    return base::invalid(fmt::format("{} {}", flag, text),
                         fmt::format("a part of a GPU is on one node; leave out --nodes and "
                                     "--allow-cross-node, or write whole GPUs such as {} {}",
                                     flag, std::max<std::uint64_t>(nodes, 2)));
  }
  spec.set_gpus(1);
  spec.set_gpu_share(static_cast<double>(share->value()) /
                     static_cast<double>(base::kWholeGpu.value()));
  return {};
}

// Of an earlier job: whole GPUs keep nothing of its part.
void clear_part(v1::JobSpec& spec, const JobOptions& job) {
  spec.clear_gpu_share();
  if (!job.has("--share") && spec.share_mode() != v1::SHARE_MODE_NONE) spec.clear_share_mode();
  if (!job.has("--slice")) spec.clear_slice_seconds();
}

}  // namespace

base::Status put_gpu_count(v1::JobSpec& spec, const JobOptions& job, std::uint64_t nodes) {
  for (const char* const flag : {"--gpus", "--gpus-per-node"}) {
    const std::optional<std::string>& text = job.text(flag);
    if (!text) continue;
    if (is_decimal(*text)) return put_part_of_gpu(spec, flag, *text, nodes);
    const auto count = base::parse_count(*text, 0, kMaxGpus);
    if (!count) return base::invalid(flag, error_of_count(*text, count.error()));
    spec.set_gpus(static_cast<std::uint32_t>(*count));
    clear_part(spec, job);
  }
  if (!job.has("--gpus")) return {};
  if (spec.gpus() % nodes != 0) {
    return base::invalid("--gpus", fmt::format("{} GPUs cannot be divided among {} nodes; say "
                                               "--gpus-per-node",
                                               spec.gpus(), nodes));
  }
  spec.set_gpus(static_cast<std::uint32_t>(spec.gpus() / nodes));
  return {};
}

}  // namespace gpu_platform::cli
