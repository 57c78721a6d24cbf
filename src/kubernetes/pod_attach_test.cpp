#include <atomic>
#include <csignal>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kubernetes/pod_channel_fixture.h"
#include "kubernetes/pod_server_fixture.h"
#include "kubernetes/pod_streams.h"

// Channels to a container's own process.

namespace gpu_platform::kubernetes {
namespace {

using model::ChannelEnd;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Pod = PodServer::Pod;

Endpoint plain_endpoint(const PodServer& server) {
  ClusterAccess access;
  access.server = server.address();
  access.origin = "test";
  return *endpoint_of(access);
}

PodStream own_process() {
  return {.namespace_name = "jobs", .pod = "a", .container = "main"};
}
PodStream own_terminal() {
  PodStream stream = own_process();
  stream.terminal = model::TerminalSize{.columns = 100, .rows = 30};
  return stream;
}

// Answers "how did it end" with this exit code.
PodStreamHooks ends_with(std::uint8_t code) {
  return {.ask_end = [code](const PodStreamHooks::Done& done) {
    done(StreamEnd{ChannelEnd::kExited, code, {}});
  }};
}

// The pod's side: repeats its input in brackets, until that ends.
void repeat(Pod& pod) {
  while (true) {
    const std::string message = pod.read();
    if (message.empty()) return;
    if (message == end_of_input_message()) break;
    pod.write(1, "<" + message.substr(1) + ">");
  }
  pod.write(1, "the end");
  pod.exit(0);
}

TEST(PodAttach, CarriesInputAndOutputAndTheExitCodeThatIsAskedFor) {
  PodServer server(repeat);
  PodStreams streams(plain_endpoint(server));
  Channel channel(streams, own_process(), {}, ends_with(7));
  channel.send(model::InputFrame{"one"});
  channel.send(model::EndOfInputFrame{});
  const Heard& heard = channel.listen();
  EXPECT_TRUE(heard.is_open);
  EXPECT_EQ(heard.output, "<one>the end");
  EXPECT_EQ(heard.taken, 3);
  EXPECT_EQ(heard.end, ChannelEnd::kExited);
  EXPECT_EQ(heard.value, 7);
}

TEST(PodAttach, BothOutputsAreOneAfterWhatWasPrintedBefore) {
  PodServer server([](Pod& pod) {
    pod.write(2, "errors, ");
    pod.write(1, "output");
    pod.exit(0);
  });
  PodStreams streams(plain_endpoint(server));
  PodStream stream = own_process();
  stream.printed = "before, ";
  Channel channel(streams, stream);
  EXPECT_EQ(channel.listen().output, "before, errors, output");
  EXPECT_EQ(channel.heard.errors, "");
  EXPECT_EQ(channel.heard.end, ChannelEnd::kExited);
}

TEST(PodAttach, AClientThatWantsInputAloneGetsNoOutput) {
  PodServer server([](Pod& pod) {
    pod.write(1, "output");
    pod.exit(0);
  });
  PodStreams streams(plain_endpoint(server));
  PodStream stream = own_process();
  stream.without_output = true;
  Channel channel(streams, stream);
  EXPECT_EQ(channel.listen().output, "");
  EXPECT_EQ(channel.heard.end, ChannelEnd::kExited);
}

TEST(PodAttach, AnEndThatWillNotBeKnownCutsTheChannel) {
  PodServer server([](Pod& pod) { pod.exit(0); });
  PodStreams streams(plain_endpoint(server));
  Channel channel(streams, own_process(), {},
                  {.ask_end = [](const PodStreamHooks::Done& done) { done(std::nullopt); }});
  EXPECT_EQ(channel.listen().end, std::nullopt);
  EXPECT_TRUE(channel.heard.is_open);
}

TEST(PodAttach, AHangUpEndsNothingAndTheNextClientGoesOnThere) {
  std::atomic<int> connections = 0;
  PodServer server([&](Pod& pod) {
    ++connections;
    repeat(pod);
  });
  PodStreams streams(plain_endpoint(server));
  Channel first(streams, own_process());
  first.send(model::InputFrame{"one"});
  EXPECT_TRUE(first.hear_output("<one>"));
  first.hang_up();
  Channel second(streams, own_process());
  EXPECT_TRUE(second.hear_output("<one>"));
  EXPECT_EQ(second.heard.received, 3);
  second.send(model::InputFrame{"two"});
  second.send(model::EndOfInputFrame{});
  EXPECT_EQ(second.listen().output, "<one><two>the end");
  EXPECT_EQ(second.heard.taken, 3);
  EXPECT_EQ(connections, 1);
}

TEST(PodAttach, ANewClientTakesThePlaceOfTheOneBefore) {
  PodServer server(repeat);
  PodStreams streams(plain_endpoint(server));
  Channel first(streams, own_process());
  first.send(model::InputFrame{"one"});
  EXPECT_TRUE(first.hear_output("<one>"));
  Channel second(streams, own_process());
  EXPECT_EQ(first.listen().end, ChannelEnd::kDetached);
  EXPECT_THAT(first.heard.text, HasSubstr("another client"));
  second.send(model::EndOfInputFrame{});
  EXPECT_EQ(second.listen().output, "<one>the end");
}

TEST(PodAttach, ClientsOfOtherPodsAreLeftAlone) {
  PodServer server(repeat);
  PodStreams streams(plain_endpoint(server));
  PodStream other = own_process();
  other.pod = "b";
  Channel first(streams, own_process());
  Channel second(streams, other);
  first.send(model::InputFrame{"one"});
  second.send(model::InputFrame{"two"});
  EXPECT_TRUE(second.hear_output("<two>"));
  EXPECT_TRUE(first.hear_output("<one>"));
  EXPECT_EQ(first.heard.output, "<one>");
}

TEST(PodAttach, InputAfterItsEndIsTakenAndDropped) {
  std::promise<void> closed;
  PodServer server([&](Pod& pod) {
    while (pod.read() != end_of_input_message()) {
    }
    closed.get_future().wait();
    pod.exit(0);
  });
  PodStreams streams(plain_endpoint(server));
  Channel first(streams, own_process());
  first.send(model::InputFrame{"one"});
  first.send(model::EndOfInputFrame{});
  while (first.heard.taken < 3 && first.hear()) {
  }
  Channel second(streams, own_process());
  second.send(model::InputFrame{"no one reads this"});
  while (second.heard.taken < 17 && second.hear()) {
  }
  closed.set_value();
  EXPECT_EQ(second.listen().end, ChannelEnd::kExited);
}

TEST(PodAttach, TheEndOfInputIsAKeyOfATerminalThatGoesOn) {
  std::vector<std::string> got;
  PodServer server([&](Pod& pod) {
    for (int i = 0; i < 4; ++i) {
      got.push_back(pod.read());
      pod.write(1, std::to_string(i));
    }
    pod.exit(0);
  });
  PodStreams streams(plain_endpoint(server));
  Channel channel(streams, own_terminal());
  EXPECT_TRUE(channel.hear_output("0"));
  channel.send(model::EndOfInputFrame{});
  EXPECT_TRUE(channel.hear_output("1"));
  channel.send(model::InputFrame{"more"});
  EXPECT_TRUE(channel.hear_output("2"));
  channel.send(model::SignalFrame{SIGINT});
  EXPECT_EQ(channel.listen().output, "0123");
  EXPECT_THAT(got,
              ElementsAre(resize_message({.columns = 100, .rows = 30}), std::string("\0\x04", 2),
                          std::string("\0more", 5), std::string("\0\x03", 2)));
}

TEST(PodAttach, TheNextTerminalIsDrawnAnewAndOneWithoutASizeKeepsTheSize) {
  std::vector<std::string> got;
  PodServer server([&](Pod& pod) {
    for (int i = 0; i < 4; ++i) {
      got.push_back(pod.read());
      pod.write(1, std::to_string(i));
    }
    pod.exit(0);
  });
  PodStreams streams(plain_endpoint(server));
  Channel first(streams, own_terminal());
  EXPECT_TRUE(first.hear_output("0"));
  PodStream without = own_terminal();
  without.is_usual_size = true;
  Channel second(streams, without);
  second.send(model::InputFrame{"x"});
  EXPECT_TRUE(second.hear_output("1"));
  Channel third(streams, own_terminal());
  EXPECT_EQ(third.listen().output, "0123");
  EXPECT_THAT(got, ElementsAre(resize_message({.columns = 100, .rows = 30}), std::string("\0x", 2),
                               resize_message({.columns = 100, .rows = 29}),
                               resize_message({.columns = 100, .rows = 30})));
}

TEST(PodAttach, AClientThatReadsNothingIsDetachedAndTheJobGoesOn) {
  std::promise<void> printed;
  PodServer server([&](Pod& pod) {
    const std::string piece(64 * 1024, 'x');
    for (int i = 0; i < 400; ++i) pod.write(1, piece);
    printed.set_value();
    repeat(pod);
  });
  PodStreams streams(plain_endpoint(server), {.client_timeout = base::seconds(1)});
  Channel idle(streams, own_process());
  printed.get_future().wait();
  Channel next(streams, own_process());
  next.send(model::EndOfInputFrame{});
  EXPECT_THAT(next.listen().output, HasSubstr("the end"));
  EXPECT_EQ(next.heard.end, ChannelEnd::kExited);
}

TEST(PodAttach, AnEndThatTheServerDoesNotTellIsToldByUs) {
  PodServer server([](Pod& pod) {
    pod.write(1, "last words");
    pod.read();
  });
  // layers allow expires: it is to pass; what is to succeed does not wait for it
  PodStreams streams(plain_endpoint(server), {.end_time = base::milliseconds(50)});
  Channel channel(streams, own_process(), {}, ends_with(9));
  EXPECT_TRUE(channel.hear_output("last words"));
  streams.process_ended("jobs", "another");
  streams.process_ended("jobs", "a");
  EXPECT_EQ(channel.listen().end, ChannelEnd::kExited);
  EXPECT_EQ(channel.heard.value, 9);
}

TEST(PodAttach, InputIsToldOf) {
  std::atomic<int> told = 0;
  PodServer server(repeat);
  PodStreams streams(plain_endpoint(server));
  Channel channel(streams, own_process(), {}, {.on_input = [&] { ++told; }});
  channel.send(model::InputFrame{"one"});
  channel.send(model::EndOfInputFrame{});
  channel.listen();
  EXPECT_EQ(told, 1);
}

}  // namespace
}  // namespace gpu_platform::kubernetes
