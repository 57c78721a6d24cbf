#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "api/core_access.h"
#include "api/event_hub.h"

namespace gpu_platform::api {

// Readings that a test sets. Safe from any thread.
class FakeReadings final : public GpuReadingSource {
 public:
  void set(std::string uuid, model::GpuReading reading);
  void set_host(std::string node, model::HostMetrics metrics);
  // No readings come of any node, for this reason.
  void lack(std::string why);
  // Returns what each call asked for, in their order.
  std::vector<std::chrono::milliseconds> asked() const;

  std::shared_ptr<const model::GpuReading> latest(std::string_view uuid) const override;
  std::shared_ptr<const model::HostMetrics> latest_host(std::string_view node) const override;
  std::string why_none(const model::Node& node) const override;
  void ask_for_newer_than(std::chrono::milliseconds age) override;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const model::GpuReading>, std::less<>> readings_;
  std::map<std::string, std::shared_ptr<const model::HostMetrics>, std::less<>> hosts_;
  std::vector<std::chrono::milliseconds> asked_;
  std::string why_none_;
};

// A small core for tests of the door: it accepts what is asked, and the test says what then happens
// to the jobs. Commands are answered on a thread of its own, as the real loop does; hold_commands()
// keeps them waiting. One node "dgx-h100-1": 8 x H100-80GB, 112 CPUs.
class FakeCore final : public CommandSink,
                       public SnapshotSource,
                       public store::Archive,
                       public OutputSource {
 public:
  FakeCore();
  ~FakeCore() override;

  EventHub& hub() { return hub_; }
  CoreAccess access() {
    return {.commands = *this,
            .snapshots = *this,
            .archive = *this,
            .outputs = *this,
            .users = users,
            .readiness = readiness,
            .readings = &readings,
            .channels = channels,
            .statistics = statistics,
            .access = [this] { return rules(); },
            .history = history,
            .reading_hub = reading_hub,
            .uses = uses,
            .kpis = kpis,
            .ledger = ledger};
  }
  std::function<base::Status()> readiness;
  std::function<controller::Statistics()> statistics;
  // Who is what: at first, root alone is more than a user.
  void set_rules(model::AccessRules rules);
  std::shared_ptr<const model::AccessRules> rules() const;
  FakeReadings readings;
  host::UserDirectory users;
  // If it is set, each reader of the output of a job with a file of its own calls it.
  std::function<void()> users_disk;
  ChannelSource* channels = nullptr;
  const telemetry::History* history = nullptr;
  ReadingHub* reading_hub = nullptr;
  const telemetry::UseSource* uses = nullptr;
  const telemetry::KpiSource* kpis = nullptr;
  const store::Ledger* ledger = nullptr;
  base::Instant records_since;
  model::AuditPage trail;  // what every query of the audit trail gives
  std::string step;        // what is done for every attempt with an image

  // ---- what happens to jobs; visible when the call returns
  model::JobId add_job(std::string user, std::uint32_t uid, std::string name = "work");
  model::JobId add_job_of_team(std::string user, std::uint32_t uid, std::string team);
  // One that prints into a file of its user's.
  model::JobId add_job_with_output(std::string user, std::uint32_t uid, std::string output);
  // One whose start is asked for.
  model::JobId add_starting_job(std::string user, std::uint32_t uid, std::string image);
  // Members of one array with the indices 1 to `count`. Returns the first.
  model::JobId add_array(std::uint32_t count, std::string user, std::uint32_t uid);
  // Several at once, in one batch.
  void add_jobs(std::size_t count, std::string user, std::uint32_t uid);
  // `share`: that it has of each of these GPUs.
  void start_job(model::JobId job, std::vector<std::uint32_t> gpus = {},
                 base::GpuShare share = base::kWholeGpu);
  // The current attempt and the job end; the job leaves the core for the archive.
  void end_job(model::JobId job, std::uint8_t exit_code);
  // The current attempt ends, the job waits for the next.
  void requeue_job(model::JobId job);
  // Appends to the file of the current attempt's output.
  void print(model::JobId job, std::string_view text);

  // Changes the node; visible when the call returns.
  void edit_node(const std::function<void(model::Node&)>& edit);

  // What GPUs cost; visible when the call returns.
  void set_prices(model::PriceBook prices);

  // Puts a token there, or replaces it, or takes it away; visible when the call returns.
  void put_token(model::Token token);
  void remove_token(model::TokenId id);

  void hold_commands(bool held);
  std::size_t held_commands() const;
  std::vector<model::Command> commands() const;
  // Until the first has come.
  void wait_for_command();
  std::uint64_t last_seq() const;

  // ---- the interfaces
  void submit(model::Command command, Done done) override;
  std::shared_ptr<const controller::Snapshot> snapshot() const override;
  base::Result<std::optional<model::Job>> find(model::JobId job) const override;
  base::Result<std::vector<model::Job>> list(const store::ArchiveQuery& query) const override;
  base::Result<std::vector<store::JobEnding>> endings(const store::JobEnding&,
                                                      std::size_t) const override {
    return {};
  }
  base::Result<std::uint64_t> job_count() const override { return 0; }
  base::Result<base::Instant> begins_at() const override { return records_since; }
  base::Result<model::AuditPage> audit(const model::AuditQuery&) const override { return trail; }
  std::string path(const model::Job& job, std::uint32_t attempt) const override;
  OutputReader reader(const model::Job& job, std::uint32_t attempt) const override;
  std::string container_step(const model::Job&, std::uint32_t) const override { return step; }

 private:
  void run();
  model::JobId add(model::JobSpec spec);
  base::Result<model::CommandReply> carry_out(const model::Command& command);
  base::Result<model::CommandReply> change_gpus(const model::Caller& caller,
                                                const model::ChangeGpus& change);
  base::Result<model::CommandReply> make_token(const model::Caller& caller,
                                               const model::MakeToken& order);
  base::Result<model::CommandReply> set_price(const model::Caller& caller,
                                              const model::SetPrice& command);
  base::Result<model::CommandReply> withdraw_price(const model::Caller& caller,
                                                   const model::WithdrawPrice& command);
  void publish(std::vector<model::Event> events, std::vector<model::Job> ended = {});
  model::Job& mutable_job(model::JobId id);

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::pair<model::Command, Done>> queue_;
  std::vector<model::Command> commands_;
  std::shared_ptr<const model::AccessRules> rules_ = std::make_shared<const model::AccessRules>();
  bool is_held_ = false;
  bool is_stopping_ = false;

  std::mutex state_mutex_;  // for writers of the state; readers take snapshots
  base::PersistentMap<model::Job> jobs_;
  base::PersistentMap<model::Node> nodes_;
  base::PersistentMap<model::Token> tokens_;
  base::Shared<model::PriceBook> prices_;
  std::map<model::JobId, model::Job, std::greater<>> archive_;
  std::map<std::string, model::JobId> request_ids_;
  std::uint64_t seq_ = 1;
  std::uint64_t last_id_ = 0;
  std::uint64_t last_token_id_ = 0;
  std::shared_ptr<const controller::Snapshot> snapshot_;
  std::string directory_;
  EventHub hub_{model::EventSeq(1), 256};
  std::thread thread_;
};

}  // namespace gpu_platform::api
