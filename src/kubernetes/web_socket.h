#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <boost/asio/io_context.hpp>
#include <boost/system/error_code.hpp>

#include "base/result.h"
#include "kubernetes/client.h"
#include "kubernetes/endpoint.h"

// A WebSocket connection to an API server, over TCP or TLS. Debian's libcurl has no WebSockets.
//
// Thread: that of the io_context. Handlers come from there, never from within the call; at most one
// read, one write and one ping is under way. A handler that is under way keeps what it holds, so it
// must keep this object. Nothing here has a time limit but the answer to a close.

namespace gpu_platform::kubernetes {

class WebSocket {
 public:
  using Error = boost::system::error_code;

  // Errors: the credential's certificate or the authorities cannot be used.
  static base::Result<std::unique_ptr<WebSocket>> make(boost::asio::io_context& io,
                                                       Endpoint endpoint, Credential credential);
  virtual ~WebSocket() = default;

  // `path`: with its query. The answer says why it was refused, with status 0 if none came;
  // nothing: it is open.
  using Opened = std::function<void(std::optional<Answer> refusal)>;
  virtual void open(std::string path, std::string protocol, Opened done) = 0;
  // One message, at most kMaxMessage bytes; the view is good within the handler.
  static constexpr std::size_t kMaxMessage = std::size_t{1} << 20;
  virtual void read(std::function<void(const Error&, std::string_view message)> done) = 0;
  virtual void write(std::string message, std::function<void(const Error&)> done) = 0;
  virtual void ping(std::function<void(const Error&)> done) = 0;
  // When something came last, be it the answer to a ping; monotonic, 0: never.
  virtual std::int64_t heard_ns() const = 0;
  // Closes in good order, within a few seconds. `done`: the connection has ended.
  virtual void close(std::function<void(const Error&)> done) = 0;
  // Ends the connection at once: handlers get an error.
  virtual void drop() = 0;
};

}  // namespace gpu_platform::kubernetes
