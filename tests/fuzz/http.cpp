#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <string>

#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>

#include "api/calls.h"
#include "api/fake_core_test.h"
#include "api/rest/dispatcher.h"
#include "api/rest/session.h"
#include "base/check.h"
#include "model/job_spec.h"
#include "target.h"

// A connection to the door: all that a client sends before a core that answers at once. The first
// byte names the caller: 'A' is an administrator, else it is the user whose jobs are there.

namespace gpu_platform::fuzz {

namespace {

namespace asio = boost::asio;

constexpr std::uint32_t kUser = 1500;

// Nothing that is asked changes anything, so that each input finds the same.
class Unmoved final : public api::CommandSink {
 public:
  void submit(model::Command command, Done done) override {
    if (const auto* job = std::get_if<model::SubmitJob>(&command.body); job && job->dry_run) {
      model::Job accepted;
      accepted.spec = std::make_shared<const model::JobSpec>(job->spec);
      model::CommandReply reply;
      reply.accepted = std::make_shared<const model::Job>(accepted);
      return done(reply);
    }
    done(model::CommandReply{model::JobId(1), true});
  }
};

// Without a lasting thread or file: all of it is made once.
struct House {
  api::FakeCore core;
  Unmoved commands;
  api::CoreAccess inner = core.access();
  api::CoreAccess access{.commands = commands,
                         .snapshots = inner.snapshots,
                         .archive = inner.archive,
                         .outputs = inner.outputs,
                         .users = core.users,
                         .readiness = inner.readiness,
                         .readings = inner.readings};
  api::Calls calls{access, {.version = "1.2.3"}};
  api::Dispatcher dispatcher{calls, core.hub(), std::size_t{1} << 20};
  api::Budgets budgets{api::BudgetLimits()};
  asio::io_context io{1};
  api::FileWatcher watcher{io};
  std::shared_ptr<api::Gate> gate = std::make_shared<api::Gate>(io);
  api::SessionLimits limits;

  House() {
    const model::JobId ended = core.add_job("ann", kUser, "ended");
    core.start_job(ended, {0});
    core.print(ended, "line\n");
    core.end_job(ended, 3);
    const model::JobId running = core.add_job("ann", kUser, "running");
    core.start_job(running, {1, 2});
    core.print(running, "first\nsecond\n");
    core.add_job("ann", kUser, "waits");
  }
};

House& house() {
  static House* const house = new House;
  return *house;
}

void drain(int client, std::string& answer) {
  char buffer[16384];
  while (true) {
    const ssize_t got = ::recv(client, buffer, sizeof buffer, MSG_DONTWAIT);
    if (got <= 0) return;
    answer.append(buffer, static_cast<std::size_t>(got));
  }
}

// All that the door says to a client who sends this and then closes its sending side.
std::string answer_to(std::string_view bytes, bool is_administrator) {
  House& h = house();
  int ends[2];
  CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  const ssize_t sent = ::send(ends[0], bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < static_cast<ssize_t>(bytes.size())) {  // more than a socket takes at once
    ::close(ends[0]);
    ::close(ends[1]);
    return {};
  }
  ::shutdown(ends[0], SHUT_WR);
  api::Peer peer;
  peer.caller = {"ann", kUser};
  if (is_administrator) peer.caller = model::root_caller();
  peer.gid = peer.caller.uid;
  bool is_closed = false;
  std::string answer;
  {
    api::LocalSocket socket(h.io, asio::local::stream_protocol(), ends[1]);
    const auto session = std::make_shared<api::Session>(
        std::move(socket), peer,
        api::Session::Environment{h.dispatcher,
                                  h.calls.meter(),
                                  h.watcher,
                                  h.io,
                                  h.gate,
                                  h.limits,
                                  h.budgets,
                                  {peer.caller.uid, "user " + peer.caller.user, is_administrator},
                                  [] { return std::string("r1"); },
                                  [](api::Peer&) {},
                                  [&](api::Session*) { is_closed = true; }});
    session->start();
    h.io.restart();
    while (h.io.poll() > 0) drain(ends[0], answer);
    drain(ends[0], answer);
    if (!is_closed) session->close();  // a stream, or one that waits for the client
  }
  ::close(ends[0]);
  h.io.restart();
  while (h.io.poll() > 0) {
  }
  return answer;
}

// The head of one answer, its end given.
void look_at_head(std::string_view head) {
  CHECK(head.starts_with("HTTP/1.1 "));
  const std::string_view status = head.substr(9, 3);
  // For all that a client sends, the fault is its own or there is none.
  CHECK(status[0] != '5' || status == "503" || status == "501");
}

}  // namespace

void run(std::string_view input) {
  if (input.empty()) return;
  const std::string answer = answer_to(input.substr(1), input.front() == 'A');
  std::string_view rest = answer;
  while (!rest.empty()) {
    const std::size_t end = rest.find("\r\n\r\n");
    if (end == std::string_view::npos) return;  // cut where we stopped to listen
    const std::string_view head = rest.substr(0, end);
    look_at_head(head);
    rest.remove_prefix(end + 4);
    const std::size_t length = head.find("Content-Length: ");
    if (length == std::string_view::npos) {
      if (head.starts_with("HTTP/1.1 100 ")) continue;
      return;  // a stream
    }
    const auto size = static_cast<std::size_t>(std::stoul(std::string(head.substr(length + 16))));
    if (size > rest.size()) return;
    const bool is_json = head.find("json") != std::string_view::npos;
    if (is_json) CHECK(!nlohmann::json::parse(rest.substr(0, size), nullptr, false).is_discarded());
    rest.remove_prefix(size);
  }
}

std::vector<std::string> seeds() {
  const auto post = [](std::string_view path, std::string_view body) {
    return "uPOST " + std::string(path) +
           " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" +
           "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
  };
  std::vector<std::string> seeds = {
      post("/v1/jobs", R"({"command":["sh","-c","x"],"gpus":1,"labels":{"a":"b"}})"),
      post("/v1/check", R"({"spec":{"command":["true"],"gpus":2}})"),
      post("/v1/jobs/2/cancel", "{}"),
      post("/v1/jobs/2/signal", R"({"signal":"USR1"})"),
      post("/v1/jobs/2/update", R"({"spec":{"network_level":"RACK"},"clear":["comment"]})"),
      "uPOST /v1/jobs HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"a\":\r\n0\r\n\r\n",
      "uGET /v1/jobs/2/exec?command=sh HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n"
      "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"};
  // Each route once, as it is written in the table.
  for (const api::Route& route : house().dispatcher.table().routes()) {
    seeds.push_back("A" + route.method + " " + route.path + " HTTP/1.1\r\nHost: x\r\n\r\n");
  }
  seeds.push_back(seeds[0] + seeds[2].substr(1));
  return seeds;
}

}  // namespace gpu_platform::fuzz
