#include "alerts/wording.h"

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "alerts/alerts_fixture.h"

namespace gpu_platform::alerts {
namespace {

std::string certificate_in(std::int64_t days) {
  Rule rule;
  rule.signal = Signal::kCertificate;
  const auto platform = std::make_shared<const Subject>();
  return summary_of(rule, fact(Signal::kCertificate, platform, days));
}

TEST(Wording, ACertificateThatEndsTodayHasNotExpired) {
  EXPECT_EQ(certificate_in(13), "the certificate of the API expires in 13 days");
  EXPECT_EQ(certificate_in(1), "the certificate of the API expires in 1 day");
  EXPECT_EQ(certificate_in(0), "the certificate of the API expires today");
  EXPECT_EQ(certificate_in(-1), "the certificate of the API has expired");
}

TEST(Wording, WhatComesFromHostsCannotWriteToATerminal) {
  Rule rule;
  rule.signal = Signal::kGpuUnmanaged;
  Fact processes = fact(Signal::kGpuUnmanaged, gpu_subject("n1\x1b[31m", 3), 1);
  processes.detail = "evil\r\n\xff";
  EXPECT_EQ(summary_of(rule, processes), "processes of no job are on GPU 3 of n1?[31m: evil???");
}

}  // namespace
}  // namespace gpu_platform::alerts
