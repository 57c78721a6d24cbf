#pragma once

#include <optional>
#include <string>

#include "alerts/alert.h"
#include "alerts/text_template.h"

// Messages in the forms that channels take.

namespace gpu_platform::alerts {

// What messages say of the site.
struct Site {
  std::string name;                  // of the cluster; may be empty
  std::string url;                   // of pages about alerts, for generatorURL; may be empty
  std::optional<TextTemplate> line;  // of an alert, for people; none: usual_line()
};

// "[dgx] 2 alerts of node dgx-1: CRITICAL GpuXidCritical", in at most 200 bytes of one line.
std::string subject_of(const Notification& notification, const Site& site);
// Lines for people.
std::string text_of(const Notification& notification, const Site& site);
// {"text": "…"}, with the characters escaped that Slack gives a meaning.
std::string slack_json(const Notification& notification, const Site& site);
// The platform's own document, version 1: docs/alerts.md. Fields are added only.
std::string webhook_json(const Notification& notification, const Site& site);
// A list for POST /api/v2/alerts of Alertmanager. What fires is over kTrueFor after `now`, unless
// it is told again.
std::string alertmanager_json(const Notification& notification, const Site& site,
                              base::Instant now);

// An alert that says that it is a test, for a channel that a person tries. Of a channel of owners
// it goes to that person.
Notification test_notification(const std::string& channel, const std::string& by,
                               base::Instant now);

}  // namespace gpu_platform::alerts
