#include "cli/text/job_text.h"

#include <algorithm>
#include <array>
#include <iterator>

#include <fmt/format.h>

#include "api/convert/field_plan.h"
#include "base/letters.h"
#include "cli/text/end_advice.h"
#include "cli/text/message_text.h"
#include "cli/text/request_text.h"
#include "cli/text/share_text.h"
#include "cli/text/text.h"
#include "cli/text/usage_text.h"
#include "cli/text/use_text.h"
#include "client/follow.h"
#include "gpu_platform/v1/jobs.pb.h"
#include "gpu_platform/v1/options.pb.h"
#include "model/job_spec.h"

namespace gpu_platform::cli {

namespace {

using Align = Column::Align;
namespace pb = google::protobuf;

// Of a job, an attempt or a step.
template <class Run>
std::optional<base::Duration> run_time(const Run& run, base::Instant now) {
  const auto started = time_of(run.started_at());
  if (!started) return std::nullopt;
  return time_of(run.ended_at()).value_or(now) - *started;
}

std::string age_of(std::optional<base::Duration> duration) {
  return duration ? age(*duration) : std::string();
}

std::string seconds_text(double seconds) {
  return age(base::seconds(static_cast<std::int64_t>(seconds)));
}

std::string input_of(const v1::JobSpec& spec) {
  if (!spec.takes_input()) return {};
  std::string text = spec.terminal() ? "a terminal" : "a pipe";
  if (const double idle = spec.idle_timeout_seconds(); idle > 0) {
    text += fmt::format("; ended when idle for {}", seconds_text(idle));
  }
  return text;
}

// Why its latest attempt was started when it was; nothing where there is nothing to tell.
std::string start_of(const v1::Job& job) {
  if (job.attempts().empty() || !job.has_started_at()) return {};
  const v1::Attempt& attempt = *job.attempts().rbegin();
  if (attempt.why() != v1::START_REASON_PREEMPTED) return {};
  return fmt::format("PREEMPTED others: {} made room",
                     joined(texts_of(attempt.preempted_jobs()), " and "));
}

// Whether it may be stopped for others, and how often it was.
std::string preemption_of(const v1::Job& job) {
  std::string text;
  if (job.spec().has_preemptible()) {
    text = job.spec().preemptible() ? "may be stopped for others" : "never stopped for others";
  }
  if (job.borrowed()) {
    text += std::string(text.empty() ? "" : "; ") + "borrows GPUs above its team's guarantee";
  }
  const std::uint32_t times = job.preemptions();
  if (times == 0) return text;
  return fmt::format("{}{}stopped for others {}", text, text.empty() ? "" : "; ",
                     times == 1 ? std::string("once") : fmt::format("{} times", times));
}

std::string when(const pb::Timestamp& field, base::Instant now) {
  const auto at = time_of(field);
  if (!at) return {};
  return *at <= now ? fmt::format("{} ({} ago)", local_time(*at), age(now - *at))
                    : fmt::format("{} (in {})", local_time(*at), age(*at - now));
}

// When it is stopped for the job that it was let in before.
std::string yields_of(const v1::Job& job, base::Instant now) {
  if (job.attempts().empty()) return {};
  const v1::Attempt& attempt = *job.attempts().rbegin();
  if (attempt.has_ended_at()) return {};
  const std::string at = when(attempt.yields_at(), now);
  return at.empty() ? at
                    : fmt::format("to job {} {}, if it is still there and in its way",
                                  attempt.passed(), at);
}

// "40_3 of 40: 0-99%8, 100 jobs"
std::string array_of(const v1::Job& job) {
  if (job.array_id().empty()) return {};
  return fmt::format("{} of {}: {}, {}", shown_id(job), job.array_id(), job.spec().array(),
                     counted(job.array_size(), "job"));
}

// A field of the specification, as people read it.
class SpecValue {
 public:
  SpecValue(const v1::JobSpec& spec, const api::FieldPlan& plan) : spec_(spec), plan_(plan) {}

  std::string shown(base::Instant now) const {
    if (plan_.kind == api::JsonKind::kMap) return pairs();
    if (plan_.is_repeated) return words();
    if (plan_.kind == api::JsonKind::kEnum) return name_at(spec_, plan_.field->number());
    if (!reflection_.HasField(spec_, plan_.field)) return {};
    switch (plan_.kind) {
      case api::JsonKind::kTimestamp:
        return when(static_cast<const pb::Timestamp&>(reflection_.GetMessage(spec_, plan_.field)),
                    now);
      case api::JsonKind::kDouble: {
        const double seconds = reflection_.GetDouble(spec_, plan_.field);
        return age(base::milliseconds(static_cast<std::int64_t>(seconds * 1000)));
      }
      case api::JsonKind::kBool:
        return reflection_.GetBool(spec_, plan_.field) ? "true" : "false";
      case api::JsonKind::kUint32:
        return fmt::format("{}", reflection_.GetUInt32(spec_, plan_.field));
      case api::JsonKind::kUint64:
        return fmt::format("{}", reflection_.GetUInt64(spec_, plan_.field));
      default:
        return reflection_.GetString(spec_, plan_.field);
    }
  }

 private:
  std::string words() const {
    std::vector<std::string> words;
    for (int i = 0; i < reflection_.FieldSize(spec_, plan_.field); ++i) {
      words.push_back(reflection_.GetRepeatedString(spec_, plan_.field, i));
    }
    const bool is_command = plan_.field->number() == v1::JobSpec::kCommandFieldNumber;
    return shell_quoted(is_command ? without_script_text(std::move(words)) : words);
  }

  // By key, as the daemon writes them: "run=7 run-id=3", though '-' is before '='.
  std::string pairs() const {
    std::vector<std::pair<std::string, std::string>> pairs;
    for (int i = 0; i < reflection_.FieldSize(spec_, plan_.field); ++i) {
      const pb::Message& entry = reflection_.GetRepeatedMessage(spec_, plan_.field, i);
      const auto part = [&](int number) {
        return entry.GetReflection()->GetString(entry,
                                                entry.GetDescriptor()->FindFieldByNumber(number));
      };
      pairs.emplace_back(part(1), part(2));
    }
    std::ranges::sort(pairs);
    std::vector<std::string> words;
    for (const auto& [key, value] : pairs) words.push_back(fmt::format("{}={}", key, value));
    return joined(words, " ");
  }

  const v1::JobSpec& spec_;
  const api::FieldPlan& plan_;
  const pb::Reflection& reflection_ = *v1::JobSpec::default_instance().GetReflection();
};

using Lines = std::vector<std::pair<std::string, std::string>>;

// Those of its fields that have a title.
void add_spec(const v1::JobSpec& spec, base::Instant now, Lines& lines) {
  for (const api::FieldPlan& field : api::plan_of(*v1::JobSpec::descriptor()).fields) {
    const std::string& title = field.field->options().GetExtension(v1::title);
    if (!title.empty()) lines.emplace_back(title, SpecValue(spec, field).shown(now));
  }
}

// The title, and the table two columns to the right.
std::string indented(std::string text, const Table& table, const PageStyle& style) {
  const std::string lines = table.render({.width = style.width < 2 ? 0 : style.width - 2});
  for (std::size_t begin = 0; begin < lines.size();) {
    const std::size_t end = lines.find('\n', begin) + 1;
    text += "  " + lines.substr(begin, end - begin);
    begin = end;
  }
  return text;
}

std::string attempts_of(const v1::Job& job, const PageStyle& style) {
  const base::Instant now = style.now;
  if (job.attempts().empty()) return {};
  std::vector<Column> columns = {{"ATTEMPT", Align::kRight},
                                 {"STATE"},
                                 {"STARTED"},
                                 {"RAN", Align::kRight},
                                 {"CPU TIME", Align::kRight, std::nullopt, 3},
                                 {"PEAK MEMORY", Align::kRight, std::nullopt, 2},
                                 {.title = "PLACE", .cut_to = 12, .wraps = true},
                                 {.title = "RESULT", .cut_to = 14, .wraps = true}};
  if (job.has_cost()) columns.push_back({.title = "COST", .cut_to = 8, .expendable = 1});
  Table table(std::move(columns));
  for (const v1::Attempt& attempt : job.attempts()) {
    const auto started = time_of(attempt.started_at());
    std::vector<std::string> cells = {
        fmt::format("{}", attempt.attempt()),
        state_name(attempt),
        started ? local_time(*started) : "",
        age_of(run_time(attempt, now)),
        if_known(attempt.has_cpu_time_seconds(), attempt.cpu_time_seconds(), "{:.1f}s"),
        attempt.has_peak_memory_bytes() ? size_text(attempt.peak_memory_bytes()) : "",
        place_of(attempt),
        result_of(attempt)};
    if (job.has_cost()) cells.push_back(cost_of(job, attempt));
    table.add(std::move(cells));
  }
  return indented("\nAttempts:\n", table, style);
}

std::string step_result(const v1::JobStep& step) {
  if (step.has_exit_code()) return fmt::format("exit code {}", step.exit_code());
  if (!step.signal().empty()) return "signal " + step.signal();
  const std::string lost = name_at(step, v1::JobStep::kLostFieldNumber);
  return lost.empty() ? lost : "lost: " + lost;
}

// The newest steps of the latest attempt.
std::string steps_of(const v1::Job& job, const PageStyle& style) {
  const base::Instant now = style.now;
  constexpr std::ptrdiff_t kStepsShown = 20;
  std::vector<const v1::JobStep*> steps;
  for (const v1::JobStep& step : job.steps()) {
    if (step.attempt() == job.attempt()) steps.push_back(&step);
  }
  if (steps.empty()) return {};
  Table table({{"STEP", Align::kRight},
               {"NAME", Align::kLeft, 8},
               {"TASKS", Align::kRight, std::nullopt, 1},
               {"GPUS", Align::kRight},
               {"STARTED", Align::kLeft, std::nullopt, 4},
               {"RAN", Align::kRight},
               {"CPU TIME", Align::kRight, std::nullopt, 3},
               {"PEAK MEMORY", Align::kRight, std::nullopt, 2},
               {.title = "RESULT", .cut_to = 12, .wraps = true}});
  const std::ptrdiff_t hidden = std::max<std::ptrdiff_t>(0, std::ssize(steps) - kStepsShown);
  for (auto at = steps.begin() + hidden; at != steps.end(); ++at) {
    const v1::JobStep& step = **at;
    const auto started = time_of(step.started_at());
    const bool knows_cpu = step.has_user_cpu_seconds() && step.has_system_cpu_seconds();
    const std::string result = step_result(step);
    table.add({fmt::format("{}", step.number()), step.name(), fmt::format("{}", step.tasks()),
               fmt::format("{}", step.gpus()), started ? local_time(*started) : "",
               age_of(run_time(step, now)),
               if_known(knows_cpu, step.user_cpu_seconds() + step.system_cpu_seconds(), "{:.1f}s"),
               step.has_peak_memory_bytes() ? size_text(step.peak_memory_bytes()) : "",
               result.empty() ? "runs" : result});
  }
  const std::string before = hidden > 0 ? fmt::format(" ({} earlier ones: --json)", hidden) : "";
  return indented(fmt::format("\nSteps{}:\n", before), table, style);
}

// Of a job or an attempt.
template <class Run>
std::string run_result(const Run& run) {
  std::string line;
  if (run.has_exit_code()) {
    line = fmt::format("exit code {}", run.exit_code());
  } else if (!run.signal().empty()) {
    line = "signal " + run.signal();
  } else if (const std::string lost = name_at(run, Run::kLostFieldNumber); !lost.empty()) {
    line = "lost: " + lost;
  }
  if (const std::string reason = name_at(run, Run::kReasonFieldNumber); !reason.empty()) {
    const std::string& by = run.ended_by();
    const std::string_view before_by = run.reason() == v1::END_REASON_PREEMPTED ? " for " : " ";
    line +=
        fmt::format("{}{}{}{}", line.empty() ? "" : ", ", reason, by.empty() ? "" : before_by, by);
  }
  if (!run.detail().empty()) line += (line.empty() ? "" : ": ") + run.detail();
  return line;
}

}  // namespace

std::string size_text(std::uint64_t bytes) {
  return readable_size(as_signed(bytes));
}

std::string place_or_reason(const v1::Job& job) {
  if (client::is_ended(job.state())) {
    return job.state() == v1::JOB_STATE_COMPLETED ? place_of(job) : result_of(job);
  }
  if (const std::string& reason = job.wait_reason().text(); !reason.empty()) {
    return with_local_times(reason);
  }
  const std::string& step = job.detail();  // before its container runs
  return step.empty() ? place_of(job) : fmt::format("{}: {}", place_of(job), step);
}

std::vector<SpecColumn> spec_columns() {
  std::vector<SpecColumn> columns;
  for (const api::FieldPlan& field : api::plan_of(*v1::JobSpec::descriptor()).fields) {
    const std::string& title = field.field->options().GetExtension(v1::column);
    if (title.empty()) continue;
    columns.push_back({title, [&field](const v1::Job& job, base::Instant now) {
                         return SpecValue(job.spec(), field).shown(now);
                       }});
  }
  return columns;
}

std::string result_of(const v1::Job& job) {
  return run_result(job);
}

std::string result_of(const v1::Attempt& attempt) {
  return run_result(attempt);
}

std::string output_file(const v1::Job& job) {
  return job.output().empty() ? job.spec().output() : job.output();
}

std::string error_file(const v1::Job& job) {
  return job.error().empty() ? job.spec().error() : job.error();
}

std::string shown_id(const v1::Job& job) {
  return job.array_id().empty() ? job.id()
                                : fmt::format("{}_{}", job.array_id(), job.array_index());
}

std::optional<base::Duration> waiting_time(const v1::Job& job, base::Instant now) {
  const auto submitted = time_of(job.submitted_at());
  if (!submitted) return std::nullopt;
  const auto started = time_of(job.started_at());
  const base::Instant until = started ? *started : time_of(job.ended_at()).value_or(now);
  base::Duration waiting = until - *submitted;
  for (const v1::Attempt& attempt : job.attempts()) {
    const auto begin = time_of(attempt.started_at());
    const auto end = time_of(attempt.ended_at());
    if (begin && end && *end <= until) waiting = waiting - (*end - *begin);
  }
  return waiting;
}

std::string waited(const v1::Job& job, base::Instant now) {
  return age_of(waiting_time(job, now));
}

std::optional<base::Duration> running_time(const v1::Job& job, base::Instant now) {
  return run_time(job, now);
}

std::string ran(const v1::Job& job, base::Instant now) {
  return age_of(run_time(job, now));
}

std::string place_of(const GpuList& gpus, const TextList& names) {
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> nodes;
  for (const v1::GpuUse& gpu : gpus) {
    if (nodes.empty() || nodes.back().first != gpu.node())
      nodes.emplace_back(gpu.node(), std::vector<std::int64_t>());
    nodes.back().second.push_back(gpu.index());
  }
  std::vector<std::string> places;
  for (const auto& [node, indices] : nodes) places.push_back(node + ":" + ranges_of(indices));
  if (gpus.size() == 1 && is_part(gpus.Get(0))) {
    places.front() = fmt::format("{} of {}", share_text(gpus.Get(0).share()), places.front());
  }
  return joined(places.empty() ? texts_of(names) : places, " ");
}

std::string place_of(const v1::Attempt& attempt) {
  return place_of(attempt.gpus(), attempt.nodes());
}

std::string place_of(const v1::Job& job) {
  if (job.gpus().empty() && !job.attempts().empty()) return place_of(*job.attempts().rbegin());
  return place_of(job.gpus(), {});
}

std::string efficiency_of(const v1::Job& job) {
  const v1::Efficiency& efficiency = job.efficiency();
  const auto part = [](double value) { return fmt::format("{:.0f} %", value * 100); };
  std::vector<std::string> parts;
  if (efficiency.has_cpu()) {
    parts.push_back(fmt::format("{} of {}", part(efficiency.cpu()), counted(job.cpus(), "CPU")));
  }
  if (efficiency.has_memory()) {
    parts.push_back(
        fmt::format("{} of {}", part(efficiency.memory()), size_text(job.memory_bytes())));
  }
  if (efficiency.has_time()) {
    parts.push_back(fmt::format("{} of {}", part(efficiency.time()),
                                seconds_text(job.spec().time_limit_seconds())));
  }
  return joined(parts, ", ");
}

namespace {

std::string turn_of(const v1::Job& job) {
  return job.turn_of().empty() ? "" : fmt::format("that of job {} (jobs raise)", job.turn_of());
}

// "quick: passed in 0.4 s", or what it asks for while that is not known.
std::string preflight_of(const v1::Job& job) {
  if (!job.attempts().empty() && !job.attempts().rbegin()->preflight().empty()) {
    return job.attempts().rbegin()->preflight();
  }
  switch (job.spec().preflight()) {
    case v1::PREFLIGHT_QUICK:
      return "quick";
    case v1::PREFLIGHT_DEEP:
      return "deep";
    default:
      return {};
  }
}

// "n1 GPU 2: 0.91 (70.0 GiB free, 5 % used)", …: how the GPUs of the latest attempt were chosen.
std::string choice_of(const v1::Job& job) {
  if (job.attempts().empty()) return {};
  std::string text;
  for (const v1::ChosenGpu& gpu : job.attempts().rbegin()->gpu_info().details()) {
    text +=
        fmt::format("{}{} GPU {}: {:.2f} ({:.1f} GiB free, {} % used)", text.empty() ? "" : ", ",
                    gpu.node(), gpu.index(), gpu.availability_score(),
                    static_cast<double>(gpu.memory_free_mb()) / 1024, gpu.utilization_percent());
  }
  return text;
}

// "the default of team lab"; empty if the job set its time limit.
std::string limit_from(const v1::Job& job) {
  if (!job.has_time_limit_default_of()) return {};
  const std::string& team = job.time_limit_default_of();
  return team.empty() ? "the site's default" : fmt::format("the default of team {}", team);
}

// "1h49m", of its latest attempt; empty if its budget pays for more than its time limit.
std::string limit_by_budget(const v1::Job& job) {
  if (job.attempts().empty()) return {};
  const v1::Attempt& latest = *job.attempts().rbegin();
  if (!latest.has_limit_by_budget_seconds()) return {};
  const double seconds = latest.limit_by_budget_seconds();
  if (seconds >= job.spec().time_limit_seconds()) return {};
  return age(base::seconds(static_cast<std::int64_t>(seconds)));
}

}  // namespace

std::string job_page(const v1::Job& job, const PageStyle& style) {
  constexpr std::size_t kKeyWidth = 16;
  constexpr std::string_view kProse[] = {
      "Waits because", "Asks for", "Warning", "Doing",      "Result",    "Advice",        "Retries",
      "Yields",        "Turn",     "Part",    "Neighbours", "Preflight", "Chosen by load"};
  const base::Instant now = style.now;
  const v1::JobSpec& spec = job.spec();
  Lines lines = {
      {"Job",
       job.array_id().empty() ? job.id() : fmt::format("{} (id {})", shown_id(job), job.id())},
      {"Array", array_of(job)},
      {"State", state_name(job)},
      {"Waits because", with_local_times(job.wait_reason().text())},
      {"Place in queue", if_known(job.has_queue_position(), job.queue_position())},
      {"Turn", turn_of(job)},
  };
  add_spec(spec, now, lines);
  lines.push_back({"Time limit", limit_from(job)});
  lines.push_back({"Paid for", limit_by_budget(job)});
  const bool is_promised = job.start_guaranteed();
  const std::string planned = when(job.estimated_start(), now);
  const Lines rest = {
      {"Priority", fmt::format("{} ({})", spec.priority(),
                               if_known(spec.has_priority_number(), spec.priority_number()))},
      {"Output", output_file(job)},
      {"Error output", error_file(job)},
      {"Input", input_of(spec)},
      {"Asks for", asked_for(spec)},
      {"Place", place_of(job)},
      {"Preflight", preflight_of(job)},
      {"Chosen by load", choice_of(job)},
      {"Part", part_of(job)},
      {"Neighbours", neighbours_of(job)},
      {"Warning", joined(texts_of(job.warnings()), "; ")},
      {"Submitted", when(job.submitted_at(), now)},
      {"Eligible", when(job.eligible_at(), now)},
      {"Goes first since", when(job.overdue_since(), now)},
      {"Starts by", is_promised ? planned : ""},
      {"Planned start", is_promised || planned.empty() ? "" : "about " + planned},
      {"Started", when(job.started_at(), now)},
      {"Start", start_of(job)},
      {"Ended", when(job.ended_at(), now)},
      {"Waited", waited(job, now)},
      {"Ran", ran(job, now)},
      {client::is_ended(job.state()) ? "Result" : "Doing", result_of(job)},
      {"Advice", advice_on_end(job)},
      {"Used", efficiency_of(job)},
      {"Used of GPUs", gpu_use_text(job.gpu_use())},
      {"Cost", cost_of(job)},
      {"Energy", energy_of(job)},
      {"Monitor", spec.monitor() ? "its GPUs are read each second" : ""},
      {"Retries",
       fmt::format("{} allowed; {} failed, {} lost so far",
                   if_known(spec.has_retries(), spec.retries()), job.failures(), job.losses())},
      {"Preemption", preemption_of(job)},
      {"Requeue", spec.complete_on_exit_zero() ? "exit code 0 always completes it" : ""},
      {"Yields", yields_of(job, now)},
  };
  lines.insert(lines.end(), rest.begin(), rest.end());
  std::string page;
  for (const auto& [key, value] : lines) {
    // A command line and a path stay whole, so that they can be copied.
    const bool is_prose = std::ranges::find(kProse, key) != std::end(kProse);
    page += key_line(key + ":", value, kKeyWidth, is_prose ? style.width : 0);
  }
  return page + attempts_of(job, style) + steps_of(job, style);
}

}  // namespace gpu_platform::cli
