#include "listener/host/certificate.h"

#include <gtest/gtest.h>

#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "http/testing/certificates.h"
#include "os/clock.h"

namespace gpu_platform::listener {
namespace {

class CertificateOnDisk : public testing::Test {
 protected:
  CertificateOnDisk() {
    std::string pattern = (std::filesystem::temp_directory_path() / "certificate-XXXXXX").string();
    directory_ = ::mkdtemp(pattern.data());
    put({});
  }
  ~CertificateOnDisk() override { std::filesystem::remove_all(directory_); }

  void put(const http::CertificateOptions& options) {
    const auto made = http::make_certificate(options);
    std::ofstream(files().certificate) << made.pem();
    std::ofstream(files().key) << made.key_pem();
    ::chmod(files().key.c_str(), 0600);
  }
  CertificateFiles files() const { return {directory_ + "/crt", directory_ + "/key"}; }
  std::string refusal() const {
    const auto checked = read_certificate(files(), os::wall_now());
    return checked ? std::string() : checked.error().message;
  }

  std::string directory_;
};

TEST_F(CertificateOnDisk, IsTakenWhenBothFilesFit) {
  const auto checked = read_certificate(files(), os::wall_now());
  ASSERT_TRUE(checked.has_value()) << checked.error().message;
  EXPECT_EQ(checked->warning, "");
}

TEST_F(CertificateOnDisk, AKeyThatAllUsersMayReadIsRefused) {
  ::chmod(files().key.c_str(), 0640);
  EXPECT_EQ(refusal(), "") << "a group is the site's to choose";
  ::chmod(files().key.c_str(), 0604);
  EXPECT_NE(refusal().find("api.tls.key"), std::string::npos) << refusal();
}

TEST_F(CertificateOnDisk, AnotherKeyIsRefused) {
  std::ofstream(files().key) << http::make_certificate().key_pem();
  EXPECT_NE(refusal().find("is not the key of"), std::string::npos) << refusal();
}

TEST_F(CertificateOnDisk, WhatIsNoPemIsRefused) {
  std::ofstream(files().key) << "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
  EXPECT_NE(refusal().find("api.tls.key"), std::string::npos) << refusal();
  put({});
  std::ofstream(files().certificate) << std::string(kMaxPem + 1, 'x');
  EXPECT_NE(refusal().find("larger than"), std::string::npos) << refusal();
  std::filesystem::remove(files().certificate);
  EXPECT_NE(refusal().find("cannot be read"), std::string::npos) << refusal();
  std::filesystem::create_directory(files().certificate);
  EXPECT_NE(refusal().find("is not a file"), std::string::npos) << refusal();
}

TEST_F(CertificateOnDisk, ItsEndIsToldOfInTime) {
  const auto warning = [&] { return read_certificate(files(), os::wall_now())->warning; };
  put({.ends_in_s = 86'400});
  EXPECT_NE(warning().find("expires in less than 14 days"), std::string::npos);
  put({.begins_in_s = -7'200, .ends_in_s = -3'600});
  EXPECT_NE(warning().find("has expired"), std::string::npos);
  put({.begins_in_s = 3'600, .ends_in_s = 86'400 * 30});
  EXPECT_NE(warning().find("not valid yet"), std::string::npos);
}

TEST_F(CertificateOnDisk, AChangeShowsInTheStamp) {
  const std::string before = stamp_of(files());
  EXPECT_EQ(stamp_of(files()), before);
  std::filesystem::rename(files().key, directory_ + "/old");
  EXPECT_NE(stamp_of(files()), before);
}

}  // namespace
}  // namespace gpu_platform::listener
