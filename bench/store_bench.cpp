// This program measures how fast the SQLite store is on the disk of the build
// (GP_BENCH_DIR names another): durable appends against the disk's own rate of fdatasync, replay,
// opening, archive queries, the ledger.

#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/check.h"
#include "bench_directory.h"
#include "model/event.h"
#include "model/job_spec.h"
#include "model/ledger.h"
#include "store/sqlite/database.h"
#include "store/sqlite/sqlite_store.h"

namespace gpu_platform::store {
namespace {

using Clock = std::chrono::steady_clock;

std::unique_ptr<SqliteStore> open_store(const std::filesystem::path& dir) {
  auto store = SqliteStore::open({.dir = dir});
  CHECK(store.has_value());
  return *std::move(store);
}

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

model::JobSpec typical_spec(std::uint64_t id) {
  model::JobSpec spec;
  spec.name = fmt::format("train-{}", id);
  spec.user = fmt::format("user{}", id % 50);
  spec.team = fmt::format("team{}", id % 8);
  spec.command = {"/usr/bin/python3", "train.py", "--epochs", "10"};
  spec.workdir = "/home/user/project";
  spec.environment_ref = fmt::format("env-{}", id);
  spec.request.gpus = 2;
  spec.labels = {{"model", fmt::format("m{}", id % 20)}};
  return spec;
}

// The events of a job's life in turn.
std::vector<model::EventRecord> events_from(std::uint64_t first, std::size_t count) {
  std::vector<model::EventRecord> events(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t seq = first + i;
    const model::JobId job(1 + seq / 5);
    const model::AttemptId attempt{job, 1};
    events[i].seq = model::EventSeq(seq);
    events[i].at = base::Instant(static_cast<std::int64_t>(seq) * 1000 + 1);
    model::Allocation allocation;
    allocation.nodes.push_back(
        {model::NodeId(1), {{0, base::kWholeGpu, {}}, {1, base::kWholeGpu, {}}}, 16, {}});
    switch (seq % 5) {
      case 0:
        events[i].event =
            model::JobSubmitted{job, std::make_shared<model::JobSpec>(typical_spec(job.value))};
        break;
      case 1:
        events[i].event = model::StartRequested{attempt, allocation, {}, "on_demand", "b"};
        break;
      case 2:
        events[i].event = model::AttemptStarted{attempt, 4711, events[i].at};
        break;
      case 3:
        events[i].event = model::AttemptEnded{attempt, events[i].at, {}, {}, "", {}};
        break;
      default:
        events[i].event = model::AttemptReleased{attempt};
        break;
    }
  }
  return events;
}

model::Job ended_job(std::uint64_t id) {
  model::Job job;
  job.id = model::JobId(id);
  job.spec = std::make_shared<model::JobSpec>(typical_spec(id));
  job.state = id % 20 == 0 ? model::JobState::kFailed : model::JobState::kCompleted;
  job.ended_at = base::Instant(static_cast<std::int64_t>(id) * 1'000'000 + 1);
  model::Attempt attempt;
  attempt.number = 1;
  attempt.allocation.nodes.push_back({model::NodeId(1), {{0, base::kWholeGpu, {}}}, 8, {}});
  job.attempts.push_back(attempt);
  return job;
}

// Appends ended jobs 1 to `count` with five events each, a thousand jobs to a batch.
void fill_history(Journal& journal, std::uint64_t count) {
  constexpr std::uint64_t kBatch = 1000;
  for (std::uint64_t first = 1; first <= count; first += kBatch) {
    const auto events = events_from(journal.last_seq().value + 1, 5 * kBatch);
    std::vector<model::Job> jobs;
    for (std::uint64_t id = first; id < first + kBatch; ++id) jobs.push_back(ended_job(id));
    CHECK(journal.append({events, jobs, {}, {}, {}}).has_value());
  }
}

void report_latencies(benchmark::State& state, std::vector<double>& micros) {
  std::ranges::sort(micros);
  const auto at = [&](double share) {
    return micros[static_cast<std::size_t>(share * static_cast<double>(micros.size() - 1))];
  };
  state.counters["p50_us"] = at(0.5);
  state.counters["p99_us"] = at(0.99);
  state.counters["max_us"] = at(1.0);
}

// The floor: one thread overwriting a preallocated 4 KiB block.
void Fdatasync(benchmark::State& state) {
  const bench::BenchDirectory directory;
  const int fd = ::open((directory.path() / "block").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  CHECK(fd >= 0);
  const std::string block(4096, 'x');
  CHECK(::pwrite(fd, block.data(), block.size(), 0) == 4096);
  CHECK(::fsync(fd) == 0);
  std::vector<double> micros;
  for (auto _ : state) {
    const auto start = Clock::now();
    CHECK(::pwrite(fd, block.data(), block.size(), 0) == 4096);
    CHECK(::fdatasync(fd) == 0);
    micros.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
  }
  ::close(fd);
  state.SetItemsProcessed(state.iterations());
  report_latencies(state, micros);
}
BENCHMARK(Fdatasync)->UseRealTime()->MinTime(3);

// One synced commit of `range(0)` events each.
void Append(benchmark::State& state) {
  const auto count = static_cast<std::size_t>(state.range(0));
  const bench::BenchDirectory directory;
  const auto store = open_store(directory.path());
  std::vector<double> micros;
  for (auto _ : state) {
    const auto events = events_from(store->last_seq().value + 1, count);
    const auto start = Clock::now();
    CHECK(store->append({events, {}, {}, {}}).has_value());
    micros.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
  report_latencies(state, micros);
}
BENCHMARK(Append)->Arg(1)->Arg(10)->Arg(100)->Arg(1000)->UseRealTime()->MinTime(3);

// Batches of 100 jobs that end, with the five events of each life, after 100,000 earlier ones.
void AppendEndedJobs(benchmark::State& state) {
  constexpr std::uint64_t kBatch = 100;
  const bench::BenchDirectory directory;
  const auto store = open_store(directory.path());
  fill_history(*store, 100'000);
  std::uint64_t id = 100'001;
  std::vector<double> micros;
  const double cpu = cpu_seconds();
  for (auto _ : state) {
    const auto events = events_from(store->last_seq().value + 1, 5 * kBatch);
    std::vector<model::Job> jobs;
    for (std::uint64_t i = 0; i < kBatch; ++i) jobs.push_back(ended_job(id++));
    const auto start = Clock::now();
    CHECK(store->append({events, jobs, {}, {}}).has_value());
    micros.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
  }
  const auto jobs_done =
      static_cast<double>(state.iterations() * static_cast<std::int64_t>(kBatch));
  state.SetItemsProcessed(static_cast<std::int64_t>(jobs_done));
  state.counters["cpu_us_per_job"] = (cpu_seconds() - cpu) * 1e6 / jobs_done;
  report_latencies(state, micros);
}
BENCHMARK(AppendEndedJobs)->UseRealTime()->MinTime(3);

// Events decoded and handed over, from batches of `range(0)`.
void Replay(benchmark::State& state) {
  constexpr std::uint64_t kEvents = 500'000;
  const auto count = static_cast<std::size_t>(state.range(0));
  const bench::BenchDirectory directory;
  const auto store = open_store(directory.path());
  const std::uint64_t total = count == 1 ? kEvents / 20 : kEvents;
  while (store->last_seq().value < total) {
    CHECK(store->append({events_from(store->last_seq().value + 1, count), {}, {}, {}}).has_value());
  }
  for (auto _ : state) {
    std::uint64_t seen = 0;
    const auto status = store->replay({}, [&](const model::EventRecord&) -> base::Status {
      ++seen;
      return {};
    });
    CHECK(status.has_value() && seen == store->last_seq().value);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(store->last_seq().value));
}
BENCHMARK(Replay)->Arg(1)->Arg(100)->UseRealTime()->Unit(benchmark::kMillisecond);

// A million ended jobs and five million events, made once.
const std::filesystem::path& big_history() {
  static const bench::BenchDirectory directory;
  static const bool is_filled = [] {
    fill_history(*open_store(directory.path()), 1'000'000);
    return true;
  }();
  CHECK(is_filled);
  return directory.path();
}

void OpenWithAMillionJobs(benchmark::State& state) {
  const auto& dir = big_history();
  for (auto _ : state) {
    const auto store = open_store(dir);
    CHECK(store->find(model::JobId(500'000)).value().has_value());
  }
}
BENCHMARK(OpenWithAMillionJobs)->UseRealTime()->Unit(benchmark::kMillisecond);

// A page of 100 jobs out of a million, by each way of asking.
void ListOutOfAMillion(benchmark::State& state) {
  ArchiveQuery query;
  switch (state.range(0)) {
    case 0:
      state.SetLabel("all");
      break;
    case 1:
      state.SetLabel("user");
      query.user = "user7";
      break;
    case 2:
      state.SetLabel("team, failed");
      query.team = "team3";
      query.states = {model::JobState::kFailed};
      break;
    case 3:
      state.SetLabel("failed, timed out");
      query.states = {model::JobState::kFailed, model::JobState::kTimedOut};
      break;
    case 4:
      state.SetLabel("since (last 10,000)");
      query.ended_since = base::Instant(990'000'000'001);
      break;
    case 5:
      state.SetLabel("since (last 500,000)");
      query.ended_since = base::Instant(500'000'000'001);
      break;
    case 6:
      state.SetLabel("label");
      query.labels = {{"model", "m7"}};
      break;
    case 7:
      state.SetLabel("user that has none");
      query.user = "nobody";
      break;
    case 8:
      state.SetLabel("since (all), 500 of the middle");
      query.ended_since = base::Instant(2);
      query.before = model::JobId(500'000);
      query.limit = 500;
      break;
    case 9:
      state.SetLabel("since (last 500,000), 500 around its begin");
      query.ended_since = base::Instant(500'000'000'001);
      query.before = model::JobId(500'100);
      query.limit = 500;
      break;
    case 10:
      state.SetLabel("failed since (all), 500 of the middle");
      query.states = {model::JobState::kFailed, model::JobState::kTimedOut};
      query.ended_since = base::Instant(2);
      query.before = model::JobId(500'000);
      query.limit = 500;
      break;
    default:
      state.SetLabel("name");
      query.name = "train-4711";
      break;
  }
  const auto store = open_store(big_history());
  for (auto _ : state) {
    const auto jobs = store->list(query);
    CHECK(jobs.has_value());
    benchmark::DoNotOptimize(jobs->size());
  }
}
BENCHMARK(ListOutOfAMillion)->DenseRange(0, 11)->Unit(benchmark::kMicrosecond);

// ---- The ledger ----

constexpr std::uint64_t kLedgerNodes = 64;
constexpr std::uint64_t kGpusOfNode = 8;
constexpr model::Millis kLedgerBegin = 1'700'000'000'000;
constexpr model::Millis kMonth = model::Millis{30} * 86'400'000;

// What the release of an attempt on a node of eight GPUs adds, and its start before that: a line of
// each GPU while the job held it, and one of its rest before.
std::vector<model::LedgerLine> lines_of_job(std::uint64_t job, model::Millis at) {
  std::vector<model::LedgerLine> lines(2 * kGpusOfNode);
  for (std::uint64_t gpu = 0; gpu < kGpusOfNode; ++gpu) {
    model::LedgerLine& rest = lines[gpu];
    rest.node = fmt::format("dgx-{:03}", job % kLedgerNodes);
    rest.gpu_uuid =
        fmt::format("GPU-3f2504e0-4f89-11d3-9a0c-{:08x}{:04x}", job % kLedgerNodes, gpu);
    rest.gpu_type = "H100";
    rest.share = base::kWholeGpu;
    rest.price = 2;
    rest.from = at - 3'900'000;
    rest.to = at - 3'600'000;
    model::LedgerLine& held = lines[kGpusOfNode + gpu];
    held = rest;
    held.kind = model::LedgerKind::kHeld;
    held.from = rest.to;
    held.started = held.from + 4'000 + static_cast<model::Millis>(job % 997);
    held.ended = at - 1'500 - static_cast<model::Millis>(job % 499);
    held.to = at;
    held.attempt = {model::JobId(job), 1};
    held.user = fmt::format("user{}", job % 50);
    held.team = fmt::format("team{}", job % 8);
    held.project = fmt::format("project{}", job % 20);
    held.job_name = fmt::format("train-{}", job);
    held.labels = {{"model", fmt::format("m{}", job % 20)}, {"stage", "train"}};
    held.discount = 1'000;
  }
  return lines;
}

// Commits of 100 attempts that end on eight GPUs each; the same without their lines is
// AppendReleases/0.
void AppendReleases(benchmark::State& state) {
  constexpr std::uint64_t kJobs = 100;
  const bench::BenchDirectory directory;
  const auto store = open_store(directory.path());
  std::uint64_t job = 1;
  std::vector<double> micros;
  double cpu = 0;  // of the store alone: lines are made before
  for (auto _ : state) {
    const auto events = events_from(store->last_seq().value + 1, 5 * kJobs);
    std::vector<model::LedgerLine> lines;
    std::vector<model::Job> jobs;
    for (std::uint64_t i = 0; i < kJobs; ++i, ++job) {
      jobs.push_back(ended_job(job));
      if (state.range(0) == 0) continue;
      const auto more = lines_of_job(job, kLedgerBegin + static_cast<model::Millis>(job) * 1'000);
      lines.insert(lines.end(), more.begin(), more.end());
    }
    const double cpu_before = cpu_seconds();
    const auto start = Clock::now();
    CHECK(store->append({.events = events, .ended_jobs = jobs, .ledger = lines}).has_value());
    micros.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
    cpu += cpu_seconds() - cpu_before;
  }
  const auto jobs_done = static_cast<double>(state.iterations()) * static_cast<double>(kJobs);
  state.SetItemsProcessed(static_cast<std::int64_t>(jobs_done));
  state.counters["cpu_us_per_job"] = cpu * 1e6 / jobs_done;
  report_latencies(state, micros);
}
BENCHMARK(AppendReleases)->Arg(0)->Arg(1)->UseRealTime()->MinTime(3);

// A million lines over twelve months, a batch for each attempt, made once.
const std::filesystem::path& big_ledger() {
  static const bench::BenchDirectory directory;
  static const bool is_filled = [] {
    constexpr std::uint64_t kJobs = 1'000'000 / (2 * kGpusOfNode);
    const auto store = open_store(directory.path());
    std::vector<LedgerBatch> batches;
    CHECK(store->append({.events = events_from(1, kJobs), .has_no_lines = true}).has_value());
    for (std::uint64_t job = 1; job <= kJobs; ++job) {
      const auto at = static_cast<model::Millis>(job) * 12 * kMonth / kJobs;
      batches.push_back({model::EventSeq(job), lines_of_job(job, kLedgerBegin + at)});
      if (batches.size() < 1'000 && job < kJobs) continue;
      CHECK(store->put_ledger(batches, model::EventSeq(job)).has_value());
      batches.clear();
    }
    return true;
  }();
  CHECK(is_filled);
  return directory.path();
}

double bytes_per_line(const std::filesystem::path& dir) {
  const auto database =
      Database::open((dir / "store.db").string(), Database::Mode::kReadOnly).value();
  const std::int64_t bytes =
      database.query_integer("SELECT sum(pgsize) FROM dbstat WHERE name GLOB '*ledger*'")
          .value_or(0);  // where SQLite has no dbstat
  const std::int64_t lines = database.query_integer("SELECT sum(count) FROM ledger").value();
  return static_cast<double>(bytes) / static_cast<double>(lines);
}

// 0: all twelve months. 1: one month of them. 2: one month of one user of fifty.
void VisitLedger(benchmark::State& state) {
  constexpr std::string_view kLabels[] = {"all", "a month", "a month of a user"};
  state.SetLabel(std::string(kLabels[state.range(0)]));
  const auto& dir = big_ledger();
  const auto store = open_store(dir);
  LedgerQuery query{.from = kLedgerBegin + 5 * kMonth, .to = kLedgerBegin + 6 * kMonth};
  if (state.range(0) == 0) query = {.from = 0, .to = INT64_MAX};
  if (state.range(0) == 2) query.user = "user7";
  std::int64_t lines = 0;
  std::int64_t share_ms = 0;
  for (auto _ : state) {
    const auto status = store->visit(query, [&](const model::LedgerLine& line) {
      ++lines;
      share_ms += line.share.value() * (line.to - line.from) / 7'000;
      return base::Status{};
    });
    CHECK(status.has_value());
    benchmark::DoNotOptimize(share_ms);
  }
  state.SetItemsProcessed(lines);
  state.counters["lines"] = static_cast<double>(lines / state.iterations());
  state.counters["bytes_per_line"] = bytes_per_line(dir);
}
BENCHMARK(VisitLedger)->DenseRange(0, 2)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace gpu_platform::store
