#include "api/convert/job_change.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/convert/enums.h"
#include "api/convert/job.h"
#include "api/convert/job_spec.h"
#include "api/convert/text_forms.h"
#include "base/letters.h"
#include "base/parse.h"
#include "model/job_signal.h"
#include "model/job_spec.h"

namespace gpu_platform::api {

namespace {

using Field = google::protobuf::FieldDescriptor;

constexpr std::uint64_t kDefaultSecondsBefore = 60;
constexpr std::uint64_t kMaxSecondsBefore = 65535;
constexpr std::uint64_t kMaxSignal = 64;
constexpr std::string_view kFirstProcessOnly = "B:";  // sbatch's word for the batch shell

std::unexpected<base::Error> bad_signal(std::string_view text, std::string_view what) {
  return base::invalid("limit_signal",
                       fmt::format("limit_signal: '{}' {}; write a signal and the seconds before "
                                   "the time limit, as in USR1@120 or 10@120, with B: before it "
                                   "only for the job's first process",
                                   text, what));
}

std::unexpected<base::Error> bad_dependency(std::string_view text, std::string_view what) {
  return base::invalid(
      "dependency",
      fmt::format(
          "dependency: '{}' {}; write after, afterany, afterok, afternotok or aftercorr and "
          "the jobs, as in afterok:12:14,afterany:40_3, or singleton; all of them must be met",
          text.substr(0, 64), what));
}

// "afterok:12:14"
base::Status add_dependencies(std::string_view text, std::vector<DependencyRef>& all) {
  using Kind = model::DependencyKind;
  if (text.contains('?'))
    return bad_dependency(text, "asks for any one of several jobs (?), which is not supported");
  const std::size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  std::optional<Kind> kind;
  for (const Kind candidate : model::kAllDependencyKinds) {
    if (name == model::to_string(candidate)) kind = candidate;
  }
  if (!kind) return bad_dependency(text, "begins with an unknown word");
  if (*kind == Kind::kSingleton) {
    if (colon != std::string_view::npos) return bad_dependency(text, "names jobs");
    all.push_back({*kind, {}});
    return {};
  }
  if (*kind == Kind::kAfter && text.contains('+'))
    return bad_dependency(text, "asks for a delay (+), which is not supported");
  if (colon == std::string_view::npos) return bad_dependency(text, "names no job");
  for (std::string_view rest = text.substr(colon + 1);;) {
    const std::size_t end = rest.find(':');
    const auto ref = to_job_ref(rest.substr(0, end));
    if (!ref) return bad_dependency(text, "names a job, but not by its id");
    all.push_back({*kind, *ref});
    if (end == std::string_view::npos) return {};
    rest.remove_prefix(end + 1);
  }
}

std::optional<std::uint8_t> to_signal(std::string_view name) {
  if (const auto number = base::parse_count(name, 1, kMaxSignal)) {
    return static_cast<std::uint8_t>(*number);
  }
  const std::string full = base::to_upper(name);
  return signal_number(full.starts_with("SIG") ? full : "SIG" + full);
}

}  // namespace

model::JobAction requeue_action(const v1::RequeueJobRequest& request) {
  return request.hold() ? model::JobAction::kRequeueAndHold : model::JobAction::kRequeue;
}

base::Result<model::Priority> to_priority(std::string_view text) {
  if (text.size() == 1 && text[0] >= '0' && text[0] <= '9') {
    return model::priority_of_number(static_cast<std::uint8_t>(text[0] - '0'));
  }
  using Class = model::PriorityClass;
  for (const Class candidate : {Class::kCritical, Class::kHigh, Class::kMedium, Class::kLow}) {
    if (base::to_upper(text) == model::to_string(candidate))
      return model::priority_of_class(candidate);
  }
  return base::invalid("priority",
                       "priority: must be CRITICAL, HIGH, MEDIUM, LOW or a number from 0 to 9");
}

base::Result<std::uint8_t> to_job_signal(std::string_view text) {
  const auto signal = to_signal(text);
  if (signal && model::is_job_signal(*signal)) return *signal;
  std::vector<std::string> allowed;
  for (const std::uint8_t each : model::kJobSignals) allowed.push_back(signal_name(each).substr(3));
  return base::invalid(
      "signal", fmt::format("signal: '{}' {}; it must be one of {}, or a number of these", text,
                            signal == SIGKILL ? "is sent by jobs kill" : "cannot be sent",
                            fmt::join(allowed, ", ")));
}

base::Result<model::Label> to_label(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    return base::invalid("label", "label: must be written key=value");
  }
  return model::Label{std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))};
}

base::Duration to_duration(double seconds) {
  return base::milliseconds(std::llround(seconds * 1000));
}

base::Result<model::LimitSignal> to_limit_signal(std::string_view text) {
  const bool first_process_only = text.starts_with(kFirstProcessOnly);
  const std::string_view rest = text.substr(first_process_only ? kFirstProcessOnly.size() : 0);
  const std::size_t at = rest.find('@');
  const auto signal = to_signal(rest.substr(0, at));
  if (!signal) return bad_signal(text, "names no signal");
  if (*signal == SIGKILL || *signal == SIGSTOP) {
    return bad_signal(text, "names a signal that no program can handle");
  }
  std::uint64_t seconds = kDefaultSecondsBefore;
  if (at != std::string_view::npos) {
    const auto given = base::parse_count(rest.substr(at + 1), 1, kMaxSecondsBefore);
    if (!given) {
      return bad_signal(text, fmt::format("does not have 1 to {} seconds", kMaxSecondsBefore));
    }
    seconds = *given;
  }
  return model::LimitSignal{*signal, base::seconds(static_cast<std::int64_t>(seconds)),
                            first_process_only};
}

std::string limit_signal_text(const model::LimitSignal& signal) {
  return fmt::format("{}{}@{}", signal.first_process_only ? kFirstProcessOnly : "",
                     signal_name(signal.signal).substr(3),
                     signal.before.value() / base::seconds(1).value());
}

base::Result<std::vector<DependencyRef>> to_dependencies(std::string_view text) {
  std::vector<DependencyRef> all;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    TRY(add_dependencies(text.substr(0, comma), all));
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
    if (comma != std::string_view::npos && text.empty()) return bad_dependency("", "is empty");
  }
  if (all.size() > model::kMaxDependencies) {
    return base::invalid("dependency", fmt::format("dependency: names {} jobs; the limit is {}",
                                                   all.size(), model::kMaxDependencies));
  }
  return all;
}

namespace {

// Speeds are those of the types that they were given with.
base::Status settle_gpu_types(model::SpecPatch& patch, const Nodes& nodes) {
  const auto* given = patch.get(&model::ResourceRequest::gpu_types);
  if (given == nullptr) return {};
  std::vector<std::string> types = *given;
  TRY(make_canonical(types, nodes));
  patch.set(&model::ResourceRequest::gpu_types, std::move(types));
  if (patch.get(&model::ResourceRequest::gpu_speeds) == nullptr) {
    patch.set(&model::ResourceRequest::gpu_speeds, {});
  }
  return {};
}

// A part is named with its GPU: a request for GPUs alone means whole ones, of which a former part
// leaves nothing behind.
void settle_share(model::SpecPatch& patch) {
  using Request = model::ResourceRequest;
  if (patch.get(&Request::gpus) == nullptr) return;
  if (patch.get(&Request::share_per_gpu) != nullptr) return;
  patch.set(&Request::share_per_gpu, base::kWholeGpu);
  if (patch.get(&Request::share_mode) == nullptr) patch.set(&Request::share_mode, std::nullopt);
  if (patch.get(&Request::slice) == nullptr) patch.set(&Request::slice, base::Duration());
}

}  // namespace

base::Result<model::UpdateJob> to_model(const v1::UpdateJobRequest& request, const Nodes& nodes) {
  model::UpdateJob update;
  TRY_ASSIGN(update.to, to_patch(request.spec(), nodes));
  for (const std::string& name : request.clear()) {
    const Field* const field = v1::JobSpec::descriptor()->FindFieldByName(name);
    const auto& reflection = *request.spec().GetReflection();
    const bool is_given =
        field != nullptr && (field->is_repeated() ? reflection.FieldSize(request.spec(), field) > 0
                                                  : reflection.HasField(request.spec(), field));
    if (is_given) {
      return base::invalid("clear", fmt::format("clear: {} is also set; give one of them", name));
    }
    TRY(clear_field(name, update.to));
  }
  TRY(settle_gpu_types(update.to, nodes));
  settle_share(update.to);
  update.remove_labels.assign(request.remove_labels().begin(), request.remove_labels().end());
  for (const std::string& key : update.remove_labels) {
    if (request.spec().labels().contains(key)) {
      return base::invalid("remove_labels",
                           fmt::format("remove_labels: '{}' is also set; give one of them", key));
    }
  }
  if (update.to.empty() && update.remove_labels.empty() && !request.spec().has_dependency()) {
    return base::invalid({}, fmt::format("nothing to change: give remove_labels, clear, or in "
                                         "spec one of {}",
                                         changeable_fields()));
  }
  return update;
}

namespace {

// Of user, all and all_users, at most one may be there: each says whose jobs are meant. A caller
// without rights over others' jobs is refused all_users rather than given its own jobs.
base::Status check_owner(const v1::ActOnJobsRequest& request, const model::Caller& caller) {
  if (request.all_users() && (request.has_user() || request.all())) {
    return base::invalid("all_users", "all_users: means all users; leave out user and all");
  }
  if (request.has_user() && request.all()) {
    return base::invalid("all", "all: means your own jobs; leave out user");
  }
  if (request.all_users() && caller.reach == model::Reach::kOwn) {
    return base::fail(base::ErrorCode::kPermissionDenied,
                      fmt::format("user {} may not change the jobs of all users", caller.user),
                      "all_users");
  }
  return {};
}

}  // namespace

base::Result<model::ActOnJobs> to_model(const v1::ActOnJobsRequest& request,
                                        const model::Caller& caller) {
  model::ActOnJobs many;
  if (request.action() == v1::JOB_ACTION_UNSPECIFIED) {
    return base::invalid("action",
                         "action: must be CANCEL, KILL, HOLD, RELEASE, REQUEUE or "
                         "REQUEUE_AND_HOLD");
  }
  many.action = to_model(request.action());
  many.dry_run = request.dry_run();
  TRY(check_owner(request, caller));
  const bool is_unbounded = request.ids().empty() && !request.has_user() &&
                            request.state().empty() && !request.has_name() &&
                            request.label().empty() && !request.all() && !request.all_users();
  if (is_unbounded) {
    return base::invalid("all",
                         "all: give ids, a filter (user, state, name, label), all or all_users");
  }
  for (const std::string& id : request.ids()) {
    const auto job = to_job_id(id);
    if (!job) return base::invalid("ids", "ids: must be jobs' numbers, as in \"42\"");
    many.which.ids.push_back(*job);
  }
  std::ranges::sort(many.which.ids);
  if (request.has_user()) {
    many.which.user = request.user();
  } else if (!request.all_users()) {
    many.which.user = caller.user;
  }
  for (const int number : request.state()) {
    const model::JobState state = to_model(static_cast<v1::JobState>(number));
    if (model::is_ended(state)) {
      return base::invalid("state", fmt::format("state: {} is the state of jobs that have ended",
                                                model::to_string(state)));
    }
    many.which.states.push_back(state);
  }
  if (request.has_name()) many.which.name = request.name();
  for (const std::string& text : request.label()) {
    TRY_ASSIGN(auto label, to_label(text));
    many.which.labels.push_back(std::move(label));
  }
  return many;
}

}  // namespace gpu_platform::api
