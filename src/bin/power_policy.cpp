#include "bin/power_policy.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "os/packet_socket.h"
#include "os/replaced_file.h"
#include "os/small_file.h"

namespace gpu_platform::bin {

namespace {

constexpr std::uint64_t kLimitMs = 30'000;  // of one request, with its wait for others
constexpr int kAnswerMs = 60'000;           // beyond it, for a launcher that is busy
constexpr std::int64_t kMilliwattsOfWatt = 1000;

std::string watts_of(base::Milliwatts limit) {
  return fmt::format("{} W", limit.value() / kMilliwattsOfWatt);
}

}  // namespace

PowerPolicy::PowerPolicy(Options options, node::ProbeListener& next)
    : options_(std::move(options)),
      next_(next),
      changed_(parse_changed_limits(os::read_small_file(AT_FDCWD, options_.file.c_str()))),
      wanted_(options_.wanted),
      thread_([this] { run(); }) {}

PowerPolicy::~PowerPolicy() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
    if (asked_ >= 0) shutdown(asked_, SHUT_RDWR);
  }
  woken_.notify_all();
  thread_.join();
}

// After the others: a limit that is set then is newer than what they know.
void PowerPolicy::on_report(node::ProbeReport report) {
  const auto* const inventory = std::get_if<hardware::Inventory>(&report.content);
  if (inventory == nullptr) return next_.on_report(std::move(report));
  const std::string node = report.node_name;
  Gpus gpus = inventory->gpus;
  next_.on_report(std::move(report));
  {
    const std::lock_guard lock(mutex_);
    known_[node] = std::move(gpus);
    due_.insert(node);
  }
  woken_.notify_all();
}

void PowerPolicy::set_wanted(std::vector<config::PowerLimit> wanted) {
  {
    const std::lock_guard lock(mutex_);
    warned_.clear();
    wanted_ = std::move(wanted);
    for (const auto& [node, gpus] : known_) due_.insert(node);
    if (!are_all_known_) return woken_.notify_all();
  }
  woken_.notify_all();
  warn_of_unused_entries();
}

void PowerPolicy::warn_of_unused_entries() {
  std::vector<std::string> unused;
  {
    const std::lock_guard lock(mutex_);
    are_all_known_ = true;
    unused = unused_limits(wanted_, known_);
  }
  for (const std::string& name : unused) {
    warn_once(
        fmt::format("health.power_limits has an entry \"{}\" that no GPU fits: name a node, a type "
                    "or a family as 'gpu-platform nodes' shows them",
                    name));
  }
}

void PowerPolicy::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    woken_.wait(lock, [this] { return is_stopping_ || !due_.empty(); });
    if (is_stopping_) return;
    const std::string node = due_.extract(due_.begin()).value();
    Gpus gpus = known_[node];
    lock.unlock();
    look_at(node, std::move(gpus));
    lock.lock();
  }
}

void PowerPolicy::look_at(const std::string& node, Gpus gpus) {
  for (const hardware::GpuDescription& gpu : gpus) {
    {
      const std::lock_guard lock(mutex_);
      // A newer inventory, or a newer configuration, has the node looked at again.
      if (is_stopping_ || due_.contains(node)) return;
    }
    apply(node, gpu);
  }
}

void PowerPolicy::apply(const std::string& node, const hardware::GpuDescription& gpu) {
  using Kind = LimitChange::Kind;
  std::vector<config::PowerLimit> wanted;
  {
    const std::lock_guard lock(mutex_);
    wanted = wanted_;
  }
  const LimitChange change = limit_change(wanted, node, gpu, changed_);
  if (change.kind == Kind::kNone) return;  // such as a lost GPU, which has no UUID
  if (change.cut_watts) {
    warn_once(
        fmt::format("node={} gpu={} power limit {} W is not what its board allows: {} is used",
                    node, *gpu.uuid, *change.cut_watts, watts_of(change.limit)));
  }
  const auto found = changed_.find(*gpu.uuid);
  const bool is_first = found == changed_.end();
  if (change.kind == Kind::kForget) keep(*gpu.uuid, nullptr);
  if (change.kind == Kind::kIsSet && !is_first) {
    // The answer of its last change may have been lost.
    const ChangedLimit known{found->second.former, change.limit};
    keep(*gpu.uuid, &known);
  }
  if (change.kind != Kind::kSet && change.kind != Kind::kReturn) return;

  const ChangedLimit before =
      is_first ? ChangedLimit{*gpu.power_limit, change.limit} : found->second;
  const ChangedLimit after{before.former, change.limit};
  if (change.kind == Kind::kSet && !keep(*gpu.uuid, &after)) return;
  const std::string why = set_limit(node, *gpu.uuid, change.limit);
  if (!why.empty()) {
    // The first change may have been made, though its answer was lost: what was before is kept.
    if (change.kind == Kind::kSet && !is_first) keep(*gpu.uuid, &before);
    return warn_once(fmt::format("node={} gpu={} keeps its power limit {} instead of {}: {}", node,
                                 *gpu.uuid, watts_of(*gpu.power_limit), watts_of(change.limit),
                                 why));
  }
  if (change.kind == Kind::kReturn) keep(*gpu.uuid, nullptr);
  spdlog::info("node={} gpu={} power limit {}, before {}", node, *gpu.uuid, watts_of(change.limit),
               watts_of(*gpu.power_limit));
  options_.was_set(*gpu.uuid, change.limit);
  const std::lock_guard lock(mutex_);
  for (hardware::GpuDescription& known : known_[node]) {
    if (known.uuid == gpu.uuid) known.power_limit = change.limit;
  }
}

// Null: forgets the GPU. The limit before is on disk before it is changed.
bool PowerPolicy::keep(const std::string& uuid, const ChangedLimit* limit) {
  ChangedLimits next = changed_;
  limit == nullptr ? static_cast<void>(next.erase(uuid))
                   : static_cast<void>(next.insert_or_assign(uuid, *limit));
  if (next == changed_) return true;
  if (const auto written = os::replace_file(options_.file, to_text(next), 0600); !written) {
    warn_once(fmt::format("power limits cannot be kept: {}", written.error().message));
    return false;
  }
  changed_ = std::move(next);
  return true;
}

// Returns why it was not set; empty: it was.
std::string PowerPolicy::set_limit(const std::string& node, const std::string& uuid,
                                   base::Milliwatts limit) {
  node::RunDriver request;
  request.verb = node::DriverVerb::kPower;
  request.gpus = {uuid};
  request.watts = static_cast<std::uint32_t>(limit.value() / kMilliwattsOfWatt);
  request.deadline_ms = kLimitMs;
  auto asked = options_.ask(node, request);
  if (!asked) return asked.error().message;
  return answer_on(*std::move(asked), uuid);
}

std::string PowerPolicy::answer_on(os::Descriptor asked, const std::string& uuid) {
  {
    const std::lock_guard lock(mutex_);
    if (is_stopping_) return "the daemon ends";
    asked_ = asked.get();
  }
  pollfd answer{asked.get(), POLLIN, 0};
  std::vector<char> buffer(node::kMaxDriverAnswer);
  os::Packet packet;
  if (poll(&answer, 1, static_cast<int>(kLimitMs) + kAnswerMs) == 1) {
    packet = os::receive_packet(asked.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  }
  {
    const std::lock_guard lock(mutex_);
    asked_ = -1;  // before it is closed
    if (is_stopping_ && packet.kind != os::Packet::Kind::kMessage) return "the daemon ends";
  }
  const os::Descriptor unwanted(packet.fd);
  if (packet.kind != os::Packet::Kind::kMessage) return "the launcher does not answer";
  const auto decoded = node::decode_driver_answer(packet.bytes);
  if (!decoded) return "the answer of the driver program cannot be read";
  const auto result = std::ranges::find(decoded->gpus, uuid, &node::DriverResult::gpu);
  return result == decoded->gpus.end() ? "the answer does not name it" : result->failure;
}

void PowerPolicy::warn_once(std::string text) {
  {
    const std::lock_guard lock(mutex_);
    if (!warned_.insert(text).second) return;
  }
  spdlog::warn("{}", text);
}

}  // namespace gpu_platform::bin
