#include <algorithm>

#include <google/protobuf/message.h>

#include "api/convert/json_reader.h"
#include "api/convert/services.h"
#include "base/check.h"
#include "listener/grpc/methods.h"
#include "listener/grpc/wire.h"
#include "target.h"

// Messages of gRPC. What the daemon gets of one reads back as the same message, the bytes may come
// in any pieces, and server reflection answers or refuses every question. The first byte chooses
// the call.

namespace gpu_platform::fuzz {

namespace {

namespace pb = google::protobuf;

std::vector<const pb::MethodDescriptor*> all_calls() {
  std::vector<const pb::MethodDescriptor*> calls;
  for (const pb::ServiceDescriptor* service : api::services()) {
    for (int i = 0; i < service->method_count(); ++i) calls.push_back(service->method(i));
  }
  return calls;
}

std::vector<std::string> read_in_pieces(std::string_view input, std::size_t size) {
  listener::GrpcMessageReader reader(1'000);
  std::vector<std::string> messages;
  for (std::size_t at = 0; at < input.size(); at += size) {
    const bool is_taken = reader.put(input.substr(at, size)).has_value();
    while (auto message = reader.next()) messages.push_back(*std::move(message));
    if (!is_taken) break;
  }
  return messages;
}

// The request's JSON, read as the daemon does, has the same JSON.
void check_request(const pb::MethodDescriptor& call, std::string_view bytes) {
  const auto json = listener::request_for_daemon(call, bytes);
  if (!json) {
    CHECK(!json.error().field.empty());
    return;
  }
  const auto* prototype = pb::MessageFactory::generated_factory()->GetPrototype(call.input_type());
  const std::unique_ptr<pb::Message> message(prototype->New());
  if (!api::read_json(*json, *message)) return;  // a NUL in a text, or a key that comes twice
  const auto again = listener::request_for_daemon(call, message->SerializeAsString());
  CHECK(again.has_value());
  CHECK(*again == *json);
}

}  // namespace

void run(std::string_view input) {
  static const auto kCalls = all_calls();
  if (input.empty()) return;
  const auto first = static_cast<unsigned char>(input.front());
  const std::string_view rest = input.substr(1);
  check_request(*kCalls[first % kCalls.size()], rest);
  CHECK(read_in_pieces(rest, 1) == read_in_pieces(rest, rest.size() + 1));
  (void)listener::reflect(rest);
  (void)listener::parse_timeout(rest.substr(0, 16));
  (void)listener::answer_for_client(*kCalls[first % kCalls.size()], rest);
}

std::vector<std::string> seeds() {
  std::string framed;
  listener::append_framed(framed, "\x0a\x01\x31");
  return {std::string(1, '\0') + "\x0a\x06\x0a\x04true",
          std::string(1, '\1') + "\x0a\x01\x31",
          std::string(1, '\2') + framed + framed,
          std::string(1, '\3') + "\x3a\x01*",
          std::string(1, '\4') + R"({"id":"1"})",
          "\5"
          "100m"};
}

}  // namespace gpu_platform::fuzz
