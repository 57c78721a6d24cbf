#include "kubernetes/kubeconfig.h"

#include <cstring>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "kubernetes/section.h"
#include "kubernetes/text_file.h"

namespace gpu_platform::kubernetes {
namespace {

using base::Result;
using base::Status;

constexpr std::string_view kExecVersions =
    "client.authentication.k8s.io/v1 or client.authentication.k8s.io/v1beta1";

// The section `kind` of the entry of `list` with that name: clusters[lab].cluster.
Result<Section> entry(const Section& root, const std::string& list, const std::string& kind,
                      const std::string& name) {
  TRY_ASSIGN(const auto entries, root.list(list));
  std::string known;
  for (const Section& one : entries) {
    TRY_ASSIGN(const std::string its_name, one.text("name"));
    if (its_name == name) return one.renamed(fmt::format("{}[{}]", list, name)).section(kind);
    known += (known.empty() ? "" : ", ") + its_name;
  }
  return root.error(list, fmt::format("there is no entry '{}'; there is {}", name,
                                      known.empty() ? "none" : known));
}

// A PEM that stands in the file itself, or in a file that it names. Empty: neither.
Result<std::string> pem(const Section& section, const std::string& key, const std::string& folder) {
  TRY_ASSIGN(std::string text, section.base64(key + "-data"));
  std::string at = key + "-data";
  if (text.empty()) {
    TRY_ASSIGN(const std::string file, section.text(key));
    if (file.empty()) return std::string();
    at = key;
    auto read = read_text_file(below(folder, file));
    if (!read) return section.error(at, read.error().message);
    text = std::move(*read);
  }
  if (text.find("-----BEGIN ") == std::string::npos) {
    return section.error(at, "is not PEM: it has no line \"-----BEGIN …-----\"");
  }
  return text;
}

Status read_cluster(const Section& cluster, const std::string& folder, ClusterAccess& access) {
  TRY_ASSIGN(access.server, cluster.text("server"));
  TRY_ASSIGN(access.tls_server_name, cluster.text("tls-server-name"));
  TRY_ASSIGN(access.skips_tls_verification, cluster.flag("insecure-skip-tls-verify"));
  TRY_ASSIGN(access.proxy_url, cluster.text("proxy-url"));
  TRY_ASSIGN(access.ca_pem, pem(cluster, "certificate-authority", folder));
  const bool is_url = access.server.starts_with("https://") || access.server.starts_with("http://");
  if (!is_url || access.server.find_first_of(" \t\r\n?#@") != std::string::npos) {
    return cluster.error("server", "must be an address such as https://10.0.0.1:6443");
  }
  while (access.server.ends_with('/')) access.server.pop_back();
  if (access.skips_tls_verification && !access.ca_pem.empty()) {
    return cluster.error(
        "insecure-skip-tls-verify",
        "cannot be true together with a certificate-authority: leave one of them out");
  }
  const std::string& proxy = access.proxy_url;
  if (!proxy.empty() && !proxy.starts_with("http://") && !proxy.starts_with("https://") &&
      !proxy.starts_with("socks5://") && !proxy.starts_with("socks5h://")) {
    return cluster.error("proxy-url", "must begin with http://, https:// or socks5://");
  }
  return {};
}

Result<ExecPlugin> read_exec(const Section& exec, const std::string& folder) {
  ExecPlugin plugin;
  TRY_ASSIGN(plugin.api_version, exec.text("apiVersion"));
  TRY_ASSIGN(plugin.command, exec.text("command"));
  TRY_ASSIGN(plugin.args, exec.texts("args"));
  TRY_ASSIGN(plugin.provide_cluster_info, exec.flag("provideClusterInfo"));
  TRY_ASSIGN(plugin.install_hint, exec.text("installHint"));
  TRY_ASSIGN(const auto variables, exec.list("env"));
  for (const Section& variable : variables) {
    TRY_ASSIGN(std::string name, variable.text("name"));
    TRY_ASSIGN(std::string value, variable.text("value"));
    if (name.empty() || name.find('=') != std::string::npos) {
      return variable.error("name", "must be the name of a variable");
    }
    plugin.env.emplace_back(std::move(name), std::move(value));
  }
  if (plugin.api_version != "client.authentication.k8s.io/v1" &&
      plugin.api_version != "client.authentication.k8s.io/v1beta1") {
    return exec.error("apiVersion", fmt::format("must be {}", kExecVersions));
  }
  if (plugin.command.empty()) return exec.error("command", "must name a program");
  TRY_ASSIGN(const std::string mode, exec.text("interactiveMode"));
  if (mode == "Always") {
    return exec.error("interactiveMode",
                      "is Always, but a service has no terminal at which a person could answer");
  }
  // A bare name is looked for in PATH.
  if (plugin.command.find('/') != std::string::npos) {
    plugin.command = below(folder, plugin.command);
  }
  return plugin;
}

Status refuse_old_kinds(const Section& user) {
  if (user.has("auth-provider")) {
    return user.error("auth-provider",
                      "Kubernetes has removed these plugins; use exec with the provider's program");
  }
  for (const char* key : {"username", "password"}) {
    if (!user.has(key)) continue;
    return user.error(
        key,
        "Kubernetes takes no passwords any more; use a token, a client certificate or "
        "exec");
  }
  for (const char* key : {"as", "as-uid", "as-groups", "as-user-extra"}) {
    if (user.has(key)) return user.error(key, "acting as another user is not supported here");
  }
  return {};
}

Result<UserAccess> read_user(const Section& user, const std::string& folder) {
  TRY(refuse_old_kinds(user));
  UserAccess access;
  TRY_ASSIGN(access.token, user.text("token"));
  TRY_ASSIGN(access.token_file, user.text("tokenFile"));
  if (!access.token_file.empty()) access.token_file = below(folder, access.token_file);
  TRY_ASSIGN(access.certificate_pem, pem(user, "client-certificate", folder));
  TRY_ASSIGN(access.key_pem, pem(user, "client-key", folder));
  if (access.certificate_pem.empty() != access.key_pem.empty()) {
    return user.error(access.key_pem.empty() ? "client-key" : "client-certificate",
                      "is missing: a certificate and its key belong together");
  }
  if (user.has("exec")) {
    TRY_ASSIGN(const Section exec, user.section("exec"));
    TRY_ASSIGN(access.exec, read_exec(exec, folder));
  }
  return access;
}

Result<ClusterAccess> read_access(const Section& root, const std::string& path,
                                  const std::string& folder, std::string_view wanted) {
  std::string name(wanted);
  if (name.empty()) {
    TRY_ASSIGN(name, root.text("current-context"));
    if (name.empty()) {
      return root.error("current-context", "is missing; name one of the file's contexts");
    }
  }
  TRY_ASSIGN(const Section context, entry(root, "contexts", "context", name));
  TRY_ASSIGN(const std::string cluster_name, context.text("cluster"));
  TRY_ASSIGN(const std::string user_name, context.text("user"));
  if (cluster_name.empty()) return context.error("cluster", "must name one of the file's clusters");
  ClusterAccess access;
  TRY_ASSIGN(access.namespace_name, context.text("namespace"));
  TRY_ASSIGN(const Section cluster, entry(root, "clusters", "cluster", cluster_name));
  TRY(read_cluster(cluster, folder, access));
  if (!user_name.empty()) {  // kubectl allows a context without one: an anonymous user
    TRY_ASSIGN(const Section user, entry(root, "users", "user", user_name));
    TRY_ASSIGN(access.user, read_user(user, folder));
  }
  access.origin = fmt::format("{}, context {}", path, printable(name));
  return access;
}

Result<std::string> trimmed_file(const std::string& path) {
  TRY_ASSIGN(std::string text, read_text_file(path));
  const std::size_t end = text.find_last_not_of(" \t\r\n");
  text.erase(end == std::string::npos ? 0 : end + 1);
  return text;
}

}  // namespace

Result<ClusterAccess> parse_kubeconfig(std::string_view text, const std::string& path,
                                       const std::string& folder, std::string_view context) {
  TRY_ASSIGN(const Section root, Section::parse(text, path));
  return read_access(root, path, folder, context);
}

Result<ClusterAccess> load_kubeconfig(const std::string& path, std::string_view context) {
  TRY_ASSIGN(const std::string text, read_text_file(path));
  std::error_code ignored;
  const auto whole = std::filesystem::absolute(path, ignored);
  return parse_kubeconfig(text, path, whole.parent_path().string(), context);
}

Result<ClusterAccess> in_cluster_access(const std::string& host, const std::string& port,
                                        const std::string& folder) {
  if (host.empty() || port.empty()) {
    return base::fail(base::ErrorCode::kFailedPrecondition,
                      "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set: this is no "
                      "pod of a Kubernetes cluster; name a kubeconfig file");
  }
  ClusterAccess access;
  const bool is_ipv6 = host.find(':') != std::string::npos && !host.starts_with('[');
  access.server = fmt::format("https://{}:{}", is_ipv6 ? "[" + host + "]" : host, port);
  access.user.token_file = folder + "/token";
  TRY_ASSIGN(access.ca_pem, trimmed_file(folder + "/ca.crt"));
  TRY(trimmed_file(access.user.token_file));  // one that is missing is told now
  // A pod without the file's namespace is possible: the projected volume may leave it out.
  if (auto name = trimmed_file(folder + "/namespace")) access.namespace_name = std::move(*name);
  access.origin = "the service account of this pod";
  return access;
}

}  // namespace gpu_platform::kubernetes
