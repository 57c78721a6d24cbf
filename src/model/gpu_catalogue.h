#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/units.h"

namespace gpu_platform::model {

// A GPU product people ask for by name. Source of models and memory sizes: NVIDIA's data sheets.
struct GpuType {
  std::string_view name;    // "H100-80GB"
  std::string_view family;  // "H100"
  base::Bytes nominal_memory;
};

std::span<const GpuType> gpu_catalogue();

// The catalogue's canonical name of a type or family; case, '_' and '-' do not matter. A name that
// is not in the catalogue gives nothing.
std::optional<std::string> canonical_gpu_type(std::string_view name);

// The catalogue name of a GPU by the driver's model name and memory ("NVIDIA H100 80GB HBM3" ->
// "H100-80GB"); the model name itself where the catalogue has none.
std::string gpu_type_of_model(std::string_view model, base::Bytes memory);

// True when a GPU of `type` satisfies a request for `wanted` (a type, or a family meaning any of
// it).
bool gpu_type_matches(std::string_view wanted, std::string_view type);

}  // namespace gpu_platform::model
