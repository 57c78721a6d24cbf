#pragma once

#include <string_view>

#include "api/rest/exchange.h"
#include "api/rest/routes.h"
#include "model/audit.h"

// What the audit trail says of a call that is refused. Names are cut where they are too long.

namespace gpu_platform::api {

// Returns the entry of a call by the client of the exchange.
model::AuditedCall begin_audit(Exchange& exchange, model::AuditAction action);

// Adds the job that is named so, where that is a name of one.
void add_job(std::string_view id, model::AuditedCall& call);
void add_target(std::string_view target, model::AuditedCall& call);
void add_request_id(std::string_view id, model::AuditedCall& call);

// Adds the job, the GPU, the node or the name in a request that is refused before its handler reads
// it, if that can be read.
void add_target_of(const Route& route, const HttpRequest& request, model::AuditedCall& call);

}  // namespace gpu_platform::api
