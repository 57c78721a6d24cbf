#include "bin/alert_part.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "base/parse.h"
#include "bin/alert_metrics.h"
#include "os/clock.h"

namespace gpu_platform::bin {

namespace {

using alerts::Fact;
using std::chrono::milliseconds;

constexpr milliseconds kPause{5'000};         // between two looks at all, at most
constexpr milliseconds kPublishedPause{250};  // at least
constexpr milliseconds kPendingPause{1'000};  // while an alert waits for time to pass
// While the thread is busy; what is left out counts as unknown.
constexpr std::size_t kMaxWaitingUses = 100'000;

alerts::Moment now_on_both() {
  return {os::wall_now(), base::Instant(os::boot_ns())};
}

std::string source_of(const std::string& node) {
  return "node " + node;
}

IdleWatch::Rules idle_rules_of(const AlertSettings& settings) {
  return {settings.idle, settings.idle_action, settings.warn_before};
}

}  // namespace

base::Result<std::unique_ptr<AlertPart>> AlertPart::open(
    Options options, const config::Configuration& configuration) {
  TRY_ASSIGN(AlertSettings settings, alert_settings_of(configuration));
  outbound::Outbox::Options queue;
  queue.folder = options.data_dir + "/outbox";
  queue.max_waiting = configuration.alert_max_waiting;
  queue.warn = [](std::string_view line) { spdlog::warn("alerts {}", line); };
  TRY_ASSIGN(auto outbox, outbound::Outbox::open(std::move(queue), settings.channels));
  return std::make_unique<AlertPart>(std::move(options), std::move(settings), std::move(outbox));
}

AlertPart::AlertPart(Options options, AlertSettings settings,
                     std::unique_ptr<outbound::Outbox> outbox)
    : options_(std::move(options)),
      messenger_(std::move(outbox), std::move(settings.channels), std::move(settings.site)),
      book_(settings.book),
      idle_rules_(idle_rules_of(settings)),
      node_facts_(options_.reading_of, options_.oldest_reading),
      idle_(options_.reading_of, options_.oldest_reading),
      site_facts_({options_.data_dir, options_.history, options_.certificate_end}) {
  restore();
}

AlertPart::~AlertPart() {
  stop();
}

void AlertPart::restore() {
  if (options_.notes == nullptr) return;
  std::vector<alerts::AlertBook::Note> notes;
  for (const char* const prefix : {"alert/", "silence/"}) {
    for (telemetry::Notes::Note& note : options_.notes->all(prefix)) {
      notes.push_back({std::move(note.name), std::move(note.bytes)});
    }
  }
  const std::size_t damaged = book_.restore(notes, now_on_both());
  if (damaged > 0) spdlog::warn("alerts notes={} could not be read", damaged);
}

void AlertPart::start() {
  thread_ = std::thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), "alerts");
  messenger_.start();
}

void AlertPart::stop() {
  {
    const std::lock_guard lock(wake_mutex_);
    is_stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  messenger_.stop();
}

void AlertPart::reload(const config::Configuration& configuration) {
  auto settings = alert_settings_of(configuration);
  if (!settings) {
    spdlog::warn("{}: {}; the former rules and channels stay in force", settings.error().field,
                 settings.error().message);
    return;
  }
  messenger_.set(std::move(settings->channels), std::move(settings->site));
  {
    const std::lock_guard lock(book_mutex_);
    idle_rules_ = idle_rules_of(*settings);
    book_.set(std::move(settings->book), now_on_both());
  }
  wake();
}

void AlertPart::wake() {
  {
    const std::lock_guard lock(wake_mutex_);
    has_changed_ = true;
  }
  wake_.notify_one();
}

void AlertPart::take(const telemetry::Frames& frames) {
  {
    const std::lock_guard lock(wake_mutex_);
    for (const telemetry::Frame& frame : *frames) {
      if (frame.subject.of == telemetry::Of::kGpu) work_.nodes.insert(frame.subject.node);
      const bool has_room = work_.uses.size() < kMaxWaitingUses;
      if (frame.subject.of == telemetry::Of::kUse && has_room) work_.uses.push_back(frame);
    }
    if (work_.nodes.empty()) return;
  }
  wake_.notify_one();
}

void AlertPart::published(const std::shared_ptr<const controller::Snapshot>&,
                          std::span<const model::EventRecord>, const controller::DepartedJobs&) {
  {
    const std::lock_guard lock(wake_mutex_);
    if (std::exchange(is_published_, true)) return;
  }
  wake_.notify_one();
}

AlertPart::SteadyClock::time_point AlertPart::next_turn() const {
  SteadyClock::time_point next = looked_ + (is_published_ ? kPublishedPause : pause_);
  if (due_) next = std::min(next, *due_);
  return next;
}

AlertPart::Work AlertPart::wait_for_work() {
  std::unique_lock lock(wake_mutex_);
  while (!is_stopping_ && work_.nodes.empty() && !has_changed_ &&
         SteadyClock::now() < next_turn()) {
    wake_.wait_until(lock, next_turn());
  }
  Work work = std::exchange(work_, {});
  has_changed_ = false;
  const auto now = SteadyClock::now();
  work.looks_at_all = now >= looked_ + (is_published_ ? kPublishedPause : pause_);
  if (work.looks_at_all) {
    looked_ = now;
    is_published_ = false;
  }
  return work;
}

void AlertPart::run() {
  while (true) {
    Work work = wait_for_work();
    {
      const std::lock_guard lock(wake_mutex_);
      if (is_stopping_) break;
    }
    judge(std::move(work));
    send_due();
    keep_changes();
  }
  keep_changes();
}

void AlertPart::judge(Work work) {
  const auto snapshot = options_.snapshot();
  const alerts::Moment now = now_on_both();
  for (const telemetry::Frame& use : work.uses) idle_.take_use(use);
  if (work.looks_at_all) return look_at_all(*snapshot, now);
  snapshot->nodes.for_each([&](std::uint64_t, const model::Node& node) {
    if (!work.nodes.contains(node.name)) return;
    const std::vector<Fact> facts = node_facts_.of(node, now.at);
    const std::lock_guard lock(book_mutex_);
    book_.take(source_of(node.name), facts, now);
  });
}

void AlertPart::look_at_all(const controller::Snapshot& snapshot, alerts::Moment now) {
  std::set<std::string> sources = {"jobs", "site"};
  snapshot.nodes.for_each([&](std::uint64_t, const model::Node& node) {
    sources.insert(source_of(node.name));
    const std::vector<Fact> facts = node_facts_.of(node, now.at);
    const std::lock_guard lock(book_mutex_);
    book_.take(source_of(node.name), facts, now);
  });
  IdleWatch::Rules rules;
  {
    const std::lock_guard lock(book_mutex_);
    rules = idle_rules_;
  }
  std::vector<IdleWatch::Act> acts;
  const std::vector<Fact> idle = idle_.look(snapshot, rules, now, acts);
  const std::vector<Fact> site = site_facts_.of(snapshot, messenger_.states(), now);
  {
    const std::lock_guard lock(book_mutex_);
    book_.take("jobs", idle, now);
    book_.take("site", site, now);
    for (const std::string& source : book_.sources()) {
      if (!sources.contains(source)) book_.forget(source, now);
    }
  }
  carry_out(acts);
}

void AlertPart::carry_out(const std::vector<IdleWatch::Act>& acts) {
  for (const IdleWatch::Act& act : acts) {
    if (!act.is_stop) {
      if (options_.warn) options_.warn(act);
      continue;
    }
    spdlog::info("idle job={} attempt={} is stopped", act.attempt.job.value, act.attempt.attempt);
    if (options_.sink == nullptr) continue;
    options_.sink->observe(execution::AllocationIdle{
        act.attempt, fmt::format("its GPUs were idle for {} more", base::written(act.idle_for))});
  }
}

void AlertPart::send_due() {
  std::vector<alerts::Notification> notifications;
  std::optional<base::Instant> next;
  bool has_pending = false;
  const alerts::Moment now = now_on_both();
  {
    const std::lock_guard lock(book_mutex_);
    notifications = book_.due(now);
    next = book_.next();
    has_pending = book_.has_pending();
  }
  messenger_.send(notifications);
  std::optional<SteadyClock::time_point> due;
  const auto in = [](base::Duration time) {
    return SteadyClock::now() + std::chrono::nanoseconds(std::max<std::int64_t>(time.value(), 0));
  };
  // News of a channel that has had its messages may be due and wait all the same.
  if (next) due = in(std::max(*next - now.steady, base::milliseconds(kPublishedPause.count())));
  const std::lock_guard lock(wake_mutex_);
  due_ = due;
  pause_ = has_pending ? kPendingPause : kPause;
}

void AlertPart::keep_changes() {
  std::vector<alerts::AlertBook::Note> changes;
  {
    const std::lock_guard lock(book_mutex_);
    changes = book_.take_changes();
  }
  if (options_.notes == nullptr) return;
  for (alerts::AlertBook::Note& note : changes) {
    if (note.bytes) {
      options_.notes->put(std::move(note.name), *std::move(note.bytes));
    } else {
      options_.notes->remove(std::move(note.name));
    }
  }
}

std::vector<alerts::Alert> AlertPart::alerts() const {
  const std::lock_guard lock(book_mutex_);
  return book_.alerts(os::wall_now());
}

std::optional<alerts::Alert> AlertPart::find(const std::string& id) const {
  const std::lock_guard lock(book_mutex_);
  return book_.find(id, os::wall_now());
}

std::vector<alerts::Rule> AlertPart::rules() const {
  const std::lock_guard lock(book_mutex_);
  return book_.rules();
}

std::vector<alerts::Silence> AlertPart::silences() const {
  const std::lock_guard lock(book_mutex_);
  return book_.silences(os::wall_now());
}

std::vector<api::AlertChannelView> AlertPart::channels() const {
  return messenger_.views();
}

base::Result<alerts::Silence> AlertPart::add_silence(alerts::Silence silence) {
  auto made = [&] {
    const std::lock_guard lock(book_mutex_);
    return book_.add(std::move(silence), now_on_both());
  }();
  wake();
  return made;
}

base::Result<alerts::Silence> AlertPart::end_silence(std::uint64_t id) {
  auto ended = [&] {
    const std::lock_guard lock(book_mutex_);
    return book_.end_silence(id, now_on_both());
  }();
  wake();
  return ended;
}

base::Result<alerts::Alert> AlertPart::acknowledge(const std::string& id, std::string by,
                                                   std::string comment) {
  auto changed = [&] {
    const std::lock_guard lock(book_mutex_);
    return book_.acknowledge(id, std::move(by), std::move(comment), os::wall_now());
  }();
  wake();
  return changed;
}

void AlertPart::test(const std::string& channel, std::string by,
                     std::function<void(base::Status)> done) {
  messenger_.test(channel, by, std::move(done));
}

void AlertPart::add_to(api::MetricPage& page) const {
  add_alert_metrics(alerts(), channels(), page);
}

}  // namespace gpu_platform::bin
