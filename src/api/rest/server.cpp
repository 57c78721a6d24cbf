#include "api/rest/server.h"

#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>
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
#include "api/rest/arrivals.h"
#include "api/rest/dispatcher.h"
#include "api/rest/gate.h"
#include "api/rest/open_sessions.h"
#include "api/rest/session.h"
#include "api/rest/unix_listener.h"
#include "api/subordinate_ids.h"
#include "os/descriptor.h"

namespace gpu_platform::api {

namespace {

namespace asio = boost::asio;
using boost::system::error_code;

using Acceptor =
    asio::basic_socket_acceptor<asio::local::stream_protocol, asio::io_context::executor_type>;

// After the system ran out of descriptors there is no use in trying again at once.
constexpr std::chrono::milliseconds kAcceptPause{50};

// For the request of a connection that is there to be refused.
constexpr std::chrono::milliseconds kRefusedTime{5'000};

// The time between two looks at refused calls that wait to be told, and at memory that is kept for
// the next answer.
constexpr std::chrono::seconds kTick{15};

// One thread with everything that runs on it.
struct Worker {
  asio::io_context io{1};
  FileWatcher watcher{io};
  std::shared_ptr<Gate> gate = std::make_shared<Gate>(io);
  asio::executor_work_guard<asio::io_context::executor_type> guard = asio::make_work_guard(io);
  std::thread thread;
};

// The user that a connection counts for that is only refused.
Holder unknown_caller() {
  return {kUnknownUsers, "the clients without a valid credential together", false};
}

// Returns the peer as the kernel describes it, with its user's name.
Peer peer_of(const ucred& credentials, const host::UserName& name) {
  const std::uint32_t uid = credentials.uid;
  Peer peer;
  peer.caller.user = name.text;
  peer.caller.uid = uid;
  peer.caller.door = model::Door::kUnixSocket;
  peer.caller.pid = static_cast<std::uint64_t>(std::max(credentials.pid, 0));
  peer.gid = credentials.gid;
  peer.is_name_known = name.is_known;
  peer.has_account = name.has_account;
  return peer;
}

// No more than open files allow, of which the rest of the program needs some.
BudgetLimits possible(BudgetLimits limits) {
  constexpr std::uint64_t kOtherFiles = 256;
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == RLIM_INFINITY) return limits;
  const std::uint64_t left =
      files.rlim_cur > 2 * kOtherFiles ? files.rlim_cur - kOtherFiles : kOtherFiles;
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
        calls_(core_, {options_.version, options_.only_uid, options_.users}),
        refusals_(core_.commands),
        subordinate_ids_(options_.subordinate_ids),
        budgets_(std::make_shared<Budgets>(possible(options_.budgets))),
        dispatcher_(calls_, hub, options_.page_bytes,
                    core_.audit == nullptr ? nullptr : &refusals_),
        connections_(std::make_shared<ConnectionCount>()),
        arrivals_(std::make_shared<Arrivals>(options_.arrivals)) {
    // It has nothing to wait for: its request is on its way.
    refused_limits_.request_time = std::min(refused_limits_.request_time, kRefusedTime);
    refused_limits_.idle_time = kRefusedTime;
    refused_limits_.write_time = kRefusedTime;
  }

  base::Status start() {
    const unsigned threads = options_.io_threads == 0 ? 1 : options_.io_threads;
    // The first accepts connections and serves privileged users.
    for (unsigned i = 0; i <= threads; ++i) workers_.push_back(std::make_unique<Worker>());
    sessions_ = std::vector<OpenSessions>(workers_.size());
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
    connections_->wait_until_all_gone(options_.stop_grace);
    for (auto& worker : workers_) {
      worker->gate->close();
      worker->io.stop();
    }
    for (auto& worker : workers_) {
      if (worker->thread.joinable()) worker->thread.join();
    }
    // Sessions that are left end here, while the contexts are still there.
    for (std::size_t i = 0; i < sessions_.size(); ++i) {
      for (const auto& session : sessions_[i].all()) session->close();
    }
    refusals_.finish();
    acceptor_.reset();
    retry_.reset();
    tick_.reset();
    workers_.clear();
  }

  void adopt(int descriptor, Credential credential) {
    if (!arrivals_->try_enter()) {
      const os::Descriptor refused(descriptor);
      return refuse_busy(refused.get(), "from " + credential.address, std::nullopt,
                         {base::ErrorCode::kUnavailable,
                          "many clients are being looked up: try again in a moment",
                          {}});
    }
    auto arrival = std::make_shared<Arrival>(descriptor, credential.address, arrivals_);
    const std::size_t turn = worker_for(unknown_caller());
    const auto welcomed = [this, turn, arrival,
                           gate = workers_[turn]->gate](base::Result<Peer> peer) {
      // Posted where it came at once, too, as with the names of local users.
      gate->post([this, turn, arrival, peer = std::move(peer)] { welcome(turn, arrival, peer); });
    };
    if (options_.authenticator == nullptr) {
      return welcomed(base::fail(base::ErrorCode::kUnauthenticated,
                                 "this daemon accepts no callers from other machines"));
    }
    options_.authenticator->authenticate(std::move(credential), welcomed);
  }

  Figures figures() const {
    return {connections_->total(), requests_.load(std::memory_order_relaxed)};
  }

 private:
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
      calls_.reader().forget_idle();
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

  // Returns the worker with the fewest connections among those that serve its holder. If no other
  // user is connected, privileged users have the threads of all: their own thread only keeps them
  // apart from others, and more threads than configured would make the batches of the journal
  // smaller.
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
    newcomer->count = connections_;
    connections_->enter();
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

  // Finds the account of the connection: that of its uid, or otherwise of the user that it is a
  // subordinate uid of, so that a user namespace does not make one user many.
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
    LocalSocket socket(workers_[turn]->io);
    error_code error;
    socket.assign(asio::local::stream_protocol(), newcomer.descriptor, error);
    if (error) return warn(std::nullopt, "accept: " + error.message());
    newcomer.descriptor = -1;
    newcomer.count = nullptr;  // what is counted is the session's from here on
    add_session(turn, std::move(socket), peer_of(newcomer.credentials, name),
                environment_of(turn, newcomer.holder));
  }

  Session::Environment environment_of(std::size_t turn, const Holder& holder) {
    Worker& worker = *workers_[turn];
    return {dispatcher_,
            calls_.meter(),
            worker.watcher,
            worker.io,
            worker.gate,
            options_.limits,
            *budgets_,
            holder,
            [this] { return next_request_id(); },
            [this](Peer& unnamed) { name_again(unnamed); },
            [this, turn, holder](Session* closed) { on_closed(turn, holder, closed); },
            {},
            options_.notable};
  }

  void add_session(std::size_t turn, LocalSocket socket, Peer peer,
                   Session::Environment environment) {
    auto session =
        std::make_shared<Session>(std::move(socket), std::move(peer), std::move(environment));
    sessions_[turn].add(session);
    session->start();
  }

  // Begins the session of a connection of the listener: for its user, or to refuse it.
  void welcome(std::size_t turn, const std::shared_ptr<Arrival>& arrival,
               const base::Result<Peer>& peer) {
    LocalSocket socket(workers_[turn]->io);
    error_code error;
    socket.assign(asio::local::stream_protocol(), arrival->descriptor.get(), error);
    if (error) return warn(std::nullopt, "adopt a connection: " + error.message());
    arrival->descriptor.release();
    connections_->enter();
    if (!peer) return begin_refusal(turn, std::move(socket), arrival, peer.error());
    const Holder holder{peer->caller.uid, "user " + peer->caller.user, false};
    if (const base::Status taken = take_link(holder); !taken) {
      warn(peer->caller.uid, fmt::format("connection of {} from {} refused: {}", holder.name,
                                         arrival->address, taken.error().message));
      return begin_refusal(turn, std::move(socket), arrival, taken.error());
    }
    Session::Environment environment = environment_of(turn, holder);
    environment.closed = [this, turn, holder](Session* closed) {
      budgets_->links.give_back(holder, 1);
      on_closed(turn, holder, closed);
    };
    environment.admit = [authenticator = options_.authenticator](const Peer& known) {
      return authenticator->check_still_holds(known);
    };
    Peer from_afar = *peer;
    from_afar.caller.door = model::Door::kListener;  // it is not root, with any uid
    add_session(turn, std::move(socket), std::move(from_afar), std::move(environment));
  }

  // A user who works on this machine still gets in when others hold what it may have from afar.
  base::Status take_link(const Holder& holder) {
    TRY(budgets_->links.try_take(holder, 1));
    auto taken = budgets_->connections.try_take(holder, 1);
    if (!taken) budgets_->links.give_back(holder, 1);
    return taken;
  }

  // The listener expects an answer to the request that it sends, not before it.
  void begin_refusal(std::size_t turn, LocalSocket socket, std::shared_ptr<Arrival> arrival,
                     const base::Error& why) {
    const Holder holder = unknown_caller();
    Session::Environment environment{
        dispatcher_,
        calls_.meter(),
        workers_[turn]->watcher,
        workers_[turn]->io,
        workers_[turn]->gate,
        refused_limits_,
        *budgets_,
        holder,
        [this] { return next_request_id(); },
        [](Peer&) {},
        [this, turn, arrival = std::move(arrival)](Session* closed) {
          sessions_[turn].remove(closed);
          connections_->leave();
        },
        [why](const Peer&) -> base::Status { return std::unexpected(why); },
        options_.notable};
    add_session(turn, std::move(socket), Peer{}, std::move(environment));
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
    connections_->leave();
  }

  void refuse_busy(LocalSocket socket, std::uint32_t uid, const base::Error& why) {
    refuse_busy(socket.native_handle(), fmt::format("of uid {}", uid), uid, why);
  }

  // Answers before there is a request. `whose`: "of uid 7".
  void refuse_busy(int socket, const std::string& whose, std::optional<std::uint32_t> uid,
                   const base::Error& why) {
    warn(uid, fmt::format("connection {} refused: {}", whose, why.message));
    const Problem problem = to_problem(why, next_request_id());
    const std::string body = to_json(problem);
    const std::string answer = fmt::format(
        "HTTP/1.1 {} {}\r\nContent-Type: application/problem+json\r\nContent-Length: {}\r\n"
        "Connection: close\r\n\r\n{}",
        problem.status, status_title(problem.status), body.size(), body);
    // What does not go at once is dropped.
    (void)!::send(socket, answer.data(), answer.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
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
  std::shared_ptr<Budgets> budgets_;  // as connections_
  Dispatcher dispatcher_;
  std::shared_ptr<ConnectionCount>
      connections_;  // connections that wait for the lookup of their user have it too
  std::shared_ptr<Arrivals> arrivals_;  // they have it, too
  SessionLimits refused_limits_ = options_.limits;
  std::atomic<std::uint64_t> requests_{0};
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<OpenSessions> sessions_;
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

void Server::adopt(int descriptor, Credential credential) {
  impl_->adopt(descriptor, std::move(credential));
}

Server::Figures Server::figures() const {
  return impl_->figures();
}

}  // namespace gpu_platform::api
