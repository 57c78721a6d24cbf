#include "model/job_size.h"

#include <string>
#include <vector>

namespace gpu_platform::model {

namespace {

// Written down and not asked of the compiler: what a user may submit is part of the contract and
// must not change with a standard library. Near what GCC 12 has on 64 bits.
constexpr std::size_t kSpec = 1024;  // the specification itself, and what the job beside it takes
constexpr std::size_t kText = 32;    // a std::string, whose bytes come on top

std::size_t size_of(const std::string& text) {
  return text.size();
}
std::size_t size_of(const std::vector<std::string>& texts) {
  std::size_t bytes = 0;
  for (const std::string& text : texts) bytes += kText + text.size();
  return bytes;
}

std::size_t size_of(const ResourceRequest& request) {
  return size_of(request.gpu_types) + size_of(request.window) +
         sizeof(NodeId) * (request.nodelist.size() + request.exclude.size()) +
         sizeof(std::uint32_t) * request.gpu_speeds.size();
}

}  // namespace

base::Bytes size_of(const JobSpec& spec) {
  std::size_t bytes = kSpec + size_of(spec.command) + size_of(spec.request);
  for (const std::string* text :
       {&spec.name, &spec.user, &spec.team, &spec.project, &spec.workdir, &spec.output, &spec.error,
        &spec.environment_ref, &spec.request_id, &spec.prolog, &spec.epilog}) {
    bytes += size_of(*text);
  }
  for (const Label& label : spec.labels) bytes += 2 * kText + label.key.size() + label.value.size();
  // Once as asked for, once as what the job still waits for.
  bytes += 2 * sizeof(Dependency) * spec.dependencies.size();
  if (spec.array) bytes += sizeof(std::uint64_t) * 2 * spec.array->runs.size();
  return base::Bytes(static_cast<std::int64_t>(bytes));
}

}  // namespace gpu_platform::model
