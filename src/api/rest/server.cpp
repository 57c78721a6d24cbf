#include "api/rest/server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
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
#include "api/refusal_book.h"
#include "api/rest/dispatcher.h"
#include "api/rest/unix_listener.h"

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

// The open connections, counted by user. Safe from any thread.
class Registry {
 public:
  explicit Registry(const ServerOptions& options)
      : most_(options.max_connections), most_of_user_(options.max_connections_per_user) {}

  bool try_enter(std::uint32_t uid) {
    const std::lock_guard lock(mutex_);
    if (total_ >= most_) return false;
    std::size_t& of_user = by_user_[uid];
    if (uid != 0 && of_user >= most_of_user_) return false;
    ++of_user;
    ++total_;
    return true;
  }
  void leave(std::uint32_t uid) {
    const std::lock_guard lock(mutex_);
    if (--by_user_[uid] == 0) by_user_.erase(uid);
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
  const std::size_t most_;
  const std::size_t most_of_user_;
  mutable std::mutex mutex_;
  std::condition_variable all_gone_;
  std::map<std::uint32_t, std::size_t> by_user_;
  std::size_t total_ = 0;
};

// A connection that waits for its user's name; counted until it is a session's or gone. It may
// outlive the server and its io contexts, so it is no socket of theirs.
struct Newcomer {
  Newcomer(int accepted, std::shared_ptr<Registry> counted, std::uint32_t user)
      : descriptor(accepted), registry(std::move(counted)), uid(user) {}
  ~Newcomer() {
    if (descriptor >= 0) ::close(descriptor);
    if (registry != nullptr) registry->leave(uid);
  }
  Newcomer(const Newcomer&) = delete;
  Newcomer& operator=(const Newcomer&) = delete;

  int descriptor;
  std::shared_ptr<Registry> registry;
  std::uint32_t uid;
};

// What the kernel says of it, and its name.
Peer peer_of(const ucred& credentials, const host::UserName& name) {
  const std::uint32_t uid = credentials.uid;
  Peer peer;
  peer.caller = {name.text, uid, uid == 0, model::Door::kUnixSocket,
                 static_cast<std::uint64_t>(std::max(credentials.pid, 0))};
  peer.gid = credentials.gid;
  peer.is_name_known = name.is_known;
  return peer;
}

}  // namespace

class Server::Impl {
 public:
  Impl(ServerOptions options, CoreAccess core, EventHub& hub)
      : options_(std::move(options)),
        core_(std::move(core)),
        calls_(core_, {options_.version, options_.shows_all_commands}),
        refusals_(core_.commands),
        dispatcher_(calls_, hub, core_.audit == nullptr ? nullptr : &refusals_),
        registry_(std::make_shared<Registry>(options_)) {}

  base::Status start() {
    const unsigned threads = options_.io_threads == 0 ? 1 : options_.io_threads;
    for (unsigned i = 0; i < threads; ++i) workers_.push_back(std::make_unique<Worker>());
    sessions_.resize(workers_.size());
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
        for (const auto& session : open_sessions(i)) session->begin_stop();
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
      for (const auto& session : open_sessions(i)) session->close();
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
  struct Sessions {
    std::unique_ptr<std::mutex> mutex = std::make_unique<std::mutex>();
    std::map<Session*, std::shared_ptr<Session>> entries;
  };

  void accept() {
    const std::size_t turn = next_worker_++ % workers_.size();
    acceptor_->async_accept(workers_[turn]->io,
                            [this, turn](const error_code& error, LocalSocket socket) {
                              on_accepted(turn, error, std::move(socket));
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

  void on_accepted(std::size_t turn, const error_code& error, LocalSocket socket) {
    if (error == asio::error::operation_aborted || !acceptor_->is_open()) return;
    if (!error) {
      open_session(turn, std::move(socket));
      return accept();
    }
    if (error != asio::error::connection_aborted) warn(std::nullopt, "accept: " + error.message());
    retry_->expires_after(kAcceptPause);
    retry_->async_wait([this](const error_code& cancelled) {
      if (!cancelled) accept();
    });
  }

  void open_session(std::size_t turn, LocalSocket socket) {
    ucred credentials{};
    socklen_t size = sizeof credentials;
    if (::getsockopt(socket.native_handle(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
      return;
    }
    const std::uint32_t uid = credentials.uid;
    if (!registry_->try_enter(uid)) {
      warn(uid, fmt::format("connection of user {} refused: too many are open", uid));
      return refuse_busy(std::move(socket));
    }
    // The user's name may come late or never: nobody else waits for it.
    error_code ignored;
    auto newcomer = std::make_shared<Newcomer>(socket.release(ignored), registry_, uid);
    core_.users.name_of(uid, [this, turn, credentials, newcomer = std::move(newcomer),
                              gate = workers_[turn]->gate](host::UserName name) {
      // Posted where it came at once, too: the session begins on its own thread. When the server
      // has ended the gate is closed, and nothing of it is touched.
      gate->post([this, turn, newcomer, peer = peer_of(credentials, name)] {
        begin_session(turn, *newcomer, peer);
      });
    });
  }

  void begin_session(std::size_t turn, Newcomer& newcomer, Peer peer) {
    const std::uint32_t uid = newcomer.uid;
    Worker& worker = *workers_[turn];
    Session::Environment environment{
        dispatcher_,
        worker.watcher,
        worker.io,
        worker.gate,
        options_.limits,
        [this] { return next_request_id(); },
        [this](Peer& unnamed) { name_again(unnamed); },
        [this, turn, uid](Session* closed) { on_closed(turn, uid, closed); }};
    LocalSocket socket(worker.io);
    error_code error;
    socket.assign(asio::local::stream_protocol(), newcomer.descriptor, error);
    if (error) return warn(std::nullopt, "accept: " + error.message());
    newcomer.descriptor = -1;
    newcomer.registry = nullptr;
    auto session =
        std::make_shared<Session>(std::move(socket), std::move(peer), std::move(environment));
    {
      const std::lock_guard lock(*sessions_[turn].mutex);
      sessions_[turn].entries.emplace(session.get(), session);
    }
    session->start();
  }

  void name_again(Peer& peer) const {
    const host::UserName name = core_.users.name_now(peer.caller.uid);
    if (!name.is_known) return;
    peer.caller.user = name.text;
    peer.is_name_known = true;
  }

  std::vector<std::shared_ptr<Session>> open_sessions(std::size_t turn) {
    std::vector<std::shared_ptr<Session>> out;
    const std::lock_guard lock(*sessions_[turn].mutex);
    for (const auto& [key, session] : sessions_[turn].entries) out.push_back(session);
    return out;
  }

  void on_closed(std::size_t turn, std::uint32_t uid, Session* session) {
    {
      const std::lock_guard lock(*sessions_[turn].mutex);
      sessions_[turn].entries.erase(session);
    }
    registry_->leave(uid);
  }

  static void refuse_busy(LocalSocket socket) {
    static constexpr std::string_view kBusy =
        "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    error_code ignored;
    socket.non_blocking(true, ignored);
    socket.write_some(asio::buffer(kBusy), ignored);
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
  Dispatcher dispatcher_;
  std::shared_ptr<Registry> registry_;  // connections whose user is looked up have it too
  std::atomic<std::uint64_t> requests_{0};
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<Sessions> sessions_;
  std::optional<UnixListener> listener_;
  std::optional<Acceptor> acceptor_;
  std::optional<asio::steady_timer> retry_;
  std::optional<asio::steady_timer> tick_;
  std::size_t next_worker_ = 0;
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
