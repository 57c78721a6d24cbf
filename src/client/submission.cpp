#include "client/submission.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <sys/random.h>

#include "api/convert/text_forms.h"
#include "client/request_text.h"
#include "model/job_spec.h"

namespace gpu_platform::client {

namespace {

// The time for which a submission without an answer is repeated.
constexpr base::Duration kSubmitTimeout = base::seconds(10);
// The daemon takes no larger ones.
constexpr std::size_t kMaxBytes = std::size_t{1} << 20;

std::size_t environment_size(const v1::JobSpec& spec) {
  v1::JobSpec environment;
  *environment.mutable_environment() = spec.environment();
  return request_text(environment).size();
}

}  // namespace

std::string random_request_id() {
  std::array<unsigned char, 16> bytes{};
  // Sixteen bytes never come in parts; without randomness the key is not sent at all.
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return {};
  return fmt::format("cli-{:02x}", fmt::join(bytes, ""));
}

namespace {

// A token is for this program alone, and a server's address or a profile only for this machine: on
// its node a job finds the daemon by itself.
bool stays_here(std::string_view entry) {
  constexpr std::array<std::string_view, 4> kOwn = {
      "GPU_PLATFORM_TOKEN=", "GPU_PLATFORM_CA_FILE=", "GPU_PLATFORM_CERT=", "GPU_PLATFORM_KEY="};
  const auto begins_with = [&](std::string_view begin) { return entry.starts_with(begin); };
  return std::ranges::any_of(kOwn, begins_with) ||
         (begins_with("GPU_PLATFORM_SERVER=") && !begins_with("GPU_PLATFORM_SERVER=unix:"));
}

}  // namespace

std::map<std::string, std::string> environment_of(Console& console) {
  std::map<std::string, std::string> environment;
  for (const std::string& entry : console.process_environment().environment) {
    const std::size_t equals = entry.find('=');
    if (equals == 0 || equals == std::string::npos || stays_here(entry)) continue;
    std::string name = entry.substr(0, equals);
    if (!api::is_valid_utf8(entry)) {
      console.warning(fmt::format("variable {} is not UTF-8 and is not passed on", name));
    } else {  // of two with one name the first is what programs see
      environment.emplace(std::move(name), entry.substr(equals + 1));
    }
  }
  return environment;
}

Called<std::string> submit_job(Console& console, Client& client, const v1::JobSpec& job) {
  const std::string text = request_text(job);
  const bool may_repeat = !job.request_id().empty();
  BackOff back_off(console, kSubmitTimeout);
  bool answer_was_lost = false;
  bool was_refused = false;  // nothing was sent, and a daemon that restarts is back in a moment
  while (true) {
    auto answer = client.post("/v1/jobs", text);
    if (answer) return answer;
    Failure failure = std::move(answer).error();
    if (failure.kind == Failure::Kind::kProblem && text.size() > kMaxBytes) {
      failure.message += fmt::format(
          "; {} bytes of it are the environment: submit with fewer or shorter variables (env -u "
          "NAME …)",
          environment_size(job));
    }
    answer_was_lost = answer_was_lost || failure.kind == Failure::Kind::kBroken;
    was_refused = was_refused || failure.is_refused;
    const bool is_safe = answer_was_lost ? may_repeat : was_refused;
    const bool again = is_safe && failure.is_passing();
    if (again && back_off.wait(failure, -1)) continue;
    if (answer_was_lost && failure.is_passing()) {
      failure.message += "; whether the job was accepted is not known";
      if (may_repeat) {
        failure.message += fmt::format(": repeat with --request-id {}", job.request_id());
      }
    }
    return std::unexpected(std::move(failure));
  }
}

}  // namespace gpu_platform::client
