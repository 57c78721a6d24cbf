#include <algorithm>

#include "base/check.h"
#include "listener/rest/answer_reader.h"
#include "listener/rest/policy.h"
#include "listener/rest/request_reader.h"
#include "target.h"

// Requests of other machines. What the daemon gets of one reads back as the same single request,
// however the bytes come.

namespace gpu_platform::fuzz {

namespace {

using listener::Request;
using listener::RequestReader;

struct Outcome {
  int refused = 0;
  bool is_done = false;
  std::size_t taken = 0;
  std::string written;  // for the daemon

  friend bool operator==(const Outcome&, const Outcome&) = default;
};

Outcome read_in_pieces(std::string_view input, std::size_t size) {
  RequestReader reader{listener::RequestLimits()};
  Outcome outcome;
  while (outcome.taken < input.size() && !reader.is_done() && !reader.refusal()) {
    outcome.taken += reader.put(input.substr(outcome.taken, size));
  }
  outcome.is_done = reader.is_done() && !reader.refusal();
  if (reader.refusal()) {
    outcome.refused = reader.refusal()->status;
    outcome.taken = 0;  // how far it was read makes no difference
    CHECK(outcome.refused >= 400 && outcome.refused < 600);
  }
  if (outcome.is_done) {
    (void)listener::judge(reader.request(), reader.host(), {});
    outcome.written = listener::head_for_daemon(reader.request()) + reader.request().body;
  }
  return outcome;
}

}  // namespace

void run(std::string_view input) {
  const Outcome whole = read_in_pieces(input, input.size() + 1);
  CHECK(read_in_pieces(input, 1) == whole);
  if (!whole.is_done) return;
  const Outcome again = read_in_pieces(whole.written, whole.written.size());
  CHECK(again.is_done && again.taken == whole.written.size());
  std::string out;
  listener::AnswerReader answer({}, {});
  (void)answer.put(input, out);
}

std::vector<std::string> seeds() {
  const std::string begin = "POST /v1/jobs HTTP/1.1\r\nHost: a:1\r\nAuthorization: Bearer gp_x\r\n";
  return {begin + "Content-Length: 2\r\n\r\n{}",
          begin + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
          "GET /v1/jobs?limit=1 HTTP/1.1\r\nHost: [::1]:8443\r\nOrigin: https://b\r\n\r\n",
          "GET /v1/jobs/1/exec HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: "
          "websocket\r\nSec-WebSocket-Key: x\r\n\r\n",
          begin + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
          begin + "Content-Length: 2\r\n folded\r\n\r\n{}"};
}

}  // namespace gpu_platform::fuzz
