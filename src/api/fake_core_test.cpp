#include "api/fake_core_test.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "base/check.h"
#include "model/access.h"
#include "model/job_spec.h"
#include "model/node_lookup.h"
#include "os/clock.h"

namespace gpu_platform::api {

namespace {

constexpr base::Instant kBegin{1'750'000'000'000'000'000};

model::Node test_node() {
  model::Node node;
  node.id = model::NodeId(1);
  node.name = "dgx-h100-1";
  node.emulated = true;
  node.boot_id = "boot";
  node.driver_version = "550.54";
  node.cpus = 112;
  node.memory = base::kGiB * 2048;
  for (std::uint32_t i = 0; i < 8; ++i) {
    model::Gpu gpu;
    gpu.info.uuid = fmt::format("GPU-{}", i);
    gpu.info.model = "NVIDIA H100 80GB HBM3";
    gpu.info.type = "H100-80GB";
    gpu.info.memory = base::kGiB * 80;
    gpu.info.pci_address = fmt::format("00000000:{:02x}:00.0", 0x1b + i);
    gpu.info.numa_node = i < 4 ? 0 : 1;
    node.gpus.push_back(std::move(gpu));
  }
  node.topology.numa_nodes = {{0, 0, "0-55", base::kGiB * 1024}, {1, 1, "56-111", {}}};
  node.topology.links.assign(28, {model::LinkKind::kNvLink, 18, 4});
  return node;
}

base::Status check_is_admin(const model::Caller& caller) {
  if (model::may_touch_site(caller)) return {};
  return base::fail(base::ErrorCode::kPermissionDenied, "ask an administrator");
}

// The answers of the real core to what no node could ever hold.
base::Status check_feasible(const model::JobSpec& spec) {
  const auto refuse = [](std::string field) {
    return base::fail(base::ErrorCode::kFailedPrecondition, field + ": more than there is", field);
  };
  for (const std::string& type : spec.request.gpu_types) {
    if (!type.starts_with("H100")) return refuse("gpu_types");
  }
  const bool is_strict = spec.request.numa == model::NumaPolicy::kStrict;
  if (spec.request.gpus > (is_strict ? 4 : 8)) return refuse("gpus");
  if (spec.request.cpus.value_or(1) > 112) return refuse("cpus");
  if (spec.request.memory.value_or(base::kGiB) > base::kGiB * 2048) return refuse("memory_bytes");
  if (spec.time_limit > base::hours(48)) return refuse("time_limit_seconds");
  return {};
}

}  // namespace

FakeCore::FakeCore() {
  nodes_.put(1, test_node());
  std::string pattern = (std::filesystem::temp_directory_path() / "api-test-XXXXXX").string();
  CHECK(::mkdtemp(pattern.data()) != nullptr);
  directory_ = pattern;
  publish({});
  thread_ = std::thread([this] { run(); });
}

FakeCore::~FakeCore() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

void FakeCore::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [&] { return is_stopping_ || (!queue_.empty() && !is_held_); });
    if (queue_.empty()) return;
    if (is_held_ && !is_stopping_) continue;
    auto [command, done] = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    done(carry_out(command));
    lock.lock();
  }
}

void FakeCore::submit(model::Command command, Done done) {
  const std::lock_guard lock(mutex_);
  commands_.push_back(command);
  queue_.emplace_back(std::move(command), std::move(done));
  wake_.notify_all();
}

void FakeCore::wait_for_command() {
  std::unique_lock lock(mutex_);
  wake_.wait(lock, [this] { return !commands_.empty(); });
}

base::Result<model::CommandReply> FakeCore::carry_out(const model::Command& command) {
  const std::lock_guard lock(state_mutex_);
  if (const auto* stop = std::get_if<model::ActOnJob>(&command.body)) {
    if (jobs_.find(stop->job.value) == nullptr) {
      return base::fail(base::ErrorCode::kNotFound, "gone", "id");
    }
    model::Job& job = mutable_job(stop->job);
    job.state = model::JobState::kStopping;
    const bool kills = stop->action == model::JobAction::kKill;
    const auto reason = kills ? model::EndReason::kKilledBy : model::EndReason::kCancelledBy;
    publish({model::StopRequested{{job.id, 1}, reason, kills, command.caller.user}});
    return model::CommandReply{stop->job, true};
  }
  if (const auto* change = std::get_if<model::ChangeGpus>(&command.body)) {
    return change_gpus(command.caller, *change);
  }
  if (const auto* many = std::get_if<model::ActOnJobs>(&command.body)) {
    const bool is_of_other = many->which.user && *many->which.user != command.caller.user;
    if (!is_of_other || command.caller.reach != model::Reach::kOwn) return model::CommandReply{};
    return base::fail(base::ErrorCode::kPermissionDenied, "jobs of another user", "user");
  }
  if (const auto* make = std::get_if<model::MakeToken>(&command.body)) {
    return make_token(command.caller, *make);
  }
  if (const auto* price = std::get_if<model::SetPrice>(&command.body)) {
    return set_price(command.caller, *price);
  }
  if (const auto* price = std::get_if<model::WithdrawPrice>(&command.body)) {
    return withdraw_price(command.caller, *price);
  }
  if (std::holds_alternative<model::CorrectLedger>(command.body)) {
    TRY(check_is_admin(command.caller));
    return model::CommandReply{};
  }
  if (const auto* revoke = std::get_if<model::RevokeToken>(&command.body)) {
    if (!tokens_.erase(revoke->token.value)) {
      return base::fail(base::ErrorCode::kNotFound, "gone", "token");
    }
    publish({model::TokenRevoked{revoke->token, {}, {}, command.caller.user}});
    return model::CommandReply{};
  }
  if (std::holds_alternative<model::RecordTokenUse>(command.body) ||
      std::holds_alternative<model::RecordCalls>(command.body)) {
    return model::CommandReply{};
  }
  if (const auto* set = std::get_if<model::SetTeam>(&command.body);
      set != nullptr && !model::is_team_name(set->name)) {
    return base::invalid("name", "no name");
  }
  // It knows no reservations and no teams, and does nothing else with jobs.
  if (!std::holds_alternative<model::SubmitJob>(command.body)) {
    const bool has_name = std::holds_alternative<model::ChangeReservation>(command.body) ||
                          std::holds_alternative<model::SetTeam>(command.body) ||
                          std::holds_alternative<model::RemoveTeam>(command.body);
    return base::fail(base::ErrorCode::kNotFound, "gone", has_name ? "name" : "id");
  }
  const model::JobSpec& spec = std::get<model::SubmitJob>(command.body).spec;
  TRY(check_feasible(spec));
  if (std::get<model::SubmitJob>(command.body).dry_run) {
    model::Job accepted;
    accepted.spec = std::make_shared<const model::JobSpec>(spec);
    return model::CommandReply{{}, false, {}, {}, std::make_shared<const model::Job>(accepted)};
  }
  if (const auto known = request_ids_.find(spec.request_id); known != request_ids_.end()) {
    return model::CommandReply{known->second, false};
  }
  model::Job job;
  job.id = model::JobId(++last_id_);
  job.spec = std::make_shared<const model::JobSpec>(spec);
  job.submitted_at = job.eligible_at = kBegin + base::seconds(static_cast<std::int64_t>(seq_));
  if (!spec.request_id.empty()) request_ids_[spec.request_id] = job.id;
  model::JobSubmitted submitted{job.id, job.spec};
  const model::JobId id = job.id;
  jobs_.put(id.value, std::move(job));
  publish({std::move(submitted)});
  return model::CommandReply{id, true};
}

// It knows the types of the catalogue, of which "X1" is none.
base::Result<model::CommandReply> FakeCore::set_price(const model::Caller& caller,
                                                      const model::SetPrice& command) {
  TRY(check_is_admin(caller));
  if (command.price.gpu_type == "X1") return base::invalid("gpu_type", "no type");
  model::PriceBook prices = *prices_;
  prices.set(command.price, caller.user, os::wall_now());
  prices_ = std::move(prices);
  publish({model::PriceSet{command.price, caller.user}});
  return model::CommandReply{};
}

base::Result<model::CommandReply> FakeCore::withdraw_price(const model::Caller& caller,
                                                           const model::WithdrawPrice& command) {
  TRY(check_is_admin(caller));
  model::PriceBook prices = *prices_;
  if (!prices.withdraw(command.id, os::wall_now())) {
    return base::fail(base::ErrorCode::kNotFound, "gone", "id");
  }
  prices_ = std::move(prices);
  publish({model::PriceWithdrawn{command.id, caller.user}});
  return model::CommandReply{};
}

// Refuses as the real core does: by the caller's rights, by existence, by holders, and if nothing
// changes.
base::Result<model::CommandReply> FakeCore::change_gpus(const model::Caller& caller,
                                                        const model::ChangeGpus& change) {
  if (!model::may_touch_site(caller)) {
    return base::fail(base::ErrorCode::kPermissionDenied, "ask an administrator");
  }
  model::Node node = *nodes_.find(1);
  model::CommandReply reply;
  for (std::uint32_t i = 0; i < node.gpus.size(); ++i) {
    const bool is_meant = change.which.uuid.empty() ? change.which.node == node.name &&
                                                          change.which.index.value_or(i) == i
                                                    : change.which.uuid == node.gpus[i].info.uuid;
    if (is_meant) reply.gpus.push_back({node.id, i});
  }
  if (reply.gpus.empty()) {
    const char* field = change.which.index ? "gpu" : change.which.uuid.empty() ? "node" : "gpu_id";
    return base::fail(base::ErrorCode::kNotFound, "there is none", field);
  }
  const auto to = change.action == model::GpuAction::kDrain         ? model::GpuState::kDraining
                  : change.action == model::GpuAction::kTakeOffline ? model::GpuState::kOffline
                  : change.action == model::GpuAction::kReset       ? model::GpuState::kResetting
                  : change.action == model::GpuAction::kCheck       ? model::GpuState::kResetting
                                                                    : model::GpuState::kAvailable;
  reply.changed = false;
  for (const model::GpuRef& ref : reply.gpus) {
    model::Gpu& gpu = node.gpus[ref.index];
    const bool takes_away = to == model::GpuState::kOffline && !gpu.holders.empty();
    if (takes_away && !change.force) {
      return base::fail(base::ErrorCode::kFailedPrecondition, "is held by job 1", "force");
    }
    reply.changed = reply.changed || gpu.state != to;
    gpu.state = to;
    gpu.cause = to == model::GpuState::kAvailable ? "" : change.reason;
    gpu.changed_by = to == model::GpuState::kAvailable ? "" : caller.user;
  }
  if (!reply.changed) reply.gpus.clear();
  nodes_.put(1, std::move(node));
  if (reply.changed) ++seq_;
  publish({});
  return reply;
}

// As the real core does with orders that nothing speaks against. Request ids are those of one user.
base::Result<model::CommandReply> FakeCore::make_token(const model::Caller& caller,
                                                       const model::MakeToken& order) {
  if (!model::is_token_name(order.name)) return base::invalid("name", "no name");
  if (order.uid == 0) return base::fail(base::ErrorCode::kPermissionDenied, "root", "user");
  model::CommandReply reply;
  model::Token token;
  token.expires_at = order.expires_at;
  if (!order.never_expires && !token.expires_at.is_set()) {
    token.expires_at = kBegin + base::hours(24 * 365 * 50);
  }
  if (order.never_expires && order.expires_at.is_set()) {
    return base::invalid("never_expires", "either");
  }
  if (order.expires_at.is_set() && order.expires_at <= kBegin) {
    return base::fail(base::ErrorCode::kFailedPrecondition, "has passed", "expires_at");
  }
  tokens_.for_each([&](std::uint64_t, const model::Token& other) {
    if (order.request_id.empty() || other.request_id != order.request_id) return;
    reply.changed = false;
    reply.token = other.id;
  });
  if (!reply.changed) return reply;
  token.id = reply.token = model::TokenId(++last_token_id_);
  token.name = order.name;
  token.user = order.user;
  token.uid = order.uid;
  token.gid = order.gid;
  token.role = order.role.value_or(model::Role::kUser);
  token.created_at = kBegin;
  token.created_by = caller.user;
  token.hash = order.hash;
  token.request_id = order.request_id;
  tokens_.put(token.id.value, token);
  publish({model::TokenCreated{std::move(token)}});
  return reply;
}

void FakeCore::put_token(model::Token token) {
  const std::lock_guard lock(state_mutex_);
  last_token_id_ = std::max(last_token_id_, token.id.value);
  const std::uint64_t id = token.id.value;
  tokens_.put(id, std::move(token));
  publish({});
}

void FakeCore::remove_token(model::TokenId id) {
  const std::lock_guard lock(state_mutex_);
  tokens_.erase(id.value);
  publish({});
}

void FakeCore::edit_node(const std::function<void(model::Node&)>& edit) {
  const std::lock_guard lock(state_mutex_);
  model::Node node = *nodes_.find(1);
  edit(node);
  nodes_.put(1, std::move(node));
  publish({});
}

void FakeReadings::set(std::string uuid, model::GpuReading reading) {
  const std::lock_guard lock(mutex_);
  readings_[std::move(uuid)] = std::make_shared<const model::GpuReading>(std::move(reading));
}

std::vector<std::chrono::milliseconds> FakeReadings::asked() const {
  const std::lock_guard lock(mutex_);
  return asked_;
}

std::shared_ptr<const model::GpuReading> FakeReadings::latest(std::string_view uuid) const {
  const std::lock_guard lock(mutex_);
  const auto found = readings_.find(uuid);
  return found == readings_.end() ? nullptr : found->second;
}

void FakeReadings::set_host(std::string node, model::HostMetrics metrics) {
  const std::lock_guard lock(mutex_);
  hosts_[std::move(node)] = std::make_shared<const model::HostMetrics>(metrics);
}

std::shared_ptr<const model::HostMetrics> FakeReadings::latest_host(std::string_view node) const {
  const std::lock_guard lock(mutex_);
  const auto found = hosts_.find(node);
  return found == hosts_.end() ? nullptr : found->second;
}

void FakeReadings::lack(std::string why) {
  const std::lock_guard lock(mutex_);
  why_none_ = std::move(why);
}
std::string FakeReadings::why_none(const model::Node&) const {
  const std::lock_guard lock(mutex_);
  return why_none_;
}
void FakeReadings::ask_for_newer_than(std::chrono::milliseconds age) {
  const std::lock_guard lock(mutex_);
  asked_.push_back(age);
}

void FakeCore::publish(std::vector<model::Event> events, std::vector<model::Job> ended) {
  std::vector<model::EventRecord> records;
  for (model::Event& event : events) {
    ++seq_;
    records.push_back({model::EventSeq(seq_),
                       kBegin + base::seconds(static_cast<std::int64_t>(seq_)), std::move(event)});
  }
  auto snapshot = std::make_shared<controller::Snapshot>();
  snapshot->seq = model::EventSeq(seq_);
  snapshot->at = kBegin + base::seconds(static_cast<std::int64_t>(seq_));
  snapshot->jobs = jobs_.freeze();
  snapshot->nodes = nodes_.freeze();
  snapshot->nodes_by_name = model::nodes_by_name(snapshot->nodes);
  snapshot->tokens = tokens_.freeze();
  snapshot->prices = prices_;
  snapshot->policy = std::make_shared<const model::Policy>();
  snapshot->order = scheduling::OrderBasis::of(*snapshot->policy);
  jobs_.for_each([&](std::uint64_t, const model::Job& job) {
    if (job.state == model::JobState::kQueued) ++snapshot->counts.queued;
    if (model::is_active(job.state)) ++snapshot->counts.active;
  });
  {
    const std::lock_guard lock(mutex_);
    for (const model::Job& job : ended) archive_[job.id] = job;
    snapshot_ = snapshot;
  }
  hub_.published(snapshot, records, controller::DepartedJobs(ended));
}

model::Job& FakeCore::mutable_job(model::JobId id) {
  model::Job* job = jobs_.find_mutable(id.value);
  CHECK(job != nullptr);
  return *job;
}

model::JobId FakeCore::add_job(std::string user, std::uint32_t uid, std::string name) {
  model::JobSpec spec;
  spec.name = std::move(name);
  spec.user = std::move(user);
  spec.uid = uid;
  return add(std::move(spec));
}

model::JobId FakeCore::add_job_of_team(std::string user, std::uint32_t uid, std::string team) {
  model::JobSpec spec;
  spec.name = "work";
  spec.user = std::move(user);
  spec.uid = uid;
  spec.team = std::move(team);
  return add(std::move(spec));
}

void FakeCore::set_prices(model::PriceBook prices) {
  const std::lock_guard lock(state_mutex_);
  prices_ = std::move(prices);
  publish({});
}

void FakeCore::set_rules(model::AccessRules rules) {
  const std::lock_guard lock(mutex_);
  rules_ = std::make_shared<const model::AccessRules>(std::move(rules));
}

std::shared_ptr<const model::AccessRules> FakeCore::rules() const {
  const std::lock_guard lock(mutex_);
  return rules_;
}

model::JobId FakeCore::add_job_with_output(std::string user, std::uint32_t uid,
                                           std::string output) {
  model::JobSpec spec;
  spec.name = "writer";
  spec.user = std::move(user);
  spec.uid = uid;
  spec.output = std::move(output);
  return add(std::move(spec));
}

model::JobId FakeCore::add_starting_job(std::string user, std::uint32_t uid, std::string image) {
  model::JobSpec spec;
  spec.user = std::move(user);
  spec.uid = uid;
  spec.image = std::move(image);
  const model::JobId id = add(std::move(spec));
  const std::lock_guard lock(state_mutex_);
  model::Job& job = mutable_job(id);
  model::Attempt attempt;
  attempt.number = 1;
  attempt.state = model::AttemptState::kRequested;
  model::StartRequested event{{id, attempt.number}, attempt.allocation};
  job.attempts.push_back(std::move(attempt));
  job.state = model::JobState::kStarting;
  publish({std::move(event)});
  return id;
}

model::JobId FakeCore::add(model::JobSpec spec) {
  const std::lock_guard lock(state_mutex_);
  spec.command = {"work"};
  spec.workdir = "/";
  spec.time_limit = base::hours(1);
  spec.labels = {{"run", "7"}};
  model::Job job;
  job.id = model::JobId(++last_id_);
  job.submitted_at = job.eligible_at = kBegin + base::seconds(static_cast<std::int64_t>(seq_));
  job.spec = std::make_shared<const model::JobSpec>(spec);
  model::JobSubmitted submitted{job.id, job.spec};
  const model::JobId id = job.id;
  jobs_.put(id.value, std::move(job));
  publish({std::move(submitted)});
  return id;
}

model::JobId FakeCore::add_array(std::uint32_t count, std::string user, std::uint32_t uid) {
  const std::lock_guard lock(state_mutex_);
  auto spec = std::make_shared<model::JobSpec>();
  spec->name = "sweep";
  spec->user = std::move(user);
  spec->uid = uid;
  spec->command = {"true"};
  spec->workdir = "/";
  spec->array = model::ArraySpec{{{1, count, 1}}, 0};
  const model::JobId first(last_id_ + 1);
  for (std::uint32_t index = 1; index <= count; ++index) {
    model::Job job;
    job.id = model::JobId(++last_id_);
    job.array_id = first;
    job.array_index = index;
    job.submitted_at = job.eligible_at = kBegin;
    job.spec = spec;
    jobs_.put(job.id.value, std::move(job));
  }
  publish({});
  return first;
}

void FakeCore::add_jobs(std::size_t count, std::string user, std::uint32_t uid) {
  const std::lock_guard lock(state_mutex_);
  auto spec = std::make_shared<model::JobSpec>();
  spec->name = "one-of-many";
  spec->user = std::move(user);
  spec->uid = uid;
  spec->command = {"python", "train.py", "--epochs", "10"};
  spec->workdir = "/";
  spec->request.gpus = 1;
  for (std::size_t i = 0; i < count; ++i) {
    model::Job job;
    job.id = model::JobId(++last_id_);
    job.submitted_at = job.eligible_at = kBegin;
    job.spec = spec;
    jobs_.put(job.id.value, std::move(job));
  }
  publish({});
}

void FakeCore::start_job(model::JobId id, std::vector<std::uint32_t> gpus, base::GpuShare share) {
  const std::lock_guard lock(state_mutex_);
  model::Job& job = mutable_job(id);
  model::Attempt attempt;
  attempt.number = static_cast<std::uint32_t>(job.attempts.size()) + 1;
  attempt.state = model::AttemptState::kRunning;
  attempt.requested_at = attempt.started_at =
      kBegin + base::seconds(static_cast<std::int64_t>(seq_));
  attempt.pid = 4711;
  model::NodeAllocation part{model::NodeId(1), {}, 14, base::kGiB * 256};
  for (const std::uint32_t index : gpus) part.grants.push_back({index, share, base::kGiB * 80});
  attempt.allocation.nodes.push_back(part);
  const model::AttemptId attempt_id{id, attempt.number};
  model::StartRequested event{attempt_id, attempt.allocation};
  job.attempts.push_back(std::move(attempt));
  job.state = model::JobState::kRunning;
  std::ofstream(path(job, attempt_id.attempt)).flush();
  publish({std::move(event), model::AttemptStarted{attempt_id, 4711, kBegin}});
}

void FakeCore::end_job(model::JobId id, std::uint8_t exit_code) {
  const std::lock_guard lock(state_mutex_);
  model::Job& job = mutable_job(id);
  const base::Instant now = kBegin + base::seconds(static_cast<std::int64_t>(seq_));
  model::Attempt& attempt = job.attempts.back();
  attempt.state = model::AttemptState::kReleased;
  attempt.ended_at = job.ended_at = now;
  attempt.exit.code = exit_code;
  job.state = exit_code == 0 ? model::JobState::kCompleted : model::JobState::kFailed;
  const model::Job ended = job;
  jobs_.erase(id.value);
  publish({model::AttemptEnded{{id, ended.attempts.back().number}, now}, model::JobEnded{id}},
          {ended});
}

void FakeCore::requeue_job(model::JobId id) {
  const std::lock_guard lock(state_mutex_);
  model::Job& job = mutable_job(id);
  const base::Instant now = kBegin + base::seconds(static_cast<std::int64_t>(seq_));
  model::Attempt& attempt = job.attempts.back();
  attempt.state = model::AttemptState::kReleased;
  attempt.ended_at = now;
  attempt.exit.code = 1;
  job.state = model::JobState::kQueued;
  publish({model::AttemptEnded{{id, attempt.number}, now}, model::JobRequeued{id, now}});
}

void FakeCore::print(model::JobId id, std::string_view text) {
  const auto snapshot = this->snapshot();
  const model::Job* job = snapshot->jobs.find(id.value);
  CHECK(job != nullptr && !job->attempts.empty());
  std::ofstream(path(*job, job->attempts.back().number), std::ios::app) << text << std::flush;
}

void FakeCore::hold_commands(bool held) {
  const std::lock_guard lock(mutex_);
  is_held_ = held;
  wake_.notify_all();
}

std::size_t FakeCore::held_commands() const {
  const std::lock_guard lock(mutex_);
  return queue_.size();
}

std::vector<model::Command> FakeCore::commands() const {
  const std::lock_guard lock(mutex_);
  return commands_;
}

std::uint64_t FakeCore::last_seq() const {
  return snapshot()->seq.value;
}

std::shared_ptr<const controller::Snapshot> FakeCore::snapshot() const {
  const std::lock_guard lock(mutex_);
  return snapshot_;
}

base::Result<std::optional<model::Job>> FakeCore::find(model::JobId job) const {
  const std::lock_guard lock(mutex_);
  const auto found = archive_.find(job);
  if (found == archive_.end()) return std::nullopt;
  return found->second;
}

base::Result<std::vector<model::Job>> FakeCore::list(const store::ArchiveQuery& query) const {
  const std::lock_guard lock(mutex_);
  std::vector<model::Job> out;
  for (const auto& [id, job] : archive_) {
    if (query.before.valid() && id >= query.before) continue;
    if (query.user && job.spec->user != *query.user) continue;
    if (out.size() == query.limit) break;
    out.push_back(job);
  }
  return out;
}

std::string FakeCore::path(const model::Job& job, std::uint32_t attempt) const {
  return fmt::format("{}/{}.{}.out", directory_, job.id.value, attempt);
}

OutputReader FakeCore::reader(const model::Job& job, std::uint32_t attempt) const {
  const bool may_hang = !job.spec->output.empty();
  return {may_hang,
          [file_path = path(job, attempt), hang = may_hang ? users_disk : nullptr](
              std::uint64_t offset, std::size_t most) -> base::Result<OutputPiece> {
            if (hang) hang();
            OutputPiece piece{offset, std::string(most, '\0')};
            const int file = ::open(file_path.c_str(), O_RDONLY | O_CLOEXEC);
            if (file < 0) return OutputPiece{offset, {}};
            const ssize_t bytes =
                ::pread(file, piece.bytes.data(), most, static_cast<off_t>(offset));
            ::close(file);
            piece.bytes.resize(bytes < 0 ? 0 : static_cast<std::size_t>(bytes));
            return piece;
          }};
}

}  // namespace gpu_platform::api
