#include "cli/text/prediction_text.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "cli/client_names.h"
#include "cli/text/text.h"

namespace gpu_platform::cli {

namespace {

std::string shown_span(double seconds) {
  return age(base::milliseconds(std::llround(std::abs(seconds) * 1000)));
}

std::string range(const std::string& from, const std::string& to) {
  return from == to ? from : fmt::format("{} to {}", from, to);
}

std::string basis_text(const std::string& basis, std::uint64_t runs) {
  if (basis == "expected_time") return "expected time";
  if (basis != "history") return "hard limits";
  return runs == 0 ? "history p50–p90" : fmt::format("history p50–p90 of {}", counted(runs, "run"));
}

std::string basis_text(const v1::PredictedStart& predicted) {
  return basis_text(predicted.basis(), predicted.runs());
}

std::string whose_runs(const std::string& level) {
  if (level == "size") return " of this name and size";
  if (level == "name") return " of this name";
  return level == "command" ? " of this command" : "";
}

// What the run time was taken from.
std::string run_basis_text(const v1::PredictedRun& predicted) {
  const std::string whose = whose_runs(predicted.level());
  if (predicted.basis() == "expected_time") {
    if (predicted.runs() == 0) return "expected time, and half as long again";
    return fmt::format("expected time, by how far {}{} kept to theirs",
                       counted(predicted.runs(), "run"), whose);
  }
  const bool is_of_limit = predicted.measure() == "of_limit";
  return fmt::format("{}{}{}", basis_text(predicted.basis(), predicted.runs()), whose,
                     is_of_limit ? ", by the share of their time limits" : "");
}

std::string score_text(const v1::PredictionScore& score) {
  const auto starts = static_cast<double>(score.starts());
  return fmt::format("{}: median error {}, nine in ten within {}, {:.0f} % by then ({})",
                     basis_text(score.basis(), 0), shown_span(score.p50_seconds()),
                     shown_span(score.p90_seconds()),
                     starts > 0 ? 100 * static_cast<double>(score.by_then()) / starts : 0,
                     counted(score.starts(), "start"));
}

}  // namespace

std::string predicted_within(const v1::PredictedStart& predicted, base::Instant now) {
  const auto p50 = time_of(predicted.p50());
  const auto p90 = time_of(predicted.p90());
  if (!p50 || !p90) return {};
  if (*p90 <= now) return "a moment";
  return range(age(*p50 - now), age(*p90 - now));
}

std::string predicted_start_text(const v1::PredictedStart& predicted, base::Instant now) {
  const auto p50 = time_of(predicted.p50());
  if (!p50) return {};
  const std::string within = predicted_within(predicted, now);
  const std::string when = *p50 <= now
                               ? (within == "a moment" ? std::string("any moment") : "in " + within)
                               : fmt::format("{} (in {})", local_time(*p50), within);
  return fmt::format("{}, {}", when, basis_text(predicted));
}

std::string predicted_run_text(const v1::PredictedRun* predicted) {
  if (predicted == nullptr) return {};
  return fmt::format(
      "{}, {}", range(shown_span(predicted->p50_seconds()), shown_span(predicted->p90_seconds())),
      run_basis_text(*predicted));
}

std::string trust_text(const v1::PlannedTrust& trust, base::Instant planned, base::Instant now) {
  const auto p90 = time_of(trust.p90());
  if (!p90) return {};
  const std::string when =
      *p90 > planned ? fmt::format("by {} (in {})", local_time(*p90), age(*p90 - now)) : "by then";
  return fmt::format("{}; {} of the last {} as deep in the queue were no later than planned", when,
                     trust.by_then(), counted(trust.starts(), "start"));
}

std::string scores_text(const ScoreList& scores) {
  std::string text;
  for (const v1::PredictionScore& score : scores) {
    text += (text.empty() ? "" : "; ") + score_text(score);
  }
  return text;
}

std::string start_prediction_text(const v1::Job& job) {
  const v1::StartPrediction& prediction = job.forecast();
  const auto made_at = time_of(prediction.made_at());
  const auto by_limits = time_of(prediction.by_limits());
  if (!made_at || !by_limits) return {};
  std::string text =
      fmt::format("at {}: by {} (hard limits)", local_time(*made_at), local_time(*by_limits));
  const v1::PredictedStart& predicted = prediction.predicted_start();
  const auto p50 = time_of(predicted.p50());
  const auto p90 = time_of(predicted.p90());
  if (p50 && p90) {
    text += fmt::format(", predicted {} ({})", range(local_time(*p50), local_time(*p90)),
                        basis_text(predicted));
  }
  return text;
}

}  // namespace gpu_platform::cli
