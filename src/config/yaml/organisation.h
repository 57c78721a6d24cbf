#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <yaml-cpp/yaml.h>

#include "config/configuration.h"
#include "config/yaml/structure_reader.h"
#include "model/team.h"

namespace gpu_platform::config {

// Reads the keys of schema.h's structures() and builds the organisation: teams, quotas and the
// weights of GPUs. Problems go to `problems` with their places.
class OrganisationReader : private StructureReader {
 public:
  // Files named are relative to `folder`. `problems` must outlive it.
  OrganisationReader(std::string folder, std::vector<Problem>& problems)
      : StructureReader(problems), folder_(std::move(folder)) {}

  using StructureReader::in_file;
  // The value of the structure `path`; its key is at `name`.
  void read(const std::string& path, const YAML::Node& name, const YAML::Node& value);

  // Checks what needs the whole file: parents, circles, keys that exclude each other. Sets the
  // parts of the configuration that were read.
  void finish(Configuration& configuration);

 private:
  struct Place {
    YAML::Mark mark;
    std::string file;
  };

  void read_teams(const YAML::Node& list);
  void read_teams_file(const YAML::Node& value);
  void read_team(const YAML::Node& map);
  bool read_of_team(std::string_view key, const YAML::Node& value, model::Team& team);
  void read_default_time_limit(const YAML::Node& value, model::Team& team);
  void read_members(const YAML::Node& list, model::Team& team);
  void read_member(const YAML::Node& name, std::uint32_t shares, model::Team& team);
  void read_gpu_weights(const YAML::Node& map);
  void read_named_quotas(const YAML::Node& map, std::vector<model::NamedQuota>& quotas);
  model::Quota read_quota(const YAML::Node& map);
  // Returns false if the key does not belong to a quota.
  void read_reserved_ratio(const YAML::Node& value);
  void refuse_guarantee(const YAML::Node& map, const model::Quota& quota, std::string_view whose);
  void check_guarantee(const YAML::Node& map, const model::Quota& quota);
  void check_type_guarantees(const YAML::Node& map, const model::Quota& quota);
  void read_type_limits(const YAML::Node& map, model::Quota& quota);
  bool read_type_limit(std::string_view key, const YAML::Node& value, model::TypeQuota& quota);
  void check_type_guarantee(const YAML::Node& map, const model::TypeQuota& quota);
  bool read_limit(std::string_view key, const YAML::Node& value, model::Quota& quota);

  void check_parents();
  void check_default_times(base::Duration longest);
  void report_team(std::size_t index, std::string message);
  bool is_below_itself(const model::Team& team) const;

  std::string folder_;
  model::Organisation organisation_;
  std::set<std::string> team_coordinators_;  // of the team that is being read
  std::map<std::string, std::set<std::string>, std::less<>> coordinators_;  // by team
  std::vector<model::GpuWeight> gpu_weights_;
  std::vector<Place> team_places_;                  // beside organisation_.teams
  std::set<std::string> guaranteed_types_;          // with guarantees so far
  std::map<std::string, Place, std::less<>> seen_;  // structures, by path
};

}  // namespace gpu_platform::config
