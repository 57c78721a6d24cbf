#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "kubernetes/testing/api_calls.h"
#include "kubernetes/testing/object_store.h"
#include "kubernetes/testing/pod_logs.h"
#include "kubernetes/testing/selection.h"

// Answers that go on. Thread: one at a time; the one that changes the store fills them again.

namespace gpu_platform::kubernetes {

class Stream {
 public:
  virtual ~Stream() = default;
  // Appends what is new. False: the stream is over after that.
  virtual bool fill(std::string& out) = 0;
  virtual std::string content_type() const = 0;
  // How long it may last; 0: for ever. Then time_out() is called.
  virtual std::int64_t limit_s() const { return 0; }
  virtual void time_out() {}
};

// How all watches behave.
struct WatchManners {
  bool is_held = false;     // tells nothing
  bool is_doubled = false;  // tells each event twice
};

struct WatchOptions {
  std::optional<std::uint64_t> after;  // the version to go on from; unset: all objects come first
  bool has_bookmarks = false;
  bool marks_initial_end = false;  // of the objects that come first, by a bookmark
  std::int64_t limit_s = 0;        // 0: for ever
};

// The events of a collection, one JSON object for each line.
class WatchStream final : public Stream {
 public:
  // All references outlive it.
  WatchStream(const ObjectStore& store, const ApiCalls& calls, const WatchManners& manners,
              ApiPath path, Selection selection, WatchOptions options);

  bool fill(std::string& out) override;
  std::string content_type() const override { return "application/json"; }
  std::int64_t limit_s() const override { return options_.limit_s; }
  void time_out() override;

  const ApiPath& path() const { return path_; }
  void end() { is_over_ = true; }
  // Ends it with an ERROR event of code 410.
  void expire();
  // Tells the version that the watch has come to, after all events.
  void bookmark() { is_bookmark_due_ = true; }
  // Tells an event that never happened, before all others.
  void insert(const std::string& type, const nlohmann::json& object);
  // The events that are held are told in another order; those of one object keep theirs.
  void reorder_once() { is_reordered_ = true; }

 private:
  void tell_events(std::string& out);
  void tell(const StoreEvent& event, std::string& out) const;
  std::string bookmark_line(bool marks_initial_end) const;

  const ObjectStore& store_;
  const ApiCalls& calls_;
  const WatchManners& manners_;
  ApiPath path_;
  ObjectKey collection_;
  Selection selection_;
  WatchOptions options_;
  std::size_t next_ = 0;    // of the store's events
  std::uint64_t last_ = 0;  // version told, or that the watch began with
  std::string first_;       // lines to be told before the events
  bool is_over_ = false;
  bool is_expired_ = false;
  bool is_bookmark_due_ = false;
  bool is_reordered_ = false;
};

// A line of a watch.
std::string watch_line(const std::string& type, const nlohmann::json& object);

// A pod's log; one that is followed ends with its pod.
class LogStream final : public Stream {
 public:
  LogStream(const ObjectStore& store, const PodLogs& logs, ObjectKey pod, LogOptions options,
            bool is_followed)
      : store_(store),
        logs_(logs),
        pod_(std::move(pod)),
        options_(options),
        is_followed_(is_followed) {}
  bool fill(std::string& out) override;
  std::string content_type() const override { return "text/plain"; }

 private:
  const ObjectStore& store_;
  const PodLogs& logs_;
  ObjectKey pod_;
  LogOptions options_;
  bool is_followed_;
  LogPlace place_;
};

}  // namespace gpu_platform::kubernetes
