#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "store/sqlite/reader_pool.h"
#include "telemetry/frame.h"
#include "telemetry/history.h"
#include "telemetry/history/open_frames.h"
#include "telemetry/history/open_notes.h"
#include "telemetry/history/read_history.h"
#include "telemetry/history/rows.h"
#include "telemetry/history/upkeep.h"

namespace gpu_platform::telemetry {

// The history in a SQLite file (WAL, synchronous=NORMAL, mode 0600) with a thread of its own that
// writes each minute. It never fails its owner: where the file cannot be written, readings are
// dropped and counted until it can; a damaged one, or one of a later version, is put aside
// (PATH.damaged-N) and a new one begun. A process that is killed loses the last minute.
//
// Safe from any thread. The file belongs to one process at a time: that which has the lock of the
// data directory.
class HistoryFile final : public History, public Notes, public FrameListener {
 public:
  struct Options {
    std::filesystem::path path;
    HistoryBounds bounds;
    // One line for people, about the start, and about what goes wrong and right again. Called by
    // the thread of the history, and by that which opens it.
    std::function<void(bool is_warning, const std::string& line)> log = {};
    std::function<base::Instant()> clock = {};  // empty: the wall clock
    base::Duration write_interval = base::minutes(1);
    // Of frames in memory. With half of it they are written earlier.
    std::size_t max_open_bytes = std::size_t{256} << 20;
    std::size_t readers = 3;  // connections for queries, at most
  };
  static std::unique_ptr<HistoryFile> open(Options options);
  // Writes what has come.
  ~HistoryFile() override;
  HistoryFile(const HistoryFile&) = delete;
  HistoryFile& operator=(const HistoryFile&) = delete;

  void take(const Frames& frames) override;

  base::Result<std::vector<Series>> query(const HistoryQuery& query) const override;
  HistoryCoverage coverage() const override;

  void put(std::string name, std::string bytes) override;
  void remove(std::string name) override;
  std::optional<std::string> get(const std::string& name) const override;
  std::vector<Note> all(const std::string& prefix) const override;

  // Writes what has come and does all that is due, and returns when that is done or cannot be.
  void flush();

 private:
  explicit HistoryFile(Options options);
  void work();
  void wake();
  void take_turn();
  bool connect();
  base::Status open_rows();
  bool put_file_aside(const base::Error& damage);
  base::Status write();
  base::Status write_batch(const OpenFrames::Batch& batch, const OpenNotes::Changes& notes);
  base::Status tidy();
  void handle(const base::Error& error);
  void replace_file(const base::Error& error);
  void set_problem(std::string problem);
  void log(bool is_warning, const std::string& line) const;
  void tell_start() const;
  bool must_write_soon() const;

  // Calls `read` with a transaction and, as far as it fits to it, what is not in the file.
  using Read =
      std::function<base::Status(const ReadTransaction& file, std::span<const Frames> open)>;
  base::Status read(const Read& read) const;
  // Calls `read` with a transaction: what waits in memory is of no interest, and not copied.
  using ReadFile = std::function<base::Status(const ReadTransaction& file)>;
  base::Status read_file(const ReadFile& read) const;
  // Calls `look` with the readers until it returns true.
  using Look = std::function<base::Result<bool>(store::ReaderPool& readers)>;
  base::Status read_with(const Look& look) const;

  const Options options_;
  OpenFrames open_frames_;
  OpenNotes open_notes_;
  // Of the thread alone, once that runs.
  std::unique_ptr<HistoryRows> rows_;  // null: the file cannot be opened
  std::unique_ptr<Upkeep> upkeep_;
  std::uint64_t clamped_ = 0;
  std::uint64_t damaged_rows_ = 0;  // that the log knows of

  mutable std::mutex mutex_;
  mutable std::condition_variable wake_;
  std::condition_variable turned_;
  // All guarded by mutex_.
  std::shared_ptr<store::ReaderPool> readers_;        // null: the file cannot be opened
  mutable std::weak_ptr<store::ReaderPool> damaged_;  // a reader has found it so
  std::string problem_;
  std::uint64_t turns_wanted_ = 0;
  std::uint64_t turns_taken_ = 0;
  bool is_urgent_ = false;  // the memory for frames is half full
  bool is_stopping_ = false;
  std::thread thread_;  // last: it uses all of them
};

}  // namespace gpu_platform::telemetry
