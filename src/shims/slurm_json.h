#pragma once

#include <span>
#include <vector>

#include "cli/json_view.h"
#include "shims/node_view.h"
#include "shims/site.h"

// What --json prints: the documents of Slurm 22.05 (v0.0.38). A field that the platform does not
// know is empty, zero or null, as Slurm has it where it does not know it. Pure.

namespace gpu_platform::shims {

cli::Json nodes_document(const std::vector<NodeView>& nodes, const Site& site);

// Returns the document of squeue: one entry for each job.
cli::Json jobs_document(std::span<const cli::Json> jobs, base::Instant now);

// Returns the document of sacct, with the steps in their jobs.
cli::Json accounting_document(std::span<const cli::Json> jobs, base::Instant now);

}  // namespace gpu_platform::shims
