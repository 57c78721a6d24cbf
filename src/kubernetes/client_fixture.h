#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "kubernetes/client.h"
#include "kubernetes/scripted_server_fixture.h"
#include "os/clock.h"

// A client of a scripted server, and what it was told.

namespace gpu_platform::kubernetes {

inline ClusterAccess access_to(const ScriptedServer& server) {
  ClusterAccess access;
  access.server = server.address();
  access.origin = "test";
  return access;
}

inline std::unique_ptr<Client> client_of(ClusterAccess access, ClientOptions options = {}) {
  auto client = Client::make(std::move(access), options);
  EXPECT_TRUE(client.has_value()) << client.error().message;
  return std::move(*client);
}

// Polls until the condition holds. False: it did not in time.
template <class Condition>
bool poll_until(Client& client, Condition&& condition) {
  const std::int64_t until = os::monotonic_ns() + kTimeout.value();
  while (!condition()) {
    if (os::monotonic_ns() >= until) return false;
    client.poll(base::milliseconds(50));
  }
  return true;
}

inline Answer ask(Client& client, Request request) {
  std::optional<Answer> answer;
  client.send(std::move(request), [&](const Answer& got) { answer = got; });
  EXPECT_TRUE(poll_until(client, [&] { return answer.has_value(); }));
  return answer.value_or(Answer{});
}

inline Answer ask(Client& client, const std::string& path) {
  return ask(client, Request{.path = path});
}

// What a stream told until it ended.
struct Told {
  int opened = 0;
  std::string bytes;
  std::optional<Answer> end;

  StreamHandlers handlers() {
    return {.on_open = [this] { ++opened; },
            .on_bytes = [this](std::string_view more) { bytes += more; },
            .on_end = [this](const Answer& answer) { end = answer; }};
  }
};

// An authority, and a server's certificate of it.
struct Pki {
  TestCertificate authority = make_authority();
  TestCertificate server =
      make_certificate({.alternative_names = "IP:127.0.0.1", .issuer = &authority});
};

}  // namespace gpu_platform::kubernetes
