#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

// How a cluster is reached and with what credentials: a kubeconfig file, or what a pod finds in its
// service account. Values; no file is read here but by load_*.

namespace gpu_platform::kubernetes {

// A program that prints an ExecCredential (client.authentication.k8s.io/v1). It is run without a
// shell.
struct ExecPlugin {
  std::string api_version;
  std::string command;
  std::vector<std::string> args;
  std::vector<std::pair<std::string, std::string>> env;
  bool provide_cluster_info = false;
  std::string install_hint;
};

// The first of token_file, token and exec that is there is used, as kubectl does. A certificate is
// shown beside any of them, unless exec brings one of its own.
struct UserAccess {
  std::string token;
  std::string token_file;  // read again every minute and after a 401
  std::string certificate_pem;
  std::string key_pem;
  ExecPlugin exec;
};

struct ClusterAccess {
  std::string server;  // "https://10.0.0.1:6443"
  std::string ca_pem;  // empty: the host's authorities
  std::string tls_server_name;
  bool skips_tls_verification = false;
  std::string proxy_url;
  UserAccess user;
  std::string namespace_name;  // the context's; empty: none named
  std::string origin;          // for messages: "/etc/kubeconfig, context lab"
};

// `context`: empty for the file's current one. Files that it names are relative to its folder.
// Errors name the file, the key and what is expected, as in
// "/etc/kubeconfig: users[ann].user.client-key-data: is not base64".
base::Result<ClusterAccess> load_kubeconfig(const std::string& path, std::string_view context);
// The same from a text. `folder`: where relative names begin.
base::Result<ClusterAccess> parse_kubeconfig(std::string_view text, const std::string& path,
                                             const std::string& folder, std::string_view context);
// From KUBERNETES_SERVICE_HOST and _PORT and the files of a service account below `folder`.
base::Result<ClusterAccess> in_cluster_access(
    const std::string& host, const std::string& port,
    const std::string& folder = "/var/run/secrets/kubernetes.io/serviceaccount");

}  // namespace gpu_platform::kubernetes
