#include <memory>

#include "api/convert/gpu_selector.h"
#include "api/convert/job.h"
#include "api/convert/job_change.h"
#include "api/convert/job_step.h"
#include "api/convert/json_reader.h"
#include "api/convert/json_writer.h"
#include "api/convert/message_limits.h"
#include "api/convert/reservation.h"
#include "api/convert/token.h"
#include "base/check.h"
#include "gpu_platform/v1/cluster.pb.h"
#include "gpu_platform/v1/jobs.pb.h"
#include "gpu_platform/v1/planning.pb.h"
#include "gpu_platform/v1/reservations.pb.h"
#include "gpu_platform/v1/shares.pb.h"
#include "gpu_platform/v1/statistics.pb.h"
#include "model/codec.h"
#include "model/job_spec.h"
#include "target.h"

// JSON to messages, and from there to what the core is asked. The first byte chooses the message.

namespace gpu_platform::fuzz {

namespace {

using google::protobuf::Message;

const std::vector<const Message*>& messages() {
  static const std::vector<const Message*> all = {
      &v1::JobSpec::default_instance(),
      &v1::UpdateJobRequest::default_instance(),
      &v1::ActOnJobsRequest::default_instance(),
      &v1::CreateReservationRequest::default_instance(),
      &v1::ChangeGpusRequest::default_instance(),
      &v1::CheckJobRequest::default_instance(),
      &v1::ModelSizingRequest::default_instance(),
      &v1::ExecInJobRequest::default_instance(),
      &v1::ListJobsRequest::default_instance(),
      &v1::Job::default_instance(),
      &v1::Status::default_instance(),
      &v1::SignalJobRequest::default_instance(),
      &v1::JobStep::default_instance(),
      &v1::CreateTokenRequest::default_instance(),
      &v1::CreatedToken::default_instance(),
  };
  return all;
}

// The journal takes what the door accepts.
void expect_storable(const model::JobSpec& spec) {
  model::Job job;
  job.spec = std::make_shared<const model::JobSpec>(spec);
  std::string bytes;
  model::append_job(job, bytes);
  const auto read = model::decode_job(bytes);
  CHECK(read && *read == job);
}

void expect_storable(const model::JobStep& step) {
  model::Job job;
  job.spec = std::make_shared<const model::JobSpec>();
  job.attempts.emplace_back().steps = model::with_step({}, step);
  std::string bytes;
  model::append_job(job, bytes);
  const auto read = model::decode_job(bytes);
  CHECK(read && *read == job);
}

void convert(const Message& message) {
  const api::Nodes nodes;
  const model::Caller caller{"ann", 1500};
  if (const auto* submit = dynamic_cast<const v1::JobSpec*>(&message)) {
    const auto job = api::to_model(*submit, api::Account{"ann", 1500, 1500}, nodes);
    if (job) expect_storable(job->spec);
    (void)api::to_dependencies(submit->dependency());
  } else if (const auto* update = dynamic_cast<const v1::UpdateJobRequest*>(&message)) {
    (void)api::to_model(*update, nodes);
  } else if (const auto* act = dynamic_cast<const v1::ActOnJobsRequest*>(&message)) {
    (void)api::to_model(*act, caller);
  } else if (const auto* reservation =
                 dynamic_cast<const v1::CreateReservationRequest*>(&message)) {
    (void)api::to_model(*reservation, nodes);
  } else if (const auto* signal = dynamic_cast<const v1::SignalJobRequest*>(&message)) {
    (void)api::to_job_signal(signal->signal());
  } else if (const auto* step = dynamic_cast<const v1::JobStep*>(&message)) {
    const auto report = api::to_model(*step, model::Job(), nodes);
    if (report) expect_storable(report->step);
  } else if (const auto* change = dynamic_cast<const v1::UpdateReservationRequest*>(&message)) {
    (void)api::to_model(*change, nodes);
  } else if (const auto* token = dynamic_cast<const v1::CreateTokenRequest*>(&message)) {
    (void)api::to_model(*token);
  } else if (const auto* gpus = dynamic_cast<const v1::ChangeGpusRequest*>(&message)) {
    for (const auto action : {model::GpuAction::kDrain, model::GpuAction::kTakeOffline}) {
      (void)api::to_model(*gpus, action);
    }
  }
}

}  // namespace

void run(std::string_view input) {
  if (input.empty()) return;
  const auto choice = static_cast<unsigned char>(input.front()) % messages().size();
  const std::unique_ptr<Message> message(messages()[choice]->New());
  const base::Status read = api::read_json(input.substr(1), *message);
  if (!read) {
    CHECK(read.error().code == base::ErrorCode::kInvalidArgument && !read.error().message.empty());
    return;
  }
  // The text that we print reads back as the same.
  const std::string text = api::to_json(*message);
  const std::unique_ptr<Message> again(message->New());
  CHECK(api::read_json(text, *again));
  CHECK(api::to_json(*again) == text);
  if (api::check_limits(*message)) convert(*message);
}

std::vector<std::string> seeds() {
  std::vector<std::string> seeds;
  for (std::size_t i = 0; i < messages().size(); ++i) {
    seeds.push_back(std::string(1, static_cast<char>(i)) + api::to_json(*messages()[i]));
  }
  return seeds;
}

}  // namespace gpu_platform::fuzz
