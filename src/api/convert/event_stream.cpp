#include "api/convert/event_stream.h"

namespace gpu_platform::api {

void EventReader::feed(std::string_view bytes) {
  if (bytes.empty()) return;
  if (after_carriage_return_ && bytes.starts_with('\n')) bytes.remove_prefix(1);
  after_carriage_return_ = false;
  while (true) {
    const std::size_t end = bytes.find_first_of("\r\n");
    line_.append(bytes.substr(0, end));
    if (end == std::string_view::npos) return;
    const bool is_carriage_return = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    finish_line();
    if (!is_carriage_return) continue;
    after_carriage_return_ = bytes.empty();
    if (bytes.starts_with('\n')) bytes.remove_prefix(1);
  }
}

void EventReader::finish_line() {
  std::string_view line = line_;
  if (at_start_ && line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3);
  at_start_ = false;
  take_line(line);
  line_.clear();
}

std::optional<ServerEvent> EventReader::next() {
  if (ready_.empty()) return std::nullopt;
  ServerEvent event = std::move(ready_.front());
  ready_.pop_front();
  return event;
}

void EventReader::take_line(std::string_view line) {
  if (line.empty()) return dispatch();
  const std::size_t colon = line.find(':');
  if (colon == 0) return;  // a comment: keeps the connection alive
  const std::string_view field = line.substr(0, colon);
  std::string_view value = colon == std::string_view::npos ? "" : line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field == "data") {
    if (has_data_) current_.data.push_back('\n');
    current_.data.append(value);
    has_data_ = true;
  } else if (field == "event") {
    current_.name = value;
  } else if (field == "id" && value.find('\0') == std::string_view::npos) {
    current_.id = value;
  }
}

void EventReader::dispatch() {
  ServerEvent event = std::move(current_);
  current_ = ServerEvent{};
  current_.id = event.id;
  if (event.name.empty()) event.name = "message";
  if (has_data_) ready_.push_back(std::move(event));
  has_data_ = false;
}

}  // namespace gpu_platform::api
