#include <memory>

#include "api/convert/gpu_selector.h"
#include "api/convert/job.h"
#include "api/convert/job_change.h"
#include "api/convert/json_reader.h"
#include "api/convert/json_writer.h"
#include "api/convert/reservation.h"
#include "base/check.h"
#include "gpu_platform/v1/cluster.pb.h"
#include "gpu_platform/v1/jobs.pb.h"
#include "gpu_platform/v1/planning.pb.h"
#include "gpu_platform/v1/reservations.pb.h"
#include "gpu_platform/v1/shares.pb.h"
#include "model/codec.h"
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

void convert(const Message& message) {
  const api::Nodes nodes;
  const model::Caller caller{"ann", 1500, false};
  if (const auto* submit = dynamic_cast<const v1::JobSpec*>(&message)) {
    const auto job = api::to_model(*submit, api::Account{"ann", 1500, 1500}, nodes);
    if (job) expect_storable(job->spec);
    (void)api::to_dependencies(submit->dependency());
  } else if (const auto* update = dynamic_cast<const v1::UpdateJobRequest*>(&message)) {
    (void)api::to_model(*update);
  } else if (const auto* act = dynamic_cast<const v1::ActOnJobsRequest*>(&message)) {
    (void)api::to_model(*act, caller);
  } else if (const auto* reservation =
                 dynamic_cast<const v1::CreateReservationRequest*>(&message)) {
    (void)api::to_model(*reservation, nodes);
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
  // What we print of it, we read as the same.
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
