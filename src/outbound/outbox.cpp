#include "outbound/outbox.h"

#include <bit>
#include <map>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <utility>

#include <fmt/format.h>

#include "outbound/queue.h"
#include "outbound/sender.h"
#include "outbound/worker.h"

namespace gpu_platform::outbound {

namespace {

class OutboxOnDisk : public Outbox {
 public:
  OutboxOnDisk(std::unique_ptr<Queue> queue, Options options)
      : options_(std::move(options)), queue_(std::move(queue)) {}

  base::Status put(Delivery delivery) override {
    const std::shared_lock lock(mutex_);
    TRY_ASSIGN(Worker * worker, find(delivery.channel));
    TRY_ASSIGN(const std::uint64_t dropped, queue_->put(delivery));
    if (dropped > 0) tell_of_drops(delivery.channel, dropped);
    worker->note_put(dropped);
    return {};
  }

  void set_channels(std::vector<Channel> channels) override {
    const std::unique_lock lock(mutex_);
    std::map<std::string, std::unique_ptr<Worker>> former = std::exchange(workers_, {});
    std::set<std::string> names;
    for (Channel& channel : channels) {
      if (!names.insert(channel.name).second) continue;
      std::unique_ptr<Worker>& worker = workers_[channel.name];
      worker = std::move(former[channel.name]);
      if (worker != nullptr && worker->channel() == channel) continue;
      Worker::Tally tally;
      if (worker != nullptr) tally = worker->tally();
      worker.reset();  // two would deliver everything twice
      worker = std::make_unique<Worker>(
          std::move(channel), *queue_,
          Worker::Options{options_.first_wait, options_.longest_wait, options_.warn},
          std::move(tally));
    }
    former.clear();
    const auto dropped = queue_->keep_only(names);
    if (!dropped) return warn(dropped.error().message);
    for (const auto& [channel, count] : *dropped) {
      warn(fmt::format("outbound channel={} removed, dropped={}", channel, count));
    }
  }

  base::Status try_now(const Delivery& delivery) override {
    Channel channel;
    {
      const std::shared_lock lock(mutex_);
      TRY_ASSIGN(const Worker* worker, find(delivery.channel));
      channel = worker->channel();
    }
    const Outcome outcome = Sender(std::move(channel), -1).send(delivery);
    if (outcome.kind == Outcome::Kind::kSent) return {};
    return base::fail(outcome.kind == Outcome::Kind::kRefused ? base::ErrorCode::kFailedPrecondition
                                                              : base::ErrorCode::kUnavailable,
                      outcome.problem);
  }

  std::vector<ChannelState> states() const override {
    const std::shared_lock lock(mutex_);
    std::vector<ChannelState> states;
    for (const auto& [name, worker] : workers_) {
      Worker::Tally tally = worker->tally();
      const Queue::Waiting waiting = queue_->waiting(name);
      states.push_back({.channel = name,
                        .waiting = waiting.count,
                        .sent = tally.sent,
                        .refused = tally.refused,
                        .dropped = tally.dropped,
                        .oldest = waiting.oldest,
                        .last_sent = tally.last_sent,
                        .problem = std::move(tally.problem)});
    }
    return states;
  }

 private:
  base::Result<Worker*> find(const std::string& channel) const {
    const auto found = workers_.find(channel);
    if (found != workers_.end()) return found->second.get();
    return base::fail(base::ErrorCode::kNotFound, fmt::format("there is no channel '{}'", channel));
  }

  // Once for each power of two: a channel that is away for long would fill the log.
  void tell_of_drops(const std::string& channel, std::uint64_t dropped) {
    const std::lock_guard lock(drops_mutex_);
    std::uint64_t& total = drops_[channel];
    const std::uint64_t before = total;
    total += dropped;
    if (before != 0 && std::bit_floor(before) == std::bit_floor(total)) return;
    warn(fmt::format("outbound channel={} has {} messages waiting, dropped={} of the oldest",
                     channel, options_.max_waiting, total));
  }

  void warn(const std::string& line) const {
    if (options_.warn) options_.warn(line);
  }

  const Options options_;
  const std::unique_ptr<Queue> queue_;
  mutable std::shared_mutex mutex_;  // of workers_; they have their own for the rest
  std::map<std::string, std::unique_ptr<Worker>> workers_;
  std::mutex drops_mutex_;
  std::map<std::string, std::uint64_t> drops_;
};

}  // namespace

base::Result<std::unique_ptr<Outbox>> Outbox::open(Options options, std::vector<Channel> channels) {
  TRY_ASSIGN(std::unique_ptr<Queue> queue, Queue::open({.folder = options.folder,
                                                        .max_waiting = options.max_waiting,
                                                        .max_bytes = options.max_bytes,
                                                        .warn = options.warn}));
  std::unique_ptr<Outbox> outbox =
      std::make_unique<OutboxOnDisk>(std::move(queue), std::move(options));
  outbox->set_channels(std::move(channels));
  return outbox;
}

}  // namespace gpu_platform::outbound
