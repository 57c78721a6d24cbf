#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <yaml-cpp/yaml.h>

#include "config/configuration.h"
#include "model/team.h"

namespace gpu_platform::config {

// Reads the keys of schema.h's structures() and puts the organisation together: teams, quotas and
// what GPUs count. What is wrong goes to `problems` with its place.
class OrganisationReader {
 public:
  // Files named are relative to `folder`. `problems` must outlive it.
  OrganisationReader(std::string folder, std::vector<Problem>& problems)
      : folder_(std::move(folder)), problems_(problems) {}

  // The value of the structure `path`, whose key stands at `name`.
  void read(const std::string& path, const YAML::Node& name, const YAML::Node& value);

  // What needs all of the file: parents, circles, keys of which one is allowed. Sets the parts of
  // the configuration that were read.
  void finish(Configuration& configuration);

 private:
  using Problems = std::vector<Problem>;
  struct Place {
    YAML::Mark mark;
    std::string file;
  };

  void read_teams(const YAML::Node& list);
  void read_teams_file(const YAML::Node& value);
  void read_team(const YAML::Node& map);
  bool read_of_team(std::string_view key, const YAML::Node& value, model::Team& team);
  void read_members(const YAML::Node& list, model::Team& team);
  void read_member(const YAML::Node& name, std::uint32_t shares, model::Team& team);
  void read_gpu_weights(const YAML::Node& map);
  void read_named_quotas(const YAML::Node& map, std::vector<model::NamedQuota>& quotas);
  model::Quota read_quota(const YAML::Node& map);
  // False where the key is none of a quota's.
  void read_reserved_ratio(const YAML::Node& value);
  void refuse_guarantee(const YAML::Node& map, const model::Quota& quota, std::string_view whose);
  void check_guarantee(const YAML::Node& map, const model::Quota& quota);
  bool read_limit(std::string_view key, const YAML::Node& value, model::Quota& quota);

  // Calls visit(name, value) for the entries of a map, each name once.
  template <class Visit>
  void for_each_entry(const YAML::Node& map, const Visit& visit);
  void report_unknown(const YAML::Node& name, std::span<const std::string_view> allowed);
  std::optional<std::string> word(const YAML::Node& node, std::string_view what);
  std::optional<std::uint32_t> count(const YAML::Node& node, std::string_view what,
                                     std::uint64_t least);
  void report(const YAML::Node& at, std::string message);

  void check_parents();
  bool is_below_itself(const model::Team& team) const;

  std::string folder_;
  Problems& problems_;
  std::string key_;   // of the structure that is being read
  std::string file_;  // that it is in; empty: the configuration
  model::Organisation organisation_;
  std::vector<model::GpuWeight> gpu_weights_;
  std::vector<Place> team_places_;                       // beside organisation_.teams
  std::map<std::string, YAML::Mark, std::less<>> seen_;  // structures, by path
};

}  // namespace gpu_platform::config
