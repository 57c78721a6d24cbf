#include "model/state_diagrams.h"

#include <set>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "model/states.h"

namespace gpu_platform::model {

namespace {

struct Section {
  std::string_view title;
  std::string_view text;
};

template <class State, class Trigger>
std::string section(const Section& head, std::span<const Transition<State, Trigger>> table,
                    State initial) {
  std::string page = fmt::format("## {}\n\n{}\n\n", head.title, head.text);
  page += "```mermaid\nstateDiagram-v2\n";
  page += fmt::format("    [*] --> {}\n", to_string(initial));
  std::set<State> left;
  std::set<State> reached;
  for (const auto& row : table) {
    page += fmt::format("    {} --> {}: {}\n", to_string(row.from), to_string(row.to),
                        to_string(row.trigger));
    left.insert(row.from);
    reached.insert(row.to);
  }
  for (const State state : reached) {
    if (!left.contains(state)) page += fmt::format("    {} --> [*]\n", to_string(state));
  }
  page += "```\n\n| from | trigger | to | why |\n| --- | --- | --- | --- |\n";
  for (const auto& row : table) {
    page += fmt::format("| {} | {} | {} | {} |\n", to_string(row.from), to_string(row.trigger),
                        to_string(row.to), row.why);
  }
  return page + "\n";
}

constexpr Section kJob{
    "Job",
    "What a person submitted. PENDING is accepted but not eligible yet; QUEUED waits for "
    "resources; PREEMPTED is passed through on the way back to the queue. A trigger that a state "
    "has no row for is refused."};
constexpr Section kAttempt{
    "Attempt",
    "One run of a job. Its resources are held from REQUESTED to CLEANING; they are free in "
    "RELEASED, once the engine has said that nothing of it is left."};
constexpr Section kGpu{
    "GPU",
    "ALLOCATED, IN_USE and CLEANING follow from the attempts that hold it. DRAINING, DEGRADED, "
    "RESETTING and OFFLINE take no new work, and the changes of work still on them do not bring "
    "them back."};
constexpr Section kNode{
    "Node", "UP takes new work; the others do not. LOST says that nothing is heard of it."};

}  // namespace

std::string state_diagrams() {
  std::string page =
      "# States\n\nMade from the tables in src/model/states.cpp by `model::state_diagrams()`, and "
      "held to them by a test. Nothing else assigns a state.\n\n";
  page += section(kJob, job_transitions(), JobState::kQueued);
  page += section(kAttempt, attempt_transitions(), AttemptState::kRequested);
  page += section(kGpu, gpu_transitions(), GpuState::kAvailable);
  page += section(kNode, node_transitions(), NodeState::kUp);
  while (page.ends_with("\n\n")) page.pop_back();
  return page;
}

}  // namespace gpu_platform::model
