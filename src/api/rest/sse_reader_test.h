#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "api/rest/raw_client_test.h"

namespace gpu_platform::api {

struct SseEvent {
  std::string id;
  std::string name;
  nlohmann::json data;
};

// Reads a stream of server-sent events event by event.
class SseReader {
 public:
  SseReader(const std::string& path, std::string_view target, std::string_view headers = {})
      : client_(path) {
    client_.send(request_text("GET", target, {}, headers));
    head_ = client_.receive_head().value_or(RawResponse{});
  }

  const RawResponse& head() const { return head_; }

  // Nothing at the end of the stream.
  std::optional<SseEvent> next() {
    std::size_t end = 0;
    while ((end = text_.find("\n\n")) == std::string::npos) {
      const auto chunk = client_.receive_chunk();
      if (!chunk) return std::nullopt;
      text_ += *chunk;
    }
    SseEvent event;
    std::string_view rest = std::string_view(text_).substr(0, end + 1);
    while (!rest.empty()) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(line.size() + 1);
      if (line.starts_with("id: ")) event.id = line.substr(4);
      if (line.starts_with("event: ")) event.name = line.substr(7);
      if (line.starts_with("data: ")) event.data = nlohmann::json::parse(line.substr(6));
    }
    text_.erase(0, end + 2);
    return event;
  }
  // The regular end came, and nothing before it.
  bool is_at_end() { return !next() && client_.is_at_end(); }
  void close() { client_.close(); }

 private:
  RawClient client_;
  RawResponse head_;
  std::string text_;
};

}  // namespace gpu_platform::api
