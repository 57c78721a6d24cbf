#include "node/probe/probe_runner.h"

#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "node/probe/probe_child.h"
#include "os/clock.h"

namespace gpu_platform::node {
namespace {

// Probes of one node that hang where no signal reaches them. With so many of them another would
// hang too: the next one waits until one of them is gone.
constexpr std::size_t kMaxAbandoned = 3;

// For ending probes when the runner goes.
constexpr int kFarewellMs = 2000;

constexpr std::uint64_t kWakeToken = 0;

// One node: the probe that runs, those given up on, and when to do what next. Used by the runner's
// thread alone.
struct Watched {
  ProbeTarget target;
  std::optional<ProbeChild> child;
  std::uint64_t generation = 0;  // of the child, so that late events of an old one are told apart
  std::vector<ProbeChild> abandoned;
  std::int64_t started_ns = 0;
  std::int64_t heard_ns = 0;
  std::int64_t deadline_ns = 0;  // child: must have spoken by then; no child: start one then
  base::Duration delay;          // before the next restart
  std::uint32_t starts = 0;
  bool is_held = false;  // no probe is to run
};

}  // namespace

class ProbeRunner::Impl {
 public:
  Impl(ProbeRunnerOptions options, ProbeListener& listener, os::Descriptor epoll,
       os::Descriptor wake)
      : options_(std::move(options)),
        listener_(listener),
        epoll_(std::move(epoll)),
        wake_(std::move(wake)),
        buffer_(kMaxProbeMessage, '\0') {
    add_to_epoll(wake_.get(), kWakeToken);
    thread_ = std::thread([this] { run(); });
  }

  ~Impl() {
    {
      const std::lock_guard lock(mutex_);
      is_stopping_ = true;
    }
    wake();
    thread_.join();
    end_all();
  }

  void watch(ProbeTarget target) {
    {
      const std::lock_guard lock(mutex_);
      added_.push_back(std::move(target));
    }
    wake();
  }

  void read_now(const std::string& node_name, const ReadNow& wanted) {
    bool is_first = false;
    {
      const std::lock_guard lock(mutex_);
      is_first = asked_.empty();
      Asked& asked = asked_[node_name];
      asked.is_for_all = asked.is_for_all || wanted.uuids.empty();
      asked.with_energy = asked.with_energy || wanted.with_energy;
      asked.uuids.insert(wanted.uuids.begin(), wanted.uuids.end());
    }
    if (is_first) wake();
  }

  void set_held(const std::string& node_name, bool is_held) {
    {
      const std::lock_guard lock(mutex_);
      held_.emplace_back(node_name, is_held);
    }
    wake();
  }

  std::vector<ProbeStatus> status() const {
    const std::lock_guard lock(mutex_);
    return status_;
  }

 private:
  // ---- the thread
  // ---------------------------------------------------------------------------------

  void run() {
    while (take_orders()) {
      start_and_give_up();
      publish_status();
      epoll_event events[32];
      const int count = epoll_wait(epoll_.get(), events, 32, timeout_ms());
      for (int i = 0; i < count; ++i) handle(events[i].data.u64);
    }
  }

  // False when it is time to stop.
  bool take_orders() {
    std::vector<ProbeTarget> added;
    std::map<std::string, Asked> asked;
    std::vector<std::pair<std::string, bool>> held;
    {
      const std::lock_guard lock(mutex_);
      if (is_stopping_) return false;
      added.swap(added_);
      asked.swap(asked_);
      held.swap(held_);
    }
    for (ProbeTarget& target : added) {
      const bool is_known = std::ranges::any_of(
          nodes_, [&](const Watched& node) { return node.target.node_name == target.node_name; });
      if (is_known) continue;
      Watched node;
      node.target = std::move(target);
      node.delay = options_.min_restart_delay;
      nodes_.push_back(std::move(node));
    }
    for (const auto& [name, is_held] : held) apply_hold(name, is_held);
    for (const Watched& node : nodes_) {
      const auto wanted = asked.find(node.target.node_name);
      if (!node.child || wanted == asked.end()) continue;
      const std::string bytes = request_for(wanted->second);
      // A full socket means that the probe hangs: its deadline deals with that.
      (void)::send(node.child->socket.get(), bytes.data(), bytes.size(),
                   MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    return true;
  }

  void apply_hold(const std::string& name, bool is_held) {
    for (Watched& node : nodes_) {
      if (node.target.node_name != name || node.is_held == is_held) continue;
      node.is_held = is_held;
      node.deadline_ns = is_held ? std::numeric_limits<std::int64_t>::max() : os::boot_ns();
      if (!is_held || !node.child) continue;
      // Its end is seen as that of one that was given up.
      ::kill(node.child->pid, SIGKILL);
      node.child->socket = os::Descriptor();
      node.abandoned.push_back(std::move(*node.child));
      node.child.reset();
    }
  }

  struct Asked {
    bool is_for_all = false;
    bool with_energy = false;
    std::set<std::string> uuids;
  };

  static std::string request_for(const Asked& asked) {
    if (!asked.is_for_all && asked.uuids.size() <= kMaxReportedGpus) {
      std::string bytes =
          encode(ReadNow{{asked.uuids.begin(), asked.uuids.end()}, asked.with_energy});
      if (bytes.size() <= kMaxProbeRequest) return bytes;
    }
    return encode(ReadNow{{}, asked.with_energy});
  }

  void start_and_give_up() {
    const std::int64_t now = os::boot_ns();
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      Watched& node = nodes_[i];
      if (now < node.deadline_ns) continue;
      if (node.child) {
        abandon(node, fmt::format("the driver has not answered for {} ms",
                                  (now - node.heard_ns) / 1'000'000));
      } else if (node.abandoned.size() < kMaxAbandoned) {
        start(node, i);
      } else {
        node.deadline_ns = now + options_.max_restart_delay.value();
      }
    }
  }

  void start(Watched& node, std::size_t index) {
    const std::int64_t now = os::boot_ns();
    ++node.starts;
    ++node.generation;
    node.started_ns = node.heard_ns = now;
    auto child = spawn_probe(options_, node.target);
    if (!child) {
      restart_later(node);
      report(node, ProbeProblem{ProbeTrouble::kCannotStart, child.error().message});
      return;
    }
    node.child = std::move(*child);
    node.deadline_ns = now + options_.first_inventory_limit.value();
    add_to_epoll(node.child->socket.get(), token(index, node.generation, Source::kSocket));
    add_to_epoll(node.child->pidfd.get(), token(index, node.generation, Source::kEnd));
  }

  // A signal does not end a process that is stuck inside the driver, so the runner does not wait
  // for its end. The pidfd stays in epoll and reports it.
  void abandon(Watched& node, const std::string& why) {
    ::kill(node.child->pid, SIGKILL);
    node.child->socket = os::Descriptor();
    node.abandoned.push_back(std::move(*node.child));
    node.child.reset();
    restart_later(node);
    report(node, ProbeProblem{ProbeTrouble::kNotAnswering,
                              fmt::format("{} ({}): probe given up", why, node.target.library)});
  }

  // ---- events
  // -------------------------------------------------------------------------------------

  enum class Source : std::uint64_t { kSocket = 1, kEnd = 2 };

  // Index of the node, generation and source in one number; never kWakeToken.
  static std::uint64_t token(std::size_t index, std::uint64_t generation, Source source) {
    return std::uint64_t{index} << 40 | (generation & 0xffff'ffff) << 8 |
           static_cast<std::uint64_t>(source);
  }

  void handle(std::uint64_t event) {
    if (event == kWakeToken) {
      std::uint64_t count = 0;
      (void)!::read(wake_.get(), &count, sizeof count);
      return;
    }
    const auto index = static_cast<std::size_t>(event >> 40);
    Watched& node = nodes_[index];
    const bool is_current = (node.generation & 0xffff'ffff) == (event >> 8 & 0xffff'ffff);
    if (static_cast<Source>(event & 0xff) == Source::kEnd) {
      is_current&& node.child ? handle_end(node) : bury(node);
    } else if (is_current && node.child) {
      receive(node);
    }
  }

  void handle_end(Watched& node) {
    receive(node);            // what it said last
    if (!node.child) return;  // given up for it
    const std::string how = reap(*node.child);
    if (how.empty()) return;
    const std::int64_t lived_ns = os::boot_ns() - node.started_ns;
    node.child.reset();
    if (lived_ns > options_.max_restart_delay.value()) node.delay = options_.min_restart_delay;
    restart_later(node);
    report(node, ProbeProblem{ProbeTrouble::kDied, fmt::format("the probe {}", how)});
  }

  static void bury(Watched& node) {
    std::erase_if(node.abandoned, [](const ProbeChild& child) { return !reap(child).empty(); });
  }

  void receive(Watched& node) {
    while (node.child && node.child->socket.is_open()) {
      const ssize_t size = ::recv(node.child->socket.get(), buffer_.data(), buffer_.size(),
                                  MSG_DONTWAIT | MSG_TRUNC);
      if (size < 0 && errno == EINTR) continue;
      if (size < 0 && errno == EAGAIN) return;
      if (size <= 0) {
        // It hung up: its end follows by pidfd, or the deadline passes.
        node.child->socket = os::Descriptor();
        return;
      }
      if (static_cast<std::size_t>(size) > buffer_.size()) {
        distrust(node, "the probe sent a message that is too long");
        return;
      }
      auto message = decode_probe_message({buffer_.data(), static_cast<std::size_t>(size)});
      if (!message) {
        distrust(node, message.error().message);
        return;
      }
      accept(node, std::move(*message));
    }
  }

  void accept(Watched& node, ProbeMessage message) {
    if (std::holds_alternative<ProbeHello>(message)) return;
    if (auto* events = std::get_if<ProbeEvents>(&message)) {
      // No sign of life: the thread that polls may hang while this one goes on.
      report(node, std::move(*events));
      return;
    }
    if (auto* log = std::get_if<ProbeKernelLog>(&message)) {
      report(node, std::move(*log));
      return;
    }
    node.heard_ns = os::boot_ns();
    node.deadline_ns = node.heard_ns + options_.interval.value() + options_.silence_limit.value();
    if (auto* inventory = std::get_if<hardware::Inventory>(&message)) {
      report(node, std::move(*inventory));
    } else if (auto* readings = std::get_if<ProbeReadings>(&message)) {
      const std::string stuck = stuck_thread(*readings);
      report(node, std::move(*readings));
      if (!stuck.empty()) abandon(node, stuck);
    } else if (auto* error = std::get_if<ProbeError>(&message)) {
      report(node, ProbeProblem{ProbeTrouble::kCannotRead, std::move(error->message)});
    }
  }

  // Which thread of the probe hangs in the driver while it still polls; empty: none.
  std::string stuck_thread(const ProbeReadings& readings) const {
    const auto is_stuck = [&](const ThreadSilence& silence) {
      return silence && base::milliseconds(*silence) > options_.silence_limit;
    };
    if (is_stuck(readings.events)) {
      return fmt::format("the thread for events has been inside the driver for {} ms",
                         *readings.events);
    }
    if (is_stuck(readings.slow_reads)) {
      return fmt::format("the thread for slow readings has been inside the driver for {} ms",
                         *readings.slow_reads);
    }
    return {};
  }

  // Ends a probe that sends invalid messages.
  void distrust(Watched& node, std::string why) {
    ::kill(node.child->pid, SIGKILL);
    node.child->socket = os::Descriptor();
    report(node, ProbeProblem{ProbeTrouble::kCannotRead, std::move(why)});
  }

  // ---- small parts
  // --------------------------------------------------------------------------------

  void restart_later(Watched& node) {
    node.deadline_ns = os::boot_ns() + node.delay.value();
    node.delay = std::min(node.delay * 2, options_.max_restart_delay);
  }

  void report(const Watched& node, decltype(ProbeReport::content) content) {
    listener_.on_report({node.target.node_name, node.target.emulated, std::move(content)});
  }

  int timeout_ms() const {
    std::int64_t next = std::numeric_limits<std::int64_t>::max();
    for (const Watched& node : nodes_) next = std::min(next, node.deadline_ns);
    if (next == std::numeric_limits<std::int64_t>::max()) return -1;
    const std::int64_t left_ms = (next - os::boot_ns() + 999'999) / 1'000'000;
    return static_cast<int>(std::clamp<std::int64_t>(left_ms, 0, 3'600'000));
  }

  void publish_status() {
    std::vector<ProbeStatus> status;
    for (const Watched& node : nodes_) {
      status.push_back({node.target.node_name, node.child ? node.child->pid : 0, node.starts,
                        static_cast<std::uint32_t>(node.abandoned.size())});
    }
    const std::lock_guard lock(mutex_);
    status_ = std::move(status);
  }

  void end_all() {
    const std::int64_t until = os::boot_ns() + std::int64_t{kFarewellMs} * 1'000'000;
    for (Watched& node : nodes_) {
      if (node.child) node.abandoned.push_back(std::move(*node.child));
      for (const ProbeChild& child : node.abandoned) ::kill(child.pid, SIGKILL);
    }
    for (Watched& node : nodes_) {
      for (const ProbeChild& child : node.abandoned) {
        pollfd end{child.pidfd.get(), POLLIN, 0};
        const std::int64_t left_ms = (until - os::boot_ns()) / 1'000'000;
        (void)::poll(&end, 1, static_cast<int>(std::max<std::int64_t>(left_ms, 0)));
        (void)reap(child);
      }
    }
  }

  void wake() {
    const std::uint64_t one = 1;
    (void)!::write(wake_.get(), &one, sizeof one);
  }

  void add_to_epoll(int fd, std::uint64_t event_token) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = event_token;
    CHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0);
  }

  const ProbeRunnerOptions options_;
  ProbeListener& listener_;
  const os::Descriptor epoll_;
  const os::Descriptor wake_;

  // Used by the thread, and after it by the destructor.
  std::vector<Watched> nodes_;
  std::string buffer_;

  mutable std::mutex mutex_;  // over what follows
  bool is_stopping_ = false;
  std::vector<ProbeTarget> added_;
  std::map<std::string, Asked> asked_;
  std::vector<std::pair<std::string, bool>> held_;  // in the order in which they were told
  std::vector<ProbeStatus> status_;

  std::thread thread_;
};

ProbeTarget emulated_target(const std::string& node_name, const std::string& node_dir,
                            const std::string& library) {
  ProbeTarget target;
  target.node_name = node_name;
  target.emulated = true;
  target.library = library;
  target.host_description = node_dir + "/host.json";
  target.nvidia_smi.clear();  // it would speak of the GPUs that are really there
  target.kernel_log.clear();  // so would the kernel
  target.environment = {fmt::format("GPU_EMULATOR_STATE={}/state", node_dir)};
  return target;
}

ProbeRunner::ProbeRunner(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ProbeRunner::~ProbeRunner() = default;

base::Result<std::unique_ptr<ProbeRunner>> ProbeRunner::start(ProbeRunnerOptions options,
                                                              ProbeListener& listener) {
  os::Descriptor epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.is_open()) return std::unexpected(base::system_error("epoll_create1", errno));
  os::Descriptor wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.is_open()) return std::unexpected(base::system_error("eventfd", errno));
  auto impl =
      std::make_unique<Impl>(std::move(options), listener, std::move(epoll), std::move(wake));
  return std::unique_ptr<ProbeRunner>(new ProbeRunner(std::move(impl)));
}

void ProbeRunner::watch(ProbeTarget target) {
  impl_->watch(std::move(target));
}
void ProbeRunner::read_now(const std::string& node_name, const ReadNow& wanted) {
  impl_->read_now(node_name, wanted);
}
void ProbeRunner::hold(const std::string& node_name) {
  impl_->set_held(node_name, true);
}
void ProbeRunner::let_go_on(const std::string& node_name) {
  impl_->set_held(node_name, false);
}
std::vector<ProbeStatus> ProbeRunner::status() const {
  return impl_->status();
}

}  // namespace gpu_platform::node
