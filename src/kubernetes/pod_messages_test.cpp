#include "kubernetes/pod_messages.h"

#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpu_platform::kubernetes {
namespace {

using model::ChannelEnd;
using ::testing::HasSubstr;

PodStream command_of(std::vector<std::string> words) {
  return {
      .namespace_name = "jobs", .pod = "gp-1", .container = "main", .command = std::move(words)};
}

std::string message_on(int stream, const std::string& bytes) {
  return std::string(1, static_cast<char>(stream)) + bytes;
}

TEST(PodMessages, ACommandsWordsAreInThePathAsTheyAre) {
  EXPECT_EQ(path_of(command_of({"sh", "-c", "a b&c=%\n"})),
            "/api/v1/namespaces/jobs/pods/gp-1/exec?container=main&stdin=true&stdout=true"
            "&stderr=true&tty=false&command=sh&command=-c&command=a%20b%26c%3D%25%0A");
}

TEST(PodMessages, ATerminalHasOneOutput) {
  PodStream stream = command_of({"sh"});
  stream.terminal = model::TerminalSize{};
  EXPECT_THAT(path_of(stream), HasSubstr("&stderr=false&tty=true&"));
}

TEST(PodMessages, WithoutCommandAndPortItIsTheContainersOwnProcess) {
  PodStream stream = command_of({});
  EXPECT_EQ(path_of(stream),
            "/api/v1/namespaces/jobs/pods/gp-1/attach?container=main&stdin=true&stdout=true"
            "&stderr=true&tty=false");
  EXPECT_EQ(protocol_of(stream), "v5.channel.k8s.io");
  stream.terminal = model::TerminalSize{};
  EXPECT_THAT(path_of(stream), HasSubstr("&stderr=false&tty=true"));
}

TEST(PodMessages, APortIsForwarded) {
  PodStream stream = command_of({});
  stream.port = 8888;
  EXPECT_EQ(path_of(stream), "/api/v1/namespaces/jobs/pods/gp-1/portforward?ports=8888");
  EXPECT_EQ(protocol_of(stream), "v4.channel.k8s.io");
}

TEST(PodMessages, ASizeIsToldInColumnsAndRows) {
  EXPECT_EQ(resize_message({.columns = 120, .rows = 40}), "\x04{\"Width\":120,\"Height\":40}");
}

TEST(PodMessages, OnlyTheKeysOfATerminalStandForSignals) {
  EXPECT_EQ(key_of(SIGINT), '\x03');
  EXPECT_EQ(key_of(SIGQUIT), '\x1c');
  EXPECT_EQ(key_of(SIGTSTP), '\x1a');
  EXPECT_EQ(key_of(SIGTERM), std::nullopt);
}

TEST(PodMessages, TheEndHasTheExitCode) {
  EXPECT_EQ(end_of_status(R"({"metadata":{},"status":"Success"})"), StreamEnd{});
  const StreamEnd end = end_of_status(
      R"({"status":"Failure","message":"command terminated with non-zero exit code","reason":
      "NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"143"}]}})");
  EXPECT_EQ(end, (StreamEnd{ChannelEnd::kExited, 143, ""}));
}

TEST(PodMessages, ACommandThatDidNotStartSaysWhy) {
  const auto end_of = [](const std::string& words) {
    return end_of_status(R"({"status":"Failure","reason":"InternalError","message":")" + words +
                         "\"}");
  };
  EXPECT_EQ(
      end_of("exec: nope: executable file not found in $PATH"),
      (StreamEnd{ChannelEnd::kNotOpened, 127, "exec: nope: executable file not found in $PATH"}));
  EXPECT_EQ(end_of("stat /nope: no such file or directory").value, 127);
  EXPECT_EQ(end_of("exec: /etc/passwd: permission denied").value, 126);
  EXPECT_EQ(end_of("container not found"),
            (StreamEnd{ChannelEnd::kNotOpened, 0, "container not found"}));
}

TEST(PodMessages, AnEndThatSaysNothingIsNoSuccess) {
  for (
      const char* text :
      {"", "garbage", "[]", "{}", R"({"status":1})", R"({"status":"Failure","details":7})",
       R"({"reason":"NonZeroExitCode","details":{"causes":[7,{"reason":"ExitCode"}]}})",
       R"({"reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"0"}]}})",
       R"({"reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"300"}]}})"}) {
    const StreamEnd end = end_of_status(text);
    EXPECT_EQ(end.end, ChannelEnd::kNotOpened) << text;
    EXPECT_THAT(end.text, HasSubstr("did not report how")) << text;
  }
}

TEST(PodMessages, StreamsAreToldApart) {
  using Kind = PodMessage::Kind;
  PodMessages messages(false);
  EXPECT_EQ(messages.read(message_on(1, "out")).kind, Kind::kOutput);
  EXPECT_EQ(messages.read(message_on(2, "err")).kind, Kind::kErrorOutput);
  EXPECT_EQ(messages.read(message_on(3, "{}")).kind, Kind::kEnd);
  const std::string output = message_on(1, "out");
  EXPECT_EQ(messages.read(output).bytes, "out");
  for (const std::string& nothing : {std::string(), message_on(1, ""), message_on(255, "1"),
                                     message_on(9, "something that is new")}) {
    EXPECT_EQ(messages.read(nothing).kind, Kind::kNothing) << nothing;
  }
}

TEST(PodMessages, APortsNumberIsNoOutputHoweverItComes) {
  using Kind = PodMessage::Kind;
  PodMessages messages(true);
  EXPECT_EQ(messages.read(message_on(0, "N")).kind, Kind::kNothing);
  const std::string rest = message_on(0, "Ndata");
  EXPECT_EQ(messages.read(rest).bytes, "data");
  const std::string more = message_on(0, "more");
  EXPECT_EQ(messages.read(more).bytes, "more");
  EXPECT_EQ(messages.read(message_on(1, "NN")).kind, Kind::kNothing);
  EXPECT_EQ(messages.read(message_on(1, "refused")).kind, Kind::kEnd);
}

}  // namespace
}  // namespace gpu_platform::kubernetes
