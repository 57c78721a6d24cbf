#include <array>
#include <string_view>

#include "config/schema.h"

// The keys that have lists and tables as values, with an example of each.

namespace gpu_platform::config {

namespace {

constexpr std::string_view kTeamsExample = R"(teams:
  - name: research
    shares: 3                 # relative to the other teams and users of the same level; default: 1
    max_gpus: 64              # limits of the team and all teams below it; each may be absent
    gpu_types: {H100: {max_gpus: 16, gpu_hours: 4000}}   # limits for GPUs of one type or family
  - name: vision
    parent: research          # default: the organisation itself
    users: [ann, bob: 2]      # a name, or a name and its shares
    coordinators: [ann]       # users that may change the jobs of the team and of the teams below it
    max_running_jobs: 20
    max_queued_jobs: 500
    gpu_hours: 10000          # in each quotas.period
    guaranteed_gpus: 16       # GPUs of the team; idle ones are lent to preemptible jobs
    borrow_limit: 8           # maximum number of GPUs above guaranteed_gpus; default: no limit
    lend_limit: 12            # maximum number of them that are lent, here of those that are not H100; default: all
    gpu_types:                # four of the 16 are H100; borrow_limit and lend_limit of a type are set here, too
      H100: {guaranteed_gpus: 4, lend_limit: 2}
    over_quota_weight: 2      # share of the GPUs beyond all guarantees, relative to other teams; default: 1
    reclaim_min_runtime: 10m  # jobs on borrowed GPUs run at least so long; default: the parent's, or that of policies
    max_reclaims_per_job: 5   # a job is reclaimed at most so often; default: the parent's, or that of policies
    preempt_min_runtime: 30m  # jobs run at least so long before they are preempted; default: the parent's, or that of policies
    default_time_limit: 2h    # time limit of jobs that set none; default: the parent's, or the site's
)";
constexpr std::string_view kQuotaExample = R"(quotas:
  user_default: {max_gpus: 8, max_running_jobs: 10}
  users:
    ann: {max_gpus: 16, gpu_types: {H100: {max_gpus: 4}}}   # replaces all of user_default
  projects:
    demo: {gpu_hours: 100}
)";
constexpr std::string_view kWeightsExample = R"(scheduling:
  fair_share:
    gpu_weights: {H100: 2, T4-16GB: 0.25}
)";

constexpr std::string_view kRolesExample = R"(access:
  roles:
    operator: [ann, bob]
    admin: [carol]
    viewer: [guest]
)";

constexpr std::string_view kIdentitiesExample = R"(access:
  identities:
    "email:*@example.org": "*"
    "cn:Build machine 7": builder
    "uri:spiffe://example.org/ci": ci
    "openid:ada@example.org": ada
)";

constexpr std::string_view kPartitionsExample = R"(slurm:
  partitions:
    batch: {default: true, max_time: 1d, default_time: 1h}
    big: {gpu_types: [H100], priority: low, max_gpus: 64, max_nodes: 8}
)";

constexpr std::string_view kQosExample = R"(slurm:
  qos:
    normal: {}
    urgent: {priority: high, max_time: 4h, max_gpus: 8}
)";

constexpr std::string_view kSharingExample = R"(sharing:
  gpus: [A100, T4-16GB]     # types or families; default: all GPUs
  nodes: [dgx-1, dgx-2]     # default: all nodes
  between_users: team       # never (default), team or all
  max_jobs: 4               # on one GPU at a time, 1 to 48; default: 8
  weakest_rung: watchdog    # advisory, watchdog (default), mps-limit or driver-limit
  slice: 10s                # length of one turn, 100ms to 60s; default: 10s
  modes: [mps, time-slice]  # the preferred one first; default: both
  mps_control: auto         # auto (default), off or the path of nvidia-cuda-mps-control
)";

constexpr std::string_view kHealthRulesExample = R"(health:
  rules:
    - {rule: xid-31, gpu_type: H100, action: DEGRADE}
    - {rule: xid-74, mode: shadow}
)";

constexpr std::string_view kAlertRulesExample = R"(alerts:
  rules:
    - {name: GpuHot, above: 80, for: 5m, severity: critical, types: [H100]}
    - {name: GpuMemoryNearFull, enabled: false}
    - {name: QueueSlow, signal: queue_wait, above: 3600, severity: warning}
)";

constexpr std::string_view kAlertChannelsExample = R"(alerts:
  channels:
    - {name: chat, kind: slack, url_file: /etc/gpu-platform/slack-url}
    - {name: hook, kind: webhook, url: "https://alerts.example.org/gpu", secret_file: /etc/gpu-platform/hook-key}
    - {name: mail, kind: mail, url: "smtp://mail.example.org:587", from: gpu@example.org, to: [ops@example.org]}
    - {name: owners, kind: mail, url: "smtp://mail.example.org:587", from: gpu@example.org, to: ["{owner}@example.org"]}
    - {name: pager, kind: alertmanager, url: "https://alertmanager.example.org"}
    - {name: own, kind: command, command: [/usr/local/bin/tell, --site, a]}
)";

constexpr std::string_view kAlertRoutesExample = R"(alerts:
  routes:
    - {severity: critical, channels: [pager, chat]}
    - {team: vision, channels: [mail]}
)";

constexpr std::string_view kPowerLimitsExample = R"(health:
  power_limits: {H100: 500, dgx-h100-2: 400}   # watts of each GPU
)";

constexpr std::string_view kPricesExample = R"(accounting:
  prices:
    - {gpu_type: H100, per_gpu_hour: 5.50}
    - {gpu_type: H100, capacity: spot, per_gpu_hour: 1.65}
    - {gpu_type: A100-80GB, node: dgx-a*, from: 2027-01-01, until: 2028-01-01, per_gpu_hour: 3.90}
    - {instance: p5.48xlarge, per_hour: 98.32}   # of all GPUs of the instance
)";

constexpr std::string_view kDiscountsExample = R"(accounting:
  discounts:
    - {team: research, percent: 12.5}
)";

constexpr std::string_view kOwnedExample = R"(accounting:
  owned:
    - {gpu_type: H100, purchase: 31000, lifetime_months: 48, power_watts: 900, share_of_room_per_month: 95}
    - {node: attic-*, purchase: 1200, lifetime_months: 36}
)";

constexpr std::string_view kBudgetsExample = R"(accounting:
  budgets:
    - {team: vision, amount: 12000, at_limit: refuse}
    - {team: research, amount: 100000, period: quarter}
    - {project: demo, amount: 500.00, period: year, at_limit: stop}
)";

// clang-format off
constexpr std::array kStructures = {
    Structure{"teams", "a list of teams", kTeamsExample,
        "The teams of the organisation, with their members, shares and limits. "
        "A job is charged to the team of --team, or otherwise to the first team here that has its user. "
        "Users without a team are on the level of the top teams, with 1 share each. "
        "Without teams, --team is a label. "
        "Absent keys and further teams may be set at run time (docs/scheduling.md)."},
    Structure{"teams_file", "the path of a file",
        "teams_file: teams.yaml   # from the folder of this file\n",
        "A YAML file that holds the list of teams, instead of 'teams'."},
    Structure{"scheduling.fair_share.gpu_weights", "types with their weights", kWeightsExample,
        "The weight of a GPU of a type or family in the usage: 0.001 to 1000. "
        "GPUs without an entry have the weight 1. "
        "A type takes precedence over its family."},
    Structure{"allocation.reserved_ratio", "a share from 0 to 1",
        "allocation:\n  mode: hybrid\n  reserved_ratio: 0.3\n",
        "The largest part of the cluster's GPUs that guarantees may take in the mode hybrid. "
        "The default is 0.3. "
        "The other GPUs are for all users."},
    Structure{"quotas.user_default", "limits", kQuotaExample,
        "The limits of each user without an entry in quotas.users. "
        "max_gpus and max_running_jobs limit what the user holds at once. "
        "max_queued_jobs limits waiting jobs, and held jobs are included. "
        "gpu_hours limits each period. "
        "gpu_types sets max_gpus and gpu_hours for single types or families, in addition to the limits for all GPUs: "
        "gpu_types: {H100: {max_gpus: 4, gpu_hours: 100}}."},
    Structure{"quotas.users", "users with their limits", {},
        "The limits of single users, and their guarantees. "
        "guaranteed_gpus, borrow_limit and lend_limit work for users as for teams, for all GPUs or in gpu_types."},
    Structure{"quotas.projects", "projects with their limits", {},
        "The limits of all jobs of a project (--project) together."},
    Structure{"access.roles", "roles with their users", kRolesExample,
        "The users that have another role than access.default_role: viewer, user, operator or admin. "
        "Each user is listed once, by name. "
        "Root must not be listed. "
        "A change reaches open connections at their next request."},
    Structure{"access.identities", "names with their users", kIdentitiesExample,
        "The users of credentials that others have signed. "
        "Client certificates (api.tls.client_ca) have the names cn: (the common name), email:, dns: and uri:. "
        "Tokens have the name openid: with the claim access.openid.user_claim. "
        "email:*@DOMAIN and openid:*@DOMAIN with the user \"*\" map each address of the domain to the user before the '@'. "
        "A credential without a user, or with two, is refused. "
        "It never gives the rights of root or a system account. "
        "A change reaches open connections at their next request."},
    Structure{"alerts.rules", "a list of rules", kAlertRulesExample,
        "Changes of the shipped rules, by their names, and further rules of the site. "
        "'gpu-platform alerts rules' shows them all. "
        "signal: what a further rule watches. "
        "above or below: the threshold, in the unit of the signal. "
        "clear: the value at which the alert is over (default: just beyond the threshold). "
        "for: how long the condition must hold. "
        "severity: info, warning or critical. "
        "enabled: false turns the rule off. "
        "types, nodes, teams: what the rule is for; '*' stands for any text. "
        "docs/alerts.md has the signals."},
    Structure{"alerts.channels", "a list of channels", kAlertChannelsExample,
        "Where messages go. "
        "kind: slack, webhook, mail, alertmanager or command. "
        "Secrets are in files that only root or the daemon's user can read: url_file if the address is the secret, secret_file for the key of a webhook, the password of mail or the token of Alertmanager. "
        "An address with a user and a password is refused. "
        "to: of mail; {owner} in an address stands for the owner of the job that the alert is about. "
        "ca_file: the authorities of the other side (default: those of the system). "
        "proxy: http://HOST:PORT, of all but mail (default: none, whatever the environment says). "
        "allow_plain_text: also without TLS. "
        "timeout: of one try (default: 10s)."},
    Structure{"alerts.routes", "a list of routes", kAlertRoutesExample,
        "Which channels are told of which alerts. "
        "severity: the least one. "
        "team: of alerts about jobs. "
        "rules: names, with '*' for any text. "
        "An alert goes to the channels of all routes that match. "
        "Without routes all alerts go to all channels."},
    Structure{"accounting.prices", "a list of prices", kPricesExample,
        "What a GPU costs in one hour. A part of a GPU costs its share of it. "
        "Without this list these are the prices: A100 4.10, H100 5.50, L40S 2.20, A10G 1.10, T4 0.526, V100 3.00. "
        "gpu_type: a type or family. "
        "capacity: on_demand, spot or reserved. A price without it is that of on-demand and reserved capacity, and spot capacity costs accounting.spot_discount_percent less. "
        "node: a pattern of names; '*' stands for any text. "
        "from, until: the time in which the price counts, in UTC. A price never counts before the daemon has read it, so that what was billed stays as it was. "
        "per_gpu_hour: with at most six decimals, such as 0.526. "
        "instance with per_hour: the type and number of GPUs of a cloud instance ('gpu-platform prices instances'), and what all of it costs. "
        "currency: that of the site, if it is given. "
        "A price of a node takes precedence, then one of a class, then one of a type over its family. "
        "Two prices of the same type, capacity and node cannot count at the same time. "
        "A GPU without a price is not free: its use is shown as unpriced."},
    Structure{"accounting.discounts", "a list of teams with their discounts", kDiscountsExample,
        "What a team pays less than the price, in percent with at most two decimals. "
        "It is also the discount of the teams below it that have none of their own."},
    Structure{"accounting.owned", "a list of hardware", kOwnedExample,
        "The costs of GPUs that the site owns, from which their price follows. "
        "gpu_type or node, or both: the GPUs. "
        "purchase: what one GPU with its part of the server costs. "
        "lifetime_months: the time over which that is written off. "
        "power_watts: what it takes on average, with its part of the server and of the cooling. "
        "electricity_per_kwh: the default is that of accounting.energy. "
        "share_of_room_per_month: its part of rent and staff. "
        "A month has 730.5 hours."},
    Structure{"accounting.budgets", "a list of budgets", kBudgetsExample,
        "What teams, users and projects may spend in a calendar period in UTC. "
        "Each entry names one team, user or project. A team's budget counts the teams below it. "
        "amount: in the site's currency, with at most six decimals. "
        "period: month (the default), quarter or year. "
        "at_limit: what follows when it is spent. alert (the default): alerts. refuse: also no job of the holder starts until the period ends. stop: also its running jobs are stopped with the grace. "
        "A budget that an administrator sets at run time ('gpu-platform budget set') takes precedence."},
    Structure{"health.power_limits", "types and nodes with watts", kPowerLimitsExample,
        "The power limit of each GPU of a type, a family or a node of this machine, in watts. "
        "A node takes precedence over a type, and a type over its family. "
        "A value beyond what the board allows is cut to it. "
        "GPUs without an entry get back the limit that they had before. "
        "The driver's rules must allow it (docs/health.md)."},
    Structure{"sharing", "which GPUs may be shared, and how", kSharingExample,
        "The GPUs of which jobs may ask for a part (--gpus 0.5). "
        "Without this section, no GPU is shared. "
        "between_users says whose jobs share a GPU: of one user alone, of users of one team, or of all users. "
        "weakest_rung is the weakest wall between jobs that the site accepts: a mode with a weaker one, of memory or of compute, is not used. "
        "A part without any wall is given only where it is 'advisory', and so is a part of root, which can undo its walls. "
        "slice is how long one turn is, where the job does not say it. "
        "modes are the ways in which GPUs are shared. "
        "mps_control is the program that starts MPS servers. "
        "auto looks for it in /usr/bin, in /usr/local/nvidia/bin and in the daemon's PATH, and off starts none. "
        "Only a start of the daemon reads mps_control. "
        "Jobs keep their parts when this changes, and new ones follow the new rules. "
        "docs/sharing.md explains the modes and the walls."},
    Structure{"slurm.partitions", "partitions with their rules", kPartitionsExample,
        "The partitions of sbatch -p, sinfo and other commands, instead of the one partition 'gpu'. "
        "gpu_types: the types or families of the GPUs of its nodes (default: all nodes). "
        "priority: the class of its jobs. "
        "max_time, default_time, max_gpus, max_nodes: the limits and the default of one job. "
        "default: jobs that set no partition are in this one (otherwise the first). "
        "These rules apply only to Slurm's commands. "
        "Limits for all jobs are those of 'policies', 'quotas' and 'teams'."},
    Structure{"slurm.qos", "qualities of service with their rules", kQosExample,
        "The qualities of service of sbatch -q, instead of the classes of priority. "
        "priority: the class of its jobs (default: the partition's). "
        "max_time, max_gpus: the limits of one job. "
        "Jobs that set none have 'normal'."},
    Structure{"health.rules", "a list of changes", kHealthRulesExample,
        "The rules that the site judges otherwise than its health.profile. "
        "rule: the name of the rule, as 'gpu-platform health rules' shows it. "
        "gpu_type: the type or family of the GPUs that it changes for (default: all GPUs). "
        "action: what the fault means for the GPU: NONE, COUNT, AVOID, DEGRADE, DRAIN, RESET, OFFLINE or REBOOT. "
        "mode: execute, shadow (shown, and nothing is done) or off. "
        "Each entry sets action, mode or both. "
        "docs/health.md says what each action does."},
};
// clang-format on

}  // namespace

std::span<const Structure> structures() {
  return kStructures;
}

}  // namespace gpu_platform::config
