#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/channel_source.h"
#include "api/gpu_reading_source.h"
#include "base/result.h"
#include "controller/snapshot.h"
#include "host/user_directory.h"
#include "model/audit_query.h"
#include "model/command.h"
#include "model/job.h"

// What the front door needs of the rest of the program. The door declares it, composition connects
// it; fakes of the same interfaces stand in for it in tests.

namespace gpu_platform::api {

// Where commands leave. Safe from any thread; returns at once.
class CommandSink {
 public:
  using Done = std::function<void(base::Result<model::CommandReply>)>;

  virtual ~CommandSink() = default;
  // Calls `done` once, on whatever thread, after the command is durable and the snapshot that shows
  // it is published (or after it was refused). A sink that stops may drop `done` uncalled only when
  // the server's threads have ended.
  virtual void submit(model::Command command, Done done) = 0;
};

// The newest published snapshot of the state, never null. Safe from any thread, O(1).
class SnapshotSource {
 public:
  virtual ~SnapshotSource() = default;
  virtual std::shared_ptr<const controller::Snapshot> snapshot() const = 0;
};

// Which ended jobs are wanted. Absent filters match all.
struct EndedJobsQuery {
  std::optional<std::string> user;
  std::optional<std::string> team;
  std::optional<std::string> name;
  std::vector<model::JobState> states;  // empty: every ended state
  std::vector<model::Label> labels;     // all must match
  base::Instant ended_since;            // unset: no bound
  model::JobId before;                  // only smaller ids; invalid: no bound
  std::size_t limit = 100;              // newest (largest id) first
  // Of specifications: it ends with the job that makes it so many, though there be more; 0: no
  // bound.
  std::size_t max_bytes = 0;
};

// Jobs that have left the core. A job is found here before the snapshot without it is published.
// Safe from any thread; calls take the time of a local query.
class JobArchive {
 public:
  virtual ~JobArchive() = default;
  virtual base::Result<std::optional<model::Job>> find(model::JobId job) const = 0;
  virtual base::Result<std::vector<model::Job>> list(const EndedJobsQuery& query) const = 0;
};

// The audit trail. What a command did is found here when it is acknowledged. Safe from any thread;
// calls take the time of a local query.
class AuditTrail {
 public:
  virtual ~AuditTrail() = default;
  virtual base::Result<model::AuditPage> list(const model::AuditQuery& query) const = 0;
};

struct OutputPiece {
  std::uint64_t offset =
      0;              // of the first byte; past the one asked for where older output was dropped
  std::string bytes;  // empty: nothing there yet
};

// A way to read what one attempt printed. A file of the user's may lie anywhere, so that opening it
// may hang.
struct OutputReader {
  bool may_hang = false;
  // At most `most` bytes from `offset` on, counted from the first that the attempt ever printed. A
  // file that is not there yet is an empty piece. Looks with the rights of the job's user alone: an
  // answer says nothing of files that the user may not see. Owns what it touches: it may come back
  // when all else is gone.
  std::function<base::Result<OutputPiece>(std::uint64_t offset, std::size_t most)> read;
};

// What attempts printed. Safe from any thread; calls return at once.
class OutputSource {
 public:
  virtual ~OutputSource() = default;
  // Path of the file that the attempt's output is (or will be) written to; rotated pieces lie in
  // the same directory, and their names begin with the file's.
  virtual std::string path(const model::Job& job, std::uint32_t attempt) const = 0;
  virtual OutputReader reader(const model::Job& job, std::uint32_t attempt) const = 0;
};

// One way in which jobs are kept apart on this host.
struct IsolationGuard {
  std::string name;  // "devices"
  bool is_held = false;
  std::string why_not;  // where it is not
};

// The whole of it. All referred objects outlive the server.
struct CoreAccess {
  CommandSink& commands;
  const SnapshotSource& snapshots;
  const JobArchive& archive;
  const OutputSource& outputs;
  host::UserDirectory& users;
  // Whether new work is taken now; an error says why not. Null: always.
  std::function<base::Status()> readiness;
  GpuReadingSource* readings = nullptr;  // null: nothing is read
  // Safe from any thread. Null: nothing is known of it.
  std::function<std::vector<IsolationGuard>()> isolation = nullptr;
  ChannelSource* channels = nullptr;  // null: no job here can be entered
  const AuditTrail* audit = nullptr;  // null: none is kept
};

}  // namespace gpu_platform::api
