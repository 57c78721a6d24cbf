#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "alerts/alert_book.h"
#include "api/alert_source.h"
#include "api/metrics/metric_source.h"
#include "base/result.h"
#include "bin/alert_facts.h"
#include "bin/alert_messenger.h"
#include "bin/alert_settings.h"
#include "bin/idle_watch.h"
#include "bin/site_facts.h"
#include "config/configuration.h"
#include "controller/publication.h"
#include "execution/engine.h"
#include "outbound/outbox.h"
#include "telemetry/frame.h"
#include "telemetry/history.h"

namespace gpu_platform::bin {

// The part that tells people: a thread that makes facts of readings and of the published state,
// judges them, and hands what is to be told to the messenger. A reading of a node is judged at
// once, the state at most four times a second.
//
// What alerts and silences are is kept as notes, and taken up again at the start.
class AlertPart final : public telemetry::FrameListener,
                        public controller::PublicationListener,
                        public api::AlertSource,
                        public api::MetricSource {
 public:
  struct Options {
    std::string data_dir;
    std::function<std::shared_ptr<const controller::Snapshot>()> snapshot;
    ReadingOf reading_of;
    base::Duration oldest_reading = kOldestReading;       // that counts
    execution::ObservationSink* sink = nullptr;           // hears of jobs that are to be stopped
    telemetry::Notes* notes = nullptr;                    // null: nothing is kept
    const telemetry::History* history = nullptr;          // null: there is none
    std::function<void(const IdleWatch::Act&)> warn;      // in the output of the job; empty: never
    std::function<base::Instant()> certificate_end = {};  // not set: there is none; empty: the same
  };
  // All that the options refer to outlives it. kInvalidArgument: the configuration is wrong.
  static base::Result<std::unique_ptr<AlertPart>> open(Options options,
                                                       const config::Configuration& configuration);
  // With these settings and this outbox, which has the channels.
  AlertPart(Options options, AlertSettings settings, std::unique_ptr<outbound::Outbox> outbox);
  ~AlertPart() override;
  AlertPart(const AlertPart&) = delete;
  AlertPart& operator=(const AlertPart&) = delete;

  // Once the state is published.
  void start();
  void stop();
  // A configuration that is wrong is not taken up, and logged.
  void reload(const config::Configuration& configuration);

  // Return at once.
  void take(const telemetry::Frames& frames) override;
  void published(const std::shared_ptr<const controller::Snapshot>& snapshot,
                 std::span<const model::EventRecord> events,
                 const controller::DepartedJobs& departed) override;

  std::vector<alerts::Alert> alerts() const override;
  std::optional<alerts::Alert> find(const std::string& id) const override;
  std::vector<alerts::Rule> rules() const override;
  std::vector<alerts::Silence> silences() const override;
  std::vector<api::AlertChannelView> channels() const override;
  base::Result<alerts::Silence> add_silence(alerts::Silence silence) override;
  base::Result<alerts::Silence> end_silence(std::uint64_t id) override;
  base::Result<alerts::Alert> acknowledge(const std::string& id, std::string by,
                                          std::string comment) override;
  void test(const std::string& channel, std::string by,
            std::function<void(base::Status)> done) override;
  void add_to(api::MetricPage& page) const override;

 private:
  using SteadyClock = std::chrono::steady_clock;
  // What woke the thread.
  struct Work {
    std::set<std::string> nodes;  // with new readings
    std::vector<telemetry::Frame> uses;
    bool looks_at_all = false;
  };

  void restore();
  void run();
  Work wait_for_work();
  SteadyClock::time_point next_turn() const;  // with wake_mutex_
  void judge(Work work);
  void look_at_all(const controller::Snapshot& snapshot, alerts::Moment now);
  void carry_out(const std::vector<IdleWatch::Act>& acts);
  void send_due();
  void keep_changes();
  void wake();

  const Options options_;
  AlertMessenger messenger_;

  mutable std::mutex book_mutex_;
  alerts::AlertBook book_;  // guarded by book_mutex_, as the next
  IdleWatch::Rules idle_rules_;

  // The thread's alone.
  NodeFacts node_facts_;
  IdleWatch idle_;
  SiteFacts site_facts_;

  mutable std::mutex wake_mutex_;
  std::condition_variable wake_;
  Work work_;  // guarded by wake_mutex_, as all below
  bool is_published_ = false;
  bool has_changed_ = false;  // the book
  bool is_stopping_ = false;
  std::chrono::milliseconds pause_{5'000};      // between two looks at all
  std::optional<SteadyClock::time_point> due_;  // of messages
  SteadyClock::time_point looked_;              // at all
  std::thread thread_;
};

}  // namespace gpu_platform::bin
