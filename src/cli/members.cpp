#include "cli/members.h"

#include <fmt/format.h>

#include "base/parse.h"
#include "base/percent.h"
#include "http/http.h"

namespace gpu_platform::cli {

std::vector<std::string> members_in(const Json& job, const std::string& id) {
  const auto number = base::parse_count(id, 1, INT64_MAX);
  if (!number || text_at(job, "array_id") != id) return {id};
  // They follow each other.
  const std::int64_t size = integer_at(job, "array_size").value_or(1);
  std::vector<std::string> ids;
  for (std::int64_t position = 0; position < size; ++position) {
    ids.push_back(fmt::format("{}", *number + static_cast<std::uint64_t>(position)));
  }
  return ids;
}

Called<std::vector<std::string>> members_of(Client& client, const std::string& id) {
  const auto body = client.get("/v1/jobs/" + base::percent_encoded(id));
  if (!body) return std::unexpected(body.error());
  const auto job = parse_object(*body);
  return job ? members_in(*job, id) : std::vector<std::string>{id};
}

Called<std::vector<std::string>> with_members(Client& client, const std::vector<std::string>& ids) {
  std::vector<std::string> all;
  for (const std::string& id : ids) {
    auto members = members_of(client, id);
    if (!members) return std::unexpected(std::move(members).error());
    all.insert(all.end(), members->begin(), members->end());
  }
  return all;
}

}  // namespace gpu_platform::cli
