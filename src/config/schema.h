#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"
#include "config/configuration.h"

// The table of all keys. schema_queue.cpp, schema_execution.cpp and schema_api.cpp have its rows,
// schema_rules.cpp and schema_lists.cpp the other tables. The field that a key sets determines the
// key's type, and a default-constructed Configuration has its default, so neither can disagree with
// the code.

namespace gpu_platform::config {

// The field of a Configuration that a key sets. The type says how the value is written.
using Field =
    std::variant<bool& (*)(Configuration&),                           // true or false
                 std::uint32_t& (*)(Configuration&),                  // whole number
                 std::uint64_t& (*)(Configuration&),                  // whole number
                 std::int64_t& (*)(Configuration&),                   // whole number
                 std::optional<std::uint32_t>& (*)(Configuration&),   // whole number, or not set
                 base::Duration& (*)(Configuration&),                 // "90s", or a count of `unit`
                 base::Bytes& (*)(Configuration&),                    // "16G"
                 base::MicroUsd& (*)(Configuration&),                 // "0.25"
                 PreemptedRuns& (*)(Configuration&),                  // one of its words
                 RootJobs& (*)(Configuration&),                       // one of its words
                 model::Role& (*)(Configuration&),                    // one of its words
                 model::Audience& (*)(Configuration&),                // one of its words
                 Seccomp& (*)(Configuration&),                        // one of its words
                 CudaVisibleDevices& (*)(Configuration&),             // one of its words
                 KubernetesDevices& (*)(Configuration&),              // one of its words
                 KubernetesReadings& (*)(Configuration&),             // one of its words
                 Dcgm& (*)(Configuration&),                           // one of its words
                 MetricNames& (*)(Configuration&),                    // one of its words
                 MetricJobs& (*)(Configuration&),                     // one of its words
                 model::CapacityClass& (*)(Configuration&),           // one of its words
                 model::UnmanagedProcessPolicy& (*)(Configuration&),  // one of its words
                 model::SickGpuPolicy& (*)(Configuration&),           // one of its words
                 IdleAction& (*)(Configuration&),                     // one of its words
                 model::HealthProfile& (*)(Configuration&),           // one of its words
                 model::HealthMode& (*)(Configuration&),              // one of its words
                 model::HealthReset& (*)(Configuration&),             // one of its words
                 model::HealthCheckAtStart& (*)(Configuration&),      // one of its words
                 model::PriorityClass& (*)(Configuration&),           // one of its words
                 model::QueueOrder& (*)(Configuration&),              // one of its words
                 model::QuotaPeriod& (*)(Configuration&),             // one of its words
                 model::AllocationMode& (*)(Configuration&),          // one of its words
                 std::string& (*)(Configuration&),  // a program with its arguments
                 ProgramFile& (*)(Configuration&),  // a program without arguments
                 SiteFile& (*)(Configuration&),     // any other file
                 SiteName& (*)(Configuration&),     // a name
                 WordList& (*)(Configuration&),     // words, separated by blanks
                 HeatLimit& (*)(Configuration&)>;   // degrees, or "slowdown-5"

// When a changed value takes effect.
enum class Effect : std::uint8_t {
  kAnytime,  // the daemon may take it up while it runs
  kRestart,  // read once at start
};

struct Key {
  std::string_view path;  // "section.key" or "section.group.key"
  Field field;
  // Bounds, both allowed: in units of a number, seconds of a duration, bytes of a size, whole ones
  // of the currency.
  std::int64_t least = 0;
  std::int64_t most = 0;
  Effect effect = Effect::kRestart;
  std::string_view doc;
  // For a duration that is written as a bare number because its key names the unit; zero: written
  // "90s".
  base::Duration unit;
};

// Returns the keys in the order of the reference page; those of one section stand together.
std::span<const Key> schema();

// The purpose of a section, by its name.
struct Section {
  std::string_view name;
  std::string_view doc;
};
std::span<const Section> sections();

// A key that holds more than one value; yaml/ reads it. All may change while the daemon runs.
struct Structure {
  std::string_view path;
  std::string_view form;     // "a list of teams"
  std::string_view example;  // lines of a file; may be empty
  std::string_view doc;
};
std::span<const Structure> structures();

// Sets the key's field from the text of a scalar. The error says what is allowed.
base::Status set_value(const Key& key, std::string_view text, Configuration& configuration);

// True for words, names, paths and heat limits, which may stand in quotes.
bool is_text(const Key& key);

// Returns the key's value as a file would have it; "not set" if there is none.
std::string value_text(const Key& key, const Configuration& configuration);

// Returns the allowed values: "true or false", "1 to 100", "1s to 7d".
std::string allowed_text(const Key& key);

// A rule that ties several keys together.
struct Rule {
  std::string_view key;  // where the error is reported
  bool (*holds)(const Configuration&);
  std::string_view message;
};
std::span<const Rule> rules();

}  // namespace gpu_platform::config
