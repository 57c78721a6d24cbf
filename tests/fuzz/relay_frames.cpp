#include "base/check.h"
#include "model/channel.h"
#include "target.h"

// Frames of a channel into a running job, from either side.

namespace gpu_platform::fuzz {

void run(std::string_view input) {
  const auto frame = model::decode_frame(input);
  if (!frame) return;
  const std::string bytes = model::encode_frame(*frame);
  CHECK(bytes.size() <= model::kMaxFrame);
  const auto again = model::decode_frame(bytes);
  CHECK(again && *again == *frame);
  CHECK(bytes == input);  // a frame has one form
}

std::vector<std::string> seeds() {
  std::vector<std::string> seeds;
  const model::Frame frames[] = {model::InputFrame{"ls\n"},
                                 model::EndOfInputFrame{},
                                 model::ResizeFrame{{25, 80}},
                                 model::SignalFrame{15},
                                 model::OutputFrame{"text"},
                                 model::ErrorOutputFrame{"text"},
                                 model::TakenFrame{70'000},
                                 model::OpenedFrame{1ull << 40},
                                 model::EndFrame{model::ChannelEnd::kSignalled, 9, "job 1"}};
  for (const model::Frame& frame : frames) seeds.push_back(model::encode_frame(frame));
  return seeds;
}

}  // namespace gpu_platform::fuzz
