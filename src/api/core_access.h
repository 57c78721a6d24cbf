#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/alert_source.h"
#include "api/channel_source.h"
#include "api/gpu_reading_source.h"
#include "api/metrics/metric_source.h"
#include "base/result.h"
#include "config/configuration.h"
#include "config/effective.h"
#include "config/slurm_names.h"
#include "controller/snapshot.h"
#include "controller/statistics.h"
#include "health/verdict.h"
#include "host/user_directory.h"
#include "model/access_rules.h"
#include "model/command.h"
#include "model/job.h"
#include "store/archive.h"
#include "store/ledger.h"
#include "telemetry/history.h"
#include "telemetry/idleness.h"
#include "telemetry/kpi.h"
#include "telemetry/use_source.h"

// The parts of the program that the API needs. The API declares these interfaces, and the
// composition connects them; tests use fakes of the same interfaces.

namespace gpu_platform::api {

// The way of commands to the core. Safe from any thread; returns at once.
class CommandSink {
 public:
  using Done = std::function<void(base::Result<model::CommandReply>)>;

  virtual ~CommandSink() = default;
  // Calls `done` once, on any thread, after the command is durable and the snapshot that shows
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

struct OutputPiece {
  std::uint64_t offset =
      0;              // of the first byte; past the one asked for where older output was dropped
  std::string bytes;  // empty: nothing there yet
  bool has_more = false;  // more comes, though the attempt may have ended
};

// Reads the output of one attempt. A file of the user may lie anywhere, so opening it may hang.
struct OutputReader {
  bool may_hang = false;
  // Returns at most `most` bytes from `offset` on, counted from the first that the attempt ever
  // printed. A file that is not there yet is an empty piece. It reads only with the rights of the
  // job's user: an answer reveals nothing about files that the user may not see. It owns what it
  // touches: it may return when everything else is gone.
  std::function<base::Result<OutputPiece>(std::uint64_t offset, std::size_t most)> read;
};

// The output of attempts. Safe from any thread; calls return at once.
class OutputSource {
 public:
  virtual ~OutputSource() = default;
  // Path of the file that the attempt's output is (or will be) written to; rotated pieces lie in
  // the same directory, and their names begin with the file's.
  virtual std::string path(const model::Job& job, std::uint32_t attempt) const = 0;
  virtual OutputReader reader(const model::Job& job, std::uint32_t attempt) const = 0;
  // What is done for an attempt with an image before its container runs: "pulling the image, 43 %",
  // or why that does not go on. Empty: nothing.
  virtual std::string container_step(const model::Job& job, std::uint32_t attempt) const = 0;
};

// One way in which jobs are kept apart on this host.
struct IsolationGuard {
  std::string name;  // "devices"
  bool is_held = false;
  std::string why_not;  // where it is not
};

// Judges a GPU of the snapshot by the rules of the site and what the records have of it. Safe from
// any thread.
using JudgeGpu = std::function<health::GpuVerdict(const controller::Snapshot& snapshot,
                                                  const health::Records& records,
                                                  const health::GpuKey& gpu, base::Instant now)>;

class ReadingHub;
class TokenUses;

// The whole of it; name its parts where it is made. All referred objects outlive the server.
struct CoreAccess {
  CommandSink& commands;
  const SnapshotSource& snapshots;
  const store::Archive& archive;
  const OutputSource& outputs;
  host::UserDirectory& users;
  // Returns whether new work is accepted now; an error says why not. Null: always.
  std::function<base::Status()> readiness = nullptr;
  GpuReadingSource* readings = nullptr;  // null: nothing is read
  // Safe from any thread. Null: nothing is known of it.
  std::function<std::vector<IsolationGuard>()> isolation = nullptr;
  ChannelSource* channels = nullptr;      // null: no job here can be entered
  const store::Archive* audit = nullptr;  // that has the audit trail; null: none is kept
  // Safe from any thread. Null: nothing is counted.
  std::function<controller::Statistics()> statistics = nullptr;
  // The names of Slurm's commands. Safe from any thread. Null: the site gives none.
  std::function<std::shared_ptr<const config::SlurmNames>()> slurm_names = nullptr;
  // The configuration that the program uses. Safe from any thread. Null: there is none.
  std::function<std::shared_ptr<const config::InForce>()> configuration = nullptr;
  // Who is what here. Safe from any thread. Null: root alone is more than a user.
  std::function<std::shared_ptr<const model::AccessRules>()> access = nullptr;
  const TokenUses* token_uses = nullptr;        // null: only what the journal has of them is known
  JudgeGpu judge_gpu = nullptr;                 // null: nothing is judged
  const telemetry::History* history = nullptr;  // null: none is kept
  const telemetry::Notes* notes = nullptr;      // null: none are kept
  config::MetricsRules metrics = {};
  // What other parts put on the page of metrics, after what the door knows. None is null.
  std::vector<const MetricSource*> metric_sources = {};
  AlertSource* alerts = nullptr;               // null: nothing is watched
  ReadingHub* reading_hub = nullptr;           // null: nothing is read
  const telemetry::UseSource* uses = nullptr;  // null: nothing is known of what jobs did
  const telemetry::KpiSource* kpis = nullptr;  // null: ended jobs are not in the key figures
  telemetry::IdleRule idle = {};
  const store::Ledger* ledger = nullptr;  // null: none is kept
};

}  // namespace gpu_platform::api
