#include "kubernetes/kubeconfig.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "kubernetes/folder_fixture.h"

namespace gpu_platform::kubernetes {
namespace {

// "-----BEGIN X-----" in base64.
constexpr std::string_view kPem64 = "LS0tLS1CRUdJTiBYLS0tLS0K";
constexpr std::string_view kPem = "-----BEGIN X-----\n";

// A file with one context; `cluster` and `user` are flow mappings.
std::string config(std::string_view cluster, std::string_view user) {
  return fmt::format(
      "apiVersion: v1\nkind: Config\ncurrent-context: lab\n"
      "contexts: [{{name: lab, context: {{cluster: c, user: ann, namespace: gpus}}}}]\n"
      "clusters: [{{name: c, cluster: {}}}]\nusers: [{{name: ann, user: {}}}]\n",
      cluster, user);
}

base::Result<ClusterAccess> parse(std::string_view text, std::string_view context = {}) {
  return parse_kubeconfig(text, "f", "/etc/k", context);
}

std::string error_of(std::string_view text, std::string_view context = {}) {
  const auto access = parse(text, context);
  return access ? "" : access.error().message;
}

std::string error_of_user(std::string_view user) {
  return error_of(config("{server: 'https://h:1'}", user));
}

std::string error_of_cluster(std::string_view cluster) {
  return error_of(config(cluster, "{}"));
}

TEST(Kubeconfig, IsReadWithClusterUserAndNamespace) {
  const auto access = parse(config(
      fmt::format("{{server: 'https://h:1/', certificate-authority-data: {}, tls-server-name: api, "
                  "proxy-url: 'socks5://p:1'}}",
                  kPem64),
      fmt::format("{{token: abc, client-certificate-data: {0}, client-key-data: {0}}}", kPem64)));
  ASSERT_TRUE(access.has_value()) << access.error().message;
  EXPECT_EQ(access->server, "https://h:1");
  EXPECT_EQ(access->ca_pem, kPem);
  EXPECT_EQ(access->tls_server_name, "api");
  EXPECT_EQ(access->proxy_url, "socks5://p:1");
  EXPECT_EQ(access->user.token, "abc");
  EXPECT_EQ(access->user.certificate_pem, kPem);
  EXPECT_EQ(access->user.key_pem, kPem);
  EXPECT_EQ(access->namespace_name, "gpus");
  EXPECT_EQ(access->origin, "f, context lab");
}

TEST(Kubeconfig, TheExecPluginIsReadWhole) {
  const auto access = parse(config("{server: 'https://h:1'}", R"({exec: {
    apiVersion: client.authentication.k8s.io/v1beta1, command: bin/login, args: [a, "b c"],
    env: [{name: N, value: v}], provideClusterInfo: true, installHint: get it,
    interactiveMode: IfAvailable}})"));
  ASSERT_TRUE(access.has_value()) << access.error().message;
  const ExecPlugin& exec = access->user.exec;
  EXPECT_EQ(exec.command, "/etc/k/bin/login");
  EXPECT_EQ(exec.args, (std::vector<std::string>{"a", "b c"}));
  EXPECT_EQ(exec.env, (decltype(exec.env){{"N", "v"}}));
  EXPECT_TRUE(exec.provide_cluster_info);
  EXPECT_EQ(exec.install_hint, "get it");
}

TEST(Kubeconfig, ABareCommandIsLeftToPath) {
  const auto access =
      parse(config("{server: 'https://h:1'}",
                   "{exec: {apiVersion: client.authentication.k8s.io/v1, command: aws}}"));
  ASSERT_TRUE(access.has_value());
  EXPECT_EQ(access->user.exec.command, "aws");
}

TEST(Kubeconfig, FilesAreRelativeToItsFolder) {
  const Folder folder;
  std::filesystem::create_directory(folder.path() + "/pki");
  folder.write("pki/ca.pem", kPem);
  const std::string file = folder.write(
      "config",
      config("{server: 'https://h:1', certificate-authority: pki/ca.pem}", "{tokenFile: token}"));
  const auto access = load_kubeconfig(file, "lab");
  ASSERT_TRUE(access.has_value()) << access.error().message;
  EXPECT_EQ(access->ca_pem, kPem);
  EXPECT_EQ(access->user.token_file, folder.path() + "/token");
}

TEST(Kubeconfig, AnotherContextCanBeNamedAndAMissingOneListsThem) {
  const std::string text =
      "current-context: a\ncontexts:\n- {name: a, context: {cluster: c}}\n"
      "- {name: b, context: {cluster: d}}\nclusters:\n- {name: c, cluster: {server: 'https://c'}}\n"
      "- {name: d, cluster: {server: 'https://d'}}\n";
  EXPECT_EQ(parse(text)->server, "https://c");
  EXPECT_EQ(parse(text, "b")->server, "https://d");
  EXPECT_EQ(error_of(text, "x"), "f: contexts: there is no entry 'x'; there is a, b");
}

TEST(Kubeconfig, WhatIsMissingIsNamed) {
  EXPECT_EQ(error_of("{}"), "f: current-context: is missing; name one of the file's contexts");
  EXPECT_EQ(error_of("current-context: a"), "f: contexts: there is no entry 'a'; there is none");
  EXPECT_EQ(error_of("current-context: a\ncontexts: [{name: a}]"),
            "f: contexts[a].context: is missing, or no mapping");
  EXPECT_EQ(error_of("current-context: a\ncontexts: [{name: a, context: {user: u}}]"),
            "f: contexts[a].context.cluster: must name one of the file's clusters");
  EXPECT_EQ(error_of("current-context: a\ncontexts: [{name: a, context: {cluster: c, user: bob}}]\n"
                     "clusters: [{name: c, cluster: {server: 'https://h'}}]\nusers: [{name: ann}]"),
            "f: users: there is no entry 'bob'; there is ann");
}

TEST(Kubeconfig, WhatIsNoKubeconfigIsRefused) {
  EXPECT_EQ(error_of(""), "f: is empty; a kubeconfig has clusters, users and contexts");
  EXPECT_EQ(error_of("- a\n- b\n"), "f: is not a kubeconfig: it must be a mapping with clusters");
  EXPECT_EQ(error_of("just a word"), "f: is not a kubeconfig: it must be a mapping with clusters");
  EXPECT_TRUE(error_of("a: [").starts_with("f: line "));
  EXPECT_EQ(error_of(std::string("a\0b", 3)), "f: has a NUL byte; it is not YAML");
  EXPECT_EQ(error_of(std::string((4u << 20) + 1, ' ')), "f: is larger than 4 MiB");
  EXPECT_EQ(error_of("{current-context: a, contexts: {a: b}}"), "f: contexts: must be a list");
  EXPECT_EQ(error_of("{current-context: [a]}"), "f: current-context: must be a text");
  EXPECT_EQ(error_of("{current-context: a, contexts: [1]}"), "f: contexts[0]: must be a mapping");
}

TEST(Kubeconfig, AFileThatCannotBeReadIsNamed) {
  const Folder folder;
  EXPECT_EQ(load_kubeconfig(folder.path(), "").error().message, folder.path() + ": Is a directory");
  EXPECT_EQ(load_kubeconfig(folder.path() + "/none", "").error().message,
            folder.path() + "/none: No such file or directory");
  const std::string fifo = folder.path() + "/fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(load_kubeconfig(fifo, "").error().message,
            fifo + ": is empty; a kubeconfig has clusters, users and contexts");
}

TEST(Kubeconfig, ABombOfAliasesCostsNothing) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 60; ++i) {
    bomb += fmt::format("a{0}: &a{0} [*a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}]\n", i, i - 1);
  }
  EXPECT_EQ(error_of(bomb + "current-context: *a59\n"), "f: current-context: must be a text");
  EXPECT_EQ(error_of("&a {current-context: *a}"), "f: current-context: must be a text");
  EXPECT_TRUE(error_of(std::string(100'000, '[')).starts_with("f: line "));
}

TEST(Kubeconfig, BadValuesOfAUserAreNamedAndNeverShown) {
  EXPECT_EQ(error_of_user("{client-certificate-data: secr*t, client-key-data: x}"),
            "f: users[ann].user.client-certificate-data: is not base64");
  for (const char* text : {"abc", "a===", "=abc", "ab=c", "===="}) {
    EXPECT_EQ(error_of_user(fmt::format("{{client-certificate-data: {}, client-key-data: '{}'}}",
                                        kPem64, text)),
              "f: users[ann].user.client-key-data: is not base64")
        << text;
  }
  EXPECT_EQ(error_of_user("{client-key-data: c2VjcmV0}"),
            "f: users[ann].user.client-key-data: is not PEM: it has no line \"-----BEGIN …-----\"");
  EXPECT_EQ(error_of_user(fmt::format("{{client-key-data: {}}}", kPem64)),
            "f: users[ann].user.client-certificate: is missing: a certificate and its key belong "
            "together");
  EXPECT_EQ(error_of_user("{client-certificate: none}"),
            "f: users[ann].user.client-certificate: /etc/k/none: No such file or directory");
  EXPECT_EQ(error_of_user("{token: [secret]}"), "f: users[ann].user.token: must be a text");
}

TEST(Kubeconfig, WhatKubernetesHasRemovedIsRefusedWithASentence) {
  EXPECT_EQ(error_of_user("{auth-provider: {name: gcp}}"),
            "f: users[ann].user.auth-provider: Kubernetes has removed these plugins; use exec with "
            "the provider's program");
  EXPECT_EQ(error_of_user("{username: ann, password: secret}"),
            "f: users[ann].user.username: Kubernetes takes no passwords any more; use a token, a "
            "client certificate or exec");
  EXPECT_EQ(error_of_user("{password: secret}").find("secret"), std::string::npos);
  EXPECT_EQ(error_of_user("{token: t, as: root}"),
            "f: users[ann].user.as: acting as another user is not supported here");
}

TEST(Kubeconfig, BadExecPluginsAreRefused) {
  EXPECT_EQ(
      error_of_user("{exec: {command: x, apiVersion: client.authentication.k8s.io/v1alpha1}}"),
      "f: users[ann].user.exec.apiVersion: must be client.authentication.k8s.io/v1 or "
      "client.authentication.k8s.io/v1beta1");
  EXPECT_EQ(error_of_user("{exec: {apiVersion: client.authentication.k8s.io/v1}}"),
            "f: users[ann].user.exec.command: must name a program");
  EXPECT_EQ(error_of_user("{exec: {apiVersion: client.authentication.k8s.io/v1, command: x, "
                          "env: [{value: v}]}}"),
            "f: users[ann].user.exec.env[0].name: must be the name of a variable");
  EXPECT_EQ(error_of_user("{exec: {apiVersion: client.authentication.k8s.io/v1, command: x, "
                          "interactiveMode: Always}}"),
            "f: users[ann].user.exec.interactiveMode: is Always, but a service has no terminal at "
            "which a person could answer");
  EXPECT_EQ(error_of_user("{exec: login}"), "f: users[ann].user.exec: is missing, or no mapping");
}

TEST(Kubeconfig, BadValuesOfAClusterAreNamed) {
  EXPECT_EQ(error_of_cluster("{server: 'h:1'}"),
            "f: clusters[c].cluster.server: must be an address such as https://10.0.0.1:6443");
  EXPECT_EQ(error_of_cluster("{}"),
            "f: clusters[c].cluster.server: must be an address such as https://10.0.0.1:6443");
  EXPECT_EQ(error_of_cluster("{server: 'https://h', proxy-url: 'ftp://p'}"),
            "f: clusters[c].cluster.proxy-url: must begin with http://, https:// or socks5://");
  EXPECT_EQ(error_of_cluster("{server: 'https://h', insecure-skip-tls-verify: maybe}"),
            "f: clusters[c].cluster.insecure-skip-tls-verify: must be true or false");
  EXPECT_EQ(error_of_cluster(fmt::format("{{server: 'https://h', insecure-skip-tls-verify: true, "
                                         "certificate-authority-data: {}}}",
                                         kPem64)),
            "f: clusters[c].cluster.insecure-skip-tls-verify: cannot be true together with a "
            "certificate-authority: leave one of them out");
}

TEST(InClusterAccess, HasTheFilesOfTheServiceAccount) {
  const Folder folder;
  EXPECT_TRUE(in_cluster_access("10.0.0.1", "443", folder.path())
                  .error()
                  .message.starts_with(folder.path() + "/ca.crt: "));
  folder.write("ca.crt", kPem);
  EXPECT_TRUE(in_cluster_access("10.0.0.1", "443", folder.path())
                  .error()
                  .message.starts_with(folder.path() + "/token: "));
  folder.write("token", "abc");
  folder.write("namespace", "gpus\n");
  const auto access = in_cluster_access("fd00::1", "443", folder.path());
  ASSERT_TRUE(access.has_value());
  EXPECT_EQ(access->server, "https://[fd00::1]:443");
  EXPECT_EQ(access->user.token_file, folder.path() + "/token");
  EXPECT_EQ(access->user.token, "");
  EXPECT_EQ(access->namespace_name, "gpus");
  EXPECT_TRUE(in_cluster_access("", "443").error().message.starts_with(
      "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set"));
}

}  // namespace
}  // namespace gpu_platform::kubernetes
