#include "listener/front.h"

#include <netinet/tcp.h>
#include <sys/socket.h>

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
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "listener/grpc/grpc_connection.h"
#include "listener/rest/connection.h"

namespace gpu_platform::listener {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using Acceptor = asio::basic_socket_acceptor<tcp, asio::io_context::executor_type>;

constexpr std::chrono::milliseconds kTick{500};
// After the system ran out of descriptors there is no use in trying again at once.
constexpr std::chrono::milliseconds kAcceptPause{50};
// Refused connections are told of at most this often.
constexpr std::chrono::seconds kWarnPause{10};

// A client that is gone without a word is noticed, also where nothing is sent for days.
void watch_for_silence(int socket) {
  const int on = 1;
  const int idle_s = 60;
  const int interval_s = 15;
  const int count = 4;
  const unsigned user_timeout_ms = 60'000;
  ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
  ::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &user_timeout_ms, sizeof user_timeout_ms);
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

ConnectionTable::Key key_of(const asio::ip::address& address) {
  if (address.is_v4()) {
    const auto bytes = address.to_v4().to_bytes();
    return {bytes.begin(), bytes.end()};
  }
  const auto bytes = address.to_v6().to_bytes();
  return {bytes.begin(), bytes.begin() + bytes.size() / 2};
}

asio::ip::address without_mapping(const asio::ip::address& address) {
  if (!address.is_v6() || !address.to_v6().is_v4_mapped()) return address;
  return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
}

}  // namespace

class Front::Impl {
 public:
  Impl(FrontOptions options, Upstream& upstream, Certificates tls)
      : options_(std::move(options)),
        upstream_(upstream),
        tls_(tls),
        policy_{options_.settings.host_names, options_.settings.web_origins},
        connection_table_({options_.settings.connections, options_.settings.connections_per_address,
                           options_.settings.body_bytes}) {
    const std::size_t threads = std::clamp<std::size_t>(options_.settings.threads, 1, 256);
    for (std::size_t i = 0; i < threads; ++i) workers_.push_back(std::make_unique<Worker>());
  }
  ~Impl() { stop(std::chrono::milliseconds(0)); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  base::Status listen(os::Descriptor socket, const Listen& what) {
    auto door = std::make_unique<OpenDoor>(workers_.front()->io, what);
    sockaddr_storage name{};
    socklen_t size = sizeof name;
    if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&name), &size) != 0) {
      return std::unexpected(base::system_error("listen on " + what.address, errno));
    }
    error_code error;
    door->acceptor.assign(name.ss_family == AF_INET6 ? tcp::v6() : tcp::v4(), socket.get(), error);
    if (error) return base::fail(base::ErrorCode::kInternal, "listen: " + error.message());
    socket.release();
    doors_.push_back(std::move(door));
    return {};
  }

  void start() {
    for (auto& door : doors_) accept(*door);
    for (auto& worker : workers_) {
      tick(*worker);
      worker->thread = std::thread([&io = worker->io] { io.run(); });
    }
  }

  void stop(std::chrono::milliseconds grace) {
    if (std::exchange(is_stopped_, true)) return;
    asio::post(workers_.front()->io, [this] {
      error_code ignored;
      for (auto& door : doors_) door->acceptor.close(ignored);
    });
    for (auto& worker : workers_) {
      asio::post(worker->io, [&clients = worker->clients] {
        for (const auto& client : copy_of(clients)) client->begin_stop();
      });
    }
    const auto limit = std::chrono::steady_clock::now() + grace;
    {
      std::unique_lock lock(gone_mutex_);
      gone_.wait_until(lock, limit, [&] { return connection_table_.connections() == 0; });
    }
    for (auto& worker : workers_) worker->io.stop();
    for (auto& worker : workers_) {
      if (worker->thread.joinable()) worker->thread.join();
    }
    for (auto& worker : workers_) {
      for (const auto& client : copy_of(worker->clients)) client->close();
    }
    doors_.clear();
  }

  std::uint64_t connections() const { return connection_table_.connections(); }

 private:
  using Clients = std::map<Client*, std::shared_ptr<Client>>;

  // One thread with everything that runs on it.
  struct Worker {
    asio::io_context io{1};
    asio::executor_work_guard<asio::io_context::executor_type> guard = asio::make_work_guard(io);
    asio::steady_timer timer{io};
    std::array<char, 64 * 1024> scratch;
    Clients clients;
    std::thread thread;
  };
  struct OpenDoor {
    OpenDoor(asio::io_context& io, Listen listen)
        : what(std::move(listen)), acceptor(io), pause(io) {}
    Listen what;
    Acceptor acceptor;
    asio::steady_timer pause;
    tcp::endpoint peer;
  };

  static std::vector<std::shared_ptr<Client>> copy_of(const Clients& clients) {
    std::vector<std::shared_ptr<Client>> out;
    for (const auto& [key, client] : clients) out.push_back(client);
    return out;
  }

  void tick(Worker& worker) {
    worker.timer.expires_after(kTick);
    worker.timer.async_wait([this, &worker](const error_code& cancelled) {
      if (cancelled) return;
      const auto now = Client::Clock::now();
      for (const auto& client : copy_of(worker.clients)) client->tick(now);
      tick(worker);
    });
  }

  // The clients of all doors are taken by the first thread and go to each in turn.
  void accept(OpenDoor& door) {
    Worker& worker = *workers_[next_++ % workers_.size()];
    door.acceptor.async_accept(
        worker.io, door.peer, [this, &door, &worker](const error_code& error, ClientSocket socket) {
          if (error == asio::error::operation_aborted || !door.acceptor.is_open()) return;
          if (!error) {
            take(door, worker, std::move(socket));
            return accept(door);
          }
          door.pause.expires_after(kAcceptPause);
          door.pause.async_wait([this, &door](const error_code& cancelled) {
            if (!cancelled) accept(door);
          });
        });
  }

  void take(OpenDoor& door, Worker& worker, ClientSocket socket) {
    const asio::ip::address address = without_mapping(door.peer.address());
    const ConnectionTable::Key key = key_of(address);
    if (!connection_table_.enter(key)) return warn_of(address.to_string());
    watch_for_silence(socket.native_handle());
    // Counted until the client is closed, also if the thread has ended by then.
    asio::post(worker.io, [this, &worker, key, what = door.what, text = address.to_string(),
                           socket = std::move(socket)]() mutable {
      const auto client = client_of(worker, what, std::move(socket), std::move(text), key);
      worker.clients.emplace(client.get(), client);
      client->begin();
    });
  }

  std::shared_ptr<Client> client_of(Worker& worker, const Listen& what, ClientSocket socket,
                                    std::string address, const ConnectionTable::Key& key) {
    const ClientContext with{worker.io,       upstream_,      connection_table_, policy_,
                             options_.limits, options_.times, worker.scratch,    refusals_};
    const bool is_grpc = what.door == Door::kGrpc;
    const Tls* tls = !what.has_tls ? nullptr : is_grpc ? &tls_.grpc : &tls_.rest;
    const auto closed = [this, &worker](Client* client) {
      worker.clients.erase(client);
      const std::lock_guard lock(gone_mutex_);
      gone_.notify_all();
    };
    AcceptedClient accepted{std::move(socket), std::move(address), key, tls, closed};
    if (is_grpc) return std::make_shared<GrpcConnection>(with, std::move(accepted));
    return std::make_shared<Connection>(with, std::move(accepted));
  }

  void warn_of(const std::string& address) {
    ++turned_away_;
    const auto now = std::chrono::steady_clock::now();
    if (!options_.warn || now < warn_after_) return;
    warn_after_ = now + kWarnPause;
    options_.warn(
        fmt::format("connections refused count={} last_from={} (api.rest.max_connections, "
                    "api.rest.max_connections_per_address)",
                    std::exchange(turned_away_, 0), address));
  }

  const FrontOptions options_;
  Upstream& upstream_;
  const Certificates tls_;
  const Policy policy_;
  ConnectionTable connection_table_;
  std::atomic<std::uint64_t> refusals_{0};
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::unique_ptr<OpenDoor>> doors_;
  std::size_t next_ = 0;
  std::uint64_t turned_away_ = 0;
  std::chrono::steady_clock::time_point warn_after_;
  std::mutex gone_mutex_;
  std::condition_variable gone_;
  bool is_stopped_ = false;
};

Front::Front(FrontOptions options, Upstream& upstream, Certificates tls)
    : impl_(std::make_unique<Impl>(std::move(options), upstream, tls)) {}
Front::~Front() = default;

base::Status Front::listen(os::Descriptor socket, const Listen& what) {
  return impl_->listen(std::move(socket), what);
}
void Front::start() {
  impl_->start();
}
void Front::stop(std::chrono::milliseconds grace) {
  impl_->stop(grace);
}
std::uint64_t Front::connections() const {
  return impl_->connections();
}

}  // namespace gpu_platform::listener
