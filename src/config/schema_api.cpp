#include <array>
#include <cstddef>
#include <cstdint>

#include "config/schema_keys.h"

// The keys about the API: its limits and listeners, and the rights of its users.

namespace gpu_platform::config {

namespace {

using C = Configuration;

template <model::Sight Seen>
model::Audience& audience(C& c) {
  return c.access.visibility[static_cast<std::size_t>(Seen)];
}

// clang-format off
constexpr std::array kApiKeys = {
    Key{"api.threads",
        +[](C& c) -> std::uint32_t& { return c.api_threads; },
        1, 256, Effect::kRestart,
        "The number of threads that answer requests. "
        "One more serves root and the user that the daemon runs as while others are connected."},
    Key{"api.max_connections",
        +[](C& c) -> std::uint32_t& { return c.api_connections; },
        16, 1'000'000, Effect::kRestart,
        "The maximum number of open connections of all users. "
        "It is less if the limit of open files (ulimit -n, LimitNOFILE) does not allow that many."},
    Key{"api.max_connections_per_user",
        +[](C& c) -> std::uint32_t& { return c.api_connections_per_user; },
        1, 1'000'000, Effect::kRestart,
        "The maximum number of open connections of one user. "
        "Root and the user that the daemon runs as are exempt from this and the limits per user below. "
        "A subordinate uid without an account counts as the user that has it in /etc/subuid. "
        "All other uids without an account count together as one user."},
    Key{"api.max_channels",
        +[](C& c) -> std::uint32_t& { return c.api_channels; },
        1, 1'000'000, Effect::kRestart,
        "The maximum number of open channels into running jobs, of all users. "
        "These are jobs exec, jobs attach, and each connection of jobs port-forward."},
    Key{"api.max_channels_per_user",
        +[](C& c) -> std::uint32_t& { return c.api_channels_per_user; },
        1, 1'000'000, Effect::kRestart,
        "The same limit for one user."},
    Key{"api.max_streams_per_user",
        +[](C& c) -> std::uint32_t& { return c.api_streams_per_user; },
        1, 1'000'000, Effect::kRestart,
        "The maximum number of long answers that one user may have at once: jobs wait, followed output and event streams."},
    Key{"api.max_body_bytes",
        +[](C& c) -> base::Bytes& { return c.api_body_bytes; },
        2 * kKi * kKi, 64 * kKi * kKi * kKi, Effect::kRestart,
        "The maximum number of bytes of unanswered requests, of all users. "
        "Only requests of more than 16 KiB are included, each with all of its bytes. "
        "A request has 1 MiB at most."},
    Key{"api.max_body_bytes_per_user",
        +[](C& c) -> base::Bytes& { return c.api_body_bytes_per_user; },
        2 * kKi * kKi, 64 * kKi * kKi * kKi, Effect::kRestart,
        "The same limit for one user."},
    Key{"api.max_answer_bytes",
        +[](C& c) -> base::Bytes& { return c.api_answer_bytes; },
        kKi * kKi, 64 * kKi * kKi * kKi, Effect::kRestart,
        "The maximum number of bytes of answers, of all users, that clients have not read yet. "
        "No further answer is made beyond it. "
        "A list waits for its reader after each 64 KiB. "
        "A client that reads nothing of an answer for 30 s is disconnected."},
    Key{"api.max_answer_bytes_per_user",
        +[](C& c) -> base::Bytes& { return c.api_answer_bytes_per_user; },
        kKi * kKi, 64 * kKi * kKi * kKi, Effect::kRestart,
        "The same limit for one user."},
    Key{"api.max_page_bytes",
        +[](C& c) -> base::Bytes& { return c.api_page_bytes; },
        64 * kKi, kKi * kKi * kKi, Effect::kRestart,
        "A page of a list ends after this many bytes even if it has fewer jobs than asked for. "
        "next_page continues the list."},
    Key{"api.max_token_lifetime",
        +[](C& c) -> base::Duration& { return c.policy.max_token_lifetime; },
        0, 3650 * kDay, Effect::kAnytime,
        "The longest validity of a new token (docs/security.md). "
        "0: a token may be valid until it is revoked. "
        "Existing tokens keep their ends."},
    Key{"api.percent_for_root",
        +[](C& c) -> std::uint32_t& { return c.api_percent_for_root; },
        1, 90, Effect::kRestart,
        "The percentage of each of these totals that is reserved for root and the user that the daemon runs as."},
    Key{"api.metrics.names",
        +[](C& c) -> MetricNames& { return c.metrics.names; },
        0, 0, Effect::kRestart,
        "The names of the readings of GPUs in GET /metrics: those of NVIDIA's dcgm-exporter, those of OpenTelemetry (hw_gpu_…), or both. "
        "The option --metrics-names of serve goes before it."},
    Key{"api.metrics.jobs",
        +[](C& c) -> MetricJobs& { return c.metrics.jobs; },
        0, 0, Effect::kRestart,
        "The jobs in gpu_platform_gpu_job_info, which says what jobs have which GPUs, with their users and teams. "
        "visible: those that the reader of the page may see (access.visibility.jobs). "
        "all: every reader of the page sees the running jobs of all users, as a Prometheus with a viewer's token needs it. "
        "none: no job is named."},
    Key{"api.metrics.hostname",
        +[](C& c) -> bool& { return c.metrics.lower_hostname; },
        0, 0, Effect::kRestart,
        "Whether the readings of GPUs have the label hostname beside Hostname, for dashboards that ask for it."},
    Key{"api.rest.address",
        +[](C& c) -> WordList& { return c.rest_addresses; },
        0, 0, Effect::kRestart,
        "The addresses at which the API answers other machines, separated by blanks. "
        "Each is ADDRESS:PORT with a numeric address (0.0.0.0:8443, \"[::]:8443\"). "
        "Without api.tls.certificate and api.tls.key only loopback addresses are allowed (127.0.0.1:8080). "
        "docs/deployment.md describes the listener."},
    Key{"api.rest.host_names",
        +[](C& c) -> WordList& { return c.rest_host_names; },
        0, 0, Effect::kRestart,
        "The names of this server that are accepted in the Host header of a request, without a port and separated by blanks. "
        "A request with another name is refused. "
        "Not set: any name is accepted."},
    Key{"api.rest.allowed_origins",
        +[](C& c) -> WordList& { return c.rest_origins; },
        0, 0, Effect::kRestart,
        "The origins of web pages whose scripts may call the API (https://console.example.org), separated by blanks. "
        "Requests of all other web pages are refused."},
    Key{"api.rest.max_connections",
        +[](C& c) -> std::uint32_t& { return c.rest_connections; },
        16, 1'000'000, Effect::kRestart,
        "The maximum number of connections from other machines. "
        "It is less if the limit of open files does not allow two for each. "
        "Connections without requests take nothing from api.max_connections."},
    Key{"api.rest.max_connections_per_address",
        +[](C& c) -> std::uint32_t& { return c.rest_connections_per_address; },
        1, 1'000'000, Effect::kRestart,
        "The same limit for one address. All addresses of an IPv6 network of 64 bits count as one."},
    Key{"api.grpc.address",
        +[](C& c) -> WordList& { return c.grpc_addresses; },
        0, 0, Effect::kRestart,
        "The addresses at which the API answers other machines over gRPC, in the same form and with the same certificate. "
        "The host names, origins and limits of api.rest apply here, too."},
    Key{"api.tls.certificate",
        +[](C& c) -> SiteFile& { return c.tls_certificate; },
        0, 0, Effect::kRestart,
        "The absolute path of the server's certificate and those of its issuers, as PEM. "
        "The file is read again when it changes and on SIGHUP. "
        "Open connections stay open."},
    Key{"api.tls.key",
        +[](C& c) -> SiteFile& { return c.tls_key; },
        0, 0, Effect::kRestart,
        "The absolute path of the certificate's private key, as PEM without a passphrase. "
        "The file must be closed to other users (chmod o= FILE)."},
    Key{"api.tls.client_ca",
        +[](C& c) -> SiteFile& { return c.tls_client_ca; },
        0, 0, Effect::kRestart,
        "The absolute path of the certificates of the authorities that sign the certificates of clients, as PEM. "
        "With it, clients may present a certificate instead of a token. "
        "access.identities sets the user of each certificate. "
        "The file is read again on SIGHUP."},
    Key{"api.listener_user",
        +[](C& c) -> SiteName& { return c.listener_user; },
        0, 0, Effect::kRestart,
        "The user of /etc/passwd that the listener becomes if the daemon runs as root. "
        "It must not be root or a user that may have jobs. "
        "The default is a user id that no account and no process has. "
        "If the daemon does not run as root, the listener runs as the daemon's user, without access to its files."},

    Key{"access.default_role",
        +[](C& c) -> model::Role& { return c.access.default_role; },
        0, 0, Effect::kAnytime,
        "The role of users without an entry in access.roles. "
        "viewer: sees what access.visibility shows. "
        "user: also submits jobs and changes its own."},
    Key{"access.admins_act_as_users",
        +[](C& c) -> bool& { return c.access.admins_act_as_users; },
        0, 0, Effect::kAnytime,
        "Whether users with the role admin may do what otherwise only root may do. "
        "They may enter the jobs of others (exec, attach, port-forward), submit jobs of others, and make tokens of others. "
        "Jobs and tokens of root are always excluded."},
    Key{"access.openid.issuer",
        +[](C& c) -> SiteName& { return c.openid_issuer; },
        0, 0, Effect::kRestart,
        "The OpenID Connect issuer whose tokens are accepted from other machines. "
        "The value is the text in their claim iss, such as https://sso.example.org/realms/main. "
        "access.identities sets their users (docs/security.md)."},
    Key{"access.openid.audience",
        +[](C& c) -> SiteName& { return c.openid_audience; },
        0, 0, Effect::kRestart,
        "The text that must be in the claim aud of these tokens: this platform's name at the issuer."},
    Key{"access.openid.keys",
        +[](C& c) -> SiteFile& { return c.openid_keys; },
        0, 0, Effect::kRestart,
        "The absolute path of a file with the issuer's public keys, as it publishes them (a JSON Web Key Set). "
        "The file is read again when it changes. "
        "If it cannot be read, the last keys stay valid for a day."},
    Key{"access.openid.user_claim",
        +[](C& c) -> SiteName& { return c.openid_user_claim; },
        0, 0, Effect::kRestart,
        "The claim that identifies the user. "
        "Its text T is the name openid:T in access.identities. "
        "People must not be able to choose it at the issuer. "
        "The claim email is used only if email_verified is true."},
    Key{"access.openid.algorithms",
        +[](C& c) -> WordList& { return c.openid_algorithms; },
        0, 0, Effect::kRestart,
        "The signatures that are accepted, separated by blanks: RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA."},
    Key{"access.openid.clock_skew",
        +[](C& c) -> base::Duration& { return c.openid_clock_skew; },
        0, 300, Effect::kRestart,
        "The difference of clocks that is tolerated at the beginning and the end of a token."},
    Key{"access.visibility.jobs",
        &audience<model::Sight::kJobs>,
        0, 0, Effect::kAnytime,
        "Who sees that a job exists, what it requests and its state. "
        "owner: its user. "
        "team: also the members and coordinators of its team. "
        "all: every user. "
        "Coordinators always see the jobs of their teams. "
        "Operators and admins see all."},
    Key{"access.visibility.commands",
        &audience<model::Sight::kCommands>,
        0, 0, Effect::kAnytime,
        "Who sees the command, the directory and the files of a job that they see, and the program of a process on a GPU. "
        "Operators and admins see all. "
        "docs/isolation.md describes what each user sees."},
    Key{"access.visibility.output",
        &audience<model::Sight::kOutput>,
        0, 0, Effect::kAnytime,
        "Who may read the output of the jobs that they see. Admins may read all."},
    Key{"access.visibility.usage",
        &audience<model::Sight::kUsage>,
        0, 0, Effect::kAnytime,
        "Who sees the usage and the quotas of a user. "
        "Those of teams are shown to all. "
        "Operators and admins see all."},

    Key{"slurm.shards_per_gpu",
        +[](C& c) -> std::uint32_t& { return c.slurm.shards_per_gpu; },
        1, 1000, Effect::kAnytime,
        "The number of shards that one GPU has for --gres=shard:N, as Count of a shard in gres.conf. "
        "One shard is that part of a GPU."},
};
// clang-format on

}  // namespace

std::span<const Key> api_keys() {
  return kApiKeys;
}

}  // namespace gpu_platform::config
