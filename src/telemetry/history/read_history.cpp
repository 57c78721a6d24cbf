#include "telemetry/history/read_history.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "telemetry/block.h"
#include "telemetry/history/schema.h"
#include "telemetry/spread_sums.h"
#include "telemetry/window.h"

namespace gpu_platform::telemetry {

namespace {

constexpr base::Duration kMaxWindow = base::hours(24 * 3'660);
// Below it a spread is taken from the samples themselves.
constexpr base::Duration kShortWindow = base::hours(6);
// A counter grew from its last value before the window.
constexpr base::Duration kBefore = base::minutes(2);
// Samples that are older become points within a minute; until then they are left out of them.
constexpr base::Duration kMaxOpen = base::hours(3);
// Samples and points that one query may take: 16 and 40 bytes each.
constexpr std::size_t kMaxValues = 20'000'000;

base::Instant before(base::Instant at, base::Duration time) {
  return at + time * -1;
}

// The metrics of one subject that a query asks for, with what was read of them.
class Gathered {
 public:
  Gathered(const HistoryQuery& query, const Subject& subject) : query_(query), subject_(subject) {
    for (const MetricId id : query.metrics) {
      if (metric(id).of == subject.of) wanted_.emplace(id, KeptSeries());
    }
  }

  bool is_empty() const { return wanted_.empty(); }
  const Subject& subject() const { return subject_; }
  std::size_t values() const { return values_; }
  std::optional<base::Instant> samples_since() const {
    return wanted_.begin()->second.samples_since;
  }

  // The codes of its metrics in the file, and of the sums of their distributions. What was never
  // written has none.
  base::Status find_codes(const ReadTransaction& file) {
    for (auto& [id, series] : wanted_) {
      TRY_ASSIGN(auto code, code_of(file, metric(id).name));
      if (code) series_of_.emplace(*std::move(code), std::pair(id, &series));
      if (!query_.wants_spread) continue;
      TRY_ASSIGN(auto code_of_sum, code_of(file, name_of_sum(metric(id).name)));
      if (code_of_sum) series_of_sum_.emplace(*std::move(code_of_sum), std::pair(id, &series));
    }
    for (const auto& [code, series] : series_of_) codes_.emplace_back(code);
    for (const auto& [code, series] : series_of_sum_) codes_of_sums_.emplace_back(code);
    return {};
  }

  // Adds what the bytes of a row have of the time from `from` on, and before `to`.
  void add(std::string_view bytes, Tier tier, base::Instant from, base::Instant to) {
    add(bytes, tier, {.metrics = codes_, .wants_spread = query_.wants_spread}, from, to);
  }

  // The same of a row of quarters, whose span lies between the times and has no samples: the sums
  // of distributions serve in place of these.
  void add_whole(std::string_view bytes, base::Instant span, base::Instant from, base::Instant to) {
    const base::Instant end = span + span_of(Tier::kQuarterHour);
    std::vector<MetricId> summed;
    if (!codes_of_sums_.empty()) {
      auto sums = decode_block(bytes, {.metrics = codes_of_sums_});
      if (!sums || sums->tier != Tier::kQuarterHour) return;
      for (Column& column : sums->columns) {
        if (column.spread.size() != 1) continue;
        const auto [id, series] = series_of_sum_.find(column.metric)->second;
        series->spreads.push_back({span, end, std::move(column.spread.front())});
        summed.push_back(id);
      }
    }
    std::vector<std::string_view> others;
    std::vector<std::string_view> with_sums;
    for (const auto& [code, series] : series_of_) {
      const bool has_sum = std::ranges::find(summed, series.first) != summed.end();
      (has_sum ? with_sums : others).emplace_back(code);
    }
    add(bytes, Tier::kQuarterHour, {.metrics = with_sums, .wants_spread = false}, from, to);
    add(bytes, Tier::kQuarterHour, {.metrics = others}, from, to);
  }

  void add(const Frame& frame, base::Instant from, base::Instant to) {
    if (frame.at < from || frame.at >= to) return;
    for (const Value& value : frame.values) {
      const auto found = wanted_.find(value.metric);
      if (found == wanted_.end()) continue;
      found->second.samples.push_back({frame.at, value.value});
      ++values_;
    }
  }

  void set_since(Tier tier, std::optional<base::Instant> since) {
    for (auto& [id, series] : wanted_) {
      if (tier == Tier::kRaw) series.samples_since = since;
      if (tier == Tier::kMinute) series.minutes_since = since;
      if (tier == Tier::kQuarterHour) series.quarters_since = since;
    }
  }

  void answer_into(std::vector<Series>& answers) const {
    for (const MetricId id : query_.metrics) {
      const auto found = wanted_.find(id);
      if (found != wanted_.end()) answers.push_back(answer(query_, subject_, id, found->second));
    }
  }

 private:
  using SeriesByCode = std::map<std::string, std::pair<MetricId, KeptSeries*>, std::less<>>;

  static base::Result<std::optional<std::string>> code_of(const ReadTransaction& file,
                                                          std::string_view name) {
    TRY_ASSIGN(store::Statement* const find,
               file.reader().statement("SELECT id FROM names WHERE name = ?"));
    const store::StatementRun scope(*find);
    find->bind(name);
    TRY_ASSIGN(const bool has_row, find->step());
    return has_row ? std::optional(std::to_string(find->integer(0))) : std::nullopt;
  }

  // A row that is damaged is a gap.
  void add(std::string_view bytes, Tier tier, const WantedColumns& wanted, base::Instant from,
           base::Instant to) {
    if (wanted.metrics.empty()) return;  // it would mean all
    auto block = decode_block(bytes, wanted);
    if (!block || block->tier != tier) return;
    for (Column& column : block->columns) {
      const auto [id, series] = series_of_.find(column.metric)->second;
      const bool has_spread = tier == Tier::kQuarterHour && wanted.wants_spread &&
                              metric(id).kind == MetricKind::kLevel;
      for (std::size_t i = 0; i < column.values.size(); ++i) {
        const base::Instant at = block->times[column.places.empty() ? i : column.places[i]];
        if (at < from || at >= to) continue;
        add(*series, tier, column, i, at);
        ++values_;
        if (!has_spread) continue;
        KeptSpread& kept = series->spreads.emplace_back();
        kept.from = at;
        kept.to = at + step_of(tier);
        if (i < column.spread.size()) kept.values = std::move(column.spread[i]);
      }
    }
  }

  static void add(KeptSeries& series, Tier tier, const Column& column, std::size_t i,
                  base::Instant at) {
    if (tier == Tier::kRaw) {
      series.samples.push_back({at, column.values[i]});
      return;
    }
    const Point point{.from = at,
                      .min = column.min[i],
                      .max = column.max[i],
                      .sum = column.values[i],
                      .count = static_cast<std::uint32_t>(column.count[i])};
    (tier == Tier::kMinute ? series.minutes : series.quarters).push_back(point);
  }

  const HistoryQuery& query_;
  const Subject& subject_;
  std::map<MetricId, KeptSeries> wanted_;
  SeriesByCode series_of_;
  std::vector<std::string_view> codes_;  // its keys
  SeriesByCode series_of_sum_;
  std::vector<std::string_view> codes_of_sums_;  // its keys
  std::size_t values_ = 0;
};

// A frame of this subject: of its GPU wherever it was, if no node is named.
bool is_of(const Subject& frame, const Subject& wanted) {
  return frame.of == wanted.of && frame.uuid == wanted.uuid && frame.attempt == wanted.attempt &&
         (frame.node == wanted.node || (wanted.node.empty() && wanted.of != Of::kHost));
}

// The numbers under which the file has the subject: one for each node.
base::Result<std::vector<std::int64_t>> ids_of(const ReadTransaction& file,
                                               const Subject& subject) {
  const bool is_anywhere = subject.node.empty() && subject.of != Of::kHost;
  TRY_ASSIGN(store::Statement* const find,
             file.reader().statement("SELECT id FROM subjects WHERE uuid = ?1 AND of = ?2 "
                                     "AND job = ?3 AND attempt = ?4 AND (?5 OR node = ?6) "
                                     "ORDER BY id"));
  const store::StatementRun scope(*find);
  find->bind(std::string_view(subject.uuid)).bind(static_cast<std::int64_t>(subject.of));
  find->bind(subject.attempt.job.value).bind(std::uint64_t{subject.attempt.attempt});
  find->bind(std::int64_t{is_anywhere}).bind(std::string_view(subject.node));
  std::vector<std::int64_t> ids;
  while (true) {
    TRY_ASSIGN(const bool has_row, find->step());
    if (!has_row) return ids;
    ids.push_back(find->integer(0));
  }
}

void make_earlier(std::optional<base::Instant>& since, std::optional<base::Instant> other) {
  if (other && (!since || believed(*other) < *since)) since = believed(*other);
}

// Reads what one subject needs.
class SubjectReading {
 public:
  SubjectReading(const ReadTransaction& file, const HistoryQuery& query, base::Instant now,
                 Gathered& gathered)
      : file_(file), query_(query), now_(now), gathered_(gathered) {}

  base::Status read(std::span<const Frames> open) {
    TRY_ASSIGN(ids_, ids_of(file_, gathered_.subject()));
    TRY(gathered_.find_codes(file_));
    for (const Frames& frames : open) {
      for (const Frame& frame : *frames) {
        if (is_of(frame.subject, gathered_.subject())) open_.push_back(&frame);
      }
    }
    return tier() == Tier::kRaw ? read_samples_first() : read_points_first();
  }

 private:
  // The coarsest tier that the answer's points can be made of.
  Tier tier() const {
    const bool is_short = query_.to - query_.from <= kShortWindow;
    if (query_.step < step_of(Tier::kMinute) || (query_.wants_spread && is_short)) {
      return Tier::kRaw;
    }
    return query_.step < step_of(Tier::kQuarterHour) ? Tier::kMinute : Tier::kQuarterHour;
  }

  // All samples, and points of the time before there are any.
  base::Status read_samples_first() {
    TRY_ASSIGN(std::optional<base::Instant> since, since_of(Tier::kRaw));
    TRY(load(Tier::kRaw, before(query_.from, kBefore), query_.to));
    add_open(since.value_or(base::Instant()), since);
    gathered_.set_since(Tier::kRaw, since);
    if (since && *since <= query_.from) return {};
    const base::Instant end = since ? std::min(*since, query_.to) : query_.to;
    TRY_ASSIGN(const std::optional<base::Instant> minutes, load_points(Tier::kMinute, end));
    if (query_.wants_spread || !minutes || *minutes > query_.from) {
      const bool is_all = query_.wants_spread || !minutes;
      TRY(load_points(Tier::kQuarterHour, is_all ? end : std::min(end, *minutes)));
    }
    return {};
  }

  // Points, and the samples that are in none yet.
  base::Status read_points_first() {
    TRY_ASSIGN(const std::optional<base::Instant> open_span, first_open_span());
    if (open_span) {
      std::optional<base::Instant> since;
      TRY(load(Tier::kRaw, *open_span, query_.to, &since));
      add_open(*open_span, since);
      gathered_.set_since(Tier::kRaw, since);
    }
    std::optional<base::Instant> minutes;
    if (tier() == Tier::kMinute) {
      TRY_ASSIGN(minutes, load_points(Tier::kMinute, query_.to));
    }
    if (query_.wants_spread || !minutes || *minutes > query_.from) {
      TRY(load_points(Tier::kQuarterHour, query_.to));
    }
    return {};
  }

  // The begin of the first span with samples that are in no point yet.
  base::Result<std::optional<base::Instant>> first_open_span() {
    const base::Instant earliest = floor_to(before(now_, kMaxOpen), span_of(Tier::kRaw));
    std::optional<base::Instant> first;
    for (const std::int64_t id : ids_) {
      TRY_ASSIGN(store::Statement* const find,
                 file_.reader().statement("SELECT span FROM blocks INDEXED BY blocks_of_subject "
                                          "WHERE subject = ? AND tier = 0 AND span >= ? "
                                          "AND is_piece = 1 ORDER BY span LIMIT 1"));
      const store::StatementRun scope(*find);
      find->bind(id).bind(earliest.unix_ns());
      TRY_ASSIGN(const bool has_row, find->step());
      if (has_row) make_earlier(first, base::Instant(find->integer(0)));
    }
    for (const Frame* const frame : open_) {
      const base::Instant span = floor_to(frame->at, span_of(Tier::kRaw));
      if (span >= earliest) make_earlier(first, span);
    }
    return first;
  }

  // Adds the frames in memory from `limit` on. Earlier ones came late: samples between them and the
  // others may be gone, so they must not say since when there are samples.
  void add_open(base::Instant limit, std::optional<base::Instant>& since) {
    for (const Frame* const frame : open_) {
      if (frame->at < limit) continue;
      gathered_.add(*frame, before(query_.from, kBefore), query_.to);
      make_earlier(since, frame->at);
    }
  }

  // Since when the file has something of the tier.
  base::Result<std::optional<base::Instant>> since_of(Tier tier) {
    std::optional<base::Instant> since;
    for (const std::int64_t id : ids_) {
      TRY_ASSIGN(store::Statement* const find,
                 file_.reader().statement("SELECT begins FROM blocks INDEXED BY blocks_of_subject "
                                          "WHERE subject = ? AND tier = ? "
                                          "ORDER BY span, id LIMIT 1"));
      const store::StatementRun scope(*find);
      find->bind(id).bind(number_of(tier));
      TRY_ASSIGN(const bool has_row, find->step());
      if (has_row) make_earlier(since, base::Instant(find->integer(0)));
    }
    return since;
  }

  // Loads the points of the window before `end`; returns since when the tier has any.
  base::Result<std::optional<base::Instant>> load_points(Tier tier, base::Instant end) {
    TRY_ASSIGN(const std::optional<base::Instant> since, since_of(tier));
    if (since) TRY(load(tier, floor_to(query_.from, step_of(tier)), end));
    gathered_.set_since(tier, since);
    return since;
  }

  // Loads what the file has of the tier between the times. `since`: the first sample's time.
  base::Status load(Tier tier, base::Instant from, base::Instant to,
                    std::optional<base::Instant>* since = nullptr) {
    for (const std::int64_t id : ids_) {
      TRY_ASSIGN(store::Statement* const find,
                 file_.reader().statement("SELECT span, begins, bytes FROM blocks "
                                          "INDEXED BY blocks_of_subject WHERE subject = ? "
                                          "AND tier = ? AND span >= ? AND span < ? "
                                          "ORDER BY span, id"));
      const store::StatementRun scope(*find);
      find->bind(id).bind(number_of(tier));
      find->bind(floor_to(from, span_of(tier)).unix_ns()).bind(to.unix_ns());
      while (true) {
        TRY_ASSIGN(const bool has_row, find->step());
        if (!has_row) break;
        const base::Instant span(find->integer(0));
        if (since != nullptr) make_earlier(*since, base::Instant(find->integer(1)));
        if (tier == Tier::kQuarterHour && has_one_spread(span, to)) {
          gathered_.add_whole(find->blob(2), span, from, to);
        } else {
          gathered_.add(find->blob(2), tier, from, to);
        }
        if (gathered_.values() > kMaxValues) {
          return base::invalid("step",
                               "the window has too many values: take a shorter window, "
                               "fewer metrics or a longer step");
        }
      }
    }
    return {};
  }

  // Whether one distribution is enough of a row of quarters that is read up to `to`.
  bool has_one_spread(base::Instant span, base::Instant to) const {
    const base::Instant end = span + span_of(Tier::kQuarterHour);
    const auto samples = gathered_.samples_since();
    return query_.wants_spread && span >= query_.from && end <= std::min(query_.to, to) &&
           (!samples || end <= *samples);
  }

  const ReadTransaction& file_;
  const HistoryQuery& query_;
  const base::Instant now_;
  Gathered& gathered_;
  std::vector<std::int64_t> ids_;
  std::vector<const Frame*> open_;
};

}  // namespace

base::Result<ReadTransaction> ReadTransaction::begin(store::Reader& reader) {
  TRY_ASSIGN(store::Statement* const begin, reader.statement("BEGIN"));
  TRY(begin->run());
  ReadTransaction transaction(reader);
  TRY_ASSIGN(store::Statement* const find,
             reader.statement("SELECT value FROM facts WHERE name = 'batch'"));
  const store::StatementRun scope(*find);
  TRY_ASSIGN(const bool has_row, find->step());
  if (has_row) transaction.batch_ = find->number(0);
  return transaction;
}

ReadTransaction::~ReadTransaction() {
  if (reader_ == nullptr) return;
  auto end = reader_->statement("COMMIT");
  if (end && !(*end)->run()) return;  // it reads alone: there is nothing to lose
}

base::Status check_query(const HistoryQuery& query) {
  if (query.from >= query.to) {
    return base::invalid("to", "the end of the window must be after its begin");
  }
  if (query.from < base::Instant() || query.to - query.from > kMaxWindow) {
    return base::invalid("from", "the window must be within the last ten years");
  }
  if (query.step < base::Duration()) return base::invalid("step", "the step must not be negative");
  for (const MetricId id : query.metrics) {
    if (id >= metrics().size()) return base::invalid("metrics", "there is no such metric");
  }
  return {};
}

base::Result<std::vector<Series>> read_history(const ReadTransaction& file,
                                               std::span<const Frames> open,
                                               const HistoryQuery& query, base::Instant now) {
  std::vector<Series> answers;
  for (const Subject& subject : query.subjects) {
    Gathered gathered(query, subject);
    if (gathered.is_empty()) continue;
    TRY(SubjectReading(file, query, now, gathered).read(open));
    gathered.answer_into(answers);
  }
  return answers;
}

base::Result<HistoryReach> read_reach(const ReadTransaction& file) {
  HistoryReach reach;
  const std::pair<Tier, std::optional<base::Instant>*> tiers[] = {
      {Tier::kRaw, &reach.raw_since},
      {Tier::kMinute, &reach.minutes_since},
      {Tier::kQuarterHour, &reach.quarters_since}};
  for (const auto& [tier, since] : tiers) {
    TRY_ASSIGN(store::Statement* const find,
               file.reader().statement("SELECT MIN(begins) FROM blocks INDEXED BY blocks_by_age "
                                       "WHERE tier = ?1 AND span = "
                                       "(SELECT MIN(span) FROM blocks WHERE tier = ?1) "
                                       "HAVING COUNT(*) > 0"));
    const store::StatementRun scope(*find);
    find->bind(number_of(tier));
    TRY_ASSIGN(const bool has_row, find->step());
    if (has_row) *since = believed(base::Instant(find->integer(0)));
  }
  return reach;
}

base::Result<std::uint64_t> bytes_of_newest_span(const ReadTransaction& file, Tier tier) {
  TRY_ASSIGN(store::Statement* const find,
             file.reader().statement(
                 "SELECT SUM(LENGTH(bytes)) FROM blocks INDEXED BY blocks_by_age WHERE tier = ?1 "
                 "AND span = (SELECT MAX(span) FROM blocks WHERE tier = ?1 AND span < "
                 "(SELECT MAX(span) FROM blocks WHERE tier = ?1))"));
  const store::StatementRun scope(*find);
  find->bind(number_of(tier));
  TRY_ASSIGN(const bool has_row, find->step());
  return has_row ? find->number(0) : 0;
}

base::Result<std::optional<std::string>> read_note(const ReadTransaction& file,
                                                   const std::string& name) {
  TRY_ASSIGN(store::Statement* const find,
             file.reader().statement("SELECT bytes FROM notes WHERE name = ?"));
  const store::StatementRun scope(*find);
  find->bind(std::string_view(name));
  TRY_ASSIGN(const bool has_row, find->step());
  if (!has_row) return std::nullopt;
  return std::string(find->blob(0));
}

base::Result<std::vector<Notes::Note>> read_notes(const ReadTransaction& file,
                                                  const std::string& prefix) {
  TRY_ASSIGN(
      store::Statement* const find,
      file.reader().statement("SELECT name, bytes FROM notes WHERE name >= ? ORDER BY name"));
  const store::StatementRun scope(*find);
  find->bind(std::string_view(prefix));
  std::vector<Notes::Note> notes;
  while (true) {
    TRY_ASSIGN(const bool has_row, find->step());
    if (!has_row || !find->text(0).starts_with(prefix)) return notes;
    notes.push_back({std::string(find->text(0)), std::string(find->blob(1))});
  }
}

}  // namespace gpu_platform::telemetry
