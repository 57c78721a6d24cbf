#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "config/alert_settings.h"
#include "config/slurm_names.h"
#include "model/access_rules.h"
#include "model/capacity.h"
#include "model/policy.h"
#include "model/price.h"
#include "model/user_range.h"

// The site's configuration: the values of a YAML file over the defaults written here. schema.h
// has the table of keys with their allowed values and meanings. The checks and the reference page
// come from that table.

namespace gpu_platform::config {

enum class RootJobs : std::uint8_t { kAllow, kRefuse };
enum class Seccomp : std::uint8_t { kDefault, kOff };
enum class CudaVisibleDevices : std::uint8_t { kAuto, kIndex, kUuid };
enum class KubernetesDevices : std::uint8_t { kPinned, kOwned, kCounts };
enum class KubernetesReadings : std::uint8_t { kNone, kExporter };

// A program by its absolute path; empty: none.
struct ProgramFile {
  std::string path;

  friend bool operator==(const ProgramFile&, const ProgramFile&) = default;
};

// Any other file by its absolute path; empty: none.
struct SiteFile {
  std::string path;

  friend bool operator==(const SiteFile&, const SiteFile&) = default;
};

// A name of one line; empty: none.
struct SiteName {
  std::string text;

  friend bool operator==(const SiteName&, const SiteName&) = default;
};

// Where nvidia-cuda-mps-control is, which starts the MPS servers of jobs that share GPUs.
struct MpsControl {
  bool is_off = false;  // no GPU is shared by MPS
  std::string path;     // absolute; empty: it is looked for

  friend bool operator==(const MpsControl&, const MpsControl&) = default;
};

// Several words of the kind that the key defines, such as addresses; empty: none.
struct WordList {
  std::vector<std::string> words;

  friend bool operator==(const WordList&, const WordList&) = default;
};

// The temperature at which a GPU is hot, in degrees Celsius.
struct HeatLimit {
  std::uint32_t max_c = 85;
  // Set: so many degrees below the GPU's slowdown temperature, and max_c where that is not known.
  std::optional<std::uint32_t> below_slowdown_c;

  friend bool operator==(const HeatLimit&, const HeatLimit&) = default;
};

// The power limit of the GPUs of a node, or of a type.
struct PowerLimit {
  std::string of;  // a type or family of the catalogue, a model, or a node
  std::uint32_t watts = 0;

  friend bool operator==(const PowerLimit&, const PowerLimit&) = default;
};

// One problem of a file, or, as a note, a setting without effect.
struct Problem {
  int line = 0;         // from 1; 0: the file as a whole
  int column = 0;       // from 1
  std::string key;      // dotted path, empty where no key is at fault
  std::string message;  // what is wrong and what is allowed
  std::string file;     // an included file; empty: the configuration itself

  friend bool operator==(const Problem&, const Problem&) = default;
};

// The place in a file that sets a key.
struct KeyPlace {
  std::string key;   // dotted path
  std::string file;  // empty: the configuration itself; else a file that it includes
  int line = 0;      // from 1
  int column = 0;    // from 1
  std::string text;  // of a list or a table, as YAML; empty for other keys

  friend bool operator==(const KeyPlace&, const KeyPlace&) = default;
};

// How a site bills that sets nothing.
inline model::Billing usual_billing() {
  model::Billing billing;
  billing.prices = model::default_prices();
  return billing;
}

// The policy of a site that sets nothing: that of the core with a default time limit and prices.
inline model::Policy usual_policy() {
  model::Policy policy;
  policy.default_time_limit = base::hours(4);
  policy.billing = usual_billing();
  return policy;
}

// Whether the runs of jobs that were stopped for others cost their owners something.
enum class PreemptedRuns : std::uint8_t { kBilled, kFree };

// What is kept of readings.
struct TelemetryRules {
  bool history = true;
  base::Bytes max_bytes = base::kGiB;
  base::Duration keep_samples = base::hours(48);
  base::Duration keep_minutes = base::hours(24 * 30);
  base::Duration keep_quarters = base::hours(24 * 730);

  friend bool operator==(const TelemetryRules&, const TelemetryRules&) = default;
};

// Whether DCGM is asked, where it is installed.
enum class Dcgm : std::uint8_t { kAuto, kOff };

// The names of the readings on the page of metrics.
enum class MetricNames : std::uint8_t { kDcgm, kOtel, kBoth };

// The jobs that the page names, beside the GPUs that they have: those that its reader may see, or
// all, or none.
enum class MetricJobs : std::uint8_t { kVisible, kAll, kNone };

struct MetricsRules {
  MetricNames names = MetricNames::kDcgm;
  MetricJobs jobs = MetricJobs::kVisible;
  bool lower_hostname = false;  // GPUs have the label "hostname", too

  friend bool operator==(const MetricsRules&, const MetricsRules&) = default;
};

// A regular value. A default-constructed one is the configuration of an empty file.
struct Configuration {
  model::Policy policy = usual_policy();

  SiteName cluster_name;                    // for the log
  std::optional<std::uint32_t> total_gpus;  // what discovery should find; a difference is a warning
  SiteFile network_file;                    // where its nodes are (network_file.h)

  RootJobs root_jobs = RootJobs::kAllow;
  std::uint32_t min_uid = model::kUsualMinUid;       // of users that may have jobs
  std::optional<std::uint32_t> max_uid;              // absent: as /etc/login.defs has it
  bool mode_setting = false;                         // jobs with GPUs may open nvidia-modeset
  std::uint64_t max_processes = 16'384;              // of a job, threads included
  bool private_tmp = true;                           // each job has /tmp and /dev/shm of its own
  bool hide_processes = true;                        // of other users; with private_tmp
  base::Duration start_timeout = base::seconds(30);  // of a job's program, once all is prepared
  Seccomp seccomp = Seccomp::kDefault;               // only where the daemon starts the launcher
  CudaVisibleDevices cuda_visible_devices = CudaVisibleDevices::kAuto;
  base::Bytes output_rotate_bytes = base::kMiB * 64;  // one output file grows to this size
  std::uint32_t output_files_kept = 8;                // rotated files kept besides the current one
  std::string notify_command;                         // program and arguments; empty: none
  base::Bytes output_limit = base::kGiB * 10;         // of all that one attempt prints
  // The site's programs around each attempt; empty: none. Only where the daemon starts the
  // launcher.
  ProgramFile prolog;
  ProgramFile epilog;
  base::Duration prolog_timeout = base::minutes(5);
  base::Duration epilog_timeout = base::minutes(5);
  ProgramFile containers;  // the rules of the container engine; empty: no jobs with an image

  MpsControl mps_control;

  bool local_engine = true;  // jobs run on this machine
  model::CapacityClass local_capacity = model::CapacityClass::kOnDemand;
  SiteFile kubernetes_kubeconfig;  // empty, and not in a cluster: no Kubernetes
  bool kubernetes_in_cluster = false;
  SiteName kubernetes_context;  // of the kubeconfig; empty: its current one
  SiteName kubernetes_cluster{"default"};
  SiteName kubernetes_namespace{"gpu-platform-jobs"};
  WordList kubernetes_pull_secrets;
  WordList kubernetes_node_selector;  // LABEL=VALUE
  SiteName kubernetes_capacity_label;
  KubernetesDevices kubernetes_devices = KubernetesDevices::kPinned;
  SiteName kubernetes_device_class{"gpu.nvidia.com"};
  SiteName kubernetes_driver{"gpu.nvidia.com"};
  SiteName kubernetes_priority_class;
  bool kubernetes_runs_as_user = true;
  WordList kubernetes_annotations;  // patterns
  base::Duration kubernetes_start_timeout = base::minutes(10);
  base::Duration kubernetes_lost_after = base::minutes(5);
  bool kubernetes_workloads = false;
  SiteName kubernetes_workloads_user;  // empty: a namespace must name its own
  KubernetesReadings kubernetes_readings = KubernetesReadings::kNone;
  SiteName kubernetes_exporter_namespace{"gpu-operator"};
  SiteName kubernetes_exporter_pods;  // a selector of labels; empty: those of NVIDIA's exporter
  std::uint32_t kubernetes_exporter_port = 9400;
  SiteName kubernetes_exporter_path{"/metrics"};

  base::Duration monitoring_interval = base::seconds(5);
  Dcgm dcgm = Dcgm::kAuto;
  SiteName dcgm_address{"localhost:5555"};
  // At these a GPU, or its memory, is too hot for new jobs; degrees Celsius.
  HeatLimit max_temperature_c;
  std::uint32_t max_memory_temperature_c = 95;
  // After these the driver program is killed, and what it was to do has failed.
  base::Duration reset_deadline = base::minutes(3);
  base::Duration check_deadline = base::minutes(5);
  base::Duration deep_check_deadline = base::minutes(30);
  std::vector<PowerLimit> power_limits;  // by name; a node's goes before a type's

  TelemetryRules telemetry;
  std::optional<std::uint32_t>
      metrics_retention_days;  // of telemetry.keep_minutes, if that is not set

  std::vector<AlertRule> alert_rules;
  std::vector<AlertRoute> alert_routes;
  std::vector<AlertChannel> alert_channels;
  base::Duration alert_group_wait = base::seconds(5);
  base::Duration alert_group_interval = base::minutes(5);
  SiteFile alert_template;
  SiteName alert_url;
  std::uint32_t alert_max_waiting = 10'000;
  IdleSettings idle;
  // The thresholds of the shipped rules about these.
  std::optional<std::uint32_t> alert_temperature_c;
  std::optional<std::uint32_t> alert_utilization_percent;
  std::optional<std::uint32_t> alert_memory_percent;

  base::Bytes store_reserve_bytes =
      base::kMiB * 16;  // disk kept free so that endings can be recorded

  std::uint32_t api_threads = 2;
  // The limits of clients; see docs/deployment.md, "Limits".
  std::uint32_t api_connections = 4096;
  std::uint32_t api_connections_per_user = 512;
  std::uint32_t api_channels = 1024;
  std::uint32_t api_channels_per_user = 128;
  std::uint32_t api_streams_per_user = 256;
  base::Bytes api_body_bytes = base::kMiB * 64;
  base::Bytes api_body_bytes_per_user = base::kMiB * 16;
  base::Bytes api_answer_bytes = base::kMiB * 128;
  base::Bytes api_answer_bytes_per_user = base::kMiB * 16;
  base::Bytes api_page_bytes = base::kMiB * 4;
  std::uint32_t api_percent_for_root = 10;
  MetricsRules metrics;
  // The door to other machines; listen_address.h reads an address.
  WordList rest_addresses;
  WordList grpc_addresses;
  WordList rest_host_names;
  WordList rest_origins;
  std::uint32_t rest_connections = 16'384;
  std::uint32_t rest_connections_per_address = 1'024;
  SiteFile tls_certificate;
  SiteFile tls_key;
  SiteFile tls_client_ca;
  SiteName listener_user;  // empty: a number that nothing else has

  // Parts of policy.billing, which the reader puts together.
  model::Billing billing = usual_billing();
  SiteName currency{"USD"};
  PreemptedRuns preempted_runs = PreemptedRuns::kBilled;

  // Parts of policy.organisation, which the reader puts together.
  model::QuotaPeriod quota_period = model::QuotaPeriod::kWeek;
  model::AllocationMode allocation = model::AllocationMode::kGuaranteed;
  std::optional<std::uint32_t> max_gpus_per_user;

  model::AccessSettings access;
  // The OpenID Connect issuer whose tokens are accepted. Without its keys there is none.
  SiteName openid_issuer;
  SiteName openid_audience;
  SiteFile openid_keys;
  SiteName openid_user_claim{"preferred_username"};
  WordList openid_algorithms{{"RS256", "ES256"}};
  base::Duration openid_clock_skew = base::seconds(30);
  // The users of certificates and tokens that others have signed, by the names in these.
  std::map<std::string, std::string, std::less<>> identities;

  SlurmNames slurm;  // the names of Slurm's commands

  std::vector<KeyPlace> places;  // of all keys that the files set, and of "health.rules[0]", by key
  std::vector<Problem> notes;    // on accepted keys that have no effect, in the order of the file

  friend bool operator==(const Configuration&, const Configuration&) = default;
};

// Returns a problem of the key, with the place that sets it where a file does. The message begins
// with what is wrong.
Problem problem_at(std::string_view key, std::string message, const Configuration& configuration);

// Returns "FILE:LINE:COLUMN: message", as compilers write it.
std::string describe(const Problem& problem, std::string_view file);

// The reference page (docs/configuration.md), made from the schema.
std::string reference_page();

}  // namespace gpu_platform::config
