#pragma once

#include <cstdlib>
#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/base64.h"
#include "base/utc.h"
#include "cli/cli.h"
#include "client/fake_server_test.h"
#include "client/process_fixture_test.h"

namespace gpu_platform::cli {

using client::begins;
using client::FakeServer;
using client::has;
using client::json_answer;
using client::send_text;
using client::stream_end;
using client::stream_event;
using client::stream_head;

inline constexpr std::string_view kJob =
    R"({"id":"42","state":"QUEUED","submitted_at":"2026-07-01T12:00:00.000Z","exit_code":null,"wait_reason":{"code":"NO_CAPACITY","text":"1 node is 4 GPUs short"},"spec":{"name":"train","user":"ada","priority":"MEDIUM","priority_number":5,"gpus":8,"command":["python","a b.py"],"labels":{"run":"7"}}})";

// A job that ended, with the fields that say how.
inline std::string ended_job(std::string_view state, std::string_view how) {
  return fmt::format(R"({{"id":"42","name":"train","state":"{}","attempt":1,{}}})", state, how);
}

inline std::string chunk(int attempt, std::size_t offset, std::string_view data,
                         bool ended = false) {
  std::string text = fmt::format(R"({{"attempt":{},"offset":{},"data":")", attempt, offset);
  base::append_base64(text, data);
  return text + fmt::format(R"(","next_offset":{},"ended":{}}})", offset + data.size(), ended);
}

// While it lives, local times are UTC.
class InUtc {
 public:
  InUtc() {
    if (const char* zone = ::getenv("TZ")) before_ = zone;
    ::setenv("TZ", "UTC", 1);
    ::tzset();
  }
  ~InUtc() {
    before_ ? ::setenv("TZ", before_->c_str(), 1) : ::unsetenv("TZ");
    ::tzset();
  }
  InUtc(const InUtc&) = delete;
  InUtc& operator=(const InUtc&) = delete;

 private:
  std::optional<std::string> before_;
};

// Runs commands with a terminal and a clock of the test's own.
class Cli : public client::Process {
 protected:
  int call(std::vector<std::string> words) { return run_in(around_, words); }
  int call(const FakeServer& server, std::vector<std::string> words) {
    words.insert(words.begin(), {"--server", "unix:" + server.path()});
    return run_in(around_, words);
  }
};

}  // namespace gpu_platform::cli
