#include <limits>
#include <utility>

#include "base/check.h"
#include "node/identity.h"
#include "node/protocol.h"
#include "target.h"

// The target reads the messages between the launcher, its supervisors and the daemon: messages,
// requests to run something, the start of a channel, orders that travel as a signal's number; and
// the user database's answer about an account.

namespace gpu_platform::fuzz {

namespace {

constexpr std::uint64_t kAllBits = std::numeric_limits<std::uint64_t>::max();

// A message that was understood is written in a form that is understood as the same.
template <class Decode, class Encode>
void expect_stable(std::string_view input, const Decode& decode, const Encode& encode) {
  const auto first = decode(input);
  if (!first) return;
  const std::string bytes = encode(*first);
  const auto second = decode(bytes);
  CHECK(second && *second == *first);
  CHECK(encode(*second) == bytes);
}

node::LaunchRequest a_request() {
  node::LaunchRequest request;
  request.boot_id = "8d3f";
  request.user.uid = 1500;
  request.command = {std::string_view("sh\0", 3), std::string_view("-c\0", 3)};
  request.environment = {std::string_view("A=b\0", 4)};
  request.workdir = std::string_view("/\0", 2);
  request.output = std::string_view("\0", 1);
  request.time_limit_ms = 5000;
  request.output_files = 8;
  request.devices = {{195, 3}, {195, 4}};
  request.memory_bytes = 1 << 30;
  request.cpus = 4;
  request.near_cpus = "0-55,112-167";
  request.near_nodes = "0";
  return request;
}

}  // namespace

void run(std::string_view input) {
  expect_stable(input, node::decode, [](const node::Message& m) { return node::encode(m); });
  expect_stable(input, node::decode_request, node::encode_request);
  expect_stable(input, node::decode_channel_start, node::encode_channel_start);
  expect_stable(input, node::decode_opened_file, node::encode_opened_file);
  expect_stable(input, node::decode_driver_answer, node::encode_driver_answer);
  node::Identity user;
  if (node::parse_account(input, 1500, user)) CHECK(user.uid == 1500);
  (void)node::parse_groups(input, user);
  if (const auto attempt = node::parse_attempt_name(input)) {
    CHECK(node::attempt_name(*attempt) == input);
  }
  std::uint64_t bits = 0;
  for (const char c : input.substr(0, 8)) bits = bits << 8 | static_cast<unsigned char>(c);
  for (const std::uint64_t each : {bits, bits & (kAllBits >> 8)}) {
    const node::StopSignal order = node::unpack(each);
    CHECK(node::unpack(node::pack(order)) == order);
  }
}

std::vector<std::string> seeds() {
  const model::AttemptId attempt{model::JobId(300), 2};
  std::vector<std::string> seeds;
  const node::Message messages[] = {
      node::Hello{},
      node::Launch{attempt, false, "request"},
      node::Launch{attempt, true, {}},
      node::Stop{attempt, true, 5000, 1},
      node::SetLimit{attempt, 60'000},
      node::SendSignal{attempt, 10},
      node::KillTree{attempt},
      node::Forget{{attempt, attempt}},
      node::OpenChannel{attempt, true},
      node::Refused{"why"},
      node::Launched{attempt, 4711},
      node::Exists{attempt},
      node::LaunchFailed{attempt, "why"},
      node::StopSent{attempt, true},
      node::TreeState{attempt, true},
      node::ForgetRefused{attempt},
      node::OpenFile{1500, "/home/ann/out"},
      node::RunDriver{
          node::DriverVerb::kReset, {"GPU-1"}, 0, 1000, node::BoardFiles{"/l", "/s", "/n"}},
      node::TimeSlices{"GPU-1", 100, {{attempt, 1750}}},
      node::GpuIsIdle{"GPU-1"}};
  for (const node::Message& message : messages) seeds.push_back(node::encode(message));
  node::Welcome welcome;
  welcome.detail = "/sys/fs/cgroup/x";
  welcome.guards = {{node::Guard::kUser, true, {}}, {node::Guard::kFolders, false, "why"}};
  seeds.push_back(node::encode(welcome));
  node::LaunchRequest request = a_request();
  seeds.push_back(node::encode_request(request));
  request.takes_input = true;
  request.terminal = model::TerminalSize{25, 80};
  request.idle_timeout_ms = 1000;
  request.private_folders = true;
  seeds.push_back(node::encode_request(request));
  seeds.push_back(node::encode_channel_start({model::TerminalSize{25, 80}, 0, false}));
  seeds.push_back(node::encode_channel_start({std::nullopt, 8888, true}));
  seeds.push_back(node::encode_opened_file({13, ""}));
  seeds.push_back(node::encode_driver_answer({{{"GPU-1", "why"}}, "what"}));
  seeds.push_back("42-1");
  seeds.push_back("ann:x:1500:1500:Ann:/home/ann:/bin/sh");
  seeds.push_back("ann 1500 27 100");
  return seeds;
}

}  // namespace gpu_platform::fuzz
