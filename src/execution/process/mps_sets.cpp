#include "execution/process/mps_sets.h"

#include <algorithm>

#include "execution/process/gpu_resets.h"
#include "model/job_spec.h"

namespace gpu_platform::execution {

namespace {

bool is_client(const LaunchGpu& gpu) {
  return gpu.grant.mode == model::ShareMode::kMps;
}

// Rounded down: the jobs on a GPU have no more than all of it together. A part is never nothing.
node::MpsJob limits_of(model::AttemptId attempt, const model::GpuGrant& grant) {
  const std::int64_t percent = grant.share.value() * 100 / base::kWholeGpu.value();
  const std::int64_t mib = grant.memory.value() / base::kMiB.value();
  return {attempt, static_cast<std::uint32_t>(std::clamp<std::int64_t>(percent, 1, 100)),
          static_cast<std::uint32_t>(std::clamp<std::int64_t>(mib, 1, UINT32_MAX))};
}

}  // namespace

bool is_mps_client(const StartOrder& order) {
  return std::ranges::any_of(order.nodes, [](const LaunchNode& node) {
    return std::ranges::any_of(node.gpus, is_client);
  });
}

void MpsSets::join(const StartOrder& order) {
  if (!can_serve()) return;
  for (const LaunchNode& node : order.nodes) {
    for (const LaunchGpu& gpu : node.gpus) {
      if (!is_client(gpu)) continue;
      const Key key{gpu.info.uuid, order.spec->uid};
      Server& server = servers_[key];
      if (node.emulated) server.board = board_files_of(options_.boards, node.node_name);
      server.jobs[order.attempt] = limits_of(order.attempt, gpu.grant);
      changed_.insert(key);
    }
  }
}

void MpsSets::leave(model::AttemptId attempt) {
  for (auto& [key, server] : servers_) {
    server.ready.erase(attempt);
    if (server.jobs.erase(attempt) != 0) changed_.insert(key);
  }
  std::erase_if(servers_, [](const auto& entry) { return entry.second.jobs.empty(); });
}

void MpsSets::tell_all_again() {
  told_.clear();
  for (auto& [key, server] : servers_) {
    server.ready.clear();
    changed_.insert(key);
  }
}

node::MpsServer MpsSets::message_for(const Key& key) const {
  node::MpsServer message;
  message.gpu = key.gpu;
  message.uid = key.uid;
  message.program = options_.control;
  message.private_folders = options_.private_folders;
  const auto found = servers_.find(key);
  if (found == servers_.end()) return message;
  message.board = found->second.board;
  for (const auto& [attempt, job] : found->second.jobs) {
    if (message.jobs.size() == node::kMaxMpsJobs) break;
    message.jobs.push_back(job);
  }
  return message;
}

std::vector<node::MpsServer> MpsSets::take_changes() {
  std::vector<node::MpsServer> changes;
  for (const Key& key : changed_) {
    node::MpsServer message = message_for(key);
    const auto told = told_.find(key);
    const bool is_known = told != told_.end() && told->second == message;
    if (is_known || (message.jobs.empty() && told == told_.end())) continue;
    if (message.jobs.empty()) {
      message.board = told->second.board;
      told_.erase(told);
    } else {
      told_[key] = message;
    }
    changes.push_back(std::move(message));
  }
  changed_.clear();
  return changes;
}

// An answer may be one to an earlier set: it says nothing of those that were not in it. Without any
// it speaks of all.
std::vector<model::AttemptId> MpsSets::take(const node::MpsState& state) {
  std::vector<model::AttemptId> concerned;
  const auto found = servers_.find({state.gpu, state.uid});
  if (found == servers_.end()) return concerned;
  Server& server = found->second;
  server.ready.clear();
  if (state.is_ready) server.folder = state.folder;
  const bool speaks_of_all = !state.is_ready && state.jobs.empty();
  for (const auto& [attempt, job] : server.jobs) {
    const bool is_named = std::ranges::find(state.jobs, attempt) != state.jobs.end();
    if (!is_named && !speaks_of_all) continue;
    if (state.is_ready) server.ready.insert(attempt);
    concerned.push_back(attempt);
  }
  return concerned;
}

const std::pair<const MpsSets::Key, MpsSets::Server>* MpsSets::server_of(
    model::AttemptId attempt) const {
  const auto found = std::ranges::find_if(
      servers_, [&](const auto& entry) { return entry.second.jobs.contains(attempt); });
  return found == servers_.end() ? nullptr : &*found;
}

bool MpsSets::is_ready(model::AttemptId attempt) const {
  const auto* const entry = server_of(attempt);
  return entry != nullptr && entry->second.ready.contains(attempt);
}

std::optional<MpsClient> MpsSets::client_of(model::AttemptId attempt) const {
  const auto* const entry = server_of(attempt);
  if (entry == nullptr || entry->second.folder.empty()) return std::nullopt;
  const node::MpsJob& job = entry->second.jobs.at(attempt);
  return MpsClient{entry->first.gpu, options_.control, entry->second.folder, job.percent,
                   job.memory_mib};
}

}  // namespace gpu_platform::execution
