#include "bin/channel_log.h"

#include <gtest/gtest.h>

#include "bin/captured_log_fixture.h"

namespace gpu_platform::bin {
namespace {

model::ChannelOrder order_of(std::vector<std::string> command, std::uint16_t port = 0) {
  model::ChannelOrder order;
  order.attempt = {model::JobId(7), 2};
  order.command = std::move(command);
  order.port = port;
  order.by = "ann";
  order.by_uid = 1001;
  return order;
}

std::vector<std::string> lines_of(const model::ChannelOrder& order) {
  const CapturedLog captured;
  logging::Log log;
  {
    const ChannelLog channel(log, 4, order);
  }
  return captured.lines();
}

TEST(ChannelLog, ACommandIsNamedByItsFirstWordAlone) {
  EXPECT_EQ(lines_of(order_of({"psql", "--password=secret"})),
            (std::vector<std::string>{
                "info: channel=4 job=7 attempt=2 by=ann kind=exec command=psql begins",
                "info: channel=4 job=7 attempt=2 by=ann kind=exec command=psql ends"}));
}

TEST(ChannelLog, AWordThatWouldBreakTheLineIsQuoted) {
  const auto lines = lines_of(order_of({"a b\nkind=attach"}));
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].find('\n'), std::string::npos);
  EXPECT_NE(lines[0].find("command='a b"), std::string::npos) << lines[0];
}

TEST(ChannelLog, APortAndTheJobItselfAreOtherKinds) {
  EXPECT_NE(lines_of(order_of({}, 8080))[0].find(" kind=port port=8080 "), std::string::npos);
  EXPECT_NE(lines_of(order_of({}))[0].find(" kind=attach "), std::string::npos);
}

}  // namespace
}  // namespace gpu_platform::bin
