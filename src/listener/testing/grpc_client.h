#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nghttp2/nghttp2.h>

#include "listener/testing/tls_client.h"

namespace gpu_platform::listener {

// A blocking client of gRPC for tests, on one connection. What it sends is as a test says, also
// where it is wrong.
class GrpcClient {
 public:
  using Fields = std::vector<std::pair<std::string, std::string>>;
  // One call, as far as it has come.
  struct Call {
    std::map<std::string, std::string> fields;  // of the head and the trailers
    std::vector<std::string> messages;
    bool is_over = false;
    std::uint32_t reset = 0;  // the error that the server ended the stream with

    int status() const {
      const auto found = fields.find("grpc-status");
      return found == fields.end() ? -1 : std::stoi(found->second);
    }
    std::string message() const {
      const auto found = fields.find("grpc-message");
      return found == fields.end() ? std::string() : found->second;
    }
  };

  explicit GrpcClient(std::uint16_t port, bool has_tls = true, TlsClientOptions options = {})
      : transport_(port, with_protocol(std::move(options), has_tls)) {
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_client_new(&session_, callbacks, this);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, nullptr, 0);
  }
  ~GrpcClient() { nghttp2_session_del(session_); }
  GrpcClient(const GrpcClient&) = delete;
  GrpcClient& operator=(const GrpcClient&) = delete;

  TlsClient& transport() { return transport_; }
  nghttp2_session* session() { return session_; }
  bool is_connected() const { return transport_.is_connected(); }
  // The error that the server ended the connection with; nothing: it has not.
  std::optional<std::uint32_t> goodbye() const { return goodbye_; }

  static std::string framed(std::string_view message) {
    std::string out(1, '\0');
    const auto size = static_cast<std::uint32_t>(message.size());
    for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>(size >> shift));
    return out.append(message);
  }
  static Fields head(std::string path, std::string token) {
    Fields fields = {{":method", "POST"},
                     {":scheme", "https"},
                     {":authority", "localhost"},
                     {":path", std::move(path)},
                     {"content-type", "application/grpc"},
                     {"te", "trailers"}};
    if (!token.empty()) fields.emplace_back("authorization", "Bearer " + token);
    return fields;
  }

  // Begins a call with these bytes as the body of its request, which ends there if `is_whole`.
  std::int32_t begin(const Fields& fields, std::string body, bool is_whole = true) {
    std::vector<nghttp2_nv> list;
    for (const auto& [name, value] : fields) {
      list.push_back({bytes_of(name), bytes_of(value), name.size(), value.size(), 0});
    }
    auto upload = std::make_unique<Upload>(Upload{std::move(body), 0, is_whole});
    nghttp2_data_provider source{};
    source.source.ptr = upload.get();
    source.read_callback = read_upload;
    const std::int32_t id =
        nghttp2_submit_request(session_, nullptr, list.data(), list.size(), &source, nullptr);
    uploads_[id] = std::move(upload);
    flush();
    return id;
  }
  // Sends what waits. False: the server takes no more.
  bool flush() {
    const std::uint8_t* bytes = nullptr;
    ssize_t size = 0;
    while ((size = nghttp2_session_mem_send(session_, &bytes)) > 0) {
      if (!transport_.send(
              {reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size)})) {
        return false;
      }
    }
    return size == 0;
  }
  // Reads until the condition holds. False: the connection has ended before.
  template <class Condition>
  bool read_until(Condition&& condition) {
    while (!condition()) {
      const std::string bytes = transport_.receive_some();
      if (bytes.empty()) return false;
      if (nghttp2_session_mem_recv(session_, reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                   bytes.size()) < 0) {
        return false;
      }
      if (!flush() && !condition()) return false;
    }
    return true;
  }
  Call& of(std::int32_t id) { return calls_[id]; }
  // Until it is over, or the connection is.
  Call& finish(std::int32_t id) {
    read_until([&] { return calls_[id].is_over; });
    return calls_[id];
  }
  // A call with one message.
  Call call(std::string path, std::string_view message, std::string token, Fields more = {}) {
    Fields fields = head(std::move(path), std::move(token));
    fields.insert(fields.end(), more.begin(), more.end());
    return finish(begin(fields, framed(message)));
  }

 private:
  struct Upload {
    std::string body;
    std::size_t sent = 0;
    bool is_whole = true;
  };

  static TlsClientOptions with_protocol(TlsClientOptions options, bool has_tls) {
    options.has_tls = has_tls;
    if (options.protocols.empty()) options.protocols = "\x02h2";
    return options;
  }
  static std::uint8_t* bytes_of(const std::string& text) {
    return const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(text.data()));
  }
  static ssize_t read_upload(nghttp2_session*, std::int32_t, std::uint8_t* into, std::size_t size,
                             std::uint32_t* flags, nghttp2_data_source* source, void*) {
    auto& upload = *static_cast<Upload*>(source->ptr);
    const std::size_t here = std::min(size, upload.body.size() - upload.sent);
    std::memcpy(into, upload.body.data() + upload.sent, here);
    upload.sent += here;
    if (upload.sent < upload.body.size()) return static_cast<ssize_t>(here);
    if (upload.is_whole) *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (here == 0 && !upload.is_whole) return NGHTTP2_ERR_DEFERRED;
    return static_cast<ssize_t>(here);
  }
  static int on_header(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name,
                       std::size_t name_size, const std::uint8_t* value, std::size_t value_size,
                       std::uint8_t, void* self) {
    static_cast<GrpcClient*>(self)
        ->calls_[frame->hd.stream_id]
        .fields[std::string(reinterpret_cast<const char*>(name), name_size)] =
        std::string(reinterpret_cast<const char*>(value), value_size);
    return 0;
  }
  static int on_data(nghttp2_session*, std::uint8_t, std::int32_t id, const std::uint8_t* bytes,
                     std::size_t size, void* self) {
    auto& of = *static_cast<GrpcClient*>(self);
    std::string& waiting = of.waiting_[id];
    waiting.append(reinterpret_cast<const char*>(bytes), size);
    while (waiting.size() >= 5) {
      std::size_t length = 0;
      for (int i = 1; i < 5; ++i) length = length << 8 | static_cast<unsigned char>(waiting[i]);
      if (waiting.size() < 5 + length) break;
      of.calls_[id].messages.push_back(waiting.substr(5, length));
      waiting.erase(0, 5 + length);
    }
    return 0;
  }
  static int on_close(nghttp2_session*, std::int32_t id, std::uint32_t error, void* self) {
    Call& call = static_cast<GrpcClient*>(self)->calls_[id];
    call.is_over = true;
    call.reset = error;
    return 0;
  }
  static int on_frame(nghttp2_session*, const nghttp2_frame* frame, void* self) {
    if (frame->hd.type == NGHTTP2_GOAWAY) {
      static_cast<GrpcClient*>(self)->goodbye_ = frame->goaway.error_code;
    }
    return 0;
  }

  TlsClient transport_;
  nghttp2_session* session_ = nullptr;
  std::map<std::int32_t, Call> calls_;
  std::map<std::int32_t, std::string> waiting_;
  std::map<std::int32_t, std::unique_ptr<Upload>> uploads_;
  std::optional<std::uint32_t> goodbye_;
};

}  // namespace gpu_platform::listener
