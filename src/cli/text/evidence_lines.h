#pragma once

#include <map>
#include <string>

#include "cli/client_names.h"
#include "gpu_platform/v1/cluster.pb.h"

// Evidence in the form of docs/health-evidence.md: one event a line, each a JSON object.

namespace gpu_platform::cli {

// The types of the GPUs by UUID, and how many nodes and GPUs of each type there are: what the
// circuit breaker asks for.
struct GpuInventory {
  struct OfType {
    std::uint64_t gpus = 0;
    std::uint64_t nodes = 0;
  };
  std::map<std::string, std::string> type_of;
  std::map<std::string, OfType> types;
};
GpuInventory inventory_of(const v1::Status& status);

// The lines, ended; the inventory first.
std::string evidence_lines(const v1::EvidenceList& kept, const GpuInventory& inventory);

// Asks the daemon for the evidence that it keeps. `query`: as of GET /v1/gpus/evidence, may be
// empty.
Called<std::string> kept_evidence_lines(Client& client, const std::string& query);

}  // namespace gpu_platform::cli
