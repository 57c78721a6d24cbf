#pragma once

#include <map>
#include <set>
#include <string>

#include "cli/client_names.h"
#include "gpu_platform/v1/jobs.pb.h"

// The daemon's messages name other jobs by their own ids. People know a member of an array as
// "15_5".

namespace gpu_platform::cli {

// Texts for jobs, by their ids.
using JobLabels = std::map<std::string, std::string>;

// What these jobs are called. Those that the daemon does not know any more, or not to the caller,
// are left out. Asks for a few jobs one by one, and for many by one list of those that hold GPUs.
JobLabels job_names(Client& client, const std::set<std::string>& ids);

// What the jobs on GPUs are called, with their users: "15_5 ada".
JobLabels job_labels(Client& client);

// The name, or the id itself without one.
const std::string& label_of(const JobLabels& labels, const std::string& id);

// Puts names in the place of the ids of other jobs, in all of the message that a page shows.
void name_other_jobs(Client& client, v1::Job& job);

}  // namespace gpu_platform::cli
