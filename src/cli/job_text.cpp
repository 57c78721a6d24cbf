#include "cli/job_text.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "api/convert/field_plan.h"
#include "base/letters.h"
#include "cli/text.h"
#include "gpu_platform/v1/jobs.pb.h"
#include "gpu_platform/v1/options.pb.h"

namespace gpu_platform::cli {

namespace {

using Align = Column::Align;

std::string ran(const Json& object, base::Instant now) {
  const auto started = time_at(object, "started_at");
  if (!started) return {};
  return age(time_at(object, "ended_at").value_or(now) - *started);
}

std::string input_of(const Json& spec) {
  if (!flag_at(spec, "takes_input")) return {};
  std::string text = flag_at(spec, "terminal") ? "a terminal" : "a pipe";
  if (const auto idle = number_at(spec, "idle_timeout_seconds"); idle.value_or(0) > 0) {
    text += fmt::format("; ended when idle for {}",
                        age(base::seconds(static_cast<std::int64_t>(*idle))));
  }
  return text;
}

// Where it runs, why it waits, or how it ended.
std::string place_or_reason(const Json& job) {
  const std::string state = text_at(job, "state");
  if (is_ended_state(state)) {
    const std::string result = result_of(job);
    return state == "COMPLETED" ? place_of(job) : result;
  }
  const std::string reason = text_at(object_at(job, "wait_reason"), "text");
  if (!reason.empty()) return reason;
  const std::string step = text_at(job, "detail");  // before its container runs
  return step.empty() ? place_of(job) : fmt::format("{}: {}", place_of(job), step);
}

std::string asked_for(const Json& spec) {
  std::string line = counted(total_gpus(spec), "GPU");
  const std::int64_t nodes = integer_at(spec, "nodes").value_or(1);
  if (nodes > 1) line += fmt::format(" on {} nodes", nodes);
  if (flag_at(spec, "allow_cross_node")) line += " on as few nodes as possible";
  if (const std::string level = text_at(spec, "network_level");
      !level.empty() && level != "ANYWHERE") {
    line += " in one " + base::to_lower(level);
  }
  if (const std::string capacity = text_at(spec, "capacity");
      !capacity.empty() && capacity != "ANY") {
    line += fmt::format(" on {} capacity", as_word(capacity));
  }
  const auto named = [&](std::string_view key, std::string_view before) {
    const std::vector<std::string> names = texts_at(spec, key);
    if (!names.empty()) line += fmt::format(", {}{}", before, joined(names, ","));
  };
  const std::vector<std::string> types = texts_at(spec, "gpu_types");
  if (!types.empty()) line += " of type " + joined(types, " or ");
  if (const auto memory = integer_at(spec, "gpu_memory_bytes")) {
    line += fmt::format(" with at least {} each", readable_size(*memory));
  }
  const auto cpus = integer_at(spec, "cpus");
  line += cpus ? ", " + counted(static_cast<std::uint64_t>(std::max<std::int64_t>(0, *cpus)), "CPU")
               : ", CPUs as the node shares them";
  const auto memory = integer_at(spec, "memory_bytes");
  line += memory ? ", " + readable_size(*memory) : ", memory likewise";
  named("nodelist", "only on ");
  named("exclude", "not on ");
  if (const auto limit = number_at(spec, "time_limit_seconds")) {
    line += ", at most " + age(base::seconds(static_cast<std::int64_t>(*limit)));
  }
  if (const auto expected = number_at(spec, "expected_time_seconds")) {
    line += ", expected " + age(base::seconds(static_cast<std::int64_t>(*expected)));
  }
  return line;
}

// Why its latest attempt was started when it was; nothing where there is nothing to tell.
std::string start_of(const Json& job) {
  const Json& attempts = list_at(job, "attempts");
  if (attempts.empty() || text_at(job, "started_at").empty()) return {};
  const std::vector<std::string> preempted_jobs = texts_at(attempts.back(), "preempted_jobs");
  if (text_at(attempts.back(), "why") != "PREEMPTED") return {};
  return fmt::format("PREEMPTED others: {} made room", joined(preempted_jobs, " and "));
}

// Whether it may be stopped for others, and how often it was.
std::string preemption_of(const Json& job) {
  const auto times = integer_at(job, "preemptions").value_or(0);
  std::string text;
  const Json& spec = spec_of(job);
  if (spec.contains("preemptible") && spec["preemptible"].is_boolean()) {
    text = flag_at(spec, "preemptible") ? "may be stopped for others" : "never stopped for others";
  }
  if (flag_at(job, "borrowed")) {
    text += std::string(text.empty() ? "" : "; ") + "borrows GPUs above its team's guarantee";
  }
  if (times == 0) return text;
  return fmt::format("{}{}stopped for others {}", text, text.empty() ? "" : "; ",
                     times == 1 ? std::string("once") : fmt::format("{} times", times));
}

std::string when(const Json& object, std::string_view key, base::Instant now) {
  const auto at = time_at(object, key);
  if (!at) return {};
  return *at <= now ? fmt::format("{} ({} ago)", local_time(*at), age(now - *at))
                    : fmt::format("{} (in {})", local_time(*at), age(*at - now));
}

// When it is stopped for the job that it was let in before.
std::string yields_of(const Json& job, base::Instant now) {
  const Json& attempts = list_at(job, "attempts");
  if (attempts.empty() || time_at(attempts.back(), "ended_at")) return {};
  const std::string at = when(attempts.back(), "yields_at", now);
  return at.empty() ? at
                    : fmt::format("to job {} {}, if it is still there and in its way",
                                  text_at(attempts.back(), "passed"), at);
}

// "40_3 of 40: 0-99%8, 100 jobs"
std::string array_of(const Json& job) {
  const std::string array = text_at(job, "array_id");
  if (array.empty()) return {};
  const auto size = integer_at(job, "array_size").value_or(0);
  return fmt::format("{} of {}: {}, {}", shown_id(job), array, text_at(spec_of(job), "array"),
                     counted(static_cast<std::uint64_t>(std::max<std::int64_t>(0, size)), "job"));
}

std::string pairs_of(const Json& map) {
  std::vector<std::string> pairs;
  for (const auto& [key, value] : map.items()) {
    pairs.push_back(fmt::format("{}={}", key, value.is_string() ? value.get<std::string>() : ""));
  }
  return joined(pairs, " ");
}

// A field of the specification, as people read it.
std::string shown_value(const Json& spec, const api::FieldPlan& field, base::Instant now) {
  switch (field.kind) {
    case api::JsonKind::kTimestamp:
      return when(spec, field.name, now);
    case api::JsonKind::kMap:
      return pairs_of(object_at(spec, field.name));
    case api::JsonKind::kDouble: {
      const auto seconds = number_at(spec, field.name);
      return seconds ? age(base::milliseconds(static_cast<std::int64_t>(*seconds * 1000))) : "";
    }
    default:
      return field.is_repeated ? shell_quoted(texts_at(spec, field.name))
                               : text_at(spec, field.name);
  }
}

// Calls visit(field, head) for each field that has a column in wide tables.
template <class Visit>
void for_each_column(Visit&& visit) {
  for (const api::FieldPlan& field : api::plan_of(*v1::JobSpec::descriptor()).fields) {
    const std::string& head = field.field->options().GetExtension(v1::column);
    if (!head.empty()) visit(field, head);
  }
}

using Lines = std::vector<std::pair<std::string, std::string>>;

// Those of its fields that have a title.
void add_spec(const Json& spec, base::Instant now, Lines& lines) {
  for (const api::FieldPlan& field : api::plan_of(*v1::JobSpec::descriptor()).fields) {
    const std::string& title = field.field->options().GetExtension(v1::title);
    if (!title.empty()) lines.emplace_back(title, shown_value(spec, field, now));
  }
}

// The title, and the table two columns to the right.
std::string indented(std::string text, const Table& table) {
  const std::string lines = table.render(0);
  for (std::size_t begin = 0; begin < lines.size();) {
    const std::size_t end = lines.find('\n', begin) + 1;
    text += "  " + lines.substr(begin, end - begin);
    begin = end;
  }
  return text;
}

std::string attempts_of(const Json& job, base::Instant now) {
  const Json& attempts = list_at(job, "attempts");
  if (attempts.empty()) return {};
  Table table({{"ATTEMPT", Align::kRight},
               {"STATE"},
               {"STARTED"},
               {"RAN", Align::kRight},
               {"CPU TIME", Align::kRight},
               {"PEAK MEMORY", Align::kRight},
               {"PLACE"},
               {"RESULT"}});
  for (const Json& attempt : attempts) {
    const auto started = time_at(attempt, "started_at");
    const auto cpu = number_at(attempt, "cpu_time_seconds");
    const auto memory = integer_at(attempt, "peak_memory_bytes");
    table.add({text_at(attempt, "attempt"), text_at(attempt, "state"),
               started ? local_time(*started) : "", ran(attempt, now),
               cpu ? fmt::format("{:.1f}s", *cpu) : "", memory ? readable_size(*memory) : "",
               place_of(attempt), result_of(attempt)});
  }
  return indented("\nAttempts:\n", table);
}

// The newest steps of the latest attempt.
std::string steps_of(const Json& job, base::Instant now) {
  constexpr std::ptrdiff_t kStepsShown = 20;
  std::vector<const Json*> steps;
  for (const Json& step : list_at(job, "steps")) {
    if (integer_at(step, "attempt") == integer_at(job, "attempt")) steps.push_back(&step);
  }
  if (steps.empty()) return {};
  Table table({{"STEP", Align::kRight},
               {"NAME"},
               {"TASKS", Align::kRight},
               {"GPUS", Align::kRight},
               {"STARTED"},
               {"RAN", Align::kRight},
               {"CPU TIME", Align::kRight},
               {"PEAK MEMORY", Align::kRight},
               {"RESULT"}});
  const std::ptrdiff_t hidden = std::max<std::ptrdiff_t>(0, std::ssize(steps) - kStepsShown);
  for (auto at = steps.begin() + hidden; at != steps.end(); ++at) {
    const Json& step = **at;
    const auto started = time_at(step, "started_at");
    const auto user = number_at(step, "user_cpu_seconds");
    const auto system = number_at(step, "system_cpu_seconds");
    const auto memory = integer_at(step, "peak_memory_bytes");
    const std::string result = result_of(step);
    table.add({text_at(step, "number"), text_at(step, "name"), text_at(step, "tasks"),
               text_at(step, "gpus"), started ? local_time(*started) : "", ran(step, now),
               user && system ? fmt::format("{:.1f}s", *user + *system) : "",
               memory ? readable_size(*memory) : "", result.empty() ? "runs" : result});
  }
  const std::string before = hidden > 0 ? fmt::format(" ({} earlier ones: --json)", hidden) : "";
  return indented(fmt::format("\nSteps{}:\n", before), table);
}

}  // namespace

Table job_table(bool is_wide) {
  std::vector<Column> columns = {{"ID", Align::kRight},     {"NAME", Align::kLeft, 8},
                                 {"USER", Align::kLeft, 6}, {"STATE"},
                                 {"GPUS", Align::kRight},   {"PRIORITY"},
                                 {"WAITED", Align::kRight}, {"RAN", Align::kRight}};
  if (is_wide) {
    for_each_column(
        [&](const api::FieldPlan&, const std::string& head) { columns.push_back({head}); });
  }
  columns.push_back({"PLACE OR REASON", Align::kLeft, 8});
  return Table(std::move(columns));
}

const Json& spec_of(const Json& job) {
  return object_at(job, "spec");
}

std::string result_of(const Json& object) {
  std::string line;
  if (const auto code = integer_at(object, "exit_code")) {
    line = fmt::format("exit code {}", *code);
  } else if (const std::string signal = text_at(object, "signal"); !signal.empty()) {
    line = "signal " + signal;
  } else if (const std::string lost = text_at(object, "lost"); !lost.empty()) {
    line = "lost: " + lost;
  }
  if (const std::string reason = text_at(object, "reason"); !reason.empty()) {
    const std::string by = text_at(object, "ended_by");
    const std::string_view before_by = reason == "PREEMPTED" ? " for " : " ";
    line +=
        fmt::format("{}{}{}{}", line.empty() ? "" : ", ", reason, by.empty() ? "" : before_by, by);
  }
  if (const std::string detail = text_at(object, "detail"); !detail.empty()) {
    line += (line.empty() ? "" : ": ") + detail;
  }
  return line;
}

std::uint64_t total_gpus(const Json& spec) {
  const auto count = [&](std::string_view key, std::int64_t otherwise) {
    return static_cast<std::uint64_t>(
        std::max<std::int64_t>(0, integer_at(spec, key).value_or(otherwise)));
  };
  return count("gpus", 0) * count("nodes", 1);
}

std::string file_of(const Json& job, std::string_view key) {
  const std::string path = text_at(job, key);
  return path.empty() ? text_at(spec_of(job), key) : path;
}

std::vector<std::string> job_row(const Json& job, base::Instant now, bool is_wide) {
  const Json& spec = spec_of(job);
  std::vector<std::string> row = {shown_id(job),
                                  text_at(spec, "name"),
                                  text_at(spec, "user"),
                                  text_at(job, "state"),
                                  std::to_string(total_gpus(spec)),
                                  text_at(spec, "priority"),
                                  waited(job, now),
                                  ran(job, now)};
  if (is_wide) {
    for_each_column([&](const api::FieldPlan& field, const std::string&) {
      row.push_back(shown_value(spec, field, now));
    });
  }
  row.push_back(place_or_reason(job));
  return row;
}

std::string shown_id(const Json& job) {
  const std::string array = text_at(job, "array_id");
  return array.empty() ? text_at(job, "id")
                       : fmt::format("{}_{}", array, text_at(job, "array_index"));
}

std::string shown_id(const v1::Job& job) {
  return job.array_id().empty() ? job.id()
                                : fmt::format("{}_{}", job.array_id(), job.array_index());
}

bool is_ended_state(std::string_view state) {
  constexpr std::array kEnded = {"COMPLETED", "FAILED", "CANCELLED", "TIMED_OUT"};
  return std::ranges::find(kEnded, state) != kEnded.end();
}

std::string waited(const Json& job, base::Instant now) {
  const auto submitted = time_at(job, "submitted_at");
  if (!submitted) return {};
  const auto started = time_at(job, "started_at");
  const auto ended = time_at(job, "ended_at");
  return age((started ? *started : ended.value_or(now)) - *submitted);
}

std::string place_of(const Json& object) {
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> nodes;
  for (const Json& gpu : list_at(object, "gpus")) {
    const std::string node = text_at(gpu, "node");
    if (nodes.empty() || nodes.back().first != node)
      nodes.emplace_back(node, std::vector<std::int64_t>());
    nodes.back().second.push_back(integer_at(gpu, "index").value_or(0));
  }
  std::vector<std::string> places;
  for (const auto& [node, indices] : nodes) places.push_back(node + ":" + ranges_of(indices));
  if (places.empty()) places = texts_at(object, "nodes");
  const Json& attempts = list_at(object, "attempts");
  if (places.empty() && !attempts.empty()) return place_of(attempts.back());
  return joined(places, " ");
}

std::string efficiency_of(const Json& job) {
  const Json& efficiency = object_at(job, "efficiency");
  const auto part = [&](std::string_view key) -> std::string {
    const auto value = number_at(efficiency, key);
    return value ? fmt::format("{:.0f} %", *value * 100) : std::string();
  };
  std::vector<std::string> parts;
  if (const std::string cpu = part("cpu"); !cpu.empty()) {
    const auto cpus = integer_at(job, "cpus").value_or(0);
    parts.push_back(
        fmt::format("{} of {}", cpu,
                    counted(static_cast<std::uint64_t>(std::max<std::int64_t>(0, cpus)), "CPU")));
  }
  if (const std::string memory = part("memory"); !memory.empty()) {
    parts.push_back(fmt::format("{} of {}", memory,
                                readable_size(integer_at(job, "memory_bytes").value_or(0))));
  }
  if (const std::string time = part("time"); !time.empty()) {
    const double limit = number_at(spec_of(job), "time_limit_seconds").value_or(0);
    parts.push_back(
        fmt::format("{} of {}", time, age(base::seconds(static_cast<std::int64_t>(limit)))));
  }
  return joined(parts, ", ");
}

std::string efficiency_of(const v1::Job& job) {
  const v1::Efficiency& efficiency = job.efficiency();
  const auto part = [](double value) { return fmt::format("{:.0f} %", value * 100); };
  std::vector<std::string> parts;
  if (efficiency.has_cpu()) {
    parts.push_back(fmt::format("{} of {}", part(efficiency.cpu()), counted(job.cpus(), "CPU")));
  }
  if (efficiency.has_memory()) {
    parts.push_back(fmt::format("{} of {}", part(efficiency.memory()),
                                readable_size(static_cast<std::int64_t>(job.memory_bytes()))));
  }
  if (efficiency.has_time()) {
    const double limit = job.spec().time_limit_seconds();
    parts.push_back(fmt::format("{} of {}", part(efficiency.time()),
                                age(base::seconds(static_cast<std::int64_t>(limit)))));
  }
  return joined(parts, ", ");
}

std::string turn_of(const Json& job) {
  const std::string of = text_at(job, "turn_of");
  return of.empty() ? of : fmt::format("that of job {} (jobs top)", of);
}

// "the default of team lab"; empty where the job named its time limit.
std::string limit_from(const Json& job) {
  const auto found = job.find("time_limit_default_of");
  if (found == job.end() || !found->is_string()) return {};
  const std::string team = found->get<std::string>();
  return team.empty() ? "the site's longest, as the job names none"
                      : fmt::format("the default of team {}, as the job names none", team);
}

std::string job_page(const Json& job, base::Instant now) {
  const Json& spec = spec_of(job);
  Lines lines = {
      {"Job", text_at(job, "id")},
      {"Array", array_of(job)},
      {"State", text_at(job, "state")},
      {"Waits because", text_at(object_at(job, "wait_reason"), "text")},
      {"Place in queue", text_at(job, "queue_position")},
      {"Turn", turn_of(job)},
  };
  add_spec(spec, now, lines);
  lines.push_back({"Time limit", limit_from(job)});
  const bool is_promised = flag_at(job, "start_guaranteed");
  const std::string planned = when(job, "estimated_start", now);
  const Lines rest = {
      {"Priority",
       fmt::format("{} ({})", text_at(spec, "priority"), text_at(spec, "priority_number"))},
      {"Output", file_of(job, "output")},
      {"Error output", file_of(job, "error")},
      {"Input", input_of(spec)},
      {"Asks for", asked_for(spec)},
      {"Place", place_of(job)},
      {"Warning", joined(texts_at(job, "warnings"), "; ")},
      {"Submitted", when(job, "submitted_at", now)},
      {"Eligible", when(job, "eligible_at", now)},
      {"Goes first since", when(job, "overdue_since", now)},
      {"Starts by", is_promised ? planned : ""},
      {"Planned start", is_promised || planned.empty() ? "" : "about " + planned},
      {"Started", when(job, "started_at", now)},
      {"Start", start_of(job)},
      {"Ended", when(job, "ended_at", now)},
      {"Waited", waited(job, now)},
      {"Ran", ran(job, now)},
      {is_ended_state(text_at(job, "state")) ? "Result" : "Doing", result_of(job)},
      {"Used", efficiency_of(job)},
      {"Retries", fmt::format("{} allowed; {} failed, {} lost so far", text_at(spec, "retries"),
                              text_at(job, "failures"), text_at(job, "losses"))},
      {"Preemption", preemption_of(job)},
      {"Requeue",
       flag_at(spec, "complete_on_exit_zero") ? "exit code 0 completes it in any case" : ""},
      {"Yields", yields_of(job, now)},
  };
  lines.insert(lines.end(), rest.begin(), rest.end());
  std::string page;
  for (const auto& [key, value] : lines) {
    if (!value.empty()) page += fmt::format("{:<16}{}\n", fmt::format("{}:", key), harmless(value));
  }
  return page + attempts_of(job, now) + steps_of(job, now);
}

}  // namespace gpu_platform::cli
