#pragma once

#include <array>
#include <string>
#include <string_view>

// The verbs that are done here and not by the daemon's client. Each gets its words as main would
// (argv[0] is the verb) and returns the exit code.

namespace gpu_platform::bin {

struct VerbText {
  std::string_view name;
  std::string_view summary;
};
inline constexpr std::array<VerbText, 4> kVerbs = {
    {{"serve", "Run the daemon in the foreground."},
     {"doctor", "Check this host and print what to fix."},
     {"simulate", "Run the scheduling core on virtual time, with simulated faults."},
     {"store", "Check or recover the store of a daemon that is not running."}}};

int serve_main(int argc, char** argv);
int store_main(int argc, char** argv);
int doctor_main(int argc, char** argv);
int simulate_main(int argc, char** argv);

// As client/places.h has it, for this process.
std::string default_data_dir();

}  // namespace gpu_platform::bin
