#include "client/members.h"

#include <fmt/format.h>

#include "base/parse.h"
#include "base/percent.h"

namespace gpu_platform::client {

std::vector<std::string> members_in(const v1::Job& job, const std::string& id) {
  const auto number = base::parse_count(id, 1, INT64_MAX);
  if (!number || job.array_id() != id) return {id};
  // They follow each other.
  const std::uint64_t size = job.has_array_size() ? job.array_size() : 1;
  std::vector<std::string> ids;
  for (std::uint64_t position = 0; position < size; ++position) {
    ids.push_back(fmt::format("{}", *number + position));
  }
  return ids;
}

Called<std::vector<std::string>> members_of(Client& client, const std::string& id) {
  const auto body = client.get("/v1/jobs/" + base::percent_encoded(id));
  if (!body) return std::unexpected(body.error());
  return members_in(message_of<v1::Job>(*body).value_or(v1::Job()), id);
}

}  // namespace gpu_platform::client
