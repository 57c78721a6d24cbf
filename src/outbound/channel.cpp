#include "outbound/channel.h"

namespace gpu_platform::outbound {

std::string_view to_string(ChannelKind kind) {
  switch (kind) {
    case ChannelKind::kSlack:
      return "slack";
    case ChannelKind::kWebhook:
      return "webhook";
    case ChannelKind::kMail:
      return "mail";
    case ChannelKind::kAlertmanager:
      return "alertmanager";
    case ChannelKind::kCommand:
      break;
  }
  return "command";
}

}  // namespace gpu_platform::outbound
