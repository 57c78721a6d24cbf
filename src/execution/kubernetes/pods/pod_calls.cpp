#include "execution/kubernetes/pods/pod_calls.h"

#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "execution/kubernetes/api_values.h"
#include "execution/kubernetes/pods/ranks.h"
#include "kubernetes/json_reader.h"
#include "os/clock.h"

namespace gpu_platform::execution {

namespace {

using kubernetes::Answer;

std::string reason_of(const Answer& answer) {
  return std::string(text_at(kubernetes::read_json(answer.body, {"reason"}), {"reason"}));
}

std::string uid_of(const Answer& answer) {
  const nlohmann::json object = kubernetes::read_json(answer.body, {"metadata.uid"});
  return std::string(text_at(object, {"metadata", "uid"}));
}

// A server without the feature drops the fields that it does not know, and says nothing.
bool has_allocation(const Answer& answer) {
  return at(kubernetes::read_json(answer.body), {"status", "allocation"}).is_object();
}

}  // namespace

void PodCalls::make(const Call& call) {
  PodAttempts& attempts = parts_.attempts;
  if (call.kind == CallKind::kFetchOutput) {
    return parts_.output.complete(call, [&attempts, id = call.id](const CallAnswer& answer) {
      attempts.answer(id, answer, os::wall_now());
    });
  }
  auto request = request_of(call, context_of(call), parts_.settings);
  if (!request) {
    return attempts.answer(call.id, {.status = 422, .text = request.error().message},
                           os::wall_now());
  }
  parts_.client.send(*std::move(request),
                     [this, &attempts, id = call.id, kind = call.kind](const Answer& answer) {
                       attempts.answer(id, told_by(kind, answer), os::wall_now());
                     });
}

CallContext PodCalls::context_of(const Call& call) const {
  const PodAttempts& attempts = parts_.attempts;
  CallContext context;
  context.order = attempts.order_of(call.attempt);
  context.environment = attempts.environment_of(call.attempt);
  context.output_bytes = parts_.spool.limit();
  context.pod_uid = attempts.pod_uid_of(call.attempt, call.rank);
  if (call.kind != CallKind::kAllocate || context.order == nullptr) return context;
  context.configs = &parts_.configs;
  const Rank rank = ranks_of(*context.order)[call.rank];
  const std::string& node = context.order->nodes[rank.node].node_name;
  for (const LaunchGpu& gpu : rank.gpus) {
    if (auto device = parts_.view.device_of(node, gpu.info.uuid)) {
      context.devices.push_back(*device);
    }
  }
  return context;
}

CallAnswer PodCalls::told_by(CallKind kind, const Answer& answer) {
  const bool is_own = parts_.settings.devices == DeviceMode::kOwned;
  if (is_own && kind == CallKind::kMakeClaim && answer.is_ok()) {
    // The watch may tell of the claim after it is allocated. Webhooks may have configured it.
    parts_.configs.put(DeviceConfigs::Source::kClaim, kubernetes::read_json(answer.body));
  }
  CallAnswer told{.status = answer.status};
  if (kind == CallKind::kAllocate && answer.is_ok() && !has_allocation(answer)) {
    told = {.status = 422, .text = "the API server has dropped the allocation of the claim"};
  } else if (!answer.is_ok()) {
    told.reason = reason_of(answer);
    told.text = kubernetes::error_message_of(answer);
  } else if (kind == CallKind::kMakePod) {
    told.uid = uid_of(answer);
  }
  return told;
}

}  // namespace gpu_platform::execution
