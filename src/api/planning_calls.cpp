#include "api/calls.h"
#include "sizing/llm_server.h"

// Questions about what would be.

namespace gpu_platform::api {

namespace {

std::uint64_t count_of(base::Bytes bytes) {
  return static_cast<std::uint64_t>(bytes.value());
}

base::Result<sizing::ServerDescription> to_model(const v1::EstimateNeedsRequest& request) {
  const bool has_settings = !request.model().empty() || request.settings_size() > 0;
  if (request.command_size() > 0) {
    if (has_settings) {
      return base::invalid("command",
                           "command: is given instead of model and settings, not beside");
    }
    const std::vector<std::string> command(request.command().begin(), request.command().end());
    return sizing::description_of(command);
  }
  if (!has_settings) {
    return base::invalid("settings",
                         "settings: nothing is said: give model, settings such as tp-size, or the "
                         "server's command");
  }
  sizing::ServerDescription server{request.model(), {}};
  for (const v1::ServerSetting& setting : request.settings()) {
    server.settings.push_back({setting.name(), std::vector<std::string>(setting.values().begin(),
                                                                        setting.values().end())});
  }
  return server;
}

v1::Needs to_proto(const sizing::ServerNeeds& needs) {
  v1::Needs out;
  out.set_gpus(needs.gpus);
  out.set_gpu_memory_bytes(count_of(needs.memory_per_gpu));
  out.set_rule(std::string(to_string(needs.rule)));
  out.set_tensor_parallel(needs.parallelism.tensor);
  out.set_pipeline_parallel(needs.parallelism.pipeline);
  out.set_data_parallel(needs.parallelism.data);
  out.set_context_parallel(needs.parallelism.context);
  out.set_decode_context_parallel(needs.parallelism.decode_context);
  if (needs.parameters) out.set_parameters(*needs.parameters);
  if (needs.parts) {
    out.set_weights_bytes(count_of(needs.parts->weights));
    if (needs.parts->cache) out.set_cache_bytes(count_of(*needs.parts->cache));
    out.set_overhead_bytes(count_of(needs.parts->overhead));
  }
  for (const std::string& note : needs.notes) out.add_notes(note);
  for (const std::string& name : needs.unused) out.add_unused(name);
  return out;
}

}  // namespace

base::Result<v1::Needs> Calls::estimate_needs(const v1::EstimateNeedsRequest& request) {
  TRY_ASSIGN(const sizing::ServerDescription server, to_model(request));
  TRY_ASSIGN(const sizing::ServerNeeds needs, sizing::needs_of(server));
  return to_proto(needs);
}

}  // namespace gpu_platform::api
