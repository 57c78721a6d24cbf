#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "api/calls.h"
#include "api/convert/job.h"
#include "api/convert/json_reader.h"
#include "api/convert/json_writer.h"
#include "api/job_reader.h"
#include "api/queue_writer.h"
#include "model/job_spec.h"

// This program measures what the door costs: a submission's way from JSON to the model, an answer's
// way back, a long list.

namespace gpu_platform::api {
namespace {

// As the command line sends it: a training command with the environment of a login shell.
std::string submission(int variables) {
  std::string text =
      R"({"command":["python3","train.py","--epochs","90","--batch-size","256"],"gpus":8,)"
      R"("gpu_types":["H100"],"name":"resnet","team":"vision","priority":"high","workdir":"/home/ada/work",)"
      R"("time_limit_seconds":7200,"labels":{"run":"7","model":"resnet50"},"request_id":"cli-0123456789abcdef",)"
      R"("umask":18,"environment":{)";
  for (int i = 0; i < variables; ++i) {
    text +=
        fmt::format(R"({}"VARIABLE_{}":"/usr/local/some/value/of/{}")", i == 0 ? "" : ",", i, i);
  }
  return text + "}}";
}

void ReadSubmission(benchmark::State& state) {
  const std::string text = submission(static_cast<int>(state.range(0)));
  const Nodes nodes;
  for (auto _ : state) {
    v1::JobSpec request;
    const base::Status read = read_json(text, request);
    auto command = to_model(request, Account{"ada", 1000, 1000}, nodes);
    if (!read || !command) state.SkipWithError("refused");
    benchmark::DoNotOptimize(command);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
}
BENCHMARK(ReadSubmission)->Arg(0)->Arg(10)->Arg(30);

model::Job waiting_job(std::uint64_t id, std::shared_ptr<const model::JobSpec> spec) {
  model::Job job;
  job.id = model::JobId(id);
  job.spec = std::move(spec);
  job.submitted_at = job.eligible_at = base::Instant(1'750'000'000'000'000'000);
  return job;
}

std::shared_ptr<const model::JobSpec> a_spec() {
  v1::JobSpec request;
  (void)read_json(submission(0), request);
  return std::make_shared<const model::JobSpec>(
      to_model(request, Account{"ada", 1000, 1000}, Nodes())->spec);
}

void WriteJob(benchmark::State& state) {
  const model::Job job = waiting_job(42, a_spec());
  const Nodes nodes;
  v1::Job message;
  std::string out;
  for (auto _ : state) {
    message.Clear();
    out.clear();
    to_proto(job, nodes, message);
    append_json(out, message);
    benchmark::DoNotOptimize(out.data());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(out.size()));
}
BENCHMARK(WriteJob);

// A core that has jobs and nothing else.
class JobsOnly final : public CommandSink,
                       public SnapshotSource,
                       public store::Archive,
                       public OutputSource {
 public:
  explicit JobsOnly(std::size_t count) {
    auto snapshot = std::make_shared<controller::Snapshot>();
    const auto spec = a_spec();
    for (std::uint64_t id = 1; id <= count; ++id) snapshot->jobs.put(id, waiting_job(id, spec));
    snapshot->policy = std::make_shared<const model::Policy>();
    snapshot_ = std::move(snapshot);
  }
  explicit JobsOnly(std::shared_ptr<const controller::Snapshot> snapshot)
      : snapshot_(std::move(snapshot)) {}
  // As after an event that has changed nothing of what is there.
  void publish_again() {
    auto next = std::make_shared<controller::Snapshot>(*snapshot_);
    next->seq = model::EventSeq(snapshot_->seq.value + 1);
    snapshot_ = std::move(next);
  }
  void submit(model::Command, Done) override {}
  std::shared_ptr<const controller::Snapshot> snapshot() const override { return snapshot_; }
  base::Result<std::optional<model::Job>> find(model::JobId) const override { return std::nullopt; }
  base::Result<std::vector<model::Job>> list(const store::ArchiveQuery&) const override {
    return std::vector<model::Job>();
  }
  base::Result<std::vector<store::JobEnding>> endings(const store::JobEnding&,
                                                      std::size_t) const override {
    return {};
  }
  base::Result<std::uint64_t> job_count() const override { return 0; }
  base::Result<base::Instant> begins_at() const override { return base::Instant(); }
  base::Result<model::AuditPage> audit(const model::AuditQuery&) const override { return {}; }
  std::string path(const model::Job&, std::uint32_t) const override { return {}; }
  OutputReader reader(const model::Job&, std::uint32_t) const override {
    return {false, [](std::uint64_t, std::size_t) { return OutputPiece(); }};
  }
  std::string container_step(const model::Job&, std::uint32_t) const override { return {}; }

 private:
  std::shared_ptr<const controller::Snapshot> snapshot_;
};

CoreAccess access_to(JobsOnly& jobs, host::UserDirectory& users) {
  return {.commands = jobs, .snapshots = jobs, .archive = jobs, .outputs = jobs, .users = users};
}

void ListWaitingJobs(benchmark::State& state) {
  JobsOnly jobs(static_cast<std::size_t>(state.range(0)));
  host::UserDirectory users;
  const CoreAccess core = access_to(jobs, users);
  const JobReader reader(core);
  const model::Caller caller{"ada", 1000};
  std::size_t bytes = 0;
  for (auto _ : state) {
    ListFilter filter;
    filter.limit = 10'000;
    JobListWriter writer(reader, caller, filter);
    if (!writer.begin()) state.SkipWithError("refused");
    bytes = 0;
    bool more = true;
    while (more) {
      std::string piece;
      more = *writer.append(piece, 64 * 1024);
      bytes += piece.size();
    }
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
}
BENCHMARK(ListWaitingJobs)->Arg(10'000)->Unit(benchmark::kMillisecond);

model::Node dgx(std::uint64_t id) {
  model::Node node;
  node.id = model::NodeId(id);
  node.name = fmt::format("node-{:05}", id);
  node.cpus = 224;
  node.memory = base::kGiB * 2048;
  for (std::uint32_t i = 0; i < 8; ++i) {
    model::Gpu gpu;
    gpu.info.uuid = fmt::format("GPU-{}-{}", id, i);
    gpu.info.type = "H100-80GB";
    gpu.info.memory = base::kGiB * 80;
    gpu.info.numa_node = static_cast<std::int32_t>(i / 4);
    node.gpus.push_back(std::move(gpu));
  }
  return node;
}

// 10,000 waiting jobs of 32 sizes.
std::shared_ptr<const controller::Snapshot> full_queue(std::uint64_t nodes) {
  constexpr std::uint64_t kWaiting = 10'000;
  auto snapshot = std::make_shared<controller::Snapshot>();
  std::vector<std::shared_ptr<const model::JobSpec>> sizes;
  for (std::uint32_t i = 0; i < 32; ++i) {
    auto spec = std::make_shared<model::JobSpec>(*a_spec());
    spec->request.gpus = 1 + i % 8;
    spec->request.cpus = 8 + i / 8;
    sizes.push_back(std::move(spec));
  }
  for (std::uint64_t id = 1; id <= kWaiting; ++id) {
    snapshot->jobs.put(id, waiting_job(id, sizes[id % sizes.size()]));
  }
  for (std::uint64_t id = 1; id <= nodes; ++id) snapshot->nodes.put(id, dgx(id));
  snapshot->seq = model::EventSeq(1);
  snapshot->counts.queued = kWaiting;
  snapshot->policy = std::make_shared<const model::Policy>();
  snapshot->order = scheduling::OrderBasis::of(*snapshot->policy);
  return snapshot;
}

std::size_t ask_for_queue(const JobReader& reader, const model::Caller& caller) {
  v1::GetQueueRequest request;
  request.set_limit(100);
  auto writer = QueueWriter::open(reader, caller, request, 1 << 20);
  std::string out;
  while (writer->append(out, 64 * 1024)) {
  }
  return out.size();
}

std::size_t ask_for_jobs(const JobReader& reader, const model::Caller& caller) {
  ListFilter filter;
  filter.limit = 100;
  JobListWriter writer(reader, caller, filter);
  (void)writer.begin();
  std::string out;
  while (*writer.append(out, 64 * 1024)) {
  }
  return out.size();
}

// 20 clients ask for the first page of the queue and of the jobs. `shared`: their answers share one
// set of books; else each makes its own. `changing`: a new snapshot is there before each answer.
void TwentyClients(benchmark::State& state) {
  const bool is_shared = state.range(1) != 0;
  const bool is_changing = state.range(2) != 0;
  JobsOnly jobs(full_queue(static_cast<std::uint64_t>(state.range(0))));
  host::UserDirectory users;
  const CoreAccess core = access_to(jobs, users);
  const model::Caller caller{"ada", 1000};
  std::size_t bytes = 0;
  for (auto _ : state) {
    bytes = 0;
    std::optional<JobReader> reader(core);
    const auto before_an_answer = [&] {
      if (is_changing) jobs.publish_again();
      if (!is_shared) reader.emplace(core);
    };
    for (int client = 0; client < 20; ++client) {
      before_an_answer();
      bytes += ask_for_queue(*reader, caller);
      before_an_answer();
      bytes += ask_for_jobs(*reader, caller);
    }
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
}
BENCHMARK(TwentyClients)
    ->ArgNames({"nodes", "shared", "changing"})
    ->ArgsProduct({{16, 1'250, 12'500}, {0, 1}, {0, 1}})
    ->Unit(benchmark::kMillisecond);

// Readings of every GPU, as an H100 gives them.
class EveryReading final : public GpuReadingSource {
 public:
  EveryReading() {
    auto reading = std::make_shared<model::GpuReading>();
    reading->slow.emplace();
    std::uint32_t n = 0;
    const auto fill = [&](const auto&, auto& member) {
      using Value = typename std::remove_cvref_t<decltype(member)>::value_type;
      member = static_cast<Value>(++n);
    };
    model::for_each_metric_of(static_cast<model::GpuMetrics&>(*reading), fill);
    model::for_each_metric_of(*reading->slow, fill);
    reading_ = std::move(reading);
  }
  std::shared_ptr<const model::GpuReading> latest(std::string_view) const override {
    return reading_;
  }
  void ask_for_newer_than(std::chrono::milliseconds) override {}

 private:
  std::shared_ptr<const model::GpuReading> reading_;
};

// The page of GET /metrics of so many nodes with eight GPUs.
void WriteMetrics(benchmark::State& state) {
  auto snapshot = std::make_shared<controller::Snapshot>(
      *full_queue(static_cast<std::uint64_t>(state.range(0))));
  JobsOnly jobs(snapshot);
  host::UserDirectory users;
  EveryReading readings;
  CoreAccess core = access_to(jobs, users);
  core.readings = &readings;
  const Calls calls(core, {.version = "1"});
  std::size_t bytes = 0;
  for (auto _ : state) bytes = calls.of<StatisticsCalls>().metrics({"ada", 1000}).size();
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
}
BENCHMARK(WriteMetrics)->Arg(1)->Arg(125)->Arg(1'250)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace gpu_platform::api
