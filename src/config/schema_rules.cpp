#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "config/listen_address.h"
#include "config/schema.h"

// The rules that tie several keys together.

namespace gpu_platform::config {

namespace {

using C = Configuration;

constexpr bool has_kubernetes(const C& c) {
  return c.kubernetes_in_cluster || !c.kubernetes_kubeconfig.path.empty();
}

bool is_letter_or_digit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_cluster_label(std::string_view text) {
  constexpr std::size_t kMaxBytes = 24;
  const auto is_plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !text.empty() && text.size() <= kMaxBytes && is_plain(text.front()) &&
         is_plain(text.back()) &&
         std::ranges::all_of(text, [&](char c) { return is_plain(c) || c == '-'; });
}

bool is_namespace(std::string_view text) {
  constexpr std::size_t kMaxBytes = 63;
  const auto is_plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !text.empty() && text.size() <= kMaxBytes && is_plain(text.front()) &&
         is_plain(text.back()) &&
         std::ranges::all_of(text, [&](char c) { return is_plain(c) || c == '-'; });
}

// A path without a query, in which nothing must be written in percents.
bool is_plain_path(std::string_view text) {
  const auto is_allowed = [](char c) {
    return is_letter_or_digit(c) || c == '/' || c == '.' || c == '_' || c == '-' || c == '~';
  };
  return text.starts_with('/') && text.find("..") == std::string_view::npos &&
         std::ranges::all_of(text, is_allowed);
}

bool is_annotation_pattern(std::string_view text) {
  const auto is_allowed = [](char c) {
    return is_letter_or_digit(c) || c == '.' || c == '_' || c == '-' || c == '/' || c == '*';
  };
  return is_letter_or_digit(text.front()) && std::ranges::all_of(text, is_allowed);
}

bool is_currency(std::string_view text) {
  const auto is_capital = [](char c) { return c >= 'A' && c <= 'Z'; };
  return text.size() == 3 && std::ranges::all_of(text, is_capital);
}

constexpr bool has_tls(const C& c) {
  return !c.tls_certificate.path.empty() && !c.tls_key.path.empty();
}

// Returns whether a file sets the key. A default gives way to other keys.
bool sets(const C& configuration, std::string_view key) {
  return std::ranges::find(configuration.places, key, &KeyPlace::key) != configuration.places.end();
}

bool are_addresses(const WordList& list) {
  return std::ranges::all_of(
      list.words, [](const std::string& word) { return parse_listen_address(word).has_value(); });
}

bool are_loopback(const WordList& list) {
  return std::ranges::all_of(list.words, [](const std::string& word) {
    const auto address = parse_listen_address(word);
    return address && address->is_loopback;
  });
}

bool are_algorithms(const WordList& list) {
  static constexpr std::array<std::string_view, 10> kKnown = {
      "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"};
  return !list.words.empty() && std::ranges::all_of(list.words, [](const std::string& word) {
    return std::ranges::find(kKnown, word) != kKnown.end();
  });
}

const std::array kRules = {
    Rule{"api.rest.address", [](const C& c) { return are_addresses(c.rest_addresses); },
         "must be ADDRESS:PORT with a numeric address (0.0.0.0:8443, 127.0.0.1:8080, "
         "\"[::]:8443\"). Several are separated by blanks"},
    Rule{"api.rest.address",
         [](const C& c) { return has_tls(c) || are_loopback(c.rest_addresses); },
         "without api.tls.certificate and api.tls.key only loopback addresses are allowed: "
         "127.0.0.1:PORT or \"[::1]:PORT\""},
    Rule{"api.grpc.address", [](const C& c) { return are_addresses(c.grpc_addresses); },
         "must be ADDRESS:PORT with a numeric address (0.0.0.0:8444, 127.0.0.1:8081, "
         "\"[::]:8444\"). Several are separated by blanks"},
    Rule{"api.grpc.address",
         [](const C& c) { return has_tls(c) || are_loopback(c.grpc_addresses); },
         "without api.tls.certificate and api.tls.key only loopback addresses are allowed: "
         "127.0.0.1:PORT or \"[::1]:PORT\""},
    Rule{"api.tls.key",
         [](const C& c) { return c.tls_certificate.path.empty() == c.tls_key.path.empty(); },
         "api.tls.certificate and api.tls.key belong together: set both or none"},
    Rule{"api.tls.client_ca", [](const C& c) { return c.tls_client_ca.path.empty() || has_tls(c); },
         "needs api.tls.certificate and api.tls.key: client certificates are accepted only over "
         "TLS"},
    Rule{"access.openid.keys",
         [](const C& c) {
           const bool has_keys = !c.openid_keys.path.empty();
           return has_keys == !c.openid_issuer.text.empty() &&
                  has_keys == !c.openid_audience.text.empty();
         },
         "access.openid.issuer, access.openid.audience and access.openid.keys belong together: set "
         "all or none"},
    Rule{"engines.local", [](const C& c) { return c.local_engine || has_kubernetes(c); },
         "is false, so a cluster must be set: engines.kubernetes.kubeconfig or "
         "engines.kubernetes.in_cluster"},
    Rule{
        "engines.kubernetes.in_cluster",
        [](const C& c) { return !c.kubernetes_in_cluster || c.kubernetes_kubeconfig.path.empty(); },
        "and engines.kubernetes.kubeconfig exclude each other: set one of the two"},
    Rule{"engines.kubernetes.cluster",
         [](const C& c) { return is_cluster_label(c.kubernetes_cluster.text); },
         "must be 1 to 24 lower-case letters, digits and '-', with a letter or digit at both ends"},
    Rule{"engines.kubernetes.node_selector",
         [](const C& c) {
           return std::ranges::all_of(
               c.kubernetes_node_selector.words,
               [](const std::string& word) { return word.find('=', 1) != std::string::npos; });
         },
         "must be LABEL=VALUE, several separated by blanks"},
    Rule{"engines.kubernetes.readings",
         [](const C& c) {
           return c.kubernetes_readings == KubernetesReadings::kNone || has_kubernetes(c);
         },
         "needs a cluster: set engines.kubernetes.kubeconfig or engines.kubernetes.in_cluster"},
    Rule{"engines.kubernetes.exporter.namespace",
         [](const C& c) { return is_namespace(c.kubernetes_exporter_namespace.text); },
         "must be the name of a namespace"},
    Rule{"engines.kubernetes.exporter.path",
         [](const C& c) { return is_plain_path(c.kubernetes_exporter_path.text); },
         "must begin with '/' and have only letters, digits and '/', '.', '_', '-', '~'"},
    Rule{
        "engines.kubernetes.annotations",
        [](const C& c) {
          return std::ranges::all_of(c.kubernetes_annotations.words, is_annotation_pattern);
        },
        "must be keys of annotations, separated by blanks. '*' stands for any text, but not at the "
        "beginning of a key"},
    Rule{"access.openid.algorithms", [](const C& c) { return are_algorithms(c.openid_algorithms); },
         "the algorithms are RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA"},
    Rule{"access.openid.user_claim", [](const C& c) { return !c.openid_user_claim.text.empty(); },
         "must not be empty"},
    Rule{"accounting.currency", [](const C& c) { return is_currency(c.currency.text); },
         "must be three capital letters, such as EUR"},
    Rule{"fault_tolerance.max_retry_backoff",
         [](const C& c) { return c.policy.max_retry_backoff >= c.policy.retry_backoff; },
         "must not be less than fault_tolerance.retry_backoff"},
    Rule{"scheduling.default_time_limit",
         [](const C& c) {
           return !sets(c, "scheduling.default_time_limit") ||
                  c.policy.default_time_limit <= c.policy.max_time_limit;
         },
         "must be at most policies.max_job_duration_hours"},
    Rule{"scheduling.priority_points.critical",
         [](const C& c) { return c.policy.priority_points[0] > c.policy.priority_points[1]; },
         "must be more than scheduling.priority_points.high"},
    Rule{"scheduling.priority_points.high",
         [](const C& c) { return c.policy.priority_points[1] > c.policy.priority_points[2]; },
         "must be more than scheduling.priority_points.medium"},
    Rule{"scheduling.priority_points.medium",
         [](const C& c) { return c.policy.priority_points[2] > c.policy.priority_points[3]; },
         "must be more than scheduling.priority_points.low"},
    Rule{"scheduling.weights.age",
         [](const C& c) {
           const model::OrderWeights& weights = c.policy.weights;
           return weights.age + weights.priority + weights.fair_share + weights.size > 0;
         },
         "the weights are all 0: at least one of age, priority, fair_share and size must be more "
         "than 0"},
};

}  // namespace

std::span<const Rule> rules() {
  return kRules;
}

}  // namespace gpu_platform::config
