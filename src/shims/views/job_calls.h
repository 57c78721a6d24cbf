#pragma once

#include <string>
#include <vector>

#include "client/client.h"
#include "gpu_platform/v1/jobs.pb.h"

// The daemon's jobs, as commands ask for them.

namespace gpu_platform::shims {

// All jobs of a query ("user=ada&state=RUNNING"), ascending id.
client::Called<std::vector<v1::Job>> list_jobs(client::Client& client, const std::string& query);
// The job of that id; of an array its members.
client::Called<std::vector<v1::Job>> get_jobs(client::Client& client, const std::string& id);
client::Called<v1::Job> get_job(client::Client& client, const std::string& id);

}  // namespace gpu_platform::shims
