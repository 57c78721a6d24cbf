#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <google/protobuf/message.h>
#include <boost/asio/steady_timer.hpp>

#include "api/convert/field_selection.h"
#include "api/event_hub.h"
#include "api/job_reader.h"
#include "api/planning_calls.h"
#include "api/queue_writer.h"
#include "api/rest/exchange.h"
#include "api/rest/file_watcher.h"
#include "api/resume.h"

// Answers that go on: lists, and server-sent events.

namespace gpu_platform::api {

// One page of jobs as JSON.
class JobListSource final : public BodySource {
 public:
  // `fields`: the selection that the writer's filter points into; null: none.
  JobListSource(std::unique_ptr<JobListWriter> writer, std::shared_ptr<const FieldSelection> fields)
      : fields_(std::move(fields)), writer_(std::move(writer)) {}
  Next fill(std::string& out) override;
  void rest() override { writer_->rest(); }

 private:
  std::shared_ptr<const FieldSelection> fields_;
  std::unique_ptr<JobListWriter> writer_;
};

// The queue as JSON.
class QueueSource final : public BodySource {
 public:
  explicit QueueSource(QueueWriter writer) : writer_(std::move(writer)) {}
  Next fill(std::string& out) override;
  void rest() override { writer_.rest(); }

 private:
  QueueWriter writer_;
};

// Appends one event of a stream: its number, its name, and the message as JSON.
void append_sse(std::string& out, std::string_view event, std::uint64_t id,
                const google::protobuf::Message& data);

// The objects that the streams share.
struct StreamContext {
  const JobReader& reader;
  EventHub& hub;
  model::Caller caller;
  std::function<void()> wake;
  Resume resume = nullptr;  // onto the connection's thread; of output alone
};

// Changes of one job, or of all.
class ChangeStream final : public BodySource {
 public:
  struct Options {
    model::JobId job;  // invalid: all jobs
    bool all_users = false;
    std::optional<model::EventSeq> after;  // resume after this one
  };
  ChangeStream(StreamContext context, Options options);
  Next fill(std::string& out) override;

 private:
  // Appends the job as it is now; its state tells whether there is more to come.
  Next append_current(std::string& out);
  void append_reset(std::string& out);
  // False when the stream is at its end.
  bool append_change(const ChangeRecord& record, std::string& out);
  void append_event(std::string& out, const v1::JobChange& change) const;

  StreamContext context_;
  Options options_;
  model::EventSeq cursor_;
  bool is_begun_ = false;
  bool sees_others_ = false;  // changes of the jobs of other users may be among those to send
  std::unique_ptr<EventHub::Subscription> subscription_;
};

// States of GPUs: all of them, and then those that have changed. It compares snapshots, so that a
// slow reader learns the newest state of each, and misses none.
class GpuStream final : public BodySource {
 public:
  struct Options {
    std::string node;                      // empty: all
    std::optional<model::EventSeq> after;  // what the client knows is as of this one
  };
  GpuStream(StreamContext context, Options options);
  Next fill(std::string& out) override;

 private:
  bool look();
  void append_gpu(const model::GpuRef& gpu, std::string& out);

  StreamContext context_;
  Options options_;
  base::PersistentMap<model::Node> nodes_;  // as they are told now
  base::Instant at_;
  model::EventSeq told_;  // all up to here
  model::EventSeq seq_;   // told when `changed_` is
  bool is_begun_ = false;
  std::vector<model::GpuRef> changed_;
  std::size_t next_ = 0;  // of them
  std::unique_ptr<EventHub::Subscription> subscription_;
};

// Streams the output of a job from an offset on, attempt after attempt unless one is named.
class OutputStream final : public BodySource {
 public:
  struct Options {
    model::JobId job;
    std::optional<std::uint32_t> attempt;
    std::uint64_t offset = 0;
    bool is_plain = false;  // the bytes alone instead of events
  };
  // The contents of a user's file arrive through the exchange's resume().
  OutputStream(StreamContext context, FileWatcher& watcher, boost::asio::io_context& io,
               Options options);
  Next fill(std::string& out) override;

 private:
  // One read of a file; it may be under way on another thread.
  struct Reading {
    FoundJob found;  // as it was before
    std::optional<base::Result<OutputPiece>> piece;
    bool is_waited_for = false;
  };
  void begin_reading(FoundJob found);
  Next append_piece(Reading reading, std::string& out);
  Next at_end_of_attempt(const FoundJob& found, std::string& out);
  Next wait();
  Next look_again();
  void watch_file(const model::Job& job);
  void append_chunk(const v1::OutputChunk& chunk, std::string& out) const;
  void append_error(const base::Error& error, std::string& out) const;

  StreamContext context_;
  FileWatcher& watcher_;
  Options options_;
  std::uint32_t attempt_ = 0;  // being read; 0: none yet
  std::uint64_t offset_;
  std::unique_ptr<EventHub::Subscription> subscription_;
  std::unique_ptr<FileWatcher::Watch> watch_;
  std::uint32_t watched_attempt_ = 0;
  std::shared_ptr<Reading> reading_;  // null: none is under way
  boost::asio::steady_timer fallback_;
};

// A single answer when the job has ended or the time is up.
class JobWaiter final : public std::enable_shared_from_this<JobWaiter> {
 public:
  using Done = std::function<void(base::Result<v1::Job>)>;
  JobWaiter(const JobReader& reader, model::Caller caller, model::JobId job,
            boost::asio::io_context& io, Done done);
  void begin(EventHub& hub, std::chrono::milliseconds timeout);

 private:
  void check(bool is_time_up);

  const JobReader& reader_;
  model::Caller caller_;
  model::JobId job_;
  Done done_;
  boost::asio::io_context& io_;
  boost::asio::steady_timer timer_;
  std::unique_ptr<EventHub::Subscription> subscription_;
};

// A single answer when a job that is not submitted would start, or when the time is up.
class StartWaiter final : public std::enable_shared_from_this<StartWaiter> {
 public:
  using Done = std::function<void(v1::CheckResult)>;
  StartWaiter(const PlanningCalls& planning, const JobReader& reader,
              std::shared_ptr<const model::Job> job, boost::asio::io_context& io, Done done);
  void begin(EventHub& hub, std::chrono::milliseconds timeout);

 private:
  void look();
  void look_later();
  void answer();

  const PlanningCalls& planning_;
  const JobReader& reader_;
  const std::shared_ptr<const model::Job> job_;
  Done done_;
  boost::asio::io_context& io_;
  boost::asio::steady_timer timer_;
  boost::asio::steady_timer pause_;  // between two looks
  bool is_look_due_ = false;
  std::unique_ptr<EventHub::Subscription> subscription_;
};

}  // namespace gpu_platform::api
