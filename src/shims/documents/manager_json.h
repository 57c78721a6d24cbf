#pragma once

#include <vector>

#include "cli/text/json_view.h"
#include "shims/documents/slurm_document.h"
#include "shims/views/manager_columns.h"

// The documents of "sacctmgr --json": the same rows as its tables. Pure.

namespace gpu_platform::shims {

cli::Json accounts_document(const std::vector<ManagedRow>& rows);
cli::Json associations_document(DocumentForm form, const std::vector<ManagedRow>& rows);
cli::Json users_document(const std::vector<ManagedRow>& rows);
cli::Json clusters_document(const std::vector<ManagedRow>& rows);
cli::Json qos_document(DocumentForm form, const std::vector<ManagedRow>& rows);
cli::Json tres_document(const std::vector<ManagedRow>& rows);

}  // namespace gpu_platform::shims
