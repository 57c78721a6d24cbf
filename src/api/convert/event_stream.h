#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>

namespace gpu_platform::api {

// One server-sent event.
struct ServerEvent {
  std::string name = "message";
  std::string data;
  std::string id;  // the last one given, also by an earlier event

  friend bool operator==(const ServerEvent&, const ServerEvent&) = default;
};

// Reads an event stream (WHATWG HTML, "Server-sent events") from pieces cut anywhere. An event
// counts once its empty line has come, so a stream that breaks off never yields half of one.
class EventReader {
 public:
  void feed(std::string_view bytes);
  // The next whole event, oldest first.
  std::optional<ServerEvent> next();

 private:
  void finish_line();
  void take_line(std::string_view line);
  void dispatch();

  std::string line_;
  bool after_carriage_return_ = false;
  bool at_start_ = true;  // a byte order mark may come
  bool has_data_ = false;
  ServerEvent current_{};
  std::deque<ServerEvent> ready_;
};

}  // namespace gpu_platform::api
