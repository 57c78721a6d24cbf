#include "execution/kubernetes/exporter/exporter_scraper.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "execution/kubernetes/exporter/exported_gpus.h"
#include "kubernetes/resource_path.h"
#include "os/clock.h"

namespace gpu_platform::execution {

namespace {

using Json = nlohmann::json;

constexpr base::Duration kTimeout = base::seconds(10);      // of one page
constexpr base::Duration kLongestPause = base::minutes(2);  // after failures
constexpr std::uint32_t kMaxDoublings = 8;
constexpr std::uint32_t kPodsInPage = 100;  // whole pods; a page must fit into an answer
constexpr int kForbidden = 403;

kubernetes::Followed pods_of(const ExporterSettings& settings) {
  kubernetes::Followed followed;
  followed.path =
      fmt::format("/api/v1/namespaces/{}/pods", kubernetes::query_value(settings.namespace_name));
  if (!settings.selector.empty()) {
    followed.query = "labelSelector=" + kubernetes::query_value(settings.selector);
  }
  followed.fields = ExporterPods::fields();
  return followed;
}

base::Duration pause_after(base::Duration interval, std::uint32_t failures) {
  const std::int64_t longer = std::int64_t{1} << std::min(failures, kMaxDoublings);
  return std::max(interval, std::min(interval * longer, kLongestPause));
}

}  // namespace

ExporterScraper::ExporterScraper(kubernetes::Client& client, ExporterSettings settings, Take take,
                                 std::function<void(const std::string& line)> warn)
    : client_(client),
      settings_(std::move(settings)),
      take_(std::move(take)),
      warn_(std::move(warn)),
      pods_(!settings_.selector.empty()),
      reflector_(client, pods_of(settings_), handlers(), {.page = kPodsInPage}) {}

ExporterScraper::~ExporterScraper() {
  for (const auto& [node, target] : targets_) client_.cancel(target.request);
}

kubernetes::FollowHandlers ExporterScraper::handlers() {
  kubernetes::FollowHandlers handlers;
  handlers.on_list_begin = [this] { pods_.begin_list(); };
  handlers.on_object = [this](const Json& pod) { pods_.put(pod); };
  handlers.on_deleted = [this](const Json& pod) { pods_.remove(pod); };
  handlers.on_listed = [this] {
    pods_.end_list();
    const std::lock_guard lock(mutex_);
    is_listed_ = true;
  };
  handlers.on_trouble = [this](const std::string& why) {
    {
      const std::lock_guard lock(mutex_);
      trouble_ = why;
    }
    if (!warn_) return;
    const std::string& space = settings_.namespace_name;
    warn_(why.empty()
              ? fmt::format("the exporters' pods in namespace {} can be followed again", space)
              : fmt::format("the exporters' pods in namespace {} cannot be followed: {}", space,
                            why));
  };
  return handlers;
}

void ExporterScraper::advance(std::int64_t now_ns) {
  reflector_.advance(now_ns);
  for (const std::string& node : pods_.take_changed()) aim(node, now_ns);
  while (!due_.empty() && due_.begin()->first <= now_ns) {
    const std::string node = due_.begin()->second;
    due_.erase(due_.begin());
    ask(node, now_ns);
  }
}

std::int64_t ExporterScraper::due_ns() const {
  const std::int64_t of_pods = reflector_.due_ns();
  if (due_.empty()) return of_pods;
  const std::int64_t first = due_.begin()->first;
  return of_pods == 0 ? first : std::min(of_pods, first);
}

// The pods on the node have changed.
void ExporterScraper::aim(const std::string& node, std::int64_t now_ns) {
  const ExporterPods::Pod* const pod = pods_.pod_on(node);
  const auto known = targets_.find(node);
  const bool is_same =
      known != targets_.end() && pod != nullptr && pod->is_ready && known->second.pod == pod->name;
  if (is_same) return;
  drop(node);
  if (pod == nullptr) return note(node, std::nullopt);
  if (!pod->is_ready)
    return note(node, fmt::format("the exporter's pod {} is not ready", pod->name));
  note(node, fmt::format("the exporter's pod {} has not answered yet", pod->name));
  targets_[node] = {.pod = pod->name, .due_ns = now_ns};
  due_.emplace(now_ns, node);
}

void ExporterScraper::drop(const std::string& node) {
  const auto target = targets_.find(node);
  if (target == targets_.end()) return;
  client_.cancel(target->second.request);
  due_.erase({target->second.due_ns, node});
  targets_.erase(target);
}

void ExporterScraper::ask(const std::string& node, std::int64_t now_ns) {
  Target& target = targets_.at(node);
  target.asked_ns = now_ns;
  kubernetes::Request request;
  request.path = path_of(target.pod);
  request.timeout = kTimeout;
  target.request = client_.send(std::move(request), [this, node](const kubernetes::Answer& answer) {
    take_answer(node, answer);
  });
}

// Of the pod that the node has now: a request to another one was cancelled.
void ExporterScraper::take_answer(const std::string& node, const kubernetes::Answer& answer) {
  Target& target = targets_.at(node);
  target.request = 0;
  const std::string why = read(node, target.pod, answer);
  target.failures = why.empty() ? 0 : target.failures + 1;
  // A page may have waited for its turn, and may have taken its time.
  target.due_ns =
      std::max(os::monotonic_ns(),
               target.asked_ns + pause_after(settings_.interval, target.failures).value());
  due_.emplace(target.due_ns, node);
  note(node, why);
}

// Returns why there are no readings; empty: there are.
std::string ExporterScraper::read(const std::string& node, const std::string& pod,
                                  const kubernetes::Answer& answer) const {
  if (answer.status == kForbidden) {
    return fmt::format(
        "forbidden: the platform needs the right to get pods/proxy in namespace {}: {}",
        settings_.namespace_name, kubernetes::error_message_of(answer));
  }
  if (!answer.is_ok()) {
    return fmt::format("the exporter's pod {} does not answer: {}", pod,
                       kubernetes::error_message_of(answer));
  }
  auto gpus = gpus_of_page(answer.body);
  if (gpus.empty()) return fmt::format("the page of the exporter's pod {} has no GPU", pod);
  if (take_(node, std::move(gpus)) > 0) return {};
  return fmt::format("the page of the exporter's pod {} has no GPU that the platform knows on {}",
                     pod, node);
}

std::string ExporterScraper::path_of(const std::string& pod) const {
  return fmt::format("/api/v1/namespaces/{}/pods/{}:{}/proxy{}",
                     kubernetes::query_value(settings_.namespace_name),
                     kubernetes::query_value(pod), settings_.port, settings_.path);
}

// Nothing: the node has no pod.
void ExporterScraper::note(const std::string& node, std::optional<std::string> why) {
  const std::lock_guard lock(mutex_);
  if (why) {
    why_[node] = *std::move(why);
  } else {
    why_.erase(node);
  }
}

std::string ExporterScraper::why_none(std::string_view node) const {
  const std::lock_guard lock(mutex_);
  if (const auto known = why_.find(node); known != why_.end()) return known->second;
  if (!trouble_.empty()) return fmt::format("the exporters' pods cannot be followed: {}", trouble_);
  if (!is_listed_) return "the exporters' pods are not listed yet";
  return fmt::format("there is no exporter's pod on {}", node);
}

}  // namespace gpu_platform::execution
