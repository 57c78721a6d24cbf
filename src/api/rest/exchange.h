#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "api/channel_source.h"
#include "api/peer.h"
#include "api/rest/routes.h"
#include "api/resume.h"

namespace gpu_platform::api {

// Produces the body of an answer bit by bit. Lives on its connection's thread and is destroyed when
// the answer is complete or the client has gone.
class BodySource {
 public:
  enum class Next {
    kMore,    // call again as soon as this is written
    kWait,    // nothing more until the waker is called
    kEnd,     // that was all
    kBroken,  // cannot go on: the connection is cut, so that the client sees an incomplete answer
  };
  virtual ~BodySource() = default;
  // Appends the available output, some 64 KiB, or one item if that alone is more.
  virtual Next fill(std::string& out) = 0;
  // The client is slow: releases large data that can be fetched again, until the next fill.
  virtual void rest() {}
};

struct Reply {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
  std::unique_ptr<BodySource> source;  // instead of body
  // It is told although the caller's credential holds no longer: the call itself has ended it.
  bool outlives_credential = false;
};

// A request as it came in.
struct HttpRequest {
  std::string method;
  Target target;
  const std::string* body = nullptr;  // null: none; valid during the call only
  std::string content_type;
  std::string accept;
  std::string last_event_id;
  std::string id;  // ours, for the answer and the log
};

// One request that waits for its answer. All functions on the connection's thread, except what
// resume() and waker() return, which may be called from any, also when connection and server are
// gone. The connection owns itself: others hold it weakly.
class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  virtual ~Exchange() = default;
  // The client. Its caller has the rights for this request, once the dispatcher has found the call.
  virtual Peer& peer() = 0;
  virtual boost::asio::io_context& context() = 0;
  // Says which call it is, for the count of answers; `name` outlives the exchange.
  virtual void is_call(std::string_view name) = 0;
  // Answers once; later answers are ignored, and so are answers to a client that has gone.
  virtual void reply(Reply reply) = 0;
  // Runs a continuation on the connection's thread; drops it when the server is gone.
  virtual Resume resume() = 0;
  // Asks a BodySource that returned kWait again.
  virtual std::function<void()> waker() = 0;
  // Returns whether the request asks for a WebSocket.
  virtual bool wants_websocket() const = 0;
  // Instead of reply(): makes it a WebSocket that carries the channel's frames until either side
  // ends.
  virtual void bridge(ChannelSocket channel) = 0;
  // Counts the answer among the long answers of its user, or the connection among the channels,
  // until it is over. An error must be sent as the answer.
  virtual base::Status begin_stream() = 0;
  virtual base::Status begin_channel() = 0;
  // For answers that may take long: `waiter` lives until the answer is given or the client has
  // gone, which is watched from here on.
  virtual void keep(std::shared_ptr<void> waiter) = 0;
};

}  // namespace gpu_platform::api
