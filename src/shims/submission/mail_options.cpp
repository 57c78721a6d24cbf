#include "shims/submission/mail_options.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/letters.h"
#include "model/job_spec.h"
#include "shims/text/slurm_values.h"

namespace gpu_platform::shims {

namespace {

constexpr std::string_view kNoMail =
    "no mail is sent, because the site has no notification command; 'gpu-platform jobs wait' waits "
    "for the end";

// As Slurm, a job that runs into its time limit has failed.
constexpr std::pair<std::string_view, v1::NotifyOn> kEvents[] = {
    {"BEGIN", v1::NOTIFY_ON_START},     {"END", v1::NOTIFY_ON_END},   {"FAIL", v1::NOTIFY_ON_FAIL},
    {"TIME_LIMIT", v1::NOTIFY_ON_FAIL}, {"ALL", v1::NOTIFY_ON_START}, {"ALL", v1::NOTIFY_ON_END},
    {"ALL", v1::NOTIFY_ON_FAIL},
};

std::set<v1::NotifyOn> events_of(const std::string& list, std::vector<std::string>& warnings) {
  std::set<v1::NotifyOn> events;
  for (const std::string& word : comma_separated(list)) {
    const std::string type = base::to_upper(word);
    bool is_known = type == "NONE";
    for (const auto& [name, event] : kEvents) {
      if (type != name) continue;
      is_known = true;
      events.insert(event);
    }
    if (!is_known) {
      warnings.push_back(fmt::format(
          "--mail-type: '{}' is ignored: the platform tells BEGIN, END, FAIL and TIME_LIMIT",
          word));
    }
  }
  return events;
}

}  // namespace

std::vector<std::string> put_mail(const Settings& settings, bool can_notify, v1::JobSpec& spec) {
  std::vector<std::string> warnings;
  if (!can_notify) {
    for (const char* name : {"mail-type", "mail-user"}) {
      if (settings.has(name)) warnings.push_back(fmt::format("--{} is ignored: {}", name, kNoMail));
    }
    return warnings;
  }
  const std::set<v1::NotifyOn> events = events_of(settings.value("mail-type"), warnings);
  for (const v1::NotifyOn event : events) spec.add_notify(event);
  if (!settings.has("mail-user")) return warnings;
  if (!events.empty()) {
    spec.set_notify_to(settings.value("mail-user"));
  } else if (!settings.has("mail-type")) {
    warnings.emplace_back("--mail-user is ignored: --mail-type names no event");
  }
  return warnings;
}

}  // namespace gpu_platform::shims
