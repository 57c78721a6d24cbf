#include "bin/site_check.h"

#include <unistd.h>

#include <cerrno>
#include <future>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "api/identity/certificate_prover.h"
#include "bin/alert_settings.h"
#include "bin/site_files.h"
#include "bin/site_policy.h"
#include "bin/site_users.h"
#include "host/user_directory.h"
#include "kubernetes/kubeconfig.h"
#include "listener/host/certificate.h"
#include "node/site_hooks.h"
#include "os/clock.h"

namespace gpu_platform::bin {

namespace {

using config::Configuration;

class SiteCheck {
 public:
  explicit SiteCheck(const Configuration& configuration) : configuration_(configuration) {}

  cli::SiteFindings run() {
    if (auto problem = problem_in_rules(configuration_)) {
      found_.problems.push_back(std::move(*problem));
    }
    if (auto problem = problem_in_alerts(configuration_)) {
      found_.problems.push_back(std::move(*problem));
    }
    check_users();
    check_credentials();
    check_programs();
    check_clusters();
    look_up_users();
    return std::move(found_);
  }

 private:
  config::Problem at_key(std::string_view key, std::string message) const {
    return config::problem_at(key, std::move(message), configuration_);
  }
  void add_problem(std::string_view key, std::string message) {
    found_.problems.push_back(at_key(key, std::move(message)));
  }
  void add_note(std::string_view key, std::string message) {
    found_.notes.push_back(at_key(key, std::move(message)));
  }
  template <class Result>
  void expect(const Result& result) {
    if (!result) add_problem(result.error().field, result.error().message);
  }
  // The error of a check of the node part; empty: none.
  void expect_no(std::string_view key, const std::string& error) {
    if (!error.empty()) add_problem(key, fmt::format("{}: {}", key, error));
  }

  // Returns false for no file, and for one that only the daemon's user may read.
  bool may_check(std::string_view key, const std::string& path) {
    if (path.empty()) return false;
    if (geteuid() == 0 || access(path.c_str(), R_OK) == 0 || errno != EACCES) return true;
    add_note(key, fmt::format("{}: {} is not checked: you may not read it; check the configuration "
                              "as root",
                              key, path));
    return false;
  }

  void check_users() {
    users_ = users_of_site(configuration_, true);
    expect(users_);
    const std::string& listener = configuration_.listener_user.text;
    if (!users_ || listener.empty()) return;
    expect(listener_user(listener, *users_, directory_));
  }

  void check_credentials() {
    if (may_check("cluster.network_file", configuration_.network_file.path)) {
      expect(read_network_places(configuration_));
    }
    if (may_check("access.openid.keys", configuration_.openid_keys.path)) {
      expect(read_web_token_keys(configuration_));
    }
    if (may_check("api.tls.client_ca", configuration_.tls_client_ca.path)) {
      api::CertificateProver certificates;
      expect(read_authorities(configuration_, certificates));
    }
    const listener::CertificateFiles files{configuration_.tls_certificate.path,
                                           configuration_.tls_key.path};
    const bool may_read =
        may_check("api.tls.certificate", files.certificate) && may_check("api.tls.key", files.key);
    if (!may_read) return;
    const auto certificate = listener::read_certificate(files, os::wall_now());
    if (!certificate) return add_problem(certificate.error().field, certificate.error().message);
    if (!certificate->warning.empty()) add_note("api.tls.certificate", certificate->warning);
  }

  // The files must belong to root, or to the user that runs this.
  void check_programs() {
    if (const std::string& prolog = configuration_.prolog.path; !prolog.empty()) {
      expect_no("execution.prolog", node::error_in_hook(prolog));
    }
    if (const std::string& epilog = configuration_.epilog.path; !epilog.empty()) {
      expect_no("execution.epilog", node::error_in_hook(epilog));
    }
    if (const std::string& rules = configuration_.containers.path; !rules.empty()) {
      expect_no("execution.containers", node::error_in_rules(rules));
    }
  }

  void check_clusters() {
    constexpr std::string_view kKey = "engines.kubernetes.kubeconfig";
    const std::string& path = configuration_.kubernetes_kubeconfig.path;
    if (!may_check(kKey, path)) return;
    const auto access = kubernetes::load_kubeconfig(path, configuration_.kubernetes_context.text);
    if (!access) add_problem(kKey, fmt::format("{}: {}", kKey, access.error().message));
  }

  // Each user once, with the key that names it first.
  void look_up_users() {
    for (const model::Team& team : configuration_.policy.organisation->teams) {
      for (const model::Member& member : team.members) look_up("teams", member.user);
    }
    for (const auto& [team, coordinators] : configuration_.access.coordinators) {
      for (const std::string& user : coordinators) look_up("teams", user);
    }
    for (const auto& [user, role] : configuration_.access.roles) look_up("access.roles", user);
    for (const auto& [name, user] : configuration_.identities) {
      look_up("access.identities", user);
    }
    for (const model::NamedQuota& quota : configuration_.policy.organisation->of_users) {
      look_up("quotas.users", quota.name);
    }
    look_up("engines.kubernetes.workloads_user", configuration_.kubernetes_workloads_user.text);
  }

  void look_up(std::string_view key, const std::string& user) {
    if (user.empty() || !database_answers_ || !looked_up_.insert(user).second) return;
    auto answer = std::make_shared<std::promise<base::Result<host::User>>>();
    auto found = answer->get_future();
    directory_.find(user, geteuid(), [answer](base::Result<host::User> result) {
      answer->set_value(std::move(result));
    });
    const base::Result<host::User> result = found.get();
    if (result) return;
    if (result.error().code == base::ErrorCode::kNotFound) {
      return add_note(key, fmt::format("{}: there is no user '{}' on this machine", key, user));
    }
    database_answers_ = false;
    add_note(key, fmt::format("{}: users are not checked: {}", key, result.error().message));
  }

  const Configuration& configuration_;
  cli::SiteFindings found_;
  base::Result<model::UserRange> users_ = model::UserRange();
  host::UserDirectory directory_;
  std::set<std::string> looked_up_;
  bool database_answers_ = true;
};

}  // namespace

cli::SiteFindings check_site(const Configuration& configuration) {
  return SiteCheck(configuration).run();
}

}  // namespace gpu_platform::bin
