#include <unistd.h>

#include <algorithm>
#include <csignal>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/follow.h"
#include "cli/input.h"
#include "cli/job_options.h"
#include "cli/job_text.h"
#include "cli/json_view.h"
#include "cli/text.h"

// The commands that change jobs which are there: named by id, or, all at once, by filters.

namespace gpu_platform::cli {

namespace {

// How many jobs a question shows.
constexpr std::size_t kShown = 10;

struct Action {
  std::string_view call;     // last part of the path
  std::string_view bulk;     // of the bulk call
  std::string_view done;     // "3 jobs HELD": past participle
  std::string_view already;  // why nothing changed
};
constexpr Action kCancel{"cancel", "CANCEL", "told to stop", "is being stopped already"};
constexpr Action kKill{"kill", "KILL", "killed", "is being killed already"};
constexpr Action kHold{"hold", "HOLD", "held", "is held already"};
constexpr Action kRelease{"release", "RELEASE", "released", "is not held"};
constexpr Action kRequeue{"requeue", "REQUEUE", "put back into the queue",
                          "waits, or comes back to the queue, already"};

struct ChangeOptions {
  std::vector<std::string> ids;
  std::optional<std::string> user, name;
  std::vector<std::string> states, labels;
  bool all = false;
  bool yes = false;
  bool json = false;
  bool hold = false;  // of requeue

  bool has_filter() const { return user || name || !states.empty() || !labels.empty() || all; }
};

void define(Arguments& arguments, ChangeOptions& o, std::string_view doing) {
  arguments.words("ID", o.ids, 0, SIZE_MAX, fmt::format("jobs to {}, or instead of them:", doing))
      .option("--user", o.user, "NAME", "all jobs of this user (default: you)")
      .many("--state", o.states, "STATE[,STATE]", "all jobs in these states")
      .option("--name", o.name, "PATTERN", "all jobs with a matching name: 'train-*'")
      .many("--label", o.labels, "KEY=VALUE", "all jobs with this label; may be repeated")
      .flag("--all", o.all, "all your jobs; for root those of all users")
      .flag("--yes", o.yes, "do not ask")
      .flag("--json", o.json, "print the daemon's answer as JSON, one line for each call");
}

// ---- one by one

void tell_one(Console& console, const std::string& id, const Json& answer, const Action& action) {
  const Json& job = object_at(answer, "job");
  const std::string state = text_at(job, "state");
  if (text_at(job, "array_id") == id) {
    console.note(flag_at(answer, "changed")
                     ? fmt::format("array {}: its jobs that had not ended are {}", id, action.done)
                     : fmt::format("array {}: nothing changed", id));
    return;
  }
  if (!flag_at(answer, "changed")) {
    console.note(is_ended_state(state) ? fmt::format("{}; it had ended before", describe_end(job))
                                       : fmt::format("job {} {}", id, action.already));
  } else if (state == "STOPPING" && action.call != kKill.call) {
    console.note(fmt::format("job {} was told to stop; it has its grace time to end", id));
  } else if (state == "STOPPING") {
    console.note(fmt::format("job {} is being killed", id));
  } else {
    console.note(fmt::format("job {} is {}", id, state));
  }
}

// All are tried; the exit code is that of the first that failed.
template <class Call, class Tell>
int for_each_job(Console& console, const std::vector<std::string>& ids, bool json, Call&& call,
                 Tell&& tell) {
  int result = kOk;
  for (const std::string& id : ids) {
    const auto answer = call(id);
    if (!answer) {
      const int code = report(console, answer.error(), json);
      if (result == kOk) result = code;
      if (code == kNoDaemon) break;
    } else if (json) {
      console.out(*answer + (answer->ends_with('\n') ? "" : "\n"));
    } else if (const auto document = parse_object(*answer)) {
      tell(id, *document);
    }
  }
  return result == kOk && console.out_failed() ? kFailure : result;
}

std::string job_path(const std::string& id, std::string_view call) {
  return fmt::format("/v1/jobs/{}/{}", percent_encoded(id), call);
}

// ---- all that match

base::Result<Json> bulk_body(const ChangeOptions& o, const Action& action) {
  Json body;
  body["action"] = o.hold ? "REQUEUE_AND_HOLD" : action.bulk;
  if (o.user) {
    TRY(check_text("--user", *o.user));
    body["user"] = *o.user;
  }
  if (o.name) {
    TRY(check_text("--name", *o.name));
    body["name"] = *o.name;
  }
  for (const std::string& state : words_of_lists(o.states)) {
    TRY(check_text("--state", state));
    body["state"].push_back(upper(state));
  }
  for (const std::string& label : o.labels) {
    TRY(check_text("--label", label));
    body["label"].push_back(label);
  }
  if (o.all) body["all"] = true;
  return body;
}

// Those that would change, for a question and for the ids of what is then asked for.
std::vector<const Json*> changing(const Json& answer) {
  std::vector<const Json*> jobs;
  for (const Json& job : list_at(answer, "jobs")) {
    if (flag_at(job, "changed")) jobs.push_back(&job);
  }
  return jobs;
}

std::string line_of(const Json& job) {
  return harmless(fmt::format("  {}  {}  {}  {}", text_at(job, "id"), text_at(job, "name"),
                              text_at(job, "user"), text_at(job, "state")));
}

// Reads a line; only y and yes are a yes.
bool confirmed(Console& console, const std::vector<const Json*>& jobs, const Action& action) {
  std::string question;
  for (std::size_t i = 0; i < jobs.size() && i < kShown; ++i) {
    question += line_of(*jobs[i]) + "\n";
  }
  if (jobs.size() > kShown) question += fmt::format("  and {} more\n", jobs.size() - kShown);
  const std::string_view are = jobs.size() == 1 ? "is" : "are";
  console.err(fmt::format("{} {} to be {}:\n{}Go on? [y/N] ", counted(jobs.size(), "job"), are,
                          action.done, question));
  std::string answer;
  char c = 0;
  while (::read(console.surroundings().in_fd, &c, 1) == 1 && c != '\n') answer.push_back(c);
  const std::string said = upper(answer);
  return said == "Y" || said == "YES";
}

// The exit code is 0 when nothing was refused.
int tell_many(Console& console, const std::string& body, const Json& answer, const Action& action,
              bool json) {
  if (json) {
    console.out(body + (body.ends_with('\n') ? "" : "\n"));
  } else {
    for (const Json& job : list_at(answer, "jobs")) {
      const std::string why = text_at(job, "refused");
      if (!why.empty()) console.error(harmless(why));
    }
    const auto changed = static_cast<std::uint64_t>(integer_at(answer, "changed").value_or(0));
    console.note(list_at(answer, "jobs").empty()
                     ? "no such jobs"
                     : fmt::format("{} {}", counted(changed, "job"), action.done));
  }
  if (console.out_failed()) return kFailure;
  return integer_at(answer, "refused").value_or(0) > 0 ? kRefused : kOk;
}

int change_many(const CommandText& text, Console& console, Client& client, const ChangeOptions& o,
                const Action& action) {
  auto body = bulk_body(o, action);
  if (!body) {
    return usage_error(console, fmt::format("{}: {}", body.error().field, body.error().message),
                       text.name);
  }
  if (!o.yes && ::isatty(console.surroundings().in_fd) != 1) {
    return usage_error(console, "stdin is no terminal to ask on: use --yes", text.name);
  }
  const auto ask = [&](bool dry_run) {
    (*body)["dry_run"] = dry_run;
    return client.post("/v1/jobs/bulk", json_text(*body));
  };
  auto answer = ask(!o.yes);
  if (!answer) return report(console, answer.error(), o.json);
  auto document = parse_object(*answer);
  if (o.yes || !document)
    return tell_many(console, *answer, document.value_or(Json()), action, o.json);
  const std::vector<const Json*> jobs = changing(*document);
  if (jobs.empty()) return tell_many(console, *answer, *document, action, o.json);
  if (!confirmed(console, jobs, action)) {
    console.note("nothing was done");
    return kFailure;
  }
  // What was shown and nothing else, as far as it still matches.
  for (const Json* job : jobs) (*body)["ids"].push_back(text_at(*job, "id"));
  answer = ask(false);
  if (!answer) return report(console, answer.error(), o.json);
  document = parse_object(*answer);
  return tell_many(console, *answer, document.value_or(Json()), action, o.json);
}

int change_jobs(const CommandText& text, Invocation& invocation, Arguments& arguments,
                const ChangeOptions& o, const Action& action) {
  Console& console = invocation.console;
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  if (o.ids.empty() == !o.has_filter()) {
    return usage_error(console,
                       o.ids.empty() ? "which jobs? Give ids, or --user, --state, --name, --label "
                                       "or --all"
                                     : "give ids or filters, not both",
                       text.name);
  }
  // A job that puts itself back is told to stop at once, and with it this process, which its caller
  // wants to see succeed.
  if (action.call == kRequeue.call) std::signal(SIGTERM, SIG_IGN);
  if (o.ids.empty()) return change_many(text, console, *client, o, action);
  const std::string body = action.call != kRequeue.call ? "" : (o.hold ? R"({"hold":true})" : "{}");
  return for_each_job(
      console, o.ids, o.json,
      [&](const std::string& id) { return client->post(job_path(id, action.call), body); },
      [&](const std::string& id, const Json& answer) { tell_one(console, id, answer, action); });
}

int change_jobs(const CommandText& text, Invocation& invocation, const Action& action) {
  ChangeOptions o;
  Arguments arguments(text);
  define(arguments, o, action.call);
  return change_jobs(text, invocation, arguments, o, action);
}

// ---- update

// {"spec": {…}, "clear": […], "remove_labels": […]}
base::Result<Json> update_body(const JobOptions& options,
                               const std::vector<std::string>& remove_labels, base::Instant now) {
  Json spec = Json::object();
  std::vector<std::string> clear;
  TRY(options.put(spec, clear, now));
  Json body = Json::object();
  if (!spec.empty()) body["spec"] = std::move(spec);
  if (!clear.empty()) body["clear"] = clear;
  for (const std::string& key : remove_labels) {
    TRY(check_text("--remove-label", key));
    body["remove_labels"].push_back(key);
  }
  return body;
}

}  // namespace

int run_jobs_cancel(const CommandText& text, Invocation& invocation) {
  return change_jobs(text, invocation, kCancel);
}

int run_jobs_kill(const CommandText& text, Invocation& invocation) {
  return change_jobs(text, invocation, kKill);
}

int run_jobs_hold(const CommandText& text, Invocation& invocation) {
  return change_jobs(text, invocation, kHold);
}

int run_jobs_release(const CommandText& text, Invocation& invocation) {
  return change_jobs(text, invocation, kRelease);
}

int run_jobs_requeue(const CommandText& text, Invocation& invocation) {
  ChangeOptions o;
  Arguments arguments(text);
  define(arguments, o, kRequeue.call);
  arguments.flag("--hold", o.hold, "hold them when they are back in the queue");
  return change_jobs(text, invocation, arguments, o, kRequeue);
}

int run_jobs_update(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  std::vector<std::string> ids;
  std::vector<std::string> remove_labels;
  bool json = false;
  JobOptions options(JobOptions::Of::kUpdate);
  Arguments arguments(text);
  arguments.words("ID", ids, 1, SIZE_MAX, "jobs to change");
  options.define(arguments);
  arguments.many("--remove-label", remove_labels, "KEY", "label to take away; may be repeated")
      .flag("--json", json, "print the daemon's answer as JSON, one line for each job");
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  const auto body = update_body(options, remove_labels, console.surroundings().now());
  if (!body) {
    return usage_error(console, fmt::format("{}: {}", body.error().field, body.error().message),
                       text.name);
  }
  if (body->empty()) {
    return usage_error(console,
                       fmt::format("nothing to change: give {} or --remove-label", options.names()),
                       text.name);
  }
  const std::string request = json_text(*body);
  return for_each_job(
      console, ids, json,
      [&](const std::string& id) { return client->post(job_path(id, "update"), request); },
      [&](const std::string& id, const Json& answer) {
        console.note(fmt::format("job {} {}", id,
                                 flag_at(answer, "changed") ? "is changed" : "was so already"));
      });
}

}  // namespace gpu_platform::cli
