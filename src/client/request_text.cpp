#include "client/request_text.h"

#include "api/convert/json_writer.h"

namespace gpu_platform::client {

std::string request_text(const google::protobuf::Message& request) {
  std::string text;
  api::append_request_json(text, request);
  return text;
}

}  // namespace gpu_platform::client
