#include "bin/alert_messenger.h"

#include <pthread.h>

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "logging/line.h"
#include "os/clock.h"

namespace gpu_platform::bin {

namespace {

constexpr std::size_t kMaxUnsent = 1'000;

outbound::Delivery delivery_of(const alerts::Notification& notification,
                               const outbound::Channel& channel, const alerts::Site& site) {
  outbound::Delivery delivery;
  delivery.channel = channel.name;
  delivery.key = notification.key;
  delivery.made = os::wall_now();
  delivery.subject = alerts::subject_of(notification, site);
  delivery.content_type = "application/json";
  switch (channel.kind) {
    case outbound::ChannelKind::kSlack:
      delivery.body = alerts::slack_json(notification, site);
      break;
    case outbound::ChannelKind::kAlertmanager:
      delivery.body = alerts::alertmanager_json(notification, site, delivery.made);
      break;
    case outbound::ChannelKind::kMail:
      delivery.content_type = "text/plain; charset=utf-8";
      delivery.body = alerts::text_of(notification, site);
      break;
    case outbound::ChannelKind::kWebhook:
    case outbound::ChannelKind::kCommand:
      delivery.body = alerts::webhook_json(notification, site);
      break;
  }
  return delivery;
}

std::set<std::string> busy_channels(const std::vector<outbound::ChannelState>& states) {
  std::set<std::string> names;
  for (const outbound::ChannelState& state : states) {
    if (state.waiting > 0) names.insert(state.channel);
  }
  return names;
}

}  // namespace

AlertMessenger::AlertMessenger(std::unique_ptr<outbound::Outbox> outbox,
                               std::vector<outbound::Channel> channels, alerts::Site site)
    : outbox_(std::move(outbox)), channels_(std::move(channels)), site_(std::move(site)) {}

AlertMessenger::~AlertMessenger() {
  stop();
}

void AlertMessenger::start() {
  tester_ = std::thread([this] { run_tests(); });
  pthread_setname_np(tester_.native_handle(), "alert-tests");
}

void AlertMessenger::stop() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  wake_.notify_all();
  if (tester_.joinable()) tester_.join();
}

void AlertMessenger::set(std::vector<outbound::Channel> channels, alerts::Site site) {
  outbox_->set_channels(channels);
  const std::lock_guard lock(mutex_);
  channels_ = std::move(channels);
  site_ = std::move(site);
}

base::Result<outbound::Delivery> AlertMessenger::rendered(
    const alerts::Notification& notification) const {
  const std::lock_guard lock(mutex_);
  const auto channel = std::ranges::find(channels_, notification.channel, &outbound::Channel::name);
  if (channel == channels_.end()) {
    return base::fail(base::ErrorCode::kNotFound,
                      fmt::format("there is no channel {}", notification.channel), "name");
  }
  outbound::Delivery delivery = delivery_of(notification, *channel, site_);
  if (!outbound::tells_owners(*channel)) return delivery;
  delivery.to = outbound::recipients_for(*channel, notification.user);
  if (!delivery.to.empty()) return delivery;
  return base::fail(base::ErrorCode::kFailedPrecondition,
                    fmt::format("the channel {} makes no address of the user {}", channel->name,
                                logging::quoted(notification.user)));
}

void AlertMessenger::send(const std::vector<alerts::Notification>& notifications) {
  if (!notifications.empty()) add_unsent(notifications);
  while (!unsent_.empty() && put(unsent_.front())) unsent_.pop_front();
}

void AlertMessenger::add_unsent(const std::vector<alerts::Notification>& notifications) {
  const std::set<std::string> busy = busy_channels(outbox_->states());
  const bool is_full = !unsent_.empty();
  for (const alerts::Notification& each : notifications) {
    if (each.is_repeated && (is_full || busy.contains(each.channel))) continue;
    auto delivery = rendered(each);
    if (delivery) {
      unsent_.push_back(*std::move(delivery));
      if (unsent_.size() > kMaxUnsent) unsent_.pop_front();
    } else if (delivery.error().code != base::ErrorCode::kNotFound) {
      spdlog::warn("alerts message is dropped: {}", delivery.error().message);
    }
  }
}

// Returns whether the outbox has it, or never will take it.
bool AlertMessenger::put(const outbound::Delivery& delivery) {
  const auto put = outbox_->put(delivery);
  const bool was_full = std::exchange(is_full_, false);
  if (put || put.error().code == base::ErrorCode::kNotFound) return true;
  if (put.error().code == base::ErrorCode::kInvalidArgument) {
    spdlog::warn("alerts channel={} message is dropped: {}", delivery.channel, put.error().message);
    return true;
  }
  is_full_ = true;
  // Once, however long it takes and however many wait.
  if (!was_full) {
    spdlog::warn("alerts channel={} messages are kept in memory: {}", delivery.channel,
                 put.error().message);
  }
  return false;
}

std::vector<api::AlertChannelView> AlertMessenger::views() const {
  std::vector<api::AlertChannelView> views;
  const std::vector<outbound::ChannelState> states = outbox_->states();
  const std::lock_guard lock(mutex_);
  for (const outbound::ChannelState& state : states) {
    api::AlertChannelView view;
    view.name = state.channel;
    const auto channel = std::ranges::find(channels_, state.channel, &outbound::Channel::name);
    if (channel != channels_.end()) view.kind = outbound::to_string(channel->kind);
    view.waiting = state.waiting;
    view.sent = state.sent;
    view.refused = state.refused;
    view.dropped = state.dropped;
    view.oldest = state.oldest;
    view.last_sent = state.last_sent;
    view.problem = state.problem;
    views.push_back(std::move(view));
  }
  return views;
}

void AlertMessenger::test(const std::string& channel, const std::string& by,
                          std::function<void(base::Status)> done) {
  auto delivery = rendered(alerts::test_notification(channel, by, os::wall_now()));
  if (!delivery) return done(std::unexpected(std::move(delivery).error()));
  Test test{*std::move(delivery), std::move(done)};
  {
    const std::lock_guard lock(mutex_);
    if (!is_stopping_) {
      tests_.push_back(std::move(test));
      wake_.notify_one();
      return;
    }
  }
  test.done(base::fail(base::ErrorCode::kUnavailable, "the daemon stops"));
}

void AlertMessenger::run_tests() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return is_stopping_ || !tests_.empty(); });
    if (tests_.empty()) return;
    const Test test = std::move(tests_.front());
    tests_.pop_front();
    const bool is_stopping = is_stopping_;
    lock.unlock();
    base::Status went = is_stopping ? base::fail(base::ErrorCode::kUnavailable, "the daemon stops")
                                    : outbox_->try_now(test.delivery);
    if (!went) {
      went = base::fail(base::ErrorCode::kUnavailable,
                        fmt::format("the message did not go: {}", went.error().message));
    }
    test.done(std::move(went));
    lock.lock();
  }
}

}  // namespace gpu_platform::bin
