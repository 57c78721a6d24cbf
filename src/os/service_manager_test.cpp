#include "os/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "os/descriptor.h"

namespace gpu_platform::os {
namespace {

// Stands for the service manager, at a name that no file has.
class ServiceManagerTest : public ::testing::Test {
 protected:
  ServiceManagerTest() : name_(fmt::format("@gpu-platform-test-{}", getpid())) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    name_.copy(address.sun_path, sizeof address.sun_path);
    address.sun_path[0] = '\0';
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name_.size());
    EXPECT_EQ(bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
  }
  ~ServiceManagerTest() override { unsetenv("NOTIFY_SOCKET"); }

  std::string heard() const {
    char buffer[256];
    const ssize_t got = recv(socket_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    return got < 0 ? "nothing" : std::string(buffer, static_cast<std::size_t>(got));
  }

  std::string name_;
  Descriptor socket_{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
};

TEST_F(ServiceManagerTest, IsToldAtTheSocketThatItNames) {
  setenv("NOTIFY_SOCKET", name_.c_str(), 1);
  notify_service_manager("READY=1\nSTATUS=");
  EXPECT_EQ(heard(), "READY=1\nSTATUS=");
}

TEST_F(ServiceManagerTest, WithoutASocketNothingIsSaid) {
  unsetenv("NOTIFY_SOCKET");
  notify_service_manager("READY=1");
  setenv("NOTIFY_SOCKET", "", 1);
  notify_service_manager("READY=1");
  setenv("NOTIFY_SOCKET", std::string(200, 'x').c_str(), 1);
  notify_service_manager("READY=1");
  EXPECT_EQ(heard(), "nothing");
}

}  // namespace
}  // namespace gpu_platform::os
