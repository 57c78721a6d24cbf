#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "alerts/rendering.h"
#include "api/alert_source.h"
#include "base/result.h"
#include "outbound/outbox.h"

namespace gpu_platform::bin {

// Makes messages of what alerts have to tell, in the form of each channel, and hands them to the
// outbox. What the outbox has no room for is kept in memory and put later. Messages by which people
// try a channel have a thread of their own: they wait for the other side.
//
// Safe from any thread, but for send().
class AlertMessenger {
 public:
  AlertMessenger(std::unique_ptr<outbound::Outbox> outbox, std::vector<outbound::Channel> channels,
                 alerts::Site site);
  ~AlertMessenger();
  AlertMessenger(const AlertMessenger&) = delete;
  AlertMessenger& operator=(const AlertMessenger&) = delete;

  void start();
  // What is tried meanwhile is answered.
  void stop();
  void set(std::vector<outbound::Channel> channels, alerts::Site site);

  // Puts these messages, after those that could not be put before. News of channels that are gone
  // are dropped; what is only repeated is dropped, too, while other messages of its channel wait.
  // One thread.
  void send(const std::vector<alerts::Notification>& notifications);

  // Calls done(status) when the other side has the message, or has not: from this thread or
  // another. `by`: the user of the call. kNotFound: there is no such channel.
  void test(const std::string& channel, const std::string& by,
            std::function<void(base::Status)> done);
  std::vector<outbound::ChannelState> states() const { return outbox_->states(); }
  std::vector<api::AlertChannelView> views() const;

 private:
  struct Test {
    outbound::Delivery delivery;
    std::function<void(base::Status)> done;
  };

  // kNotFound: there is no such channel. kFailedPrecondition: it has no address of the user.
  base::Result<outbound::Delivery> rendered(const alerts::Notification& notification) const;
  void add_unsent(const std::vector<alerts::Notification>& notifications);
  bool put(const outbound::Delivery& delivery);
  void run_tests();

  const std::unique_ptr<outbound::Outbox> outbox_;
  // Of send() alone: what the outbox could not take yet, in order, and whether it said so last.
  std::deque<outbound::Delivery> unsent_;
  bool is_full_ = false;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<outbound::Channel> channels_;  // guarded by mutex_, as all below
  alerts::Site site_;
  std::deque<Test> tests_;
  bool is_stopping_ = false;
  std::thread tester_;
};

}  // namespace gpu_platform::bin
