#include "api/convert/model_sizing.h"

#include <string>
#include <vector>

#include "sizing/llm_server.h"

namespace gpu_platform::api {

namespace {

std::uint64_t number_of(base::Bytes bytes) {
  return static_cast<std::uint64_t>(bytes.value());
}

base::Result<sizing::ServerDescription> description_in(const v1::ModelSizingRequest& request) {
  const bool has_settings = !request.model().empty() || request.settings_size() > 0;
  if (request.command_size() > 0) {
    if (has_settings) {
      return base::invalid("command", "command: give it, or model and settings, but not both");
    }
    const std::vector<std::string> command(request.command().begin(), request.command().end());
    return sizing::description_of(command);
  }
  if (!has_settings) {
    return base::invalid("settings",
                         "settings: nothing is given; give model, settings such as tp-size, or the "
                         "server's command");
  }
  sizing::ServerDescription server{request.model(), {}};
  for (const v1::ServerSetting& setting : request.settings()) {
    server.settings.push_back({setting.name(), std::vector<std::string>(setting.values().begin(),
                                                                        setting.values().end())});
  }
  return server;
}

void put_holding(const sizing::Holding& holding, v1::GpuHolding& out) {
  out.set_gpu_type(holding.kind.name);
  out.set_gpu_memory_bytes(number_of(holding.kind.memory));
  out.set_gpus_per_node(holding.kind.on_a_node);
  out.set_nodes(holding.nodes);
  out.set_fits(holding.fits);
  if (holding.tokens) out.set_tokens(*holding.tokens);
  if (holding.contexts) out.set_contexts(*holding.contexts);
  out.set_gpus(holding.gpus);
  out.set_tensor_parallel(holding.parallelism.tensor);
  out.set_pipeline_parallel(holding.parallelism.pipeline);
}

v1::Needs message_of(const sizing::ServerNeeds& needs) {
  v1::Needs out;
  out.set_gpus(needs.gpus);
  out.set_engine(std::string(to_string(needs.engine)));
  if (needs.memory_per_gpu) out.set_gpu_memory_bytes(number_of(*needs.memory_per_gpu));
  out.set_rule(std::string(to_string(needs.rule)));
  out.set_tensor_parallel(needs.parallelism.tensor);
  out.set_pipeline_parallel(needs.parallelism.pipeline);
  out.set_data_parallel(needs.parallelism.data);
  out.set_context_parallel(needs.parallelism.context);
  out.set_decode_context_parallel(needs.parallelism.decode_context);
  out.set_nodes(needs.nodes);
  if (needs.memory_to_ask_for) out.set_ask_gpu_memory_bytes(number_of(*needs.memory_to_ask_for));
  out.set_model(needs.known_as);
  if (needs.parameters) out.set_parameters(*needs.parameters);
  if (needs.active_parameters) out.set_active_parameters(*needs.active_parameters);
  if (needs.precision) out.set_weight_bits(needs.precision->centibits / 100.0);
  if (needs.context) out.set_context_tokens(*needs.context);
  if (needs.sequences) out.set_sequences(*needs.sequences);
  if (needs.parts) {
    out.set_weights_bytes(number_of(needs.parts->weights));
    if (needs.parts->cache) out.set_cache_bytes(number_of(*needs.parts->cache));
    out.set_overhead_bytes(number_of(needs.parts->overhead));
  }
  for (const sizing::Holding& holding : needs.holdings) put_holding(holding, *out.add_holdings());
  for (const std::string& note : needs.notes) out.add_notes(note);
  for (const std::string& name : needs.unused) out.add_unused(name);
  return out;
}

}  // namespace

base::Result<v1::Needs> size_model_server(const v1::ModelSizingRequest& request,
                                          std::span<const sizing::GpuKind> kinds) {
  TRY_ASSIGN(const sizing::ServerDescription server, description_in(request));
  TRY_ASSIGN(const sizing::ServerNeeds needs, sizing::needs_of(server, kinds));
  return message_of(needs);
}

}  // namespace gpu_platform::api
