#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "telemetry/frame.h"

namespace gpu_platform::api {

// A frame as streams number it. Keeps the frames of its reading alive.
struct NumberedFrame {
  std::uint64_t seq = 0;
  telemetry::Frames of;
  std::size_t place = 0;  // in `of`

  const telemetry::Frame& frame() const { return (*of)[place]; }
};

// The newest frames in a ring of bounded size, the latest of each subject, and the readers that
// wait for more. As with EventHub, a stream keeps a number instead of a queue: a slow reader costs
// nothing, is given the newest frame of each subject alone, and learns that it has missed something
// when its number falls off the end.
//
// The numbers begin at the time of day in microseconds, so that a reader of an earlier daemon is
// not taken for one of this: its number is behind the ring.
//
// Thread: take() on the probes' thread, everything else from any. take() costs a look-up for each
// frame, and a post for each reader.
class ReadingHub final : public telemetry::FrameListener {
 public:
  struct Bounds {
    std::size_t values = std::size_t{1} << 17;    // in the ring; a value has 16 bytes
    std::size_t subjects = std::size_t{1} << 16;  // whose latest frame is known
  };
  // `begin`: the number of the last frame before the first.
  explicit ReadingHub(std::uint64_t begin) : ReadingHub(begin, Bounds()) {}
  ReadingHub(std::uint64_t begin, Bounds bounds)
      : bounds_(bounds), forgotten_(begin), last_(begin) {}

  void take(const telemetry::Frames& frames) override;

  // Ends when it is destroyed. The hub outlives it.
  class Subscription {
   public:
    ~Subscription();
    Subscription(const Subscription&) = delete;
    Subscription& operator=(const Subscription&) = delete;

   private:
    friend class ReadingHub;
    Subscription(ReadingHub& hub, std::function<void()> wake) : hub_(hub), wake_(std::move(wake)) {}
    ReadingHub& hub_;
    std::function<void()> wake_;
  };
  // Calls `wake` on the probes' thread after every reading. It must return at once, must not call
  // the hub, and is not called any more once the subscription is gone.
  std::unique_ptr<Subscription> subscribe(std::function<void()> wake);

  struct News {
    bool missed = false;  // frames after the number are not known any more, or never were
    std::vector<NumberedFrame> frames;  // ascending
    std::uint64_t upto = 0;             // where to go on
  };
  using IsWanted = std::function<bool(const telemetry::Frame&)>;
  // Returns at most `most` wanted frames after `seq`: up to `all_until` every one, behind it only
  // the newest of each subject. `is_wanted` must not call the hub.
  News after(std::uint64_t seq, std::uint64_t all_until, std::size_t most,
             const IsWanted& is_wanted) const;

  // The latest frame of each subject that is wanted, by subject.
  std::vector<NumberedFrame> latest(const IsWanted& is_wanted) const;

  std::uint64_t last_seq() const;

 private:
  void remember(const NumberedFrame& numbered);
  void forget_ended_uses(const std::vector<telemetry::Frame>& frames);

  const Bounds bounds_;
  mutable std::mutex mutex_;
  std::deque<NumberedFrame> ring_;
  std::size_t values_ = 0;   // in the ring
  std::uint64_t forgotten_;  // frames up to here are not in the ring
  std::uint64_t last_;
  std::map<telemetry::Subject, NumberedFrame> latest_;
  std::vector<Subscription*> readers_;
};

}  // namespace gpu_platform::api
