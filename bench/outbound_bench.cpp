// How long a message takes from put() to the other side, on loopback:
//   outbound_bench
// Prints the median and the longest of 200 messages, one after the other, of put() alone (until the
// message is on disk) and until the server has the whole request. Data lies under the build folder,
// on its disk; syncing is on.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <vector>

#include <fmt/format.h>

#include "base/check.h"
#include "bench_directory.h"
#include "http/testing/scripted_server.h"
#include "os/clock.h"
#include "os/testing/eventually.h"
#include "outbound/outbox.h"

namespace gpu_platform::bench {
namespace {

constexpr int kMessages = 200;

void print(const char* what, std::vector<std::int64_t> times_ns) {
  std::ranges::sort(times_ns);
  fmt::print("{}: median {:.2f} ms, longest {:.2f} ms\n", what,
             static_cast<double>(times_ns[times_ns.size() / 2]) / 1e6,
             static_cast<double>(times_ns.back()) / 1e6);
}

void run() {
  std::vector<std::int64_t> arrived_ns;  // of the connection's thread until the request is counted
  arrived_ns.reserve(kMessages);
  const http::ScriptedServer server([&](const http::SeenRequest& /*request*/, http::Wire& wire) {
    arrived_ns.push_back(os::monotonic_ns());
    wire.answer(200, "");
  });
  const BenchDirectory directory;
  auto outbox = outbound::Outbox::open(
      {.folder = directory.path() / "outbox"},
      {{.name = "c", .kind = outbound::ChannelKind::kWebhook, .url = server.address()}});
  CHECK(outbox.has_value());
  std::vector<std::int64_t> put_ns;
  std::vector<std::int64_t> wire_ns;
  for (int number = 0; number < kMessages; ++number) {
    const std::int64_t begin_ns = os::monotonic_ns();
    CHECK((*outbox)->put({.channel = "c",
                          .key = fmt::format("{}", number),
                          .body = std::string(500, 'x'),
                          .made = os::wall_now()}));
    put_ns.push_back(os::monotonic_ns() - begin_ns);
    const auto sent = static_cast<std::uint64_t>(number) + 1;
    CHECK(os::eventually([&] { return (*outbox)->states()[0].sent == sent; }));
    wire_ns.push_back(arrived_ns.back() - begin_ns);
  }
  print("put() until it is on disk", put_ns);
  print("put() until the server has it", wire_ns);
}

}  // namespace
}  // namespace gpu_platform::bench

int main() {
  gpu_platform::bench::run();
  return 0;
}
