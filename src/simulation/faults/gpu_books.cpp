#include "simulation/faults/gpu_books.h"

#include <utility>

#include <fmt/format.h>

namespace gpu_platform::simulation {

namespace {

std::string name_of_gpu(const std::pair<std::string, std::string>& gpu) {
  return fmt::format("GPU {} of node {}", gpu.second, gpu.first);
}

bool is_in_order(const model::LedgerLine& line) {
  return line.from < line.to && line.from <= line.started && line.started <= line.ended &&
         line.ended <= line.to;
}

// What its clock and its holders have not told yet.
std::int64_t untold_of(const model::Gpu& gpu, const controller::State& state) {
  const model::Millis now = model::millis_of(state.at);
  std::int64_t untold = gpu.clock.rest.value() * (now - model::millis_of(gpu.clock.since));
  for (const model::GpuHolder& holder : gpu.holders) {
    const model::Attempt* const attempt = controller::find_attempt(state, holder.attempt);
    if (attempt == nullptr) continue;  // an invariant's
    untold += holder.share.value() * (now - model::millis_of(attempt->requested_at));
  }
  return untold;
}

}  // namespace

std::optional<std::string> GpuBooks::take(std::span<const model::LedgerLine> lines,
                                          const controller::State& state) {
  const model::Millis now = model::millis_of(state.at);
  std::optional<std::string> wrong;
  for (const model::LedgerLine& line : lines) {
    if (auto found = take_line(line, now); found && !wrong) wrong = std::move(found);
  }
  state.nodes.for_each([&](std::uint64_t, const model::Node& node) {
    for (const model::Gpu& gpu : node.gpus) {
      if (auto found = check_gpu(node, gpu, state); found && !wrong) wrong = std::move(found);
    }
  });
  if (auto found = close_those_gone(now); found && !wrong) wrong = std::move(found);
  return wrong;
}

std::optional<std::string> GpuBooks::take_line(const model::LedgerLine& line, model::Millis now) {
  if (line.kind == model::LedgerKind::kCorrection) return std::nullopt;
  if (!is_in_order(line) || line.to > now) {
    return fmt::format("a line of node {} has the times {}, {}, {}, {} at {}", line.node, line.from,
                       line.started, line.ended, line.to, now);
  }
  if (line.gpu_uuid.empty()) return std::nullopt;  // of a job without GPUs
  const auto account = accounts_.find({line.node, line.gpu_uuid});
  if (account == accounts_.end() || line.from < account->second.since) {
    return fmt::format("a line is of {} before it was seen",
                       name_of_gpu({line.node, line.gpu_uuid}));
  }
  account->second.told += line.share.value() * (line.to - line.from);
  return std::nullopt;
}

std::optional<std::string> GpuBooks::check_gpu(const model::Node& node, const model::Gpu& gpu,
                                               const controller::State& state) {
  const model::Millis now = model::millis_of(state.at);
  const auto entry = accounts_.try_emplace({node.name, gpu.info.uuid}, Account{.since = now}).first;
  Account& account = entry->second;
  account.is_there = true;
  const std::int64_t told = account.told + untold_of(gpu, state);
  const std::int64_t was_there = base::kWholeGpu.value() * (now - account.since);
  if (told == was_there) return std::nullopt;
  return fmt::format("{} of {} share-milliseconds of {} are accounted for", told, was_there,
                     name_of_gpu(entry->first));
}

std::optional<std::string> GpuBooks::close_those_gone(model::Millis now) {
  std::optional<std::string> wrong;
  for (auto entry = accounts_.begin(); entry != accounts_.end();) {
    Account& account = entry->second;
    if (std::exchange(account.is_there, false)) {
      ++entry;
      continue;
    }
    if (account.told != base::kWholeGpu.value() * (now - account.since)) {
      wrong = fmt::format("{} is forgotten, and not all of its time is accounted for",
                          name_of_gpu(entry->first));
    }
    entry = accounts_.erase(entry);
  }
  return wrong;
}

}  // namespace gpu_platform::simulation
