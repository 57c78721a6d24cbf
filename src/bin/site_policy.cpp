#include "bin/site_policy.h"

#include <string>

#include <fmt/format.h>

#include "health/policy_rules.h"

namespace gpu_platform::bin {

bool has_kubernetes(const config::Configuration& configuration) {
  return configuration.kubernetes_in_cluster || !configuration.kubernetes_kubeconfig.path.empty();
}

model::Policy policy_of(const config::Configuration& configuration, std::uint32_t own_uid) {
  model::Policy policy = configuration.policy;
  policy.allow_root_jobs = configuration.root_jobs == config::RootJobs::kAllow;
  policy.can_notify = !configuration.notify_command.empty();
  policy.has_containers = !configuration.containers.path.empty();
  policy.set_engine(model::EngineKind::kProcess, configuration.local_engine);
  policy.set_engine(model::EngineKind::kKubernetes, has_kubernetes(configuration));
  policy.pod_annotations = configuration.kubernetes_annotations.words;
  policy.own_uid = own_uid;
  return policy;
}

std::optional<config::Problem> problem_in_rules(const config::Configuration& configuration) {
  const auto rules = health::checked_rules(configuration.policy);
  if (rules) return std::nullopt;
  const std::string& field = rules.error().field;  // "health.rules[2].rule"
  const std::string entry = field.substr(0, field.find(']') + 1);
  config::Problem problem =
      config::problem_at(entry, fmt::format("{}: {}", field, rules.error().message), configuration);
  problem.key = field;
  return problem;
}

api::BudgetLimits budgets_of(const config::Configuration& c) {
  return {.connections = c.api_connections,
          .connections_per_user = c.api_connections_per_user,
          .channels = c.api_channels,
          .channels_per_user = c.api_channels_per_user,
          .streams_per_user = c.api_streams_per_user,
          .body_bytes = c.api_body_bytes,
          .body_bytes_per_user = c.api_body_bytes_per_user,
          .answer_bytes = c.api_answer_bytes,
          .answer_bytes_per_user = c.api_answer_bytes_per_user,
          .percent_for_root = c.api_percent_for_root};
}

api::TrustedSigners signers_of(const config::Configuration& configuration) {
  const bool has_issuer = !configuration.openid_keys.path.empty();
  return {!configuration.tls_client_ca.path.empty(),
          has_issuer ? configuration.openid_issuer.text : std::string(),
          configuration.openid_user_claim.text};
}

}  // namespace gpu_platform::bin
