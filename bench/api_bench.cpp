#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "api/convert/job.h"
#include "api/convert/json_reader.h"
#include "api/convert/json_writer.h"
#include "api/job_reader.h"

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
  base::Result<model::AuditPage> audit(const model::AuditQuery&) const override { return {}; }
  std::string path(const model::Job&, std::uint32_t) const override { return {}; }
  OutputReader reader(const model::Job&, std::uint32_t) const override {
    return {false, [](std::uint64_t, std::size_t) { return OutputPiece(); }};
  }
  std::string container_step(const model::Job&, std::uint32_t) const override { return {}; }

 private:
  std::shared_ptr<const controller::Snapshot> snapshot_;
};

void ListWaitingJobs(benchmark::State& state) {
  JobsOnly jobs(static_cast<std::size_t>(state.range(0)));
  host::UserDirectory users;
  const CoreAccess core{
      .commands = jobs, .snapshots = jobs, .archive = jobs, .outputs = jobs, .users = users};
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

}  // namespace
}  // namespace gpu_platform::api
