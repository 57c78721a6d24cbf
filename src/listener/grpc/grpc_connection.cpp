#include "listener/grpc/grpc_connection.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <boost/asio/post.hpp>

namespace gpu_platform::listener {

namespace {

namespace asio = boost::asio;

constexpr std::size_t kPieceOfOutput = 32 * 1024;
constexpr int kRoundsAtOnce = 16;
constexpr std::size_t kMaxAnswersOfPings = 100;  // that wait for the client
constexpr std::uint32_t kMaxHeadBytes = 16 * 1024;
// What frames cost that bring no call forward (flood_meter.h), and what a piece of an answer earns.
constexpr double kCostOfReset = 10;
constexpr double kCostOfSettings = 10;
constexpr double kCostOfEmptyPiece = 5;
constexpr double kCostOfWindow = 0.5;
constexpr double kEarnedByPiece = 2;

struct FreeLibrary {
  void operator()(nghttp2_session_callbacks* one) const { nghttp2_session_callbacks_del(one); }
  void operator()(nghttp2_option* one) const { nghttp2_option_del(one); }
};

std::string_view text_of(const std::uint8_t* bytes, std::size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

// The fields live until the library has copied them.
nghttp2_nv field(std::string_view name, std::string_view value) {
  const auto bytes = [](std::string_view text) {
    return const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(text.data()));
  };
  return {bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
}

// The trailers of an answer. The texts live in `texts`.
std::vector<nghttp2_nv> trailers(const GrpcStatus& status, std::vector<std::string>& texts) {
  texts = {fmt::format("{}", static_cast<int>(status.code)), percent_encoded(status.message),
           percent_encoded(status.field), percent_encoded(status.request_id)};
  std::vector<nghttp2_nv> fields = {field("grpc-status", texts[0])};
  if (!texts[1].empty()) fields.push_back(field("grpc-message", texts[1]));
  if (!texts[2].empty()) fields.push_back(field("field", texts[2]));
  if (!texts[3].empty()) fields.push_back(field("request-id", texts[3]));
  return fields;
}

}  // namespace

// ---- what the library calls

struct GrpcConnection::Callbacks {
  static GrpcConnection& of(void* self) { return *static_cast<GrpcConnection*>(self); }
  static bool is_request(const nghttp2_frame& frame) {
    return frame.hd.type == NGHTTP2_HEADERS && frame.headers.cat == NGHTTP2_HCAT_REQUEST;
  }

  static int on_begin_headers(nghttp2_session*, const nghttp2_frame* frame, void* self) {
    if (is_request(*frame)) of(self).begin_call(frame->hd.stream_id);
    return 0;
  }

  static int on_header(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name,
                       std::size_t name_size, const std::uint8_t* value, std::size_t value_size,
                       std::uint8_t, void* self) {
    if (!is_request(*frame)) return 0;  // trailers of a request say nothing here
    GrpcCall* call = of(self).call_of(frame->hd.stream_id);
    const bool is_taken =
        call == nullptr || call->add_field(text_of(name, name_size), text_of(value, value_size));
    return is_taken ? 0 : NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;  // resets the stream
  }

  static int on_frame(nghttp2_session*, const nghttp2_frame* frame, void* self) {
    of(self).note_frame(*frame);
    return 0;
  }

  static int on_data(nghttp2_session*, std::uint8_t, std::int32_t id, const std::uint8_t* bytes,
                     std::size_t size, void* self) {
    if (GrpcCall* call = of(self).call_of(id)) {
      call->take(text_of(bytes, size));
      of(self).ready_.insert(id);
    }
    return 0;
  }

  static int on_close(nghttp2_session*, std::int32_t id, std::uint32_t, void* self) {
    of(self).end_call(id);
    return 0;
  }

  // A client that has not sent its request to the end is told that the rest is not wanted.
  static int on_sent(nghttp2_session* session, const nghttp2_frame* frame, void* self) {
    const bool is_end =
        frame->hd.type == NGHTTP2_HEADERS && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    if (!is_end) return 0;
    const GrpcCall* call = of(self).call_of(frame->hd.stream_id);
    if (call == nullptr || call->has_whole_request()) return 0;
    nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_NO_ERROR);
    return 0;
  }

  static ssize_t on_read(nghttp2_session*, std::int32_t id, std::uint8_t* into, std::size_t size,
                         std::uint32_t* flags, nghttp2_data_source*, void* self) {
    return of(self).read_answer(id, {reinterpret_cast<char*>(into), size}, *flags);
  }
};

GrpcConnection::GrpcConnection(ClientContext context, AcceptedClient accepted)
    : with_(context),
      stream_(*this, context, std::move(accepted)),
      links_(with_, stream_.address(), stream_.key(), stream_.proof()),
      meter_(Clock::now()),
      quiet_since_(Clock::now()) {}

void GrpcConnection::begin() {
  stream_.begin();
  go();
}

bool GrpcConnection::begin_session() {
  nghttp2_session_callbacks* made_callbacks = nullptr;
  nghttp2_option* made_option = nullptr;
  if (nghttp2_session_callbacks_new(&made_callbacks) != 0) return false;
  const std::unique_ptr<nghttp2_session_callbacks, FreeLibrary> callbacks(made_callbacks);
  if (nghttp2_option_new(&made_option) != 0) return false;
  const std::unique_ptr<nghttp2_option, FreeLibrary> option(made_option);
  using To = Callbacks;
  nghttp2_session_callbacks_set_on_begin_headers_callback(made_callbacks, To::on_begin_headers);
  nghttp2_session_callbacks_set_on_header_callback(made_callbacks, To::on_header);
  nghttp2_session_callbacks_set_on_frame_recv_callback(made_callbacks, To::on_frame);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(made_callbacks, To::on_data);
  nghttp2_session_callbacks_set_on_stream_close_callback(made_callbacks, To::on_close);
  nghttp2_session_callbacks_set_on_frame_send_callback(made_callbacks, To::on_sent);
  nghttp2_option_set_max_outbound_ack(made_option, kMaxAnswersOfPings);
  nghttp2_session* made = nullptr;
  if (nghttp2_session_server_new2(&made, made_callbacks, this, made_option) != 0) return false;
  session_.reset(made);
  const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, kMaxCalls},
                                             {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, kMaxHeadBytes},
                                             {NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 0}};
  return nghttp2_submit_settings(made, NGHTTP2_FLAG_NONE, settings, std::size(settings)) == 0;
}

// ---- progress

void GrpcConnection::go() {
  const auto alive = shared_from_this();
  if (state_ == State::kGreeting && !greet()) return;
  bool has_more = true;
  for (int round = 0; has_more && state_ == State::kTalking; ++round) {
    if (round == kRoundsAtOnce) return go_soon();  // others have the thread in between
    has_more = read();
    if (state_ != State::kTalking) break;
    advance_calls();
    has_more = write() || has_more;
    if (state_ == State::kTalking && is_over()) finish();
  }
  if (state_ == State::kDraining) stream_.drain();
}

void GrpcConnection::go_soon() {
  if (std::exchange(is_posted_, true)) return;
  asio::post(with_.io, [connection = self()] {
    connection->is_posted_ = false;
    connection->go();
  });
}

bool GrpcConnection::greet() {
  if (!stream_.handshake()) return false;
  if (!begin_session()) {
    close();
    return false;
  }
  state_ = State::kTalking;
  stream_.clear_deadline();
  quiet_since_ = Clock::now();
  return true;
}

bool GrpcConnection::read() {
  if (is_ending_) return false;
  const auto bytes = stream_.read();
  if (!bytes) return false;
  const ssize_t taken = nghttp2_session_mem_recv(
      session_.get(), reinterpret_cast<const std::uint8_t*>(bytes->data()), bytes->size());
  // Other faults of the client are answered by the library, with a frame that says which.
  if (taken < 0) end_soon();
  return !is_ending_;
}

void GrpcConnection::advance_calls() {
  for (const std::int32_t id : std::exchange(ready_, {})) {
    const auto found = streams_.find(id);
    if (found == streams_.end()) continue;
    found->second.call->advance();
    serve(id, found->second);
  }
}

void GrpcConnection::serve(std::int32_t id, Stream& stream) {
  if (!stream.call->has_answer()) return;
  if (!stream.has_head) return submit_head(id, stream);
  if (std::exchange(stream.is_waiting, false)) nghttp2_session_resume_data(session_.get(), id);
}

// Fills the output with frames. False: there are none.
bool GrpcConnection::gather() {
  std::string& out = stream_.output();
  while (out.size() < kPieceOfOutput) {
    const std::uint8_t* bytes = nullptr;
    const ssize_t size = nghttp2_session_mem_send(session_.get(), &bytes);
    if (size < 0) end_soon();
    if (size <= 0) break;
    out += text_of(bytes, static_cast<std::size_t>(size));
  }
  return !out.empty();
}

// Returns whether something was written and all of it.
bool GrpcConnection::write() {
  bool has_written = false;
  while (gather()) {
    if (!stream_.flush(is_ending_)) return false;
    std::string().swap(stream_.output());  // a connection may be quiet for long
    has_written = true;
  }
  return has_written;
}

bool GrpcConnection::is_over() const {
  if (stream_.has_output()) return false;
  if (is_ending_) return true;
  return nghttp2_session_want_read(session_.get()) == 0 &&
         nghttp2_session_want_write(session_.get()) == 0;
}

void GrpcConnection::finish() {
  streams_.clear();
  state_ = State::kDraining;
  stream_.finish();
}

void GrpcConnection::pay(double points) {
  if (meter_.spend(points, Clock::now())) return;
  nghttp2_session_terminate_session(session_.get(), NGHTTP2_ENHANCE_YOUR_CALM);
  end_soon();
}

// Nothing more is read. What waits for the client is still sent if it takes it soon.
void GrpcConnection::end_soon() {
  if (std::exchange(is_ending_, true)) return;
  stream_.shorten_deadline(with_.times.drain);
}

// ---- calls

void GrpcConnection::begin_call(std::int32_t id) {
  GrpcCall::Environment environment{
      with_, links_, stream_.key(), !stream_.proof().empty(), stream_.is_over_tls(), {}};
  environment.wake = [weak = weak_from_this(), id] {
    const auto connection = std::static_pointer_cast<GrpcConnection>(weak.lock());
    if (connection == nullptr || connection->state_ != State::kTalking) return;
    connection->ready_.insert(id);
    connection->go();
  };
  streams_[id].call = std::make_unique<GrpcCall>(std::move(environment));
}

void GrpcConnection::end_call(std::int32_t id) {
  streams_.erase(id);
  ready_.erase(id);
  quiet_since_ = Clock::now();
}

GrpcCall* GrpcConnection::call_of(std::int32_t id) {
  const auto found = streams_.find(id);
  return found == streams_.end() ? nullptr : found->second.call.get();
}

void GrpcConnection::note_frame(const nghttp2_frame& frame) {
  const std::int32_t id = frame.hd.stream_id;
  const bool is_end = (frame.hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
  switch (frame.hd.type) {
    case NGHTTP2_HEADERS:
    case NGHTTP2_DATA: {
      GrpcCall* call = call_of(id);
      const bool is_empty = frame.hd.type == NGHTTP2_DATA && frame.hd.length == 0 && !is_end;
      if (is_empty) pay(kCostOfEmptyPiece);
      if (call == nullptr) return;
      if (Callbacks::is_request(frame)) call->begin();
      if (is_end) call->end_request();
      ready_.insert(id);
      return;
    }
    case NGHTTP2_RST_STREAM:
      return pay(kCostOfReset);
    case NGHTTP2_SETTINGS:
      return pay((frame.hd.flags & NGHTTP2_FLAG_ACK) != 0 ? 0 : kCostOfSettings);
    case NGHTTP2_WINDOW_UPDATE:
      return pay(kCostOfWindow);
    default:
      return pay(1);
  }
}

void GrpcConnection::submit_head(std::int32_t id, Stream& stream) {
  stream.has_head = true;
  const GrpcCall& call = *stream.call;
  const bool shows_who = call.status().code != GrpcCode::kUnauthenticated && !call.is_open_to_all();
  is_known_ = is_known_ || shows_who;
  const std::string status = fmt::format("{}", call.http_status());
  std::vector<nghttp2_nv> fields = {field(":status", status)};
  std::vector<std::string> texts;
  const bool is_whole = call.is_ended() && !call.has_output();
  if (call.http_status() == 200) {
    fields.push_back(field("content-type", "application/grpc"));
    fields.push_back(field("grpc-accept-encoding", "identity"));
    if (is_whole) {
      for (const nghttp2_nv& one : trailers(call.status(), texts)) fields.push_back(one);
    }
  }
  nghttp2_data_provider source{};
  source.read_callback = Callbacks::on_read;
  nghttp2_submit_response(session_.get(), id, fields.data(), fields.size(),
                          is_whole ? nullptr : &source);
}

ssize_t GrpcConnection::read_answer(std::int32_t id, std::span<char> into, std::uint32_t& flags) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  auto& [call, has_head, is_waiting] = found->second;
  const std::size_t size = call->read(into);
  if (call->has_output()) return static_cast<ssize_t>(size);
  if (call->is_ended()) {
    flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
    submit_end(id, call->status());
    return static_cast<ssize_t>(size);
  }
  ready_.insert(id);
  if (size > 0) {
    meter_.earn(kEarnedByPiece);
    return static_cast<ssize_t>(size);
  }
  is_waiting = true;
  return NGHTTP2_ERR_DEFERRED;
}

void GrpcConnection::submit_end(std::int32_t id, const GrpcStatus& status) {
  meter_.earn(kEarnedByPiece);
  std::vector<std::string> texts;
  const auto fields = trailers(status, texts);
  nghttp2_submit_trailer(session_.get(), id, fields.data(), fields.size());
}

void GrpcConnection::tick(Clock::time_point now) {
  if (stream_.is_overdue(now)) return close();
  links_.tick(now);
  if (state_ != State::kTalking) return;
  const auto alive = shared_from_this();
  std::vector<std::int32_t> stuck;
  for (auto& [id, stream] : streams_) {
    stream.call->tick(now);
    if (stream.call->is_stuck()) stuck.push_back(id);
    if (stream.call->is_ended()) ready_.insert(id);
  }
  for (const std::int32_t id : stuck) {
    nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
  }
  const auto quiet = is_known_ ? with_.times.idle : with_.times.first_request;
  if (streams_.empty() && now - quiet_since_ > quiet) {
    nghttp2_session_terminate_session(session_.get(), NGHTTP2_NO_ERROR);
  }
  if (!ready_.empty() || nghttp2_session_want_write(session_.get()) != 0) go();
}

void GrpcConnection::begin_stop() {
  if (state_ == State::kGreeting || (state_ == State::kTalking && streams_.empty())) {
    return close();
  }
  if (state_ != State::kTalking) return;
  for (auto& [id, stream] : streams_) {
    stream.call->begin_stop();
    ready_.insert(id);
  }
  const std::int32_t last = nghttp2_session_get_last_proc_stream_id(session_.get());
  nghttp2_submit_goaway(session_.get(), NGHTTP2_FLAG_NONE, last, NGHTTP2_NO_ERROR, nullptr, 0);
  go();
}

void GrpcConnection::close() {
  if (state_ == State::kClosed) return;
  const auto alive = shared_from_this();
  state_ = State::kClosed;
  streams_.clear();
  stream_.close();
}

}  // namespace gpu_platform::listener
