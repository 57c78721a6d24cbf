#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"
#include "outbound/channel.h"

// The messages that wait, in the SQLite file outbox.db. A row stays for a while when its message is
// done, without its text, so that its key is known.

namespace gpu_platform::outbound {

// Safe from any thread. Calls wait for the disk.
class Queue {
 public:
  struct Options {
    std::string folder;
    std::size_t max_waiting = 10'000;  // of each channel
    base::Bytes max_bytes = base::kMiB * 256;
    std::function<void(std::string_view)> warn;
  };
  struct Message {
    std::int64_t id = 0;  // ascending in the order of put()
    Delivery delivery;
  };
  struct Waiting {
    std::uint64_t count = 0;
    std::optional<base::Instant> oldest;
  };

  // Keys of messages that are done are known for so many further messages.
  static constexpr std::int64_t kRemembered = 10'000;
  static constexpr std::size_t kMaxMessageBytes = 1024UL * 1024;

  // A damaged file is put aside as outbox.db.damaged-N, and told. kAlreadyExists: another process
  // or Queue has the file.
  static base::Result<std::unique_ptr<Queue>> open(Options options);
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  ~Queue() = default;

  // On disk when it returns; see Outbox::put(). Returns how many of the channel were dropped.
  base::Result<std::uint64_t> put(const Delivery& delivery);
  // The oldest that waits for the channel.
  base::Result<std::optional<Message>> front(const std::string& channel);
  // The message is not to be sent any more. Outlives this process, but not a power cut in the same
  // moment: then it is sent again.
  base::Status done(const Message& message);
  // Drops what waits for other channels than these; returns how many by channel.
  base::Result<std::map<std::string, std::uint64_t>> keep_only(
      const std::set<std::string>& channels);
  Waiting waiting(const std::string& channel);

 private:
  using Handle = std::unique_ptr<sqlite3, decltype(&sqlite3_close)>;

  Queue(Options options, Handle database)
      : options_(std::move(options)), database_(std::move(database)) {}
  base::Status prepare();
  base::Status put_in_transaction(const Delivery& delivery, std::uint64_t count, bool& is_new,
                                  std::uint64_t& dropped);
  base::Status in_transaction(const std::function<base::Status()>& work);

  const Options options_;
  std::mutex mutex_;
  const Handle database_;
  std::map<std::string, std::uint64_t> counts_;  // of messages that wait, by channel
};

}  // namespace gpu_platform::outbound
