#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/configuration.h"
#include "config/schema.h"

// The values of a configuration, where they come from, and what a change of them means.

namespace gpu_platform::config {

struct EffectiveValue {
  std::string key;
  std::string value;  // as a file would have it; a list or a table as YAML
  std::string file;   // that sets it, if it is an included one
  int line = 0;       // from 1; 0: the default is in force
  Effect effect = Effect::kAnytime;
};

// Returns all keys with one value in the order of the reference page, then the lists and tables
// that are set. No key holds a secret: secrets are in files that keys name.
std::vector<EffectiveValue> effective_values(const Configuration& configuration);

// A key whose value is another one.
struct Difference {
  std::string key;
  std::string before;  // empty for a list or a table
  std::string after;   // empty for a list or a table
  Effect effect = Effect::kAnytime;

  friend bool operator==(const Difference&, const Difference&) = default;
};

// Returns the differences in the order of effective_values().
std::vector<Difference> differences(const Configuration& from, const Configuration& to);

// The values that a daemon uses. Those that a reload may change are as last read, the others as at
// the start.
struct InForce {
  struct Value {
    EffectiveValue now;
    std::string next;  // the value that the next start takes; the same if none waits
  };
  std::string file;  // the main file; empty: the daemon was started without one
  std::vector<Value> values;
};

// Returns the values in the order of effective_values().
InForce values_in_force(std::string file, const Configuration& at_start,
                        const Configuration& last_read);

}  // namespace gpu_platform::config
