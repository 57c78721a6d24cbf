#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "api/channel_source.h"
#include "bin/channel_log.h"
#include "controller/snapshot.h"
#include "execution/access_router.h"
#include "logging/log.h"

namespace gpu_platform::bin {

// Channels into attempts, by the engine that each is in. Begin and end of each are logged.
class EngineChannels : public api::ChannelSource {
 public:
  // `access` and `log` outlive this; `snapshot` gives the newest.
  using Snapshots = std::function<std::shared_ptr<const controller::Snapshot>()>;
  EngineChannels(const execution::AccessRouter& access, Snapshots snapshot, logging::Log& log)
      : access_(access), snapshot_(std::move(snapshot)), log_(log) {}
  void open(model::ChannelOrder order, Opened opened) override {
    const std::uint64_t number = ++last_;
    auto then = [&log = log_, order, number,
                 opened = std::move(opened)](base::Result<os::Descriptor> channel) {
      if (!channel) return opened(std::unexpected(std::move(channel).error()));
      opened(api::ChannelSocket(channel->release(),
                                std::make_shared<const ChannelLog>(log, number, order)));
    };
    const auto snapshot = snapshot_();
    const model::Job* job = snapshot->jobs.find(order.attempt.job.value);
    execution::AttemptAccess& engine =
        job != nullptr ? access_.of(*job, order.attempt.attempt) : access_.of_unknown();
    engine.open_channel(std::move(order), std::move(then));
  }

 private:
  const execution::AccessRouter& access_;
  const Snapshots snapshot_;
  logging::Log& log_;
  std::atomic<std::uint64_t> last_ = 0;  // number of the latest channel
};

}  // namespace gpu_platform::bin
