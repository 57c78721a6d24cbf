#include "outbound/channel.h"

#include <algorithm>

#include <fmt/format.h>

#include "outbound/address.h"
#include "outbound/control.h"

namespace gpu_platform::outbound {

namespace {

using base::Status;

// The form that goes into a command of SMTP and a header as it is.
bool is_mail_address(std::string_view text) {
  const std::size_t at = text.find('@');
  if (at == 0 || at == std::string_view::npos || at + 1 == text.size()) return false;
  return std::ranges::count(text, '@') == 1 && std::ranges::all_of(text, [](char c) {
           return c > ' ' && c < 0x7f &&
                  std::string_view("<>()[],;:\\\"").find(c) == std::string_view::npos;
         });
}

// With the place of the owner filled; it may be before the '@' alone.
std::string filled(std::string address, std::string_view owner) {
  const std::size_t at = address.find(kOwnerPlace);
  if (at != std::string::npos && at < address.find('@')) {
    address.replace(at, kOwnerPlace.size(), owner);
  }
  return address;
}

// A name that stays itself in an address. '%' and '!' would send mail on to other machines.
bool is_plain_name(std::string_view name) {
  constexpr std::size_t kLongestLocalPart = 64;
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("._-+").find(c) != std::string_view::npos;
  };
  return !name.empty() && name.size() <= kLongestLocalPart && name.front() != '-' &&
         name.front() != '.' && name.back() != '.' && name.find("..") == std::string_view::npos &&
         std::ranges::all_of(name, is_plain);
}

Status check_mail(const Channel& channel) {
  if (!is_mail_address(channel.from)) {
    return base::invalid("from", "must be an address such as gpus@example.org");
  }
  TRY(check_recipients(channel));
  if (!channel.user.empty() && channel.secret_file.empty()) {
    return base::invalid("secret_file", "must name a file with the password of the user");
  }
  if (has_control(channel.user)) return base::invalid("user", "has characters of control");
  return {};
}

Status check_url(const Channel& channel) {
  if (channel.url.empty() == channel.url_file.empty()) {
    return base::invalid("url", "a channel needs a url or a url_file, and not both");
  }
  if (has_control(channel.url)) return base::invalid("url", "has characters of control");
  if (!channel.url.empty()) TRY(check_address(channel, channel.url));
  if (channel.proxy.empty()) return {};
  const base::Result<Address> proxy = parse_address(channel.proxy);
  if (!proxy) return base::invalid("proxy", proxy.error().message);
  if (proxy->scheme != "http" && proxy->scheme != "https") {
    return base::invalid("proxy", "must begin with http:// or https://");
  }
  if (channel.kind == ChannelKind::kMail) return base::invalid("proxy", "mail uses none");
  return {};
}

}  // namespace

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

bool tells_owners(const Channel& channel) {
  return channel.kind == ChannelKind::kMail &&
         std::ranges::any_of(channel.to, [](const std::string& address) {
           return address.find(kOwnerPlace) != std::string::npos;
         });
}

std::vector<std::string> recipients_for(const Channel& channel, std::string_view user) {
  std::vector<std::string> recipients;
  for (const std::string& address : channel.to) {
    if (address.find(kOwnerPlace) != std::string::npos && !is_plain_name(user)) continue;
    recipients.push_back(filled(address, user));
  }
  return recipients;
}

Status check_recipients(const Channel& channel) {
  if (channel.to.empty()) return base::invalid("to", "must name at least one address");
  for (const std::string& address : channel.to) {
    const std::string example = filled(address, "ann");
    if (is_mail_address(example) && example.find_first_of("{}") == std::string::npos) continue;
    return base::invalid("to", fmt::format("'{}' is no address of mail such as ops@example.org or "
                                           "{}@example.org",
                                           address, kOwnerPlace));
  }
  return {};
}

Status check(const Channel& channel) {
  if (channel.timeout <= base::Duration()) return base::invalid("timeout", "must be above 0");
  if (channel.kind == ChannelKind::kCommand) {
    if (!channel.command.empty() && channel.command.front().starts_with('/')) return {};
    return base::invalid("command", "must begin with the absolute path of a program");
  }
  TRY(check_url(channel));
  return channel.kind == ChannelKind::kMail ? check_mail(channel) : Status();
}

}  // namespace gpu_platform::outbound
