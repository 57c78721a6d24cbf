#include "shims/views/partitions.h"

#include <algorithm>

#include "cli/json_view.h"
#include "cli/text.h"
#include "shims/steps/step_variables.h"

namespace gpu_platform::shims {

namespace {

template <class Named>
const Named* named(const std::vector<Named>& list, std::string_view name) {
  const auto found = std::ranges::find(list, name, &Named::name);
  return found == list.end() ? nullptr : &*found;
}

template <class Named>
std::string names(const std::vector<Named>& list) {
  std::vector<std::string> result;
  for (const Named& entry : list) result.push_back(entry.name);
  return cli::joined(result, ", ");
}

std::optional<base::Duration> seconds_at(const cli::Json& entry, std::string_view key) {
  const auto seconds = cli::number_at(entry, key);
  if (!seconds) return std::nullopt;
  return base::milliseconds(static_cast<std::int64_t>(*seconds * 1000));
}

std::optional<std::uint32_t> number_at(const cli::Json& entry, std::string_view key) {
  const auto number = cli::integer_at(entry, key);
  if (!number) return std::nullopt;
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(*number, 0, UINT32_MAX));
}

}  // namespace

Site usual_site() {
  Site site;
  site.partitions.push_back({std::string(kPartition), true, {}, {}, {}, {}, {}, {}});
  site.qos = {{"normal", "MEDIUM", {}, {}},
              {"low", "LOW", {}, {}},
              {"medium", "MEDIUM", {}, {}},
              {"high", "HIGH", {}, {}},
              {"critical", "CRITICAL", {}, {}}};
  return site;
}

Site site_in(const cli::Json& document) {
  Site site = usual_site();
  const cli::Json& partitions = cli::list_at(document, "partitions");
  site.names_partitions = !partitions.empty();
  if (site.names_partitions) site.partitions.clear();
  for (const cli::Json& entry : partitions) {
    site.partitions.push_back({cli::text_at(entry, "name"), cli::flag_at(entry, "is_default"),
                               cli::texts_at(entry, "gpu_types"), cli::text_at(entry, "priority"),
                               seconds_at(entry, "max_time_seconds"),
                               seconds_at(entry, "default_time_seconds"),
                               number_at(entry, "max_gpus"), number_at(entry, "max_nodes")});
  }
  const cli::Json& qos = cli::list_at(document, "qos");
  site.names_qos = !qos.empty();
  if (site.names_qos) site.qos.clear();
  for (const cli::Json& entry : qos) {
    site.qos.push_back({cli::text_at(entry, "name"), cli::text_at(entry, "priority"),
                        seconds_at(entry, "max_time_seconds"), number_at(entry, "max_gpus")});
  }
  return site;
}

client::Called<Site> site_of(client::Client& client) {
  const auto body = client.get("/v1/slurm");
  if (!body) return std::unexpected(body.error());
  const auto document = cli::parse_object(*body);
  return document ? site_in(*document) : usual_site();
}

const Partition* partition_named(const Site& site, std::string_view name) {
  return named(site.partitions, name);
}

const Partition& default_partition(const Site& site) {
  const auto found = std::ranges::find(site.partitions, true, &Partition::is_default);
  return found == site.partitions.end() ? site.partitions.front() : *found;
}

const Qos* qos_named(const Site& site, std::string_view name) {
  return named(site.qos, name);
}

std::string partition_names(const Site& site) {
  return names(site.partitions);
}

std::string qos_names(const Site& site) {
  return names(site.qos);
}

}  // namespace gpu_platform::shims
