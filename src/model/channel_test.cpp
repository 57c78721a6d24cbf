#include "model/channel.h"

#include <gtest/gtest.h>

#include "base/prng.h"

namespace gpu_platform::model {
namespace {

std::vector<Frame> every_frame() {
  return {InputFrame{std::string_view("typed\0", 6)},
          EndOfInputFrame{},
          ResizeFrame{{80, 65535}},
          SignalFrame{2},
          OutputFrame{"out"},
          ErrorOutputFrame{"err"},
          TakenFrame{UINT32_MAX},
          OpenedFrame{},
          OpenedFrame{UINT64_MAX},
          EndFrame{ChannelEnd::kSignalled, 9, "the job has ended"},
          EndFrame{ChannelEnd::kNotOpened, 0, {}},
          EndFrame{ChannelEnd::kDetached, 0, "another client"}};
}

TEST(Channel, EveryFrameComesBackAsItWas) {
  for (const Frame& frame : every_frame()) {
    const std::string bytes = encode_frame(frame);
    const auto decoded = decode_frame(bytes);
    ASSERT_TRUE(decoded.has_value()) << frame.index();
    EXPECT_EQ(*decoded, frame);
  }
}

TEST(Channel, FrameOfFixedLengthIsRefusedWhenCutOrLengthened) {
  for (const Frame& frame : {Frame(EndOfInputFrame{}), Frame(ResizeFrame{{1, 2}}),
                             Frame(SignalFrame{15}), Frame(TakenFrame{7}), Frame(OpenedFrame{})}) {
    const std::string bytes = encode_frame(frame);
    EXPECT_FALSE(decode_frame(std::string_view(bytes).substr(0, bytes.size() - 1)).has_value());
    EXPECT_FALSE(decode_frame(bytes + '\0').has_value()) << frame.index();
  }
}

TEST(Channel, WhatNoFrameMaySayIsRefused) {
  EXPECT_FALSE(decode_frame("").has_value());
  EXPECT_FALSE(decode_frame(std::string("\0", 1)).has_value());
  EXPECT_FALSE(decode_frame("\x0a").has_value());
  EXPECT_FALSE(decode_frame(encode_frame(InputFrame{})).has_value());
  EXPECT_FALSE(decode_frame(encode_frame(ResizeFrame{{0, 24}})).has_value());
  EXPECT_FALSE(decode_frame(encode_frame(ResizeFrame{{80, 0}})).has_value());
  EXPECT_FALSE(decode_frame(encode_frame(SignalFrame{0})).has_value());
  EXPECT_FALSE(decode_frame(encode_frame(SignalFrame{65})).has_value());
  EXPECT_FALSE(decode_frame(std::string("\x09\x04\x00", 3)).has_value());
}

TEST(Channel, FrameIsBounded) {
  const std::string most(kMaxFrameBytes, 'x');
  EXPECT_TRUE(decode_frame(encode_frame(OutputFrame{most})).has_value());
  EXPECT_FALSE(decode_frame(encode_frame(OutputFrame{most + "x"})).has_value());
  EXPECT_LE(encode_frame(EndFrame{ChannelEnd::kExited, 0, most}).size(), kMaxFrame);
}

TEST(Channel, BytesOfChanceAreRefusedOrMeanWhatTheySay) {
  base::Prng random(7);
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes(random.below(12), '\0');
    for (char& c : bytes) c = static_cast<char>(random.below(i % 2 == 0 ? 12 : 256));
    const auto frame = decode_frame(bytes);
    if (frame) {
      EXPECT_EQ(encode_frame(*frame), bytes);
    }
  }
}

}  // namespace
}  // namespace gpu_platform::model
