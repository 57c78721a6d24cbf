#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/reading_hub.h"
#include "api/reading_view.h"
#include "api/rest/streams.h"

namespace gpu_platform::api {

// Readings of GPUs, hosts and jobs: the latest of each, and then each one as it comes. A client
// that resumes gets what it missed first. One that reads too slowly gets the newest of each
// subject; one whose place is forgotten is told so by a reset.
class ReadingStream final : public BodySource {
 public:
  struct Options {
    ReadingFilter filter;
    std::optional<std::uint64_t> after;  // resume after this one
  };
  ReadingStream(StreamContext context, ReadingHub& readings, Options options);
  Next fill(std::string& out) override;

 private:
  void begin_with_latest(const ReadingView& view);
  // False: all of them are told.
  bool append_latest(const ReadingView& view, std::string& out);

  StreamContext context_;
  ReadingHub& readings_;
  Options options_;
  std::uint64_t cursor_ = 0;
  std::uint64_t all_until_ = 0;  // a resumed stream has missed these: all of them are told
  bool is_begun_ = false;
  // What the stream begins with, ascending by number: a client that breaks off between them gets
  // the rest when it resumes.
  std::vector<NumberedFrame> latest_;
  std::size_t next_ = 0;  // of them
  std::unique_ptr<ReadingHub::Subscription> subscription_;
  std::vector<std::unique_ptr<EventHub::Subscription>> jobs_;  // their ends may end the stream
};

}  // namespace gpu_platform::api
