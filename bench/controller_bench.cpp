// The controller alone, with the virtual engine and the memory store (where it says so with SQLite
// on the current directory's disk): what a job's life costs, how fast history is replayed, what a
// waiting job weighs, and how many allocations a second it makes.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include "api/event_hub.h"
#include "base/check.h"
#include "bench_directory.h"
#include "controller/controller.h"
#include "execution/virtual_engine.h"
#include "model/job_spec.h"
#include "store/batch.h"
#include "store/memory/memory_store.h"
#include "store/sqlite/sqlite_store.h"
#include "views/explanation.h"
#include "views/wait_explainer.h"

namespace gpu_platform::controller {
namespace {

constexpr base::Instant kStart(1'700'000'000'000'000'000);
constexpr base::Duration kRuns = base::seconds(1);

model::NodeInfo dgx(std::size_t number) {
  model::NodeInfo info;
  info.name = fmt::format("node-{:05}", number);
  info.emulated = true;
  info.boot_id = "6f0ad7a1-3a52-4b6a-9d3b-0f2c63d6f1b5";
  info.cpus = 224;
  info.memory = base::kGiB * 2048;
  info.driver_version = "550.54.15";
  for (std::uint32_t i = 0; i < 8; ++i) {
    model::GpuInfo gpu;
    gpu.uuid = fmt::format("GPU-{:08x}-0000-0000-0000-{:012x}", number, i);
    gpu.model = "NVIDIA H100 80GB HBM3";
    gpu.type = "H100-80GB";
    gpu.memory = base::kGiB * 80;
    gpu.pci_address = fmt::format("00000000:{:02x}:00.0", 0x18 + i * 16);
    gpu.minor = i;
    gpu.numa_node = static_cast<std::int32_t>(i / 4);
    info.gpus.push_back(std::move(gpu));
  }
  return info;
}

model::JobSpec typical_spec() {
  model::JobSpec spec;
  spec.name = "train-resnet50";
  spec.user = "researcher";
  spec.uid = spec.gid = 1001;
  spec.team = "vision";
  spec.project = "imagenet";
  spec.command = {"/usr/bin/python3", "train.py", "--epochs", "90"};
  spec.workdir = "/home/researcher/imagenet";
  spec.request.gpus = 1;
  spec.time_limit = base::hours(4);
  return spec;
}

class World : public execution::ObservationSink, public execution::VirtualScript {
 public:
  explicit World(std::size_t nodes) : World(nodes, nullptr) {}
  // On that journal; null: in memory.
  World(std::size_t nodes, store::Journal* journal) : engine_(*this, *this) {
    controller_.emplace(journal != nullptr ? *journal : store_, engine_, options());
    controller_->add_listener(&hub_);
    if (!controller_->recover(kStart)) std::abort();
    model::Policy policy;
    policy.max_queue_size = 10'000'000;
    policy.max_queue_percent_per_user = 100;
    policy.max_specification_bytes = base::kGiB * 64;
    policy.max_specification_bytes_per_user = base::kGiB * 32;
    policy.max_array_size = model::kMaxArrayMembers;
    inputs_.emplace_back(PolicyChange{policy, "bench"});
    engine_.advance(kStart);
    for (std::size_t i = 1; i <= nodes; ++i) engine_.put_node(dgx(i));
    step();
  }

  void observe(execution::Observation observation) override {
    inputs_.emplace_back(std::move(observation));
  }
  execution::VirtualRun run_of(const execution::StartOrder&) override {
    execution::VirtualRun run;
    run.duration = kRuns;
    return run;
  }

  void submit(std::size_t jobs) {
    for (std::size_t i = 0; i < jobs; ++i) submit(typical_spec());
  }
  void submit(model::JobSpec spec) {
    model::Caller caller = caller_of(spec);
    inputs_.emplace_back(
        CommandInput{{std::move(caller), model::SubmitJob{std::move(spec), {}}}, {}});
  }
  std::shared_ptr<const Snapshot> snapshot() const { return controller_->snapshot(); }
  base::Instant now() const { return now_; }
  void submit_array(std::uint32_t members, std::uint32_t limit) {
    model::JobSpec spec = typical_spec();
    spec.array = model::ArraySpec{{{0, members - 1, 1}}, limit};
    model::Caller caller = caller_of(spec);
    inputs_.emplace_back(
        CommandInput{{std::move(caller), model::SubmitJob{std::move(spec), {}}}, {}});
  }
  void cancel_array(model::JobId array) {
    inputs_.emplace_back(CommandInput{
        {caller_of(typical_spec()), model::ActOnJob{array, model::JobAction::kCancel, true}}, {}});
  }
  void step() {
    std::vector<Input> inputs = std::exchange(inputs_, {});
    if (!controller_->step(inputs, now_)) std::abort();
  }
  // Lets the running jobs end and others take their place.
  void let_time_pass(base::Duration span) {
    now_ = now_ + span;
    engine_.advance(now_);
    while (!inputs_.empty()) {
      step();
      engine_.advance(now_);
    }
  }
  void one_batch_of_lives(std::size_t jobs) {
    submit(jobs);
    let_time_pass(base::Duration());
    let_time_pass(kRuns);
  }

  const State& state() const { return controller_->core().state(); }
  store::MemoryStore& store() { return store_; }

 private:
  // Through the API, like every call: so it is in the audit trail.
  static model::Caller caller_of(const model::JobSpec& spec) {
    return {.user = spec.user, .uid = spec.uid, .door = model::Door::kUnixSocket, .pid = 4242};
  }
  static ControllerOptions options() {
    ControllerOptions options;
    options.events_per_snapshot = ~std::uint64_t{0};
    return options;
  }

  base::Instant now_ = kStart;
  store::MemoryStore store_;
  api::EventHub hub_{model::EventSeq()};
  execution::VirtualEngine engine_;
  std::optional<Controller> controller_;
  std::vector<Input> inputs_;
};

// From submission to release: about six events, three orders, one archived job.
void job_life(benchmark::State& bench) {
  const auto jobs = static_cast<std::size_t>(bench.range(0));
  World world(16);
  for (auto _ : bench) world.one_batch_of_lives(jobs);
  if (!world.state().jobs.empty()) bench.SkipWithError("jobs are left");
  bench.SetItemsProcessed(bench.iterations() * bench.range(0));
  bench.counters["cpu_per_job"] =
      benchmark::Counter(static_cast<double>(bench.iterations() * bench.range(0)),
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(job_life)->Arg(1)->Arg(16)->Arg(128)->Unit(benchmark::kMicrosecond);

// An array on a full cluster: one event, for any size. With a limit (8) its members wait
// behind the gate and are in no queue.
void submit_array(benchmark::State& bench) {
  for (auto _ : bench) {
    bench.PauseTiming();
    auto world = std::make_unique<World>(16);
    world->submit(128);
    world->let_time_pass(base::Duration());
    bench.ResumeTiming();
    world->submit_array(static_cast<std::uint32_t>(bench.range(0)),
                        static_cast<std::uint32_t>(bench.range(1)));
    world->let_time_pass(base::Duration());
    bench.PauseTiming();
    world.reset();
    bench.ResumeTiming();
  }
}
BENCHMARK(submit_array)
    ->Args({10'000, 0})
    ->Args({10'000, 8})
    ->ArgNames({"members", "limit"})
    ->Unit(benchmark::kMillisecond);

// Every member ends in one command and one commit. With SQLite on the current directory's disk: the
// archive has a row for each.
void cancel_array(benchmark::State& bench) {
  for (auto _ : bench) {
    bench.PauseTiming();
    auto directory = std::make_unique<gpu_platform::bench::BenchDirectory>();
    auto opened = store::SqliteStore::open({.dir = directory->path()});
    CHECK(opened.has_value());
    auto world = std::make_unique<World>(16, opened->get());
    world->submit(128);
    world->let_time_pass(base::Duration());
    world->submit_array(static_cast<std::uint32_t>(bench.range(0)), 0);
    world->step();
    bench.ResumeTiming();
    world->cancel_array(model::JobId(129));
    world->step();
    bench.PauseTiming();
    if (world->state().jobs.size() != 128) bench.SkipWithError("members are left");
    world.reset();
    opened->reset();
    directory.reset();
    bench.ResumeTiming();
  }
}
BENCHMARK(cancel_array)
    ->Arg(20'000)
    ->Arg(50'000)
    ->Arg(100'000)
    ->ArgName("members")
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

// The same behind a queue of waiting jobs: the cost must not grow with it.
void job_life_behind_a_queue(benchmark::State& bench) {
  World world(16);
  world.submit(static_cast<std::size_t>(bench.range(0)) + 128);
  world.let_time_pass(base::Duration());
  for (auto _ : bench) {
    world.submit(128);
    world.let_time_pass(kRuns);
  }
  bench.SetItemsProcessed(bench.iterations() * 128);
  bench.counters["cpu_per_job"] =
      benchmark::Counter(static_cast<double>(bench.iterations()) * 128,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(job_life_behind_a_queue)
    ->Arg(1'000)
    ->Arg(10'000)
    ->Arg(100'000)
    ->Unit(benchmark::kMicrosecond);

// The cost of `explain` for one job in a queue of N jobs of 1,000 kinds, on a full cluster of
// 12,500 × 8 GPUs, right after another submission.
void explain_one(benchmark::State& bench) {
  World world(12'500);
  model::JobSpec spec = typical_spec();
  spec.request.gpus = 8;
  for (int i = 0; i < 12'500; ++i) world.submit(spec);
  world.step();
  for (std::int64_t i = 0; i < bench.range(0); ++i) {
    spec.request.gpus = static_cast<std::uint32_t>(1 + i % 8);
    spec.time_limit = base::minutes(1 + i % 125);
    world.submit(spec);
  }
  world.step();
  views::PlanningView view(world.snapshot());
  for (auto _ : bench) {
    bench.PauseTiming();
    world.submit(spec);
    world.step();
    const auto snapshot = world.snapshot();
    const model::JobId newest = snapshot->jobs.find(12'500 + bench.range(0))->id;
    bench.ResumeTiming();
    view.follow(snapshot);
    views::WaitExplainer explainer(view);
    const views::PlaceInLine line = views::place_in_line(view, newest);
    benchmark::DoNotOptimize(explainer.explain_behind(*snapshot->jobs.find(newest.value),
                                                      line.jobs_ahead, line.first_ahead.front()));
    benchmark::DoNotOptimize(
        views::explain_waiting(view, newest, world.now(), views::Effort::kQuick));
  }
}
BENCHMARK(explain_one)->ArgName("waiting")->Arg(1'000)->Arg(100'000)->Unit(benchmark::kMillisecond);

// Allocations a second on a busy cluster: so many GPUs are freed and given out again at once.
void run_allocations(benchmark::State& bench, store::Journal* journal) {
  const auto nodes = static_cast<std::size_t>(bench.range(0));
  const auto at_once = static_cast<std::size_t>(bench.range(1));
  World world(nodes, journal);
  for (auto _ : bench) world.one_batch_of_lives(at_once);
  bench.SetItemsProcessed(bench.iterations() * bench.range(1));
}
void allocations(benchmark::State& bench) {
  run_allocations(bench, nullptr);
}
BENCHMARK(allocations)
    ->Args({1'000, 64})
    ->Args({1'000, 1'024})
    ->Args({12'500, 64})
    ->Args({12'500, 1'024})
    ->Unit(benchmark::kMillisecond);

// The same with every event on the disk before it is acknowledged: whole lives, from submission to
// the archive.
void allocations_durable(benchmark::State& bench) {
  const gpu_platform::bench::BenchDirectory directory;
  auto opened = store::SqliteStore::open({.dir = directory.path()});
  CHECK(opened.has_value());
  run_allocations(bench, opened->get());
}
BENCHMARK(allocations_durable)
    ->Args({12'500, 64})
    ->Args({12'500, 1'024})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

void replay(benchmark::State& bench) {
  World world(16);
  for (int i = 0; i < 400; ++i) world.one_batch_of_lives(128);
  std::uint64_t events = 0;
  for (auto _ : bench) {
    State state;
    OwnOutbox outbox;
    const base::Status read =
        world.store().replay({}, [&](const model::EventRecord& record) -> base::Status {
          apply(state, record, outbox);
          outbox.departed.clear();
          outbox.ledger.clear();
          return {};
        });
    if (!read) bench.SkipWithError("the journal cannot be read");
    events += state.seq.value;
  }
  bench.SetItemsProcessed(static_cast<std::int64_t>(events));
}
BENCHMARK(replay)->Unit(benchmark::kMillisecond);

// Returns the resident memory of the process, with any allocator.
std::size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t size = 0;
  std::size_t resident = 0;
  statm >> size >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

// Measures what 100,000 waiting jobs add to the process, journal in memory taken off.
void waiting_memory(benchmark::State& bench) {
  constexpr std::size_t kJobs = 100'000;
  for (auto _ : bench) {
    auto world = std::make_unique<World>(16);
    world->submit(128);
    world->let_time_pass(base::Duration());
    const std::size_t before = resident_bytes();
    for (std::size_t i = 0; i < kJobs; i += 1'000) {
      world->submit(1'000);
      world->step();
    }
    const std::size_t grown = resident_bytes() - before;
    std::size_t journal = 0;
    const base::Status read =
        world->store().replay({}, [&](const model::EventRecord& record) -> base::Status {
          const auto* submitted = std::get_if<model::JobSubmitted>(&record.event);
          if (submitted != nullptr && submitted->job.value > 128) {
            journal += store::encode_batch({&record, 1}).size();
          }
          return {};
        });
    if (!read) bench.SkipWithError("the journal cannot be read");
    bench.counters["bytes_per_job"] = static_cast<double>(grown - journal) / kJobs;
  }
}
BENCHMARK(waiting_memory)->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace gpu_platform::controller
