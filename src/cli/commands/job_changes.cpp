#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <map>

#include <fmt/format.h>

#include "api/convert/field_plan.h"
#include "base/letters.h"
#include "base/percent.h"
#include "cli/client_names.h"
#include "cli/commands.h"
#include "cli/jobs/job_end.h"
#include "cli/text/job_names.h"
#include "cli/text/job_text.h"
#include "cli/text/message_text.h"
#include "cli/text/text.h"
#include "cli/words/input.h"
#include "cli/words/job_options.h"
#include "client/follow.h"
#include "client/request_text.h"
#include "model/job_spec.h"

// The commands that change jobs which are there: named by id, or, all at once, by filters.

namespace gpu_platform::cli {

namespace {

// How many jobs a question shows.
constexpr std::size_t kShown = 10;

struct Action {
  std::string_view call;        // last part of the path
  v1::JobAction bulk;           // of the bulk call
  std::string_view done;        // "3 jobs HELD": past participle
  std::string_view already;     // why nothing changed
  std::string_view asked = {};  // what the question says; empty: as `done`
};
constexpr Action kCancel{"cancel", v1::JOB_ACTION_CANCEL, "being stopped",
                         "is being stopped already", "cancelled"};
constexpr Action kKill{"kill", v1::JOB_ACTION_KILL, "killed", "is being killed already"};
constexpr Action kHold{"hold", v1::JOB_ACTION_HOLD, "held", "is held already"};
constexpr Action kRelease{"release", v1::JOB_ACTION_RELEASE, "released", "is not held"};
constexpr Action kRequeue{"requeue", v1::JOB_ACTION_REQUEUE, "put back into the queue",
                          "waits, or comes back to the queue, already"};

struct ChangeOptions {
  std::vector<std::string> ids;
  std::optional<std::string> user, name;
  std::vector<std::string> states, labels;
  bool all = false;
  bool all_users = false;
  bool yes = false;
  Output output;
  bool hold = false;  // of requeue

  bool has_filter() const {
    return user || name || !states.empty() || !labels.empty() || all || all_users;
  }
};

void define(Arguments& arguments, ChangeOptions& o, std::string_view doing) {
  arguments.words("ID", o.ids, 0, SIZE_MAX, fmt::format("jobs to {}, or instead of them:", doing))
      .option("--user", o.user, "NAME", "all jobs of this user (default: you)")
      .many("--state", o.states, "STATE[,STATE]", "all jobs in these states")
      .option("--name", o.name, "PATTERN", "all jobs with a matching name: 'train-*'")
      .many("--label", o.labels, "KEY=VALUE", "all jobs with this label; may be repeated")
      .flag("--all", o.all, "all your own jobs")
      .flag("--all-users", o.all_users,
            "the jobs of all users, within the other filters; for operators, and for coordinators "
            "those of their teams")
      .flag("--yes", o.yes, "do not ask")
      .output(o.output, {"", "job/id"});
}

// ---- one by one

void tell_one(Console& console, const std::string& id, const v1::ChangeJobResponse& answer,
              const Action& action) {
  const v1::Job& job = answer.job();
  if (job.array_id() == id) {
    console.note(answer.changed()
                     ? fmt::format("array {}: its jobs that had not ended are {}", id, action.done)
                     : fmt::format("array {}: nothing changed", id));
    return;
  }
  const std::string name = job.id().empty() ? id : shown_id(job);
  const bool is_stopping = job.state() == v1::JOB_STATE_STOPPING;
  if (!answer.changed()) {
    console.note(client::is_ended(job.state())
                     ? fmt::format("{}; it had ended before", describe_end(job))
                     : fmt::format("job {} {}", name, action.already));
  } else if (is_stopping && action.call == kRequeue.call) {
    console.note(fmt::format(
        "job {} is queued again; its attempt is stopping and has its grace time", name));
  } else if (is_stopping && action.call != kKill.call) {
    console.note(fmt::format("job {} is stopping; it has its grace time to end", name));
  } else if (is_stopping) {
    console.note(fmt::format("job {} is being killed", name));
  } else {
    console.note(fmt::format("job {} is {}", name, state_name(job)));
  }
}

// All are tried; the exit code is that of the first that failed.
template <class Call, class Tell>
int for_each_job(Console& console, const std::vector<std::string>& ids, const Output& output,
                 Call&& call, Tell&& tell) {
  int result = kOk;
  for (const std::string& id : ids) {
    const auto answer = call(id);
    if (!answer) {
      const int code = report(console, answer.error(), output.wants_documents());
      if (result == kOk) result = code;
      if (code == kNoDaemon) break;
    } else if (output.is_document()) {
      print_next_document(console, output, *answer);
    } else if (const auto message = client::message_of<v1::ChangeJobResponse>(*answer)) {
      tell(id, *message);
    }
  }
  return result == kOk && console.out_failed() ? kFailure : result;
}

std::string job_path(const std::string& id, std::string_view call) {
  return fmt::format("/v1/jobs/{}/{}", base::percent_encoded(id), call);
}

// ---- all that match

base::Status put_states(v1::ActOnJobsRequest& request, const std::vector<std::string>& lists) {
  const api::FieldPlan& field = *api::plan_of(*v1::ActOnJobsRequest::descriptor()).find("state");
  for (const std::string& state : words_of_lists(lists)) {
    TRY(check_text("--state", state));
    const std::optional<int> number = api::enum_number(field, base::to_upper(state));
    if (!number) {
      return base::invalid("--state",
                           fmt::format("'{}' is not one of {}", state, api::allowed_names(field)));
    }
    request.add_state(static_cast<v1::JobState>(*number));
  }
  return {};
}

base::Result<v1::ActOnJobsRequest> bulk_request(const ChangeOptions& o, const Action& action) {
  v1::ActOnJobsRequest request;
  request.set_action(o.hold ? v1::JOB_ACTION_REQUEUE_AND_HOLD : action.bulk);
  if (o.user) {
    TRY(check_text("--user", *o.user));
    request.set_user(*o.user);
  }
  if (o.name) {
    TRY(check_text("--name", *o.name));
    request.set_name(*o.name);
  }
  TRY(put_states(request, o.states));
  for (const std::string& label : o.labels) {
    TRY(check_text("--label", label));
    request.add_label(label);
  }
  request.set_all(o.all);
  request.set_all_users(o.all_users);
  return request;
}

// With `all` the body says `all_users` also where it is false: a daemon that does not know it yet
// takes `all` for the jobs of all users, and refuses the request for the field that it does not
// know.
std::string bulk_text(const v1::ActOnJobsRequest& request) {
  std::string text = client::request_text(request);
  if (request.all() && !request.all_users()) {
    text.insert(text.size() - 1, R"(,"all_users":false)");
  }
  return text;
}

// Those that would change, for a question and for the ids of what is then asked for.
std::vector<const v1::JobOutcome*> changing(const v1::ActOnJobsResponse& answer) {
  std::vector<const v1::JobOutcome*> jobs;
  for (const v1::JobOutcome& job : answer.jobs()) {
    if (job.changed()) jobs.push_back(&job);
  }
  return jobs;
}

std::string line_of(const v1::JobOutcome& job, const JobLabels& names) {
  return harmless(fmt::format("  {}  {}  {}  {}", label_of(names, job.id()), job.name(), job.user(),
                              state_name(job)));
}

// Reads a line; only y and yes are a yes.
bool confirmed(Console& console, Client& client, const std::vector<const v1::JobOutcome*>& jobs,
               const Action& action) {
  const std::size_t shown = std::min(jobs.size(), kShown);
  std::set<std::string> ids;
  for (std::size_t i = 0; i < shown; ++i) ids.insert(jobs[i]->id());
  const JobLabels names = job_names(client, ids);
  std::string question;
  for (std::size_t i = 0; i < shown; ++i) question += line_of(*jobs[i], names) + "\n";
  if (jobs.size() > shown) question += fmt::format("  and {} more\n", jobs.size() - shown);
  const std::string_view are = jobs.size() == 1 ? "is" : "are";
  console.err(fmt::format("{} {} to be {}:\n{}Go on? [y/N] ", counted(jobs.size(), "job"), are,
                          action.asked.empty() ? action.done : action.asked, question));
  std::string answer;
  char c = 0;
  while (::read(console.process_environment().in_fd, &c, 1) == 1 && c != '\n') answer.push_back(c);
  const std::string said = base::to_upper(answer);
  return said == "Y" || said == "YES";
}

// "3 jobs cancelled, 2 jobs being stopped": a job that has not run is gone at once.
std::string done_text(const v1::ActOnJobsResponse& answer, const Action& action) {
  std::uint64_t cancelled = 0;
  for (const v1::JobOutcome& job : answer.jobs()) {
    if (job.changed() && job.state() == v1::JOB_STATE_CANCELLED) ++cancelled;
  }
  if (action.call != kCancel.call || cancelled == 0) {
    return fmt::format("{} {}", counted(answer.changed(), "job"), action.done);
  }
  const std::string text = counted(cancelled, "job") + " cancelled";
  if (answer.changed() <= cancelled) return text;
  return fmt::format("{}, {} {}", text, counted(answer.changed() - cancelled, "job"), action.done);
}

// The exit code is 0 when nothing was refused.
int tell_many(Console& console, const std::string& body, const v1::ActOnJobsResponse& answer,
              const Action& action, const Output& output) {
  if (output.is_document()) {
    print_document(console, output, body);
  } else {
    for (const v1::JobOutcome& job : answer.jobs()) {
      if (!job.refused().empty()) console.error(harmless(job.refused()));
    }
    console.note(answer.jobs().empty() ? "no such jobs" : done_text(answer, action));
  }
  if (console.out_failed()) return kFailure;
  return answer.refused() > 0 ? kRefused : kOk;
}

int change_many(const CommandText& text, Console& console, Client& client, const ChangeOptions& o,
                const Action& action) {
  auto request = bulk_request(o, action);
  if (!request) {
    return usage_error(
        console, fmt::format("{}: {}", request.error().field, request.error().message), text.name);
  }
  if (!o.yes && ::isatty(console.process_environment().in_fd) != 1) {
    return usage_error(console,
                       "standard input is not a terminal, so there can be no question: use --yes",
                       text.name);
  }
  const auto ask = [&](bool dry_run) {
    request->set_dry_run(dry_run);
    return client.post("/v1/jobs/bulk", bulk_text(*request));
  };
  Output output = o.output;
  output.names = {"jobs", "id"};
  auto answer = ask(!o.yes);
  if (!answer) return report(console, answer.error(), output.wants_documents());
  const auto message = client::message_of<v1::ActOnJobsResponse>(*answer);
  if (o.yes || !message) {
    return tell_many(console, *answer, message.value_or(v1::ActOnJobsResponse()), action, output);
  }
  const std::vector<const v1::JobOutcome*> jobs = changing(*message);
  if (jobs.empty()) return tell_many(console, *answer, *message, action, output);
  if (!confirmed(console, client, jobs, action)) {
    console.note("nothing was done");
    return kFailure;
  }
  // What was shown and nothing else, as far as it still matches.
  for (const v1::JobOutcome* job : jobs) request->add_ids(job->id());
  answer = ask(false);
  if (!answer) return report(console, answer.error(), output.wants_documents());
  const auto done = client::message_of<v1::ActOnJobsResponse>(*answer);
  return tell_many(console, *answer, done.value_or(v1::ActOnJobsResponse()), action, output);
}

int change_jobs(const CommandText& text, Invocation& invocation, Arguments& arguments,
                const ChangeOptions& o, const Action& action) {
  Console& console = invocation.console;
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  if (o.ids.empty() == !o.has_filter()) {
    return usage_error(console,
                       o.ids.empty() ? "which jobs? Give ids, or --user, --state, --name, --label, "
                                       "--all or --all-users"
                                     : "give ids or filters, not both",
                       text.name);
  }
  // A job that puts itself back is told to stop at once, and with it this process, which its caller
  // wants to see succeed.
  if (action.call == kRequeue.call) std::signal(SIGTERM, SIG_IGN);
  if (o.ids.empty()) return change_many(text, console, *client, o, action);
  std::string body;
  if (action.call == kRequeue.call) {
    v1::RequeueJobRequest request;
    request.set_hold(o.hold);
    body = client::request_text(request);
  }
  return for_each_job(
      console, o.ids, o.output,
      [&](const std::string& id) { return client->post(job_path(id, action.call), body); },
      [&](const std::string& id, const v1::ChangeJobResponse& answer) {
        tell_one(console, id, answer, action);
      });
}

int change_jobs(const CommandText& text, Invocation& invocation, const Action& action) {
  ChangeOptions o;
  Arguments arguments(text);
  define(arguments, o, action.call);
  return change_jobs(text, invocation, arguments, o, action);
}

// ---- update

// The nodes of the job: --gpus is divided among those that it keeps.
std::uint64_t nodes_of(Client& client, const std::string& id) {
  const auto job =
      client.ask<v1::Job>(fmt::format("/v1/jobs/{}", base::percent_encoded(id)), "a job");
  return job ? std::max<std::uint64_t>(job->spec().nodes(), 1) : 1;
}

// `nodes`: those of the job, where no option sets them.
base::Result<v1::UpdateJobRequest> update_request(const JobOptions& options,
                                                  const std::vector<std::string>& remove_labels,
                                                  base::Instant now, std::uint64_t nodes) {
  v1::UpdateJobRequest request;
  v1::JobSpec spec;
  std::vector<std::string> clear;
  TRY(options.put(spec, clear, now));
  const std::vector<std::string>& types = options.texts("--gpu-type");
  if (types.size() == 1 && types.front() == "none") {
    clear.emplace_back("gpu_types");
  } else {
    TRY(put_gpu_types(spec, types));
  }
  TRY(put_gpu_count(spec, options, spec.has_nodes() ? spec.nodes() : nodes));
  if (spec.ByteSizeLong() > 0) *request.mutable_spec() = std::move(spec);
  request.mutable_clear()->Assign(clear.begin(), clear.end());
  for (const std::string& key : remove_labels) {
    TRY(check_text("--remove-label", key));
    request.add_remove_labels(key);
  }
  return request;
}

}  // namespace

// Raised last to first, so that they go in the order in which they were named.
int run_jobs_top(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  std::vector<std::string> ids;
  Output output;
  Arguments arguments(text);
  arguments.words("ID", ids, 1, SIZE_MAX, "jobs to raise, the first of them to the top")
      .output(output, {"", "job/id"});
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  std::ranges::reverse(ids);
  return for_each_job(
      console, ids, output,
      [&](const std::string& id) { return client->post(job_path(id, "top")); },
      [&](const std::string& id, const v1::ChangeJobResponse& answer) {
        console.note(fmt::format("{} {} {} your other waiting jobs of its team and class",
                                 answer.job().array_id() == id ? "array" : "job", id,
                                 answer.changed() ? "is raised above" : "was already above"));
      });
}

int run_jobs_signal(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  std::vector<std::string> ids;
  std::optional<std::string> signal;
  Output output;
  Arguments arguments(text);
  arguments.words("ID", ids, 1, SIZE_MAX, "running jobs")
      .option("-s,--signal", signal, "SIGNAL", "USR1, SIGUSR1, 10, …; required")
      .output(output, {"", "job/id"});
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  if (!signal)
    return usage_error(console, "which signal? Give --signal, as in --signal USR1", text.name);
  if (const auto checked = check_text("--signal", *signal); !checked) {
    return usage_error(console, "--signal: " + checked.error().message, text.name);
  }
  v1::SignalJobRequest request;
  request.set_signal(*signal);
  const std::string body = client::request_text(request);
  return for_each_job(
      console, ids, output,
      [&](const std::string& id) {
        auto answer = client->post(job_path(id, "signal"), body);
        if (!answer) answer = std::unexpected(with_option_name(std::move(answer).error()));
        return answer;
      },
      [&](const std::string& id, const v1::ChangeJobResponse&) {
        console.note(fmt::format("signal {} is sent to the processes of job {}", *signal, id));
      });
}

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
  Output output;
  JobOptions options(JobOptions::Of::kUpdate);
  Arguments arguments(text);
  arguments.words("ID", ids, 1, SIZE_MAX, "jobs to change");
  options.define(arguments);
  arguments.many("--remove-label", remove_labels, "KEY", "label to remove; may be repeated")
      .output(output, {"", "job/id"});
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  const base::Instant now = console.process_environment().now();
  const auto request = update_request(options, remove_labels, now, 1);
  if (!request) {
    return usage_error(
        console, fmt::format("{}: {}", request.error().field, request.error().message), text.name);
  }
  if (request->ByteSizeLong() == 0) {
    return usage_error(console,
                       fmt::format("nothing to change: give {} or --remove-label", options.names()),
                       text.name);
  }
  const bool depends_on_nodes = options.has("--gpus") && !options.has("--nodes");
  std::map<std::string, std::string> requests;
  for (const std::string& id : ids) {
    const auto of_job = depends_on_nodes
                            ? update_request(options, remove_labels, now, nodes_of(*client, id))
                            : request;
    if (!of_job) {
      return usage_error(
          console, fmt::format("job {}: {}: {}", id, of_job.error().field, of_job.error().message),
          text.name);
    }
    requests[id] = client::request_text(*of_job);
  }
  return for_each_job(
      console, ids, output,
      [&](const std::string& id) {
        auto answer = client->post(job_path(id, "update"), requests[id]);
        if (!answer) {
          answer = std::unexpected(with_option_name(std::move(answer).error(), &options));
        }
        return answer;
      },
      [&](const std::string& id, const v1::ChangeJobResponse& answer) {
        console.note(fmt::format("job {} {}", id,
                                 answer.changed() ? "is changed" : "already has these values"));
      });
}

}  // namespace gpu_platform::cli
