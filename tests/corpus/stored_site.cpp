#include "stored_site.h"

#include <unistd.h>

#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.h"
#include "model/states.h"

namespace gpu_platform::corpus {

namespace {

std::string text_of(model::AttemptId attempt) {
  return fmt::format("{}#{}", attempt.job.value, attempt.attempt);
}

// "node 1 gpus 0,1 cpus 28 memory 1024; node 2 …"
std::string text_of(const model::Allocation& allocation) {
  std::string text;
  for (const model::NodeAllocation& node : allocation.nodes) {
    std::vector<std::string> grants;
    for (const model::GpuGrant& grant : node.grants) {
      grants.push_back(fmt::format("{}", grant.gpu_index));
    }
    text += fmt::format(" [node {} gpus {} cpus {} memory {}]", node.node.value,
                        fmt::join(grants, ","), node.cpus, node.memory.value());
  }
  return text;
}

// Enough of an event to tell one decision from another.
struct Describe {
  std::string operator()(const model::StartRequested& event) const {
    return text_of(event.attempt) + text_of(event.allocation) +
           fmt::format(" {} passed {}", to_string(event.why), event.passed.value);
  }
  std::string operator()(const model::StopRequested& event) const {
    return fmt::format("{} {} for {}", text_of(event.attempt), to_string(event.reason),
                       event.stopped_for.value);
  }
  std::string operator()(const model::JobEnded& event) const {
    return fmt::format("{} {} {}", event.job.value, to_string(event.how), to_string(event.reason));
  }
  std::string operator()(const model::PreemptionDecided& event) const {
    std::vector<std::string> victims;
    for (const model::AttemptId victim : event.victims) victims.push_back(text_of(victim));
    return fmt::format("{} victims {}", event.job.value, fmt::join(victims, ",")) +
           text_of(event.held);
  }
  std::string operator()(const model::ReservationEnded& event) const { return event.name; }
  std::string operator()(const model::ReservationChanged& event) const {
    return event.reservation.name;
  }
  std::string operator()(const model::TokenRevoked& event) const { return event.name; }
  std::string operator()(const auto&) const { return {}; }
};

std::string text_of(const model::Event& event) {
  std::string text = std::visit(Describe(), static_cast<const model::AnyEvent&>(event));
  if (text.empty()) text = fmt::format("{}", model::job_of(event).value);
  return fmt::format("{} {}", model::name_of(event), text);
}

base::Status apply_in_order(controller::State& state, const model::EventRecord& record) {
  if (record.seq.value != state.seq.value + 1) {
    return base::fail(base::ErrorCode::kDataLoss,
                      fmt::format("event {} follows event {}", record.seq.value, state.seq.value));
  }
  controller::OwnOutbox outbox;
  controller::apply(state, record, outbox);
  return {};
}

// A state has no copies: one is made as a restart makes it.
controller::Core core_of(const std::string& encoded_state) {
  base::Result<controller::State> state = controller::decode_state(encoded_state);
  CHECK(state);
  return controller::Core(*std::move(state));
}

class OneSnapshot final : public api::SnapshotSource {
 public:
  explicit OneSnapshot(std::shared_ptr<const controller::Snapshot> snapshot)
      : snapshot_(std::move(snapshot)) {}
  std::shared_ptr<const controller::Snapshot> snapshot() const override { return snapshot_; }

 private:
  const std::shared_ptr<const controller::Snapshot> snapshot_;
};

// The corpus has no output of jobs.
class NoOutputs final : public api::OutputSource {
 public:
  std::string path(const model::Job& job, std::uint32_t attempt) const override {
    return fmt::format("/output/{}/{}", job.id.value, attempt);
  }
  api::OutputReader reader(const model::Job&, std::uint32_t) const override {
    return {.read = [](std::uint64_t offset, std::size_t) -> base::Result<api::OutputPiece> {
      return api::OutputPiece{.offset = offset};
    }};
  }
  std::string container_step(const model::Job&, std::uint32_t) const override { return {}; }
};

}  // namespace

base::Result<controller::State> recovered_state(const store::Journal& journal) {
  TRY_ASSIGN(const auto snapshot, journal.newest_snapshot(nullptr));
  controller::State state;
  if (snapshot) {
    TRY_ASSIGN(state, controller::decode_state(snapshot->state));
  }
  TRY(journal.replay(
      state.seq, [&](const model::EventRecord& record) { return apply_in_order(state, record); }));
  return state;
}

base::Result<controller::State> replayed_state(const store::Journal& journal,
                                               const Before& before) {
  controller::State state;
  TRY(journal.replay(model::EventSeq(), [&](const model::EventRecord& record) {
    if (before) before(state, record);
    return apply_in_order(state, record);
  }));
  return state;
}

std::vector<std::string> decisions_in(const controller::State& state, base::Instant now) {
  controller::Core core = core_of(controller::encode_state(state));
  core.advance(now);
  std::vector<std::string> lines;
  for (const model::EventRecord& record : core.take_batch().events) {
    lines.push_back(text_of(record.event));
  }
  return lines;
}

void Judge::submit(model::Command command, Done done) {
  controller::Core core = core_of(encoded_state_);
  done(core.command(command, now_, store::Headroom::kAmple));
}

struct StoredSite::Parts {
  Parts(const store::SqliteStore& store, controller::State state, base::Instant now)
      : core(prepared(std::move(state), now)),
        commands(controller::encode_state(core.state()), now),
        snapshots(core.snapshot()),
        archive(store),
        hub(core.state().seq) {}

  // The plan of the starts, which no store has, is made anew.
  static controller::Core prepared(controller::State state, base::Instant now) {
    controller::Core core(std::move(state));
    core.advance(now);
    core.take_batch();
    return core;
  }

  controller::Core core;
  Judge commands;
  OneSnapshot snapshots;
  const store::Archive& archive;
  NoOutputs outputs;
  host::UserDirectory users;
  api::EventHub hub;
  std::shared_ptr<const model::AccessRules> rules =
      std::make_shared<const model::AccessRules>(::geteuid());
  std::unique_ptr<api::Server> server;
};

StoredSite::StoredSite(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
StoredSite::~StoredSite() = default;

base::Result<std::unique_ptr<StoredSite>> StoredSite::open(const store::SqliteStore& store,
                                                           base::Instant now,
                                                           std::string socket_path) {
  TRY_ASSIGN(controller::State state, recovered_state(store));
  auto parts = std::make_unique<Parts>(store, std::move(state), now);
  api::ServerOptions options;
  options.socket_path = std::move(socket_path);
  options.version = "corpus";
  api::CoreAccess access{.commands = parts->commands,
                         .snapshots = parts->snapshots,
                         .archive = parts->archive,
                         .outputs = parts->outputs,
                         .users = parts->users,
                         .audit = &parts->archive,
                         .access = [rules = parts->rules] { return rules; }};
  TRY_ASSIGN(parts->server, api::Server::start(std::move(options), access, parts->hub));
  return std::unique_ptr<StoredSite>(new StoredSite(std::move(parts)));
}

}  // namespace gpu_platform::corpus
