#include "shims/submission/mail_options.h"
#include "model/job_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpu_platform::shims {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Put {
  v1::JobSpec spec;
  std::vector<std::string> warnings;
  std::vector<int> events() const { return {spec.notify().begin(), spec.notify().end()}; }
};

Put put(const std::vector<std::string>& types, const std::string& user, bool can_notify = true) {
  Settings settings;
  for (const std::string& type : types) settings.set(Option{"mail-type"}, type);
  if (!user.empty()) settings.set(Option{"mail-user"}, user);
  Put result;
  result.warnings = put_mail(settings, can_notify, result.spec);
  return result;
}

TEST(MailOptions, BecomeEventsAndAnAddress) {
  const Put got = put({"END,fail"}, "ada@example.org");
  EXPECT_THAT(got.events(), ElementsAre(v1::NOTIFY_ON_END, v1::NOTIFY_ON_FAIL));
  EXPECT_EQ(got.spec.notify_to(), "ada@example.org");
  EXPECT_THAT(got.warnings, ElementsAre());
}

TEST(MailOptions, AddUpTheirEvents) {
  EXPECT_THAT(put({"begin", "end"}, "").events(),
              ElementsAre(v1::NOTIFY_ON_START, v1::NOTIFY_ON_END));
  EXPECT_THAT(put({"ALL"}, "").events(),
              ElementsAre(v1::NOTIFY_ON_START, v1::NOTIFY_ON_END, v1::NOTIFY_ON_FAIL));
  EXPECT_THAT(put({"TIME_LIMIT,FAIL"}, "").events(), ElementsAre(v1::NOTIFY_ON_FAIL));
}

TEST(MailOptions, WithoutAnEventSendNothing) {
  const Put alone = put({}, "ada@example.org");
  EXPECT_FALSE(alone.spec.has_notify_to());
  EXPECT_THAT(alone.warnings, ElementsAre("--mail-user is ignored: --mail-type names no event"));
  const Put none = put({"NONE"}, "ada@example.org");
  EXPECT_FALSE(none.spec.has_notify_to());
  EXPECT_THAT(none.events(), ElementsAre());
  EXPECT_THAT(none.warnings, ElementsAre());
}

TEST(MailOptions, OfOtherEventsAreIgnoredWithAWarning) {
  const Put got = put({"REQUEUE,END"}, "");
  EXPECT_THAT(got.events(), ElementsAre(v1::NOTIFY_ON_END));
  EXPECT_THAT(got.warnings, ElementsAre(HasSubstr("--mail-type: 'REQUEUE' is ignored")));
}

TEST(MailOptions, AreIgnoredWhereTheSiteHasNoCommand) {
  const Put got = put({"END"}, "ada@example.org", false);
  EXPECT_THAT(got.events(), ElementsAre());
  EXPECT_FALSE(got.spec.has_notify_to());
  EXPECT_THAT(got.warnings, ElementsAre(HasSubstr("--mail-type is ignored: no mail is sent"),
                                        HasSubstr("--mail-user is ignored: no mail is sent")));
}

}  // namespace
}  // namespace gpu_platform::shims
