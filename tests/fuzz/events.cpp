#include "base/check.h"
#include "model/codec.h"
#include "model/job_spec.h"
#include "target.h"

// Bytes of the journal and of snapshots. The first byte says of what kind the rest is.

namespace gpu_platform::fuzz {

namespace {

// Written again, what was understood has the same bytes as when it is read once more.
template <class Decode, class Append>
void expect_stable(std::string_view input, const Decode& decode, const Append& append) {
  const auto first = decode(input);
  if (!first) return;
  std::string bytes;
  append(*first, bytes);
  const auto second = decode(bytes);
  CHECK(second);
  std::string again;
  append(*second, again);
  CHECK(again == bytes);
}

using Batch = std::vector<model::EventRecord>;

base::Result<Batch> decode_batch(std::string_view bytes) {
  Batch batch;
  TRY(model::for_each_record(bytes, [&](const model::EventRecord& record) -> base::Status {
    batch.push_back(record);
    return {};
  }));
  return batch;
}

void append_batch(const Batch& batch, std::string& out) {
  for (const model::EventRecord& record : batch) model::append_record(record, out);
}

model::EventRecord record_of(model::Event event) {
  model::EventRecord record;
  record.seq = model::EventSeq(7);
  record.at = base::Instant(1'700'000'000'000'000'000);
  record.event = std::move(event);
  return record;
}

}  // namespace

void run(std::string_view input) {
  if (input.empty()) return;
  const std::string_view bytes = input.substr(1);
  switch (input.front()) {
    case 'j':
      return expect_stable(bytes, model::decode_job, model::append_job);
    case 'n':
      return expect_stable(bytes, model::decode_node, model::append_node);
    case 'a':
      return expect_stable(bytes, model::decode_array, model::append_array);
    case 'p':
      return expect_stable(bytes, model::decode_policy, model::append_policy);
    case 'c':
      return expect_stable(bytes, model::decode_preemption_hold, model::append_preemption_hold);
    case 'w':
      return expect_stable(bytes, model::decode_reservation, model::append_reservation);
    case 't':
      return expect_stable(bytes, model::decode_token, model::append_token);
    case 'm':
      return expect_stable(bytes, model::decode_run_time_team, model::append_run_time_team);
    default:
      return expect_stable(bytes, decode_batch, append_batch);
  }
}

std::vector<std::string> seeds() {
  auto spec = std::make_shared<model::JobSpec>();
  spec->name = "train";
  spec->user = "ann";
  spec->command = {"/bin/true", "x"};
  spec->labels = {{"model", "m1"}};
  const model::AttemptId attempt{model::JobId(3), 1};
  std::string batch = "e";
  model::append_record(record_of(model::JobSubmitted{model::JobId(3), spec}), batch);
  model::append_record(record_of(model::AttemptStarted{attempt, 1003, base::Instant(5)}), batch);
  model::append_record(record_of(model::AttemptEnded{
                           attempt, base::Instant(6), {.code = std::uint8_t{0}}, {}, "", {}}),
                       batch);
  model::append_record(record_of(model::ReservationChanged{{}, "root"}), batch);
  model::append_record(record_of(model::TokenCreated{}), batch);
  model::append_record(record_of(model::TokenRevoked{model::TokenId(4), "laptop", {}, ""}), batch);
  model::append_record(record_of(model::TokenUsed{model::TokenId(4), base::Instant(7)}), batch);
  model::append_record(record_of(model::TeamSet{{.name = "vision"}}), batch);
  model::append_record(record_of(model::TeamRemoved{"vision", "root"}), batch);
  model::Job job;
  job.id = model::JobId(3);
  job.spec = spec;
  job.attempts.push_back({.number = 1, .exit = {.code = std::uint8_t{0}}});
  model::Node node;
  node.name = "n1";
  node.gpus.resize(2);
  node.gpus[0].info.uuid = "GPU-1";
  std::vector<std::string> seeds{batch, "j", "n", "a", "p", "c", "w", "t", "m"};
  model::append_job(job, seeds[1]);
  model::append_node(node, seeds[2]);
  model::append_array({}, seeds[3]);
  model::append_policy({}, seeds[4]);
  model::append_preemption_hold({}, seeds[5]);
  model::append_reservation({}, seeds[6]);
  model::append_token({.id = model::TokenId(4), .name = "laptop", .user = "ann"}, seeds[7]);
  model::append_run_time_team({.name = "vision", .members = {{"ann", 2}}}, seeds[8]);
  return seeds;
}

}  // namespace gpu_platform::fuzz
