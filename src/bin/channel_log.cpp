#include "bin/channel_log.h"

#include <fmt/format.h>

#include "cli/text/text.h"
#include "logging/line.h"

namespace gpu_platform::bin {

namespace {

std::string kind_of(const model::ChannelOrder& order) {
  if (order.port != 0) return fmt::format("kind=port port={}", order.port);
  if (order.command.empty()) return "kind=attach";
  const std::string word = logging::one_line(order.command.front(), logging::kLongestValue);
  return fmt::format("kind=exec command={}", cli::shell_quoted({word}));
}

}  // namespace

ChannelLog::ChannelLog(logging::Log& log, std::uint64_t number, const model::ChannelOrder& order)
    : log_(log),
      source_(logging::of_user(order.by_uid)),
      what_(fmt::format("channel={} job={} attempt={} by={} {}", number, order.attempt.job.value,
                        order.attempt.attempt, order.by, kind_of(order))) {
  log_.info(source_, "{} begins", what_);
}

ChannelLog::~ChannelLog() {
  log_.info(source_, "{} ends", what_);
}

}  // namespace gpu_platform::bin
