#include "cli/prediction_text.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "cli/text.h"

namespace gpu_platform::cli {

namespace {

std::string shown_span(double seconds) {
  return age(base::milliseconds(std::llround(std::abs(seconds) * 1000)));
}

std::string range(const std::string& from, const std::string& to) {
  return from == to ? from : fmt::format("{} to {}", from, to);
}

std::string basis_text(const Json& predicted) {
  const std::string basis = text_at(predicted, "basis");
  if (basis == "expected_time") return "expected time";
  if (basis != "history") return "hard limits";
  const auto runs = static_cast<std::uint64_t>(integer_at(predicted, "runs").value_or(0));
  return runs == 0 ? "history p50–p90" : fmt::format("history p50–p90 of {}", counted(runs, "run"));
}

std::string whose_runs(const Json& predicted) {
  const std::string level = text_at(predicted, "level");
  if (level == "size") return " of this name and size";
  if (level == "name") return " of this name";
  return level == "user" ? " of this user" : "";
}

// What the run time was taken from.
std::string run_basis_text(const Json& predicted) {
  const auto runs = static_cast<std::uint64_t>(integer_at(predicted, "runs").value_or(0));
  if (text_at(predicted, "basis") == "expected_time") {
    if (runs == 0) return "expected time, and half as long again";
    return fmt::format("expected time, by how far {}{} kept to theirs", counted(runs, "run"),
                       whose_runs(predicted));
  }
  const bool is_of_limit = text_at(predicted, "measure") == "of_limit";
  return fmt::format("{}{}{}", basis_text(predicted), whose_runs(predicted),
                     is_of_limit ? ", by the share of their time limits" : "");
}

std::string score_text(const Json& score) {
  const double starts = number_at(score, "starts").value_or(0);
  return fmt::format("{} off by {} (p50), {} (p90) over {}, {:.0f} % by then",
                     basis_text({{"basis", text_at(score, "basis")}}),
                     shown_span(number_at(score, "p50_seconds").value_or(0)),
                     shown_span(number_at(score, "p90_seconds").value_or(0)),
                     counted(static_cast<std::uint64_t>(starts), "start"),
                     starts > 0 ? 100 * number_at(score, "by_then").value_or(0) / starts : 0);
}

}  // namespace

std::string predicted_within(const Json& predicted, base::Instant now) {
  const auto p50 = time_at(predicted, "p50");
  const auto p90 = time_at(predicted, "p90");
  if (!p50 || !p90) return {};
  if (*p90 <= now) return "a moment";
  return range(age(*p50 - now), age(*p90 - now));
}

std::string predicted_start_text(const Json& predicted, base::Instant now) {
  const auto p50 = time_at(predicted, "p50");
  if (!p50) return {};
  const std::string within = predicted_within(predicted, now);
  const std::string when = *p50 <= now
                               ? (within == "a moment" ? std::string("any moment") : "in " + within)
                               : fmt::format("{} (in {})", local_time(*p50), within);
  return fmt::format("{}, {}", when, basis_text(predicted));
}

std::string predicted_run_text(const Json& predicted) {
  const auto p50 = number_at(predicted, "p50_seconds");
  if (!p50) return {};
  const double p90 = number_at(predicted, "p90_seconds").value_or(*p50);
  return fmt::format("{}, {}", range(shown_span(*p50), shown_span(p90)), run_basis_text(predicted));
}

std::string trust_text(const Json& trust, base::Instant planned, base::Instant now) {
  const auto p90 = time_at(trust, "p90");
  if (!p90) return {};
  const std::string when =
      *p90 > planned ? fmt::format("by {} (in {})", local_time(*p90), age(*p90 - now)) : "by then";
  return fmt::format(
      "{}; {} of the last {} as deep in the queue were no later than planned", when,
      integer_at(trust, "by_then").value_or(0),
      counted(static_cast<std::uint64_t>(integer_at(trust, "starts").value_or(0)), "start"));
}

std::string scores_text(const Json& scores) {
  std::string text;
  for (const Json& score : scores) text += (text.empty() ? "" : "; ") + score_text(score);
  return text;
}

std::string start_prediction_text(const Json& job) {
  const Json& prediction = object_at(job, "forecast");
  const auto made_at = time_at(prediction, "made_at");
  const auto by_limits = time_at(prediction, "by_limits");
  if (!made_at || !by_limits) return {};
  std::string text =
      fmt::format("at {}: by {} (hard limits)", local_time(*made_at), local_time(*by_limits));
  const Json& predicted = object_at(prediction, "predicted_start");
  const auto p50 = time_at(predicted, "p50");
  const auto p90 = time_at(predicted, "p90");
  if (p50 && p90) {
    text += fmt::format(", predicted {} ({})", range(local_time(*p50), local_time(*p90)),
                        basis_text(predicted));
  }
  return text;
}

}  // namespace gpu_platform::cli
