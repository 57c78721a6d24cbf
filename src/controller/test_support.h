#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/codec.h"
#include "controller/core.h"
#include "model/codec.h"
#include "model/command.h"
#include "model/node.h"
#include "store/store.h"

// Builders for the tests of this room.

namespace gpu_platform::controller::testing {

inline constexpr base::Instant kNoon(1'700'000'000'000'000'000);

inline const model::Caller kRoot = model::root_caller();
inline const model::Caller kOwner{.user = "ann", .uid = 1001, .door = model::Door::kUnixSocket};
inline const model::Caller kOtherUser{.user = "bob", .uid = 1002, .door = model::Door::kUnixSocket};
inline const model::Caller kAdministrator{"root", 0, model::Role::kAdmin, model::Reach::kAll,
                                          model::Door::kUnixSocket};

// The bytes that prices and the begin of accounts take at the end of a snapshot without budgets.
inline std::size_t money_bytes(const State& state) {
  std::string prices, bytes;
  model::append_price_book(*state.prices, prices);
  base::Encoder encoder(bytes);
  encoder.text(prices);
  encoder.u64(0);
  encoder.i64(state.accounts_since.unix_ns());
  return bytes.size();
}

inline model::NodeInfo node_info(std::string name, std::uint32_t gpus,
                                 std::string boot = "boot-1") {
  model::NodeInfo info;
  info.name = std::move(name);
  info.boot_id = std::move(boot);
  info.cpus = 64;
  info.memory = base::kGiB * 512;
  for (std::uint32_t i = 0; i < gpus; ++i) {
    model::GpuInfo gpu;
    gpu.uuid = info.name + "-" + std::to_string(i);
    gpu.model = "NVIDIA H100 80GB HBM3";
    gpu.type = "H100-80GB";
    gpu.memory = base::kGiB * 80;
    gpu.minor = i;
    info.gpus.push_back(std::move(gpu));
  }
  return info;
}

inline model::JobSpec spec(std::uint32_t gpus) {
  model::JobSpec spec;
  spec.name = "job";
  spec.user = "ann";
  spec.uid = 1001;
  spec.gid = 1001;
  spec.command = {"true"};
  spec.request.gpus = gpus;
  return spec;
}

inline model::Command submission(model::JobSpec spec, std::string environment = {}) {
  return {{spec.user, spec.uid}, model::SubmitJob{std::move(spec), std::move(environment)}};
}

inline model::Command stop(std::uint64_t job, bool without_grace = false) {
  return {{"ann", 1001},
          model::ActOnJob{model::JobId(job),
                          without_grace ? model::JobAction::kKill : model::JobAction::kCancel}};
}

inline execution::Ended ended(model::AttemptId attempt, std::uint8_t code, base::Instant at) {
  execution::Ended seen;
  seen.attempt = attempt;
  seen.at = at;
  seen.exit.code = code;
  return seen;
}

inline model::AttemptId attempt(std::uint64_t job, std::uint32_t number = 1) {
  return {model::JobId(job), number};
}

}  // namespace gpu_platform::controller::testing
