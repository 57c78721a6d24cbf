#include "bin/channel_log.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "cli/text.h"

namespace gpu_platform::bin {

namespace {

std::string kind_of(const model::ChannelOrder& order) {
  if (order.port != 0) return fmt::format("kind=port port={}", order.port);
  if (order.command.empty()) return "kind=attach";
  return fmt::format("kind=exec command={}",
                     cli::shell_quoted({cli::harmless(order.command.front())}));
}

}  // namespace

ChannelLog::ChannelLog(std::uint64_t number, const model::ChannelOrder& order)
    : what_(fmt::format("channel={} job={} attempt={} by={} {}", number, order.attempt.job.value,
                        order.attempt.attempt, order.by, kind_of(order))) {
  spdlog::info("{} begins", what_);
}

ChannelLog::~ChannelLog() {
  spdlog::info("{} ends", what_);
}

}  // namespace gpu_platform::bin
