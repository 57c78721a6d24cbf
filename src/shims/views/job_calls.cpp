#include "shims/views/job_calls.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "base/parse.h"
#include "base/percent.h"
#include "client/answer.h"
#include "http/http.h"

namespace gpu_platform::shims {

namespace {

template <class Message>
client::Called<Message> told(client::Client& client, const std::string& target,
                             std::string_view what) {
  const auto body = client.get(target);
  if (!body) return std::unexpected(body.error());
  auto message = client::message_of<Message>(*body);
  if (message) return *std::move(message);
  return std::unexpected(client::Failure{
      client::Failure::Kind::kBadAnswer, fmt::format("{} is not a JSON object", what), {}, {}});
}

}  // namespace

client::Called<std::vector<v1::Job>> list_jobs(client::Client& client, const std::string& query) {
  std::vector<v1::Job> jobs;
  std::string token;
  do {
    std::string page = query;
    http::append_query(page, "limit", "10000");
    if (!token.empty()) http::append_query(page, "page_token", token);
    auto list = told<v1::ListJobsResponse>(client, "/v1/jobs?" + page, "a list");
    if (!list) return std::unexpected(list.error());
    std::ranges::move(*list->mutable_jobs(), std::back_inserter(jobs));
    token = list->next_page();
  } while (!token.empty());
  std::ranges::reverse(jobs);
  return jobs;
}

client::Called<std::vector<v1::Job>> get_jobs(client::Client& client, const std::string& id) {
  auto found = get_job(client, id);
  if (!found) return std::unexpected(found.error());
  const auto number = base::parse_count(id, 1, INT64_MAX);
  const bool is_array = number && found->array_id() == id;
  const std::uint64_t size = is_array && found->has_array_size() ? found->array_size() : 1;
  std::vector<v1::Job> jobs{std::move(*found)};
  // The ids of members follow each other.
  for (std::uint64_t position = 1; position < size; ++position) {
    auto job = get_job(client, fmt::format("{}", *number + position));
    if (!job) return std::unexpected(job.error());
    jobs.push_back(std::move(*job));
  }
  return jobs;
}

client::Called<v1::Job> get_job(client::Client& client, const std::string& id) {
  return told<v1::Job>(client, "/v1/jobs/" + base::percent_encoded(id), "a job");
}

}  // namespace gpu_platform::shims
