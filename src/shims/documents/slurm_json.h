#pragma once

#include <span>
#include <vector>

#include "cli/text/json_view.h"
#include "shims/documents/slurm_document.h"
#include "shims/views/job_view.h"
#include "shims/views/node_view.h"
#include "shims/views/partitions.h"
#include "shims/views/squeue_steps.h"

// The documents of --json and --yaml, without what every one of them has (slurm_document.h). A
// field that the platform does not know is empty, zero or not set, as Slurm has it where it does
// not know it. Pure.

namespace gpu_platform::shims {

// What documents of nodes and jobs are made of.
struct DocumentFacts {
  DocumentForm form = DocumentForm::k42;
  base::Instant now;
  std::vector<NodeView> nodes;  // all of the cluster
  Site site;
};

// Returns the document of "scontrol show node", of those that are named.
cli::Json nodes_document(const DocumentFacts& facts, const std::vector<NodeView>& shown);

// Returns the document of sinfo: the nodes of each partition, one entry for those that are alike.
cli::Json sinfo_document(const DocumentFacts& facts, const std::vector<NodeView>& shown,
                         const std::vector<Partition>& partitions);

// Returns the document of "scontrol show partition".
cli::Json partitions_document(const DocumentFacts& facts, const std::vector<Partition>& shown);

// Returns the document of "scontrol show reservation".
cli::Json reservations_document(const DocumentFacts& facts, std::span<const v1::Reservation> shown);

// Returns the document of squeue and "scontrol show job".
cli::Json jobs_document(const DocumentFacts& facts, std::span<const QueueEntry> entries);

// Returns the document of "squeue -s" and "scontrol show step".
cli::Json steps_document(const DocumentFacts& facts, std::span<const QueueStepRow> steps);

// Returns the document of sacct, with the steps in their jobs.
cli::Json accounting_document(const DocumentFacts& facts, std::span<const v1::Job> jobs);

// The same of Slurm 22.05 (v0.0.38).
cli::Json old_nodes_document(const std::vector<NodeView>& nodes, const Site& site);
cli::Json old_jobs_document(std::span<const QueueEntry> entries, const BillingWeights& weights);
cli::Json old_accounting_document(std::span<const v1::Job> jobs, const BillingWeights& weights,
                                  base::Instant now);

}  // namespace gpu_platform::shims
