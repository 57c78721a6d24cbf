#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <yaml-cpp/yaml.h>

#include "config/configuration.h"
#include "config/yaml/structure_reader.h"

namespace gpu_platform::config {

// Reads the list of budgets (accounting.budgets). Problems go to `problems` with their places.
class BudgetsReader : private StructureReader {
 public:
  // `problems` must outlive it.
  explicit BudgetsReader(std::vector<Problem>& problems) : StructureReader(problems) {}

  using StructureReader::in_file;
  static bool reads(std::string_view path);
  void read(const std::string& path, const YAML::Node& list);
  // Checks what needs the whole file, the teams; the organisation must be there. Puts the budgets
  // into the policy.
  void finish(Configuration& configuration);

 private:
  struct ReadBudget {
    model::Budget budget;
    std::string key;  // "accounting.budgets[2]"
    std::string file;
    int line = 0;
    int column = 0;
  };

  void read_budget(const YAML::Node& map, std::size_t index);
  void read_amount(const YAML::Node& node, model::Budget& budget);
  void report_at(const ReadBudget& read, std::string message);

  std::vector<ReadBudget> budgets_;
};

}  // namespace gpu_platform::config
