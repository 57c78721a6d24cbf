#include "listener/grpc/daemon_links.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace gpu_platform::listener {

namespace {

constexpr std::size_t kMaxWaiting = 4;

// The daemon closes connections when it stops, and those that are idle.
bool is_closed(DaemonLink& link) {
  char byte = 0;
  const ssize_t got = ::recv(link.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got >= 0 || errno != EAGAIN;
}

}  // namespace

DaemonLink::DaemonLink(const ClientContext& with, ConnectionTable::Key key, std::string bearer,
                       int descriptor)
    : connection_table_(with.connection_table),
      key_(std::move(key)),
      bearer_(std::move(bearer)),
      socket_(with.io) {
  boost::system::error_code ignored;
  socket_.assign(boost::asio::local::stream_protocol(), descriptor, ignored);
}

DaemonLink::~DaemonLink() {
  connection_table_.leave(key_);
}

base::Result<std::unique_ptr<DaemonLink>> DaemonLinks::take(const std::string& bearer) {
  std::erase_if(waiting_, [](const Waiting& one) { return is_closed(*one.link); });
  const auto found = std::ranges::find_if(
      waiting_, [&](const Waiting& one) { return one.link->bearer() == bearer; });
  if (found != waiting_.end()) {
    std::unique_ptr<DaemonLink> link = std::move(found->link);
    waiting_.erase(found);
    return link;
  }
  if (!with_.connection_table.enter(key_)) {
    return base::fail(base::ErrorCode::kResourceExhausted,
                      "this address has too many calls under way (api.rest.max_connections, "
                      "api.rest.max_connections_per_address)");
  }
  // A token counts before a certificate: it may be for less than all that the user may do.
  const Credential credential = bearer.empty()
                                    ? Credential{Credential::Kind::kCertificate, proof_, address_}
                                    : Credential{Credential::Kind::kBearer, bearer, address_};
  auto opened = with_.upstream.open(credential);
  if (!opened) {
    with_.connection_table.leave(key_);
    return std::unexpected(std::move(opened).error());
  }
  return std::make_unique<DaemonLink>(with_, key_, bearer, *opened);
}

void DaemonLinks::give_back(std::unique_ptr<DaemonLink> link) {
  if (waiting_.size() < kMaxWaiting) waiting_.push_back({std::move(link), Client::Clock::now()});
}

void DaemonLinks::tick(Client::Clock::time_point now) {
  std::erase_if(waiting_,
                [&](const Waiting& one) { return now - one.since > with_.times.upstream_idle; });
}

}  // namespace gpu_platform::listener
