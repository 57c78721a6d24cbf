#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "controller/state.h"
#include "model/ledger.h"

namespace gpu_platform::simulation {

// What became of the time of each GPU, added up by one who knows nothing of how lines are made. At
// each moment the lines of a GPU, what its clock has not told yet and what attempts hold come to
// 7000 shares for each millisecond since the GPU was first seen, or was seen again after it had
// been forgotten.
class GpuBooks {
 public:
  // Takes in the lines of one event and the state after it. Returns what is wrong with them.
  std::optional<std::string> take(std::span<const model::LedgerLine> lines,
                                  const controller::State& state);

 private:
  using Key = std::pair<std::string, std::string>;  // the node's name, the GPU's UUID
  struct Account {
    model::Millis since = 0;
    std::int64_t told = 0;  // share × ms, by lines
    bool is_there = false;  // in the present state
  };

  std::optional<std::string> take_line(const model::LedgerLine& line, model::Millis now);
  std::optional<std::string> check_gpu(const model::Node& node, const model::Gpu& gpu,
                                       const controller::State& state);
  std::optional<std::string> close_those_gone(model::Millis now);

  std::map<Key, Account> accounts_;
};

}  // namespace gpu_platform::simulation
