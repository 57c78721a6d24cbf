#include "bin/site_facts.h"

#include <sys/statvfs.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "bin/alert_facts.h"

namespace gpu_platform::bin {

namespace {

using alerts::Fact;
using alerts::Signal;

constexpr base::Duration kLongestDelivery = base::minutes(10);
constexpr base::Duration kCertificatePause = base::minutes(10);
constexpr base::Duration kDay = base::hours(24);

std::shared_ptr<const alerts::Subject> site_subject(std::string key, alerts::Labels labels = {}) {
  return std::make_shared<const alerts::Subject>(
      alerts::Subject{std::move(key), std::move(labels)});
}

Fact site_fact(Signal signal, std::optional<std::int64_t> value, std::string detail = {}) {
  return {.signal = signal,
          .subject = site_subject(std::string(alerts::row_of(signal).name)),
          .value = value,
          .detail = std::move(detail)};
}

std::optional<std::int64_t> free_percent(const std::string& path) {
  struct statvfs about{};
  if (statvfs(path.c_str(), &about) != 0 || about.f_blocks == 0) return std::nullopt;
  return static_cast<std::int64_t>(about.f_bavail * 100 / about.f_blocks);
}

Fact delivery_fact(const outbound::ChannelState& channel, base::Instant now) {
  const bool is_late = channel.oldest && now - *channel.oldest > kLongestDelivery;
  return {.signal = Signal::kDelivery,
          .subject = site_subject(channel.channel, {{"channel", channel.channel}}),
          .value = is_late ? 1 : 0,
          .detail = is_late ? channel.problem : std::string()};
}

}  // namespace

std::vector<Fact> SiteFacts::of(const controller::Snapshot& snapshot,
                                std::span<const outbound::ChannelState> channels,
                                alerts::Moment now) {
  std::vector<Fact> facts;
  facts.push_back(site_fact(Signal::kQueueWait,
                            longest_wait(snapshot, now.at).value() / base::seconds(1).value()));
  for (Fact& fact : budget_facts(snapshot, now.at)) facts.push_back(std::move(fact));
  facts.push_back(site_fact(Signal::kDiskLow, free_percent(options_.data_dir)));
  if (options_.history != nullptr) {
    const std::string problem = options_.history->coverage().problem;
    facts.push_back(site_fact(Signal::kHistory, problem.empty() ? 0 : 1, problem));
  }
  if (options_.certificate_end) facts.push_back(certificate(now));
  for (const outbound::ChannelState& channel : channels) {
    facts.push_back(delivery_fact(channel, now.at));
  }
  return facts;
}

Fact SiteFacts::certificate(alerts::Moment now) {
  const bool is_old =
      !certificate_looked_.is_set() || now.steady - certificate_looked_ >= kCertificatePause;
  if (is_old) {
    certificate_looked_ = now.steady;
    certificate_end_ = options_.certificate_end();
  }
  std::optional<std::int64_t> days;
  if (certificate_end_.is_set()) days = (certificate_end_ - now.at).value() / kDay.value();
  return site_fact(Signal::kCertificate, days);
}

}  // namespace gpu_platform::bin
