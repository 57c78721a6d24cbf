#include "bin/late_sink.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gpu_platform::bin {
namespace {

class Receiver : public execution::ObservationSink {
 public:
  void observe(execution::Observation observation) override {
    heard.push_back(std::get<execution::MachineBooted>(observation).boot_id);
  }
  std::vector<std::string> heard;
};

TEST(LateSink, KeepsWhatComesBeforeItsReceiverInItsOrder) {
  LateSink sink;
  Receiver receiver;
  sink.observe(execution::MachineBooted{"a"});
  sink.observe(execution::MachineBooted{"b"});
  EXPECT_TRUE(receiver.heard.empty());
  sink.connect(receiver);
  sink.observe(execution::MachineBooted{"c"});
  EXPECT_EQ(receiver.heard, (std::vector<std::string>{"a", "b", "c"}));
}

TEST(LateSink, DropsWhatComesAfterItsReceiver) {
  LateSink sink;
  Receiver receiver;
  sink.connect(receiver);
  sink.disconnect();
  sink.observe(execution::MachineBooted{"late"});
  EXPECT_TRUE(receiver.heard.empty());
}

TEST(LateSink, ThatHadNoReceiverKeepsNothingAfterItsEnd) {
  LateSink sink;
  Receiver receiver;
  sink.disconnect();
  sink.observe(execution::MachineBooted{"late"});
  sink.connect(receiver);
  EXPECT_TRUE(receiver.heard.empty());
}

}  // namespace
}  // namespace gpu_platform::bin
