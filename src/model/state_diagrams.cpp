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
    "A job as a user submitted it. A PENDING job is accepted but not eligible yet. A QUEUED job "
    "waits for resources. A preempted job passes through PREEMPTED on its way back to the queue. A "
    "trigger is refused if the state has no row for it.\n\nSUSPENDED is reserved: this version "
    "pauses no "
    "job, so none reaches it."};
constexpr Section kAttempt{
    "Attempt",
    "One run of a job. It holds its resources from REQUESTED to CLEANING. They are free in "
    "RELEASED, when the engine has reported that no process of it is left."};
constexpr std::string_view kGpu =
    "## GPU\n\nA GPU's state has no transitions: it follows from the GPU's taints and, where none "
    "decides, from the attempts that hold it. Only its source sets and lifts a taint: an "
    "operator, the driver of its node that lists it no more, processes that belong to no job, the "
    "cluster of its node, and health. A taint of an operator may have an end, at which it is "
    "lifted. Health takes out a GPU that does not answer, and lifts this when it answers again. It "
    "drains a GPU that had a hardware fault, which only an operator lifts. The "
    "first row that is true holds.\n\n"
    "| state | if |\n| --- | --- |\n"
    "| OFFLINE | a taint takes it out |\n"
    "| DRAINING | a taint lets it finish its jobs and take no new work |\n"
    "| IN_USE | an attempt that holds it was seen running |\n"
    "| ALLOCATED | an attempt that holds it was not seen yet |\n"
    "| CLEANING | the attempts that hold it have ended |\n"
    "| AVAILABLE | nothing holds it |\n\n"
    "Processes and the cluster keep new work away without a change of the state. DEGRADED and "
    "RESETTING are reserved: this version resets no GPU.\n\n";
constexpr std::string_view kNode =
    "## Node\n\n"
    "A node's state has no transitions either: it follows only from the node's taints. Those "
    "are set by an operator, by the cluster of the node, when the node does not report, and "
    "when the site's prolog or epilog failed there for two jobs in a row, which only an operator "
    "lifts. A node takes new work only in UP. The first row that is true holds.\n\n"
    "| state | if |\n| --- | --- |\n"
    "| OFFLINE | an operator takes it out |\n"
    "| LOST | nothing is heard of it |\n"
    "| OFFLINE | its cluster takes it out |\n"
    "| DRAINING | a taint lets it finish its jobs and take no new work |\n"
    "| UP | it has no taint |\n";

}  // namespace

std::string state_diagrams() {
  std::string page =
      "# States\n\nThis page is made from the tables in src/model/states.cpp by "
      "`model::state_diagrams()`, and a test compares the two. No other code assigns a state.\n\n";
  page += section(kJob, job_transitions(), JobState::kQueued);
  page += section(kAttempt, attempt_transitions(), AttemptState::kRequested);
  page += kGpu;
  page += kNode;
  while (page.ends_with("\n\n")) page.pop_back();
  return page;
}

}  // namespace gpu_platform::model
