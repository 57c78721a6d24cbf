#include "api/site_calls.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "api/call_context.h"
#include "api/convert/audit.h"
#include "base/parse.h"
#include "config/effective.h"
#include "config/slurm_names.h"
#include "os/clock.h"

namespace gpu_platform::api {

namespace {

void put_value(const config::InForce::Value& value, v1::ConfigurationValue& out) {
  const config::EffectiveValue& now = value.now;
  out.set_key(now.key);
  out.set_value(now.value);
  if (now.line != 0) {
    out.set_file(now.file);
    out.set_line(static_cast<std::uint32_t>(now.line));
  }
  out.set_takes_effect(now.effect == config::Effect::kAnytime ? v1::CONFIGURATION_EFFECT_ANYTIME
                                                              : v1::CONFIGURATION_EFFECT_START);
  if (value.next != now.value) out.set_next_value(value.next);
}

double seconds_of(base::Duration duration) {
  return static_cast<double>(base::whole_milliseconds(duration)) / 1000;
}

template <class Limits, class Message>
void put_limits(const Limits& from, Message& out) {
  out.set_name(from.name);
  if (from.priority) out.set_priority(std::string(to_string(*from.priority)));
  if (from.max_time) out.set_max_time_seconds(seconds_of(*from.max_time));
  if (from.max_gpus) out.set_max_gpus(*from.max_gpus);
}

void to_proto(const config::SlurmPartition& partition, v1::SlurmPartition& out) {
  put_limits(partition, out);
  out.set_is_default(partition.is_default);
  for (const std::string& type : partition.gpu_types) out.add_gpu_types(type);
  if (partition.default_time) out.set_default_time_seconds(seconds_of(*partition.default_time));
  if (partition.max_nodes) out.set_max_nodes(*partition.max_nodes);
}

struct PricedType {
  std::set<std::string> models;
  base::MicroUsd per_hour;
};

// The highest price of each type of GPU that has one now.
std::map<std::string, PricedType> priced_types(const controller::Snapshot& snapshot,
                                               base::Instant now) {
  std::map<std::string, PricedType> types;
  snapshot.nodes.for_each([&](std::uint64_t, const model::Node& node) {
    std::map<std::string_view, const model::PriceEntry*> here;  // looked up once for each node
    for (const model::Gpu& gpu : node.gpus) {
      const auto [found, is_new] = here.try_emplace(gpu.info.type);
      if (is_new) found->second = snapshot.prices->at(gpu.info.type, node.capacity, node.name, now);
      if (found->second == nullptr) continue;
      PricedType& type = types[gpu.info.type];
      type.models.insert(gpu.info.model);
      type.per_hour = std::max(type.per_hour, found->second->price.per_hour);
    }
  });
  return types;
}

void put_billing(const controller::Snapshot& snapshot, base::Instant now, v1::SlurmNames& out) {
  for (const auto& [name, type] : priced_types(snapshot, now)) {
    v1::SlurmBillingWeight& weight = *out.add_billing_weights();
    weight.set_gpu_type(name);
    for (const std::string& model : type.models) weight.add_models(model);
    weight.set_per_hour(base::written(type.per_hour));
  }
  const model::CpuPrices& cpu = snapshot.policy->billing->cpu;
  if (cpu.core_hour.value() > 0) out.set_core_hour(base::written(cpu.core_hour));
  if (cpu.gib_hour.value() > 0) out.set_gib_hour(base::written(cpu.gib_hour));
}

}  // namespace

v1::Identity SiteCalls::who_am_i(const v1::WhoAmIRequest&, const Peer& peer) const {
  const model::Caller& caller = peer.caller;
  v1::Identity out;
  out.set_user(caller.user);
  out.set_uid(caller.uid);
  out.set_role(static_cast<v1::Role>(static_cast<int>(caller.role) + 1));
  const bool is_local = caller.door != model::Door::kListener;
  out.set_credential(is_local                   ? v1::CREDENTIAL_KIND_SOCKET
                     : peer.identity == nullptr ? v1::CREDENTIAL_KIND_TOKEN
                     : peer.identity->kind == IdentityKind::kOpenId
                         ? v1::CREDENTIAL_KIND_OPENID
                         : v1::CREDENTIAL_KIND_CERTIFICATE);
  if (caller.credential != 0) out.set_token(std::to_string(caller.credential));
  if (caller.credential_name != nullptr) set_credential_name(*caller.credential_name, out);
  const std::shared_ptr<const controller::Snapshot> snapshot = context_.core.snapshots.snapshot();
  for (const auto& [name, team] : snapshot->teams->run_time) {
    const auto is_own = [&](const auto& each) { return each.user == caller.user; };
    if (std::ranges::any_of(team.invited, is_own)) out.add_invitations(name);
  }
  if (caller.teams == nullptr) return out;
  for (const std::string& team : caller.teams->member_of) out.add_teams(team);
  for (const std::string& team : caller.teams->coordinates) out.add_coordinates(team);
  return out;
}

v1::Health SiteCalls::health() const {
  v1::Health out;
  out.set_status("ok");
  const std::chrono::duration<double> uptime = std::chrono::steady_clock::now() - began_;
  out.set_uptime_seconds(uptime.count());
  return out;
}

base::Result<v1::Readiness> SiteCalls::readiness() const {
  if (context_.core.readiness) {
    const base::Status status = context_.core.readiness();
    if (!status) return base::fail(base::ErrorCode::kUnavailable, status.error().message);
  }
  v1::Readiness out;
  out.set_ready(true);
  return out;
}

v1::Version SiteCalls::version() const {
  v1::Version out;
  out.set_version(context_.options.version);
  out.set_api("v1");
  return out;
}

v1::Configuration SiteCalls::configuration() const {
  v1::Configuration out;
  const auto in_force = context_.core.configuration ? context_.core.configuration() : nullptr;
  if (in_force == nullptr) return out;
  if (!in_force->file.empty()) out.set_file(in_force->file);
  for (const config::InForce::Value& value : in_force->values) put_value(value, *out.add_values());
  return out;
}

v1::SlurmNames SiteCalls::slurm_names() const {
  v1::SlurmNames out;
  const std::shared_ptr<const controller::Snapshot> snapshot = context_.core.snapshots.snapshot();
  out.set_can_notify(snapshot->policy->can_notify);
  out.set_max_time_seconds(seconds_of(snapshot->policy->max_time_limit));
  out.set_can_share(snapshot->policy->sharing.is_on);
  put_billing(*snapshot, os::wall_now(), out);
  const auto names = context_.core.slurm_names ? context_.core.slurm_names() : nullptr;
  out.set_shards_per_gpu(names == nullptr ? config::SlurmNames().shards_per_gpu
                                          : names->shards_per_gpu);
  if (names == nullptr) return out;
  for (const config::SlurmPartition& partition : names->partitions)
    to_proto(partition, *out.add_partitions());
  for (const config::SlurmQos& qos : names->qos) put_limits(qos, *out.add_qos());
  return out;
}

}  // namespace gpu_platform::api
