#include "api/rest/server.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>

#include "api/calls.h"
#include "api/convert/problem.h"
#include "api/refusal_book.h"
#include "api/rest/dispatcher.h"
#include "api/rest/session.h"
#include "api/rest/unix_listener.h"
#include "api/subordinate_ids.h"

namespace gpu_platform::api {

namespace {

namespace asio = boost::asio;
using boost::system::error_code;

using Acceptor =
    asio::basic_socket_acceptor<asio::local::stream_protocol, asio::io_context::executor_type>;

// After the system ran out of descriptors there is no use in trying again at once.
constexpr std::chrono::milliseconds kAcceptPause{50};

// Between two looks at refused calls that wait to be told.
constexpr std::chrono::seconds kTick{15};

// One thread with everything that runs on it.
struct Worker {
  asio::io_context io{1};
  FileWatcher watcher{io};
  std::shared_ptr<Gate> gate = std::make_shared<Gate>(io);
  asio::executor_work_guard<asio::io_context::executor_type> guard = asio::make_work_guard(io);
  std::thread thread;
};

// Counts the open connections. Safe from any thread.
class Registry {
 public:
  void enter() {
    const std::lock_guard lock(mutex_);
    ++total_;
  }
  void leave() {
    const std::lock_guard lock(mutex_);
    --total_;
    if (total_ == 0) all_gone_.notify_all();
  }
  std::size_t total() const {
    const std::lock_guard lock(mutex_);
    return total_;
  }
  void wait_until_all_gone(std::chrono::milliseconds at_most) {
    std::unique_lock lock(mutex_);
    all_gone_.wait_for(lock, at_most, [&] { return total_ == 0; });
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable all_gone_;
  std::size_t total_ = 0;
};

// A connection that waits for its user's name; counted until it is a session's or gone. It may
// outlive the server and its io contexts, so it is no socket of theirs.
struct Newcomer {
  Newcomer(int accepted, const ucred& peer) : descriptor(accepted), credentials(peer) {}
  ~Newcomer() {
    if (descriptor >= 0) ::close(descriptor);
    if (registry == nullptr) return;
    budgets->connections.give_back(holder, 1);
    registry->leave();
  }
  Newcomer(const Newcomer&) = delete;
  Newcomer& operator=(const Newcomer&) = delete;

  int descriptor;
  ucred credentials;
  Holder holder;                     // on whose account it is meanwhile
  std::shared_ptr<Budgets> budgets;  // these two where it is counted
  std::shared_ptr<Registry> registry;
};

// What the kernel says of it, and its name.
Peer peer_of(const ucred& credentials, const host::UserName& name) {
  const std::uint32_t uid = credentials.uid;
  Peer peer;
  peer.caller = {name.text, uid, uid == 0, model::Door::kUnixSocket,
                 static_cast<std::uint64_t>(std::max(credentials.pid, 0))};
  peer.gid = credentials.gid;
  peer.is_name_known = name.is_known;
  peer.has_account = name.has_account;
  return peer;
}

// No more than open files allow, of which the rest of the program needs some.
BudgetLimits possible(BudgetLimits limits) {
  constexpr std::uint64_t kOthers = 256;
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == RLIM_INFINITY) return limits;
  const std::uint64_t left = files.rlim_cur > 2 * kOthers ? files.rlim_cur - kOthers : kOthers;
  limits.connections = std::min(limits.connections, left / 4 * 3);
  limits.channels = std::min(limits.channels, left / 4);
  return limits;
}

}  // namespace

class Server::Impl {
 public:
  Impl(ServerOptions options, CoreAccess core, EventHub& hub)
      : options_(std::move(options)),
        core_(std::move(core)),
        calls_(core_, {options_.version, options_.shows_all_commands}),
        refusals_(core_.commands),
        subordinate_ids_(options_.subordinate_ids),
        budgets_(std::make_shared<Budgets>(possible(options_.budgets))),
        dispatcher_(calls_, hub, options_.page_bytes,
                    core_.audit == nullptr ? nullptr : &refusals_),
        registry_(std::make_shared<Registry>()) {}

  base::Status start() {
    const unsigned threads = options_.io_threads == 0 ? 1 : options_.io_threads;
    // The first takes connections in, and serves those who are privileged.
    for (unsigned i = 0; i <= threads; ++i) workers_.push_back(std::make_unique<Worker>());
    sessions_ = std::vector<Sessions>(workers_.size());
    TRY_ASSIGN(UnixListener listener, UnixListener::open(options_.socket_path));
    acceptor_.emplace(workers_.front()->io);
    error_code error;
    acceptor_->assign(asio::local::stream_protocol(), listener.take_descriptor(), error);
    if (error) {
      return base::fail(base::ErrorCode::kInternal, "listen on the socket: " + error.message());
    }
    listener_.emplace(std::move(listener));
    retry_.emplace(workers_.front()->io);
    tick_.emplace(workers_.front()->io);
    tick();
    accept();
    for (auto& worker : workers_) {
      worker->thread = std::thread([&io = worker->io] { io.run(); });
    }
    return {};
  }

  void stop() {
    if (std::exchange(is_stopped_, true) || workers_.empty()) return;
    listener_.reset();
    asio::post(workers_.front()->io, [this] {
      error_code ignored;
      if (acceptor_) acceptor_->close(ignored);
      if (retry_) retry_->cancel();
      if (tick_) tick_->cancel();
    });
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      asio::post(workers_[i]->io, [this, i] {
        for (const auto& session : sessions_[i].all()) session->begin_stop();
      });
    }
    registry_->wait_until_all_gone(options_.stop_grace);
    for (auto& worker : workers_) {
      worker->gate->close();
      worker->io.stop();
    }
    for (auto& worker : workers_) {
      if (worker->thread.joinable()) worker->thread.join();
    }
    // What is left ends here, while the contexts are still there.
    for (std::size_t i = 0; i < sessions_.size(); ++i) {
      for (const auto& session : sessions_[i].all()) session->close();
    }
    refusals_.finish();
    acceptor_.reset();
    retry_.reset();
    tick_.reset();
    workers_.clear();
  }

  Figures figures() const {
    return {registry_->total(), requests_.load(std::memory_order_relaxed)};
  }

 private:
  // The open sessions of one worker. Entered and left on its thread.
  class Sessions {
   public:
    void add(const std::shared_ptr<Session>& session) {
      const std::lock_guard lock(mutex_);
      entries_.emplace(session.get(), session);
    }
    void remove(Session* session) {
      const std::lock_guard lock(mutex_);
      entries_.erase(session);
    }
    std::size_t size() const {
      const std::lock_guard lock(mutex_);
      return entries_.size();
    }
    std::vector<std::shared_ptr<Session>> all() const {
      std::vector<std::shared_ptr<Session>> out;
      const std::lock_guard lock(mutex_);
      for (const auto& [key, session] : entries_) out.push_back(session);
      return out;
    }

   private:
    mutable std::mutex mutex_;
    std::map<Session*, std::shared_ptr<Session>> entries_;
  };

  void accept() {
    acceptor_->async_accept(workers_.front()->io,
                            [this](const error_code& error, LocalSocket socket) {
                              on_accepted(error, std::move(socket));
                            });
  }

  // Refused calls that were only counted are told some time after the last of them too.
  void tick() {
    tick_->expires_after(kTick);
    tick_->async_wait([this](const error_code& cancelled) {
      if (cancelled) return;
      refusals_.tick();
      tick();
    });
  }

  void on_accepted(const error_code& error, LocalSocket socket) {
    if (error == asio::error::operation_aborted || !acceptor_->is_open()) return;
    if (!error) {
      open_session(std::move(socket));
      return accept();
    }
    if (error != asio::error::connection_aborted) warn(std::nullopt, "accept: " + error.message());
    retry_->expires_after(kAcceptPause);
    retry_->async_wait([this](const error_code& cancelled) {
      if (!cancelled) accept();
    });
  }

  // The one with fewest connections of those that serve its holder. Where nobody else is there, the
  // privileged have the threads of all: their own keeps them apart from others, and more threads
  // than were asked for would make the batches of the journal smaller.
  std::size_t worker_for(const Holder& holder) const {
    if (holder.is_privileged && budgets_->connections.taken_by_users() > 0) return 0;
    std::size_t best = 1;
    for (std::size_t i = 2; i < workers_.size(); ++i) {
      if (sessions_[i].size() < sessions_[best].size()) best = i;
    }
    return best;
  }

  // The user's name may come late or never: nothing else waits for it.
  void open_session(LocalSocket accepted) {
    ucred credentials{};
    socklen_t size = sizeof credentials;
    if (::getsockopt(accepted.native_handle(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
      return;
    }
    const std::uint32_t uid = credentials.uid;
    const Holder holder = holder_of(uid, "user " + core_.users.name_now(uid).text);
    const base::Status taken = budgets_->connections.try_take(holder, 1);
    if (!taken) return refuse_busy(std::move(accepted), uid, taken.error());
    error_code ignored;
    auto newcomer = std::make_shared<Newcomer>(accepted.release(ignored), credentials);
    newcomer->holder = holder;
    newcomer->budgets = budgets_;
    newcomer->registry = registry_;
    registry_->enter();
    const std::size_t turn = worker_for(holder);
    core_.users.name_of(uid, [this, turn, newcomer = std::move(newcomer),
                              gate = workers_[turn]->gate](host::UserName name) {
      // Posted where it came at once, too: the session begins on its own thread. When the server
      // has ended the gate is closed, and nothing of it is touched.
      gate->post([this, turn, newcomer, name = std::move(name)] { greet(turn, newcomer, name); });
    });
  }

  Holder holder_of(std::uint32_t uid, std::string name) const {
    const bool is_privileged = options_.is_privileged ? options_.is_privileged(uid) : uid == 0;
    return {uid, std::move(name), is_privileged};
  }

  // On whose account it is: that of its uid, or, where that has none, of the user whose subordinate
  // uid it is, so that a user namespace makes no one many.
  void greet(std::size_t turn, const std::shared_ptr<Newcomer>& newcomer,
             const host::UserName& name) {
    const std::uint32_t uid = newcomer->credentials.uid;
    if (name.has_account) {
      newcomer->holder.name = "user " + name.text;
      return begin_session(turn, *newcomer, name);
    }
    const Holder together{kUnknownUsers, "the users without an account together", false};
    const auto owner = subordinate_ids_.owner_of(uid);
    if (!owner) return hand_over(turn, *newcomer, name, together);
    std::uint32_t number = 0;
    const auto [end, code] = std::from_chars(owner->data(), owner->data() + owner->size(), number);
    if (code == std::errc() && end == owner->data() + owner->size()) {
      return hand_over(turn, *newcomer, name, {number, "user " + *owner, false});
    }
    core_.users.find(*owner, uid,
                     [this, turn, newcomer, name, together,
                      gate = workers_[turn]->gate](base::Result<host::User> user) {
                       const Holder holder =
                           user ? Holder{user->uid, "user " + user->name, false} : together;
                       gate->post([this, turn, newcomer, name, holder] {
                         hand_over(turn, *newcomer, name, holder);
                       });
                     });
  }

  // To another account than its uid's own, if that has room.
  void hand_over(std::size_t turn, Newcomer& newcomer, const host::UserName& name,
                 const Holder& holder) {
    if (const base::Status taken = budgets_->connections.try_take(holder, 1); !taken) {
      LocalSocket socket(workers_[turn]->io);
      error_code error;
      socket.assign(asio::local::stream_protocol(), std::exchange(newcomer.descriptor, -1), error);
      return refuse_busy(std::move(socket), newcomer.credentials.uid, taken.error());
    }
    budgets_->connections.give_back(newcomer.holder, 1);
    newcomer.holder = holder;
    begin_session(turn, newcomer, name);
  }

  void begin_session(std::size_t turn, Newcomer& newcomer, const host::UserName& name) {
    Worker& worker = *workers_[turn];
    LocalSocket socket(worker.io);
    error_code error;
    socket.assign(asio::local::stream_protocol(), newcomer.descriptor, error);
    if (error) return warn(std::nullopt, "accept: " + error.message());
    newcomer.descriptor = -1;
    newcomer.registry = nullptr;  // what is counted is the session's from here on
    Session::Environment environment{dispatcher_,
                                     worker.watcher,
                                     worker.io,
                                     worker.gate,
                                     options_.limits,
                                     *budgets_,
                                     newcomer.holder,
                                     [this] { return next_request_id(); },
                                     [this](Peer& unnamed) { name_again(unnamed); },
                                     [this, turn, holder = newcomer.holder](Session* closed) {
                                       on_closed(turn, holder, closed);
                                     }};
    auto session = std::make_shared<Session>(std::move(socket), peer_of(newcomer.credentials, name),
                                             std::move(environment));
    sessions_[turn].add(session);
    session->start();
  }

  void name_again(Peer& peer) const {
    const host::UserName name = core_.users.name_now(peer.caller.uid);
    if (!name.is_known) return;
    peer.caller.user = name.text;
    peer.is_name_known = true;
    peer.has_account = name.has_account;
  }

  void on_closed(std::size_t turn, const Holder& holder, Session* session) {
    sessions_[turn].remove(session);
    budgets_->connections.give_back(holder, 1);
    registry_->leave();
  }

  void refuse_busy(LocalSocket socket, std::uint32_t uid, const base::Error& why) {
    warn(uid, fmt::format("connection of uid {} refused: {}", uid, why.message));
    const Problem problem = to_problem(why, next_request_id());
    const std::string body = to_json(problem);
    const std::string answer = fmt::format(
        "HTTP/1.1 {} {}\r\nContent-Type: application/problem+json\r\nContent-Length: {}\r\n"
        "Connection: close\r\n\r\n{}",
        problem.status, status_title(problem.status), body.size(), body);
    error_code ignored;
    socket.non_blocking(true, ignored);
    socket.write_some(asio::buffer(answer), ignored);
  }

  std::string next_request_id() {
    return fmt::format("r{}", requests_.fetch_add(1, std::memory_order_relaxed) + 1);
  }

  void warn(std::optional<std::uint32_t> user, const std::string& line) const {
    if (options_.warn) options_.warn(user, line);
  }

  const ServerOptions options_;
  const CoreAccess core_;
  Calls calls_;
  RefusalBook refusals_;
  SubordinateIds subordinate_ids_;
  std::shared_ptr<Budgets> budgets_;  // as the registry
  Dispatcher dispatcher_;
  std::shared_ptr<Registry> registry_;  // connections whose user is looked up have it too
  std::atomic<std::uint64_t> requests_{0};
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<Sessions> sessions_;
  std::optional<UnixListener> listener_;
  std::optional<Acceptor> acceptor_;
  std::optional<asio::steady_timer> retry_;
  std::optional<asio::steady_timer> tick_;
  bool is_stopped_ = false;
};

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Server::~Server() {
  stop();
}

base::Result<std::unique_ptr<Server>> Server::start(ServerOptions options, CoreAccess core,
                                                    EventHub& hub) {
  auto impl = std::make_unique<Impl>(std::move(options), std::move(core), hub);
  TRY(impl->start());
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

void Server::stop() {
  impl_->stop();
}

Server::Figures Server::figures() const {
  return impl_->figures();
}

}  // namespace gpu_platform::api
