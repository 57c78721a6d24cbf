#pragma once

#include <string_view>

namespace gpu_platform::os {

// Notifies systemd, or another service manager that set NOTIFY_SOCKET ("READY=1"). Does nothing
// without NOTIFY_SOCKET..
void notify_service_manager(std::string_view message);

}  // namespace gpu_platform::os
