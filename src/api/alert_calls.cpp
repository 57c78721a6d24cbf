#include "api/alert_calls.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/alert_view.h"
#include "api/call_context.h"
#include "api/convert/job.h"
#include "api/list_page.h"
#include "base/parse.h"
#include "model/access.h"
#include "model/job.h"
#include "model/job_selection.h"
#include "os/clock.h"

namespace gpu_platform::api {

namespace {

// Of a user who is no operator: all users together may not keep operators from making one.
constexpr std::ptrdiff_t kMaxOwnSilences = 20;

// The job that an alert is about; empty: none.
std::string job_of(const alerts::Alert& alert) {
  const auto job = alert.labels.find("job");
  return job == alert.labels.end() ? std::string() : job->second;
}

std::string alert_label(const alerts::Alert& alert, std::string_view name) {
  const auto found = alert.labels.find(name);
  return found == alert.labels.end() ? std::string() : found->second;
}

bool is_asked_for(const v1::ListAlertsRequest& request, const alerts::Alert& alert) {
  const auto& states = request.states();
  if (!states.empty() && std::ranges::find(states, to_proto(alert.state)) == states.end()) {
    return false;
  }
  if (alert.severity < to_model(request.severity())) return false;
  if (!request.rule().empty() && !model::matches_pattern(request.rule(), alert.rule)) return false;
  return request.node().empty() || alert_label(alert, "node") == request.node();
}

// The alerts about jobs that the caller sees, with one look at each job.
class JobSight {
 public:
  JobSight(const JobReader& reader, const model::Caller& caller)
      : reader_(reader), caller_(caller) {}

  bool sees(const alerts::Alert& alert) {
    const std::string job = job_of(alert);
    if (job.empty()) return true;
    const auto known = seen_.find(job);
    if (known != seen_.end()) return known->second;
    return seen_[job] = reader_.find(caller_, job).has_value();
  }

 private:
  const JobReader& reader_;
  const model::Caller& caller_;
  std::map<std::string, bool> seen_;
};

// That of a job tells that the job is there. Its maker and operators see it all the same, and one
// with a pattern is an operator's.
bool is_shown(const alerts::Silence& silence, const JobReader& reader,
              const model::Caller& caller) {
  const auto job = silence.matchers.find("job");
  return job == silence.matchers.end() || silence.by == caller.user ||
         model::may_touch_site(caller) || reader.find(caller, job->second).has_value();
}

std::unexpected<base::Error> no_alert(const std::string& id) {
  return base::fail(base::ErrorCode::kNotFound, fmt::format("there is no alert {}", id), "id");
}

std::unexpected<base::Error> only_operators(std::string_view what) {
  return base::fail(base::ErrorCode::kPermissionDenied, fmt::format("only operators {}", what));
}

base::Result<alerts::Silence> new_silence(const v1::CreateSilenceRequest& request, const Peer& peer,
                                          base::Instant now) {
  if (request.has_until() == request.has_duration_seconds()) {
    return base::invalid("until", "until: give either this or duration_seconds");
  }
  alerts::Silence silence;
  silence.matchers.insert(request.matchers().begin(), request.matchers().end());
  silence.by = peer.caller.user;
  silence.comment = request.comment();
  silence.from = now;
  silence.until =
      request.has_until()
          ? api::to_model(request.until())
          : now + base::milliseconds(static_cast<std::int64_t>(request.duration_seconds() * 1000));
  TRY(alerts::check(silence, now));
  return silence;
}

// A member of an array has an id, too, and alerts have its name: "40_3".
void name_member(alerts::Silence& silence, const JobReader& reader, const model::Caller& caller) {
  const auto job = silence.matchers.find("job");
  if (job == silence.matchers.end()) return;
  const auto found = reader.find(caller, job->second);
  if (!found || found->whole_array || !found->job->is_member()) return;
  job->second = model::name_of(*found->job);
}

std::string text_of(const alerts::Silence& silence) {
  std::string text;
  for (const auto& [name, pattern] : silence.matchers) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, pattern);
  }
  return text;
}

template <class Message, class Value>
Message message_of(const Value& value) {
  Message out;
  to_proto(value, out);
  return out;
}

}  // namespace

base::Result<AlertSource*> AlertCalls::source() const {
  if (context_.core.alerts != nullptr) return context_.core.alerts;
  return base::fail(base::ErrorCode::kUnavailable, "this daemon watches nothing");
}

base::Result<v1::ListAlertsResponse> AlertCalls::list(const v1::ListAlertsRequest& request,
                                                      const Peer& peer) const {
  TRY_ASSIGN(const AlertSource* const source, this->source());
  JobSight sight(context_.reader, peer.caller);
  v1::ListAlertsResponse out;
  const std::vector<alerts::Alert> all = source->alerts();
  for (const alerts::Alert& alert : all) {
    if (is_asked_for(request, alert) && sight.sees(alert)) to_proto(alert, *out.add_alerts());
  }
  TRY(cut_to_page(request, *out.mutable_alerts(), out, [](const v1::Alert& alert) {
    // It may end twice in a second.
    const google::protobuf::Timestamp& end = alert.resolved_at();
    return fmt::format("{} {}.{:09}", alert.id(), end.seconds(), end.nanos());
  }));
  return out;
}

base::Result<alerts::Alert> AlertCalls::find(const std::string& id, const Peer& peer) const {
  TRY_ASSIGN(const AlertSource* const source, this->source());
  std::optional<alerts::Alert> alert = source->find(id);
  if (!alert || !JobSight(context_.reader, peer.caller).sees(*alert)) return no_alert(id);
  return *std::move(alert);
}

base::Result<v1::Alert> AlertCalls::get(const v1::GetAlertRequest& request,
                                        const Peer& peer) const {
  TRY_ASSIGN(const alerts::Alert alert, find(request.id(), peer));
  return message_of<v1::Alert>(alert);
}

base::Result<v1::ListAlertRulesResponse> AlertCalls::rules(
    const v1::ListAlertRulesRequest& request) const {
  TRY_ASSIGN(const AlertSource* const source, this->source());
  v1::ListAlertRulesResponse out;
  const std::vector<alerts::Rule> all = source->rules();
  for (const alerts::Rule& rule : all) to_proto(rule, *out.add_rules());
  TRY(cut_to_page(request, *out.mutable_rules(), out,
                  [](const v1::AlertRule& rule) { return rule.name(); }));
  return out;
}

base::Result<v1::ListSilencesResponse> AlertCalls::silences(const v1::ListSilencesRequest& request,
                                                            const Peer& peer) const {
  TRY_ASSIGN(const AlertSource* const source, this->source());
  v1::ListSilencesResponse out;
  const std::vector<alerts::Silence> all = source->silences();
  for (const alerts::Silence& silence : all) {
    if (is_shown(silence, context_.reader, peer.caller)) to_proto(silence, *out.add_silences());
  }
  TRY(cut_to_page(request, *out.mutable_silences(), out,
                  [](const v1::Silence& silence) { return silence.id(); }));
  return out;
}

base::Result<v1::ListAlertChannelsResponse> AlertCalls::channels(
    const v1::ListAlertChannelsRequest& request) const {
  TRY_ASSIGN(const AlertSource* const source, this->source());
  v1::ListAlertChannelsResponse out;
  const std::vector<AlertChannelView> all = source->channels();
  for (const AlertChannelView& channel : all) to_proto(channel, *out.add_channels());
  TRY(cut_to_page(request, *out.mutable_channels(), out,
                  [](const v1::AlertChannel& channel) { return channel.name(); }));
  return out;
}

void AlertCalls::record(model::AuditAction action, std::string target, const Peer& peer,
                        Resume resume, std::function<void(base::Status)> done) const {
  model::AuditedCall call;
  call.by = model::origin_of(peer.caller);
  call.action = action;
  call.target = std::move(target);
  context_.send({peer.caller, model::RecordCalls{{std::move(call)}}}, std::move(resume),
                [done = std::move(done)](base::Result<model::CommandReply> reply) {
                  if (!reply) return done(std::unexpected(std::move(reply).error()));
                  done({});
                });
}

void AlertCalls::acknowledge(const v1::AcknowledgeAlertRequest& request, const Peer& peer,
                             Resume resume, Done<v1::Alert> done) const {
  const auto alert = find(request.id(), peer);
  if (!alert) return done(std::unexpected(alert.error()));
  if (const std::string job = job_of(*alert); !job.empty()) {
    const auto found = context_.reader.find_to_change(peer.caller, job);
    if (!found) return done(std::unexpected(found.error()));
  } else if (!model::may_touch_site(peer.caller)) {
    return done(only_operators("acknowledge alerts about the site"));
  }
  record(model::AuditAction::kAcknowledge, fmt::format("{} {}", alert->rule, request.id()), peer,
         std::move(resume),
         [source = context_.core.alerts, id = request.id(), by = peer.caller.user,
          comment = request.comment(), done = std::move(done)](base::Status recorded) {
           if (!recorded) return done(std::unexpected(std::move(recorded).error()));
           const auto changed = source->acknowledge(id, by, comment);
           if (!changed) return done(std::unexpected(changed.error()));
           done(message_of<v1::Alert>(*changed));
         });
}

base::Status AlertCalls::check_may_silence(const AlertSource& source,
                                           const alerts::Silence& silence, const Peer& peer) const {
  if (model::may_touch_site(peer.caller)) return {};
  const auto job = silence.matchers.find("job");
  if (job == silence.matchers.end()) {
    return only_operators("silence more than one of their own jobs: give the matcher job=ID");
  }
  TRY(context_.reader.find_to_change(peer.caller, job->second));
  const std::vector<alerts::Silence> all = source.silences();
  const auto own = std::ranges::count(all, peer.caller.user, &alerts::Silence::by);
  if (own < kMaxOwnSilences) return {};
  return base::fail(base::ErrorCode::kResourceExhausted,
                    fmt::format("you have {} silences already: end one first", own));
}

void AlertCalls::create_silence(const v1::CreateSilenceRequest& request, const Peer& peer,
                                Resume resume, Done<v1::Silence> done) const {
  const auto source = this->source();
  if (!source) return done(std::unexpected(source.error()));
  auto silence = new_silence(request, peer, os::wall_now());
  if (!silence) return done(std::unexpected(std::move(silence).error()));
  if (auto allowed = check_may_silence(**source, *silence, peer); !allowed) {
    return done(std::unexpected(std::move(allowed).error()));
  }
  name_member(*silence, context_.reader, peer.caller);
  const std::string text = text_of(*silence);  // before it is moved away
  record(model::AuditAction::kSilence, text, peer, std::move(resume),
         [source = *source, silence = *std::move(silence),
          done = std::move(done)](base::Status recorded) {
           if (!recorded) return done(std::unexpected(std::move(recorded).error()));
           const auto made = source->add_silence(silence);
           if (!made) return done(std::unexpected(made.error()));
           done(message_of<v1::Silence>(*made));
         });
}

void AlertCalls::end_silence(const v1::EndSilenceRequest& request, const Peer& peer, Resume resume,
                             Done<v1::Silence> done) const {
  const auto source = this->source();
  if (!source) return done(std::unexpected(source.error()));
  const std::vector<alerts::Silence> all = (*source)->silences();
  const auto found = std::ranges::find_if(all, [&](const alerts::Silence& silence) {
    return std::to_string(silence.id) == request.id();
  });
  if (found == all.end() || !is_shown(*found, context_.reader, peer.caller)) {
    return done(base::fail(base::ErrorCode::kNotFound,
                           fmt::format("there is no silence {}", request.id()), "id"));
  }
  if (found->by != peer.caller.user && !model::may_touch_site(peer.caller)) {
    return done(only_operators("end silences of others"));
  }
  record(model::AuditAction::kEndSilence, request.id(), peer, std::move(resume),
         [source = *source, id = found->id, done = std::move(done)](base::Status recorded) {
           if (!recorded) return done(std::unexpected(std::move(recorded).error()));
           const auto ended = source->end_silence(id);
           if (!ended) return done(std::unexpected(ended.error()));
           done(message_of<v1::Silence>(*ended));
         });
}

void AlertCalls::test(const v1::TestAlertChannelRequest& request, const Peer& peer, Resume resume,
                      Done<v1::TestAlertChannelResponse> done) const {
  const auto source = this->source();
  if (!source) return done(std::unexpected(source.error()));
  record(model::AuditAction::kTestChannel, request.name(), peer, resume,
         [source = *source, name = request.name(), by = peer.caller.user, resume,
          done = std::move(done)](base::Status recorded) {
           if (!recorded) return done(std::unexpected(std::move(recorded).error()));
           source->test(name, by, [name, resume, done](base::Status went) {
             resume([name, done, went = std::move(went)] {
               if (!went) return done(std::unexpected(went.error()));
               v1::TestAlertChannelResponse out;
               out.set_name(name);
               done(std::move(out));
             });
           });
         });
}

}  // namespace gpu_platform::api
