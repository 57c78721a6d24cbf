#include "telemetry/history/history_file.h"

#include <pthread.h>

#include <chrono>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "os/clock.h"
#include "telemetry/history/pieces.h"
#include "telemetry/history/schema.h"

namespace gpu_platform::telemetry {

namespace {

// A reading's clock may be ahead of ours by so much.
constexpr base::Duration kMaxAhead = base::hours(24);
// Of frames that could not be written, for the next time.
constexpr std::size_t kMaxKeptBytes = std::size_t{16} << 20;
constexpr base::Duration kNotesInterval = base::seconds(1);
// A reader that meets a commit looks again; the next one is a minute away.
constexpr int kMaxLooks = 100;

std::uint64_t bytes_on_disk(const std::filesystem::path& path) {
  std::uint64_t bytes = 0;
  for (const char* const end : {"", "-wal"}) {
    std::error_code error;
    const std::uintmax_t size = std::filesystem::file_size(path.string() + end, error);
    if (!error) bytes += size;
  }
  return bytes;
}

std::string in_mebibytes(std::uint64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

std::string in_days(double hours) {
  return hours < 48 ? fmt::format("{:.0f} h", hours) : fmt::format("{:.0f} days", hours / 24);
}

double hours_of(base::Duration duration) {
  return static_cast<double>(duration.value()) / base::hours(1).value();
}

// How many hours of a tier fit beside what the coarser ones need.
double hours_within(double bytes_per_hour, double max_hours, double& room) {
  if (bytes_per_hour <= 0) return max_hours;
  const double hours = std::max(0.0, std::min(max_hours, room / bytes_per_hour));
  room -= hours * bytes_per_hour;
  return hours;
}

}  // namespace

std::unique_ptr<HistoryFile> HistoryFile::open(Options options) {
  if (!options.clock) options.clock = os::wall_now;
  return std::unique_ptr<HistoryFile>(new HistoryFile(std::move(options)));
}

HistoryFile::HistoryFile(Options options)
    : options_(std::move(options)), open_frames_(options_.max_open_bytes) {
  if (connect()) tell_start();
  thread_ = std::thread([this] { work(); });
  pthread_setname_np(thread_.native_handle(), "history");
}

HistoryFile::~HistoryFile() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
  readers_.reset();  // before the writer, which cleans up the log
}

void HistoryFile::take(const Frames& frames) {
  if (!open_frames_.add(frames)) return;
  {
    const std::lock_guard lock(mutex_);
    is_urgent_ = true;
  }
  wake_.notify_all();
}

void HistoryFile::put(std::string name, std::string bytes) {
  if (!open_notes_.change(std::move(name), std::move(bytes))) open_frames_.count_dropped(1);
  wake();
}

void HistoryFile::remove(std::string name) {
  open_notes_.change(std::move(name), std::nullopt);
  wake();
}

// The thread holds the lock from its look at the notes until it waits.
void HistoryFile::wake() {
  {
    const std::lock_guard lock(mutex_);
  }
  wake_.notify_all();
}

void HistoryFile::flush() {
  std::unique_lock lock(mutex_);
  const std::uint64_t turn = ++turns_wanted_;
  wake_.notify_all();
  turned_.wait(lock, [&] { return turns_taken_ >= turn; });
}

bool HistoryFile::must_write_soon() const {
  return is_stopping_ || is_urgent_ || turns_wanted_ > turns_taken_ || !damaged_.expired();
}

void HistoryFile::work() {
  using Clock = std::chrono::steady_clock;
  const auto interval = std::chrono::nanoseconds(options_.write_interval.value());
  auto next = Clock::now() + interval;
  std::unique_lock lock(mutex_);
  for (bool is_last = false; !is_last;) {
    const bool is_early = wake_.wait_until(lock, next, [this] {
      return must_write_soon() || (problem_.empty() && !open_notes_.is_empty());
    });
    if (!is_early) {
      next = Clock::now() + interval;
    } else if (!must_write_soon()) {
      // Notes alone: those of a second together.
      wake_.wait_for(lock, std::chrono::nanoseconds(kNotesInterval.value()),
                     [this] { return must_write_soon(); });
    }
    is_last = is_stopping_;
    is_urgent_ = false;
    const std::uint64_t wanted = turns_wanted_;
    lock.unlock();
    take_turn();
    lock.lock();
    turns_taken_ = wanted;
    turned_.notify_all();
  }
}

// Connects, writes and tidies up, as far as that is possible.
void HistoryFile::take_turn() {
  {
    std::shared_ptr<store::ReaderPool> damaged;
    {
      const std::lock_guard lock(mutex_);
      damaged = std::exchange(damaged_, {}).lock();
      if (damaged != readers_) damaged = nullptr;  // it has been replaced already
    }
    if (damaged != nullptr && rows_ != nullptr) {
      replace_file({base::ErrorCode::kDataLoss, "a part of it cannot be read", {}});
    }
  }
  if (rows_ == nullptr && !connect()) {
    open_frames_.begin();
    open_frames_.given_up(kMaxKeptBytes);
    return;
  }
  base::Status status = write();
  if (status) status = tidy();
  if (!status) {
    handle(status.error());
    return;
  }
  set_problem({});
}

// Opens the file. One that is damaged is put aside, once.
bool HistoryFile::connect() {
  base::Status status = open_rows();
  if (!status && status.error().code == base::ErrorCode::kDataLoss &&
      put_file_aside(status.error())) {
    status = open_rows();
  }
  if (!status) {
    set_problem(status.error().message);
    return false;
  }
  auto readers = std::make_shared<store::ReaderPool>(options_.path.string(), options_.readers);
  const std::lock_guard lock(mutex_);
  readers_ = std::move(readers);
  return true;
}

base::Status HistoryFile::open_rows() {
  TRY_ASSIGN(HistoryRows opened, HistoryRows::open(options_.path, options_.bounds.max_bytes));
  auto rows = std::make_unique<HistoryRows>(std::move(opened));
  auto upkeep = std::make_unique<Upkeep>(*rows, options_.bounds);
  TRY_ASSIGN(const std::uint64_t batch, rows->batch());
  // It learns how old the file is before anything new is in it.
  TRY(upkeep->begin(options_.clock()));
  open_frames_.start_after(batch);
  rows_ = std::move(rows);
  upkeep_ = std::move(upkeep);
  damaged_rows_ = 0;
  return {};
}

base::Status HistoryFile::write() {
  const OpenFrames::Batch batch = open_frames_.begin();
  const OpenNotes::Changes notes = open_notes_.all();
  if (batch.frames.empty() && notes.empty()) return {};
  const base::Status status = write_batch(batch, notes);
  if (!status) {
    open_frames_.given_up(kMaxKeptBytes);
    rows_->forget();
    return status;
  }
  open_frames_.written();
  open_notes_.written(notes);
  return {};
}

base::Status HistoryFile::write_batch(const OpenFrames::Batch& batch,
                                      const OpenNotes::Changes& notes) {
  const Pieces pieces = pieces_of(batch.frames, options_.clock() + kMaxAhead);
  if (pieces.clamped > 0 && clamped_ == 0) {
    log(true, "readings have times that are more than a day ahead: they are kept as of tomorrow");
  }
  clamped_ += pieces.clamped;
  return rows_->database().transaction([&]() -> base::Status {
    for (const Piece& piece : pieces.pieces) {
      TRY_ASSIGN(const SubjectId subject, rows_->id_of(piece.subject));
      TRY(rows_->add({subject, Tier::kRaw, piece.span}, piece.block, true));
    }
    for (const auto& [name, change] : notes) {
      TRY(change.bytes ? rows_->put_note(name, *change.bytes) : rows_->remove_note(name));
    }
    return rows_->set_batch(batch.number);
  });
}

// Takes the steps that are due. New frames interrupt it only if their memory fills up.
base::Status HistoryFile::tidy() {
  TRY(upkeep_->begin(options_.clock()));
  while (true) {
    TRY_ASSIGN(const bool has_more, upkeep_->step());
    if (!has_more) break;
    const std::lock_guard lock(mutex_);
    if (is_stopping_ || is_urgent_) break;
  }
  if (rows_->damaged_rows() > damaged_rows_) {
    damaged_rows_ = rows_->damaged_rows();
    log(true, fmt::format("{} pieces of {} were damaged: there are gaps", damaged_rows_,
                          options_.path.string()));
  }
  return {};
}

void HistoryFile::handle(const base::Error& error) {
  if (error.code == base::ErrorCode::kDataLoss) {
    replace_file(error);
    return;
  }
  set_problem(error.message);
}

// The readers that are lent still read the old file, under its new name.
void HistoryFile::replace_file(const base::Error& error) {
  {
    const std::lock_guard lock(mutex_);
    readers_.reset();
  }
  upkeep_.reset();
  rows_.reset();
  if (put_file_aside(error)) connect();
}

bool HistoryFile::put_file_aside(const base::Error& damage) {
  const auto aside = put_aside(options_.path);
  if (!aside) {
    set_problem(aside.error().message);
    return false;
  }
  log(true, fmt::format("{} is damaged ({}): it is now {}, and a new one is begun",
                        options_.path.string(), damage.message, *aside));
  return true;
}

void HistoryFile::set_problem(std::string problem) {
  bool is_new = false;
  {
    const std::lock_guard lock(mutex_);
    is_new = problem.empty() != problem_.empty();
    problem_ = problem;
  }
  if (!is_new) return;
  if (problem.empty()) {
    log(false, fmt::format("{} can be written again; {} readings were dropped",
                           options_.path.string(), open_frames_.dropped()));
  } else {
    log(true, fmt::format("{} cannot be written, readings are dropped until it can: {}",
                          options_.path.string(), problem));
  }
}

void HistoryFile::log(bool is_warning, const std::string& line) const {
  if (options_.log) options_.log(is_warning, line);
}

// How far back the bounds will reach, by what came in the last hour and day.
void HistoryFile::tell_start() const {
  double per_hour[3] = {};
  const base::Status status = read_file([&](const ReadTransaction& file) -> base::Status {
    for (const Tier tier : {Tier::kRaw, Tier::kMinute, Tier::kQuarterHour}) {
      TRY_ASSIGN(const std::uint64_t bytes, bytes_of_newest_span(file, tier));
      per_hour[static_cast<int>(tier)] = static_cast<double>(bytes) / hours_of(span_of(tier));
    }
    return {};
  });
  const std::string size =
      fmt::format("{} of at most {}", in_mebibytes(bytes_on_disk(options_.path)),
                  in_mebibytes(static_cast<std::uint64_t>(options_.bounds.max_bytes.value())));
  if (!status || per_hour[0] <= 0) {
    log(false, fmt::format("history {}; how far it reaches is known after two hours", size));
    return;
  }
  const HistoryBounds& bounds = options_.bounds;
  double room = static_cast<double>(bounds.max_bytes.value()) * 7 / 8;
  const double quarters = hours_within(per_hour[2], hours_of(bounds.keep_quarters), room);
  const double minutes = hours_within(per_hour[1], hours_of(bounds.keep_minutes), room);
  const double samples = hours_within(per_hour[0], hours_of(bounds.keep_samples), room);
  log(false, fmt::format("history {}; with {} of samples an hour it reaches back {} in samples, "
                         "{} in minutes and {} in quarters of an hour",
                         size, in_mebibytes(static_cast<std::uint64_t>(per_hour[0])),
                         in_days(samples), in_days(minutes), in_days(quarters)));
}

base::Status HistoryFile::read(const Read& read) const {
  return read_with([&](store::ReaderPool& readers) -> base::Result<bool> {
    TRY_ASSIGN(store::ReaderPool::Lease reader, readers.borrow());
    TRY_ASSIGN(const ReadTransaction file, ReadTransaction::begin(*reader.operator->()));
    const auto open = open_frames_.after(file.batch());
    // The memory has gone on without what was seen on disk.
    if (!open) return false;
    TRY(read(file, *open));
    return true;
  });
}

base::Status HistoryFile::read_file(const ReadFile& read) const {
  return read_with([&](store::ReaderPool& readers) -> base::Result<bool> {
    TRY_ASSIGN(store::ReaderPool::Lease reader, readers.borrow());
    TRY_ASSIGN(const ReadTransaction file, ReadTransaction::begin(*reader.operator->()));
    TRY(read(file));
    return true;
  });
}

base::Status HistoryFile::read_with(const Look& look) const {
  for (int looks = 0; looks < kMaxLooks; ++looks) {
    std::shared_ptr<store::ReaderPool> readers;
    {
      const std::lock_guard lock(mutex_);
      readers = readers_;
      if (readers == nullptr) {
        return base::fail(base::ErrorCode::kUnavailable,
                          fmt::format("the history cannot be read: {}", problem_));
      }
    }
    const base::Result<bool> is_done = look(*readers);
    if (is_done && *is_done) return {};
    if (is_done) continue;
    if (is_done.error().code == base::ErrorCode::kInvalidArgument) {
      return std::unexpected(is_done.error());
    }
    if (is_done.error().code == base::ErrorCode::kDataLoss) {
      const std::lock_guard lock(mutex_);
      damaged_ = readers;
      wake_.notify_all();
    }
    return base::fail(base::ErrorCode::kUnavailable,
                      fmt::format("the history cannot be read: {}", is_done.error().message));
  }
  return base::fail(base::ErrorCode::kUnavailable, "the history is being replaced: try again");
}

base::Result<std::vector<Series>> HistoryFile::query(const HistoryQuery& query) const {
  TRY(check_query(query));
  std::vector<Series> series;
  TRY(read([&](const ReadTransaction& file, std::span<const Frames> open) -> base::Status {
    TRY_ASSIGN(series, read_history(file, open, query, options_.clock()));
    return {};
  }));
  return series;
}

HistoryCoverage HistoryFile::coverage() const {
  HistoryCoverage coverage;
  const base::Status status =
      read([&](const ReadTransaction& file, std::span<const Frames> open) -> base::Status {
        TRY_ASSIGN(const HistoryReach reach, read_reach(file));
        coverage.raw_since = reach.raw_since;
        coverage.minutes_since = reach.minutes_since;
        coverage.quarters_since = reach.quarters_since;
        if (!coverage.raw_since && !open.empty()) {
          coverage.raw_since = open.front()->front().at;
        }
        return {};
      });
  coverage.bytes = bytes_on_disk(options_.path);
  coverage.max_bytes = static_cast<std::uint64_t>(options_.bounds.max_bytes.value());
  coverage.dropped = open_frames_.dropped();
  const std::lock_guard lock(mutex_);
  coverage.problem = problem_;
  if (!status && problem_.empty()) coverage.problem = status.error().message;
  return coverage;
}

// What waits for the disk is newer than what is there.
std::optional<std::string> HistoryFile::get(const std::string& name) const {
  if (auto change = open_notes_.find(name)) return std::move(change->bytes);
  std::optional<std::string> bytes;
  const base::Status status = read_file([&](const ReadTransaction& file) -> base::Status {
    TRY_ASSIGN(bytes, read_note(file, name));
    return {};
  });
  return status ? bytes : std::nullopt;
}

std::vector<Notes::Note> HistoryFile::all(const std::string& prefix) const {
  const OpenNotes::Changes changes = open_notes_.all();
  std::map<std::string, std::string> notes;
  const base::Status status = read_file([&](const ReadTransaction& file) -> base::Status {
    TRY_ASSIGN(std::vector<Note> stored, read_notes(file, prefix));
    for (Note& note : stored) notes[std::move(note.name)] = std::move(note.bytes);
    return {};
  });
  if (!status) notes.clear();
  for (auto place = changes.lower_bound(prefix);
       place != changes.end() && place->first.starts_with(prefix); ++place) {
    if (place->second.bytes) {
      notes[place->first] = *place->second.bytes;
    } else {
      notes.erase(place->first);
    }
  }
  std::vector<Note> all;
  for (auto& [name, bytes] : notes) all.push_back({name, std::move(bytes)});
  return all;
}

}  // namespace gpu_platform::telemetry
