#include "cli/submission.h"

#include <array>

#include <fmt/format.h>
#include <sys/random.h>

#include "api/convert/text_forms.h"

namespace gpu_platform::cli {

namespace {

// How long a submission whose answer was lost is repeated.
constexpr base::Duration kSubmitPatience = base::seconds(10);
// The daemon takes no larger ones.
constexpr std::size_t kMaxBytes = std::size_t{1} << 20;

}  // namespace

std::string random_request_id() {
  std::array<unsigned char, 16> bytes{};
  // Sixteen bytes never come in parts; without randomness the key is not sent at all.
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return {};
  return fmt::format("cli-{:02x}", fmt::join(bytes, ""));
}

Json environment_of(Console& console) {
  Json environment = Json::object();
  for (const std::string& entry : console.surroundings().environment) {
    const std::size_t equals = entry.find('=');
    if (equals == 0 || equals == std::string::npos) continue;
    const std::string name = entry.substr(0, equals);
    if (!api::is_valid_utf8(entry)) {
      console.warning(fmt::format("variable {} is not UTF-8 and is not passed on", name));
    } else if (!environment.contains(
                   name)) {  // of two with one name the first is what programs see
      environment[name] = entry.substr(equals + 1);
    }
  }
  return environment;
}

Called<std::string> submit_job(Console& console, Client& client, const Json& body) {
  const std::string text = json_text(body);
  const bool may_repeat = body.contains("request_id");
  Patience patience(console, kSubmitPatience);
  bool answer_was_lost = false;
  while (true) {
    auto answer = client.post("/v1/jobs", text);
    if (answer) return answer;
    Failure failure = std::move(answer).error();
    if (failure.kind == Failure::Kind::kProblem && text.size() > kMaxBytes) {
      failure.message += fmt::format(
          "; {} bytes of it are the environment: submit with fewer or shorter variables (env -u "
          "NAME …)",
          json_text(body.value("environment", Json::object())).size());
    }
    answer_was_lost = answer_was_lost || failure.kind == Failure::Kind::kBroken;
    const bool again = may_repeat && answer_was_lost && failure.is_passing();
    if (again && patience.wait(failure, -1)) continue;
    if (answer_was_lost && failure.is_passing()) {
      failure.message += "; whether the job was accepted is not known";
      if (may_repeat) {
        failure.message +=
            fmt::format(": repeat with --request-id {}", text_at(body, "request_id"));
      }
    }
    return std::unexpected(std::move(failure));
  }
}

}  // namespace gpu_platform::cli
