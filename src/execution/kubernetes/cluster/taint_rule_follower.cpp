#include "execution/kubernetes/cluster/taint_rule_follower.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "execution/kubernetes/api_values.h"

namespace gpu_platform::execution {

namespace {

using kubernetes::Answer;
using Json = nlohmann::json;

constexpr std::string_view kTaintRules = "devicetaintrules";
// Newest first: of Kubernetes 1.37, 1.36 and 1.33.
constexpr std::array<std::string_view, 3> kRuleVersions = {"v1", "v1beta2", "v1alpha3"};
constexpr base::Duration kLookPause = base::minutes(10);

std::string group_path(std::string_view version) {
  return fmt::format("/apis/resource.k8s.io/{}", version);
}

bool serves_rules(const Answer& answer) {
  const Json list = Json::parse(answer.body, nullptr, false);
  return std::ranges::any_of(list_at(list, {"resources"}), [](const Json& resource) {
    return text_at(resource, {"name"}) == kTaintRules;
  });
}

// An answer that says nothing about what the server has and allows: it is asked again.
bool says_nothing(const Answer& answer) {
  return answer.status == 0 || answer.status == 401 || answer.status == 429 || answer.status >= 500;
}

}  // namespace

TaintRuleFollower::TaintRuleFollower(kubernetes::Client& client,
                                     kubernetes::FollowHandlers handlers,
                                     std::function<void(const std::string& line)> warn)
    : client_(client),
      handlers_(std::move(handlers)),
      warn_(std::move(warn)),
      back_off_(base::milliseconds(200), base::seconds(30), 1) {}

void TaintRuleFollower::advance(std::int64_t now_ns) {
  // A callback has no time, so the pause that it asked for begins here.
  if (pause_ > base::Duration()) due_ns_ = now_ns + std::exchange(pause_, {}).value();
  if (due_ns_ != 0 && now_ns >= due_ns_) {
    due_ns_ = 0;
    ask_version(0);
  }
  if (reflector_) reflector_->advance(now_ns);
}

std::int64_t TaintRuleFollower::due_ns() const {
  const std::int64_t look = pause_ > base::Duration() ? 1 : due_ns_;
  const std::int64_t follow = reflector_ ? reflector_->due_ns() : 0;
  return look == 0 || follow == 0 ? std::max(look, follow) : std::min(look, follow);
}

bool TaintRuleFollower::is_listed() const {
  return is_without_ || (reflector_ && reflector_->is_listed());
}

void TaintRuleFollower::look_later(base::Duration pause) {
  pause_ = pause;
}

// An account without the right is refused also if the server has the rule, so the server is asked
// for its resources, which every account may see.
void TaintRuleFollower::ask_version(std::size_t index) {
  if (index == kRuleVersions.size()) return follow_none();
  const std::string_view version = kRuleVersions.at(index);
  client_.send({.path = group_path(version)}, [this, index, version](const Answer& answer) {
    if (says_nothing(answer)) return look_later(back_off_.next());
    if (!answer.is_ok() || !serves_rules(answer)) return ask_version(index + 1);
    ask_right(std::string(version));
  });
}

void TaintRuleFollower::ask_right(const std::string& version) {
  const std::string path = fmt::format("{}/{}?limit=1", group_path(version), kTaintRules);
  client_.send({.path = path}, [this, version](const Answer& answer) {
    if (says_nothing(answer)) return look_later(back_off_.next());
    if (answer.is_ok()) return follow(version);
    if (answer.status == 403 && reflector_) return look_later(kLookPause);
    if (answer.status == 403 && warn_ && !std::exchange(is_right_missed_, true)) {
      warn_(fmt::format(
          "the platform's user in Kubernetes may not list {}.resource.k8s.io, so the taints of "
          "DeviceTaintRules are not known; apply deploy/kubernetes/rbac.yaml",
          kTaintRules));
    }
    follow_none();
  });
}

void TaintRuleFollower::follow(const std::string& version) {
  back_off_.reset();
  look_later(kLookPause);
  if (reflector_ && version_ == version) return;
  version_ = version;
  kubernetes::FollowHandlers handlers = handlers_;
  handlers.on_trouble = [this](const std::string& why) {
    if (!warn_) return;
    warn_(why.empty() ? fmt::format("{} can be followed again", kTaintRules)
                      : fmt::format("{} cannot be followed: {}", kTaintRules, why));
  };
  reflector_ = std::make_unique<kubernetes::Reflector>(
      client_,
      kubernetes::Followed{.path = fmt::format("{}/{}", group_path(version), kTaintRules),
                           .query = {}},
      std::move(handlers));
}

void TaintRuleFollower::follow_none() {
  back_off_.reset();
  look_later(kLookPause);
  reflector_.reset();
  is_without_ = true;
  if (handlers_.on_list_begin) handlers_.on_list_begin();
  if (handlers_.on_listed) handlers_.on_listed();
}

}  // namespace gpu_platform::execution
