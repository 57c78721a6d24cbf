#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

// Where messages leave the platform for: addresses come from the configuration alone, never from a
// request of a user. Secrets lie in files that are read at each delivery.

namespace gpu_platform::outbound {

enum class ChannelKind : std::uint8_t {
  kSlack,         // a webhook of Slack's form: {"text": ...}
  kWebhook,       // JSON, signed with HMAC-SHA-256 where there is a secret
  kMail,          // SMTP
  kAlertmanager,  // POST /api/v2/alerts
  kCommand,       // the site's program, the message on its standard input
};
std::string_view to_string(ChannelKind kind);  // "slack"

struct Channel {
  std::string name;
  ChannelKind kind = ChannelKind::kWebhook;
  std::string url;              // https://, http:// ; smtp:// or smtps:// of mail
  std::string url_file;         // a file with the URL, where the URL is the secret (Slack)
  std::string secret_file;      // the webhook's key; the password of mail; a bearer token of others
  std::string user;             // of mail
  std::string from;             // of mail
  std::vector<std::string> to;  // of mail; kOwnerPlace stands for a user
  std::string ca_file;          // empty: the system's
  std::string proxy;            // http://HOST:PORT; empty: none, whatever the environment says
  bool allow_plain_text = false;     // http:// and mail without STARTTLS to other hosts
  std::vector<std::string> command;  // program and arguments, no shell
  base::Duration timeout = base::seconds(10);

  friend bool operator==(const Channel&, const Channel&) = default;
};

// Whether a channel can be used as it is written; no file is read and no name is looked up. The
// error's field is the member at fault ("url"), and its message shows no URL, which may be a
// secret.
base::Status check(const Channel& channel);

// What stands for the owner of a job in an address of `to`: "{owner}@example.org".
inline constexpr std::string_view kOwnerPlace = "{owner}";
// Whether the channel's messages go to owners of jobs.
bool tells_owners(const Channel& channel);
// The recipients of a message about jobs of this user. An address that the user's name would spoil
// is left out: a name may have any characters, and is not to make another address.
std::vector<std::string> recipients_for(const Channel& channel, std::string_view user);
// Whether `to` of a channel of mail is right.
base::Status check_recipients(const Channel& channel);

// A message that is ready to go.
struct Delivery {
  std::string channel;  // its name
  std::string key;      // two of the same key are the same message: it is sent once
  std::string content_type;
  std::string subject;  // of mail
  std::string body;
  std::vector<std::string> to = {};  // of mail, instead of the channel's; empty: the channel's
  base::Instant made;

  friend bool operator==(const Delivery&, const Delivery&) = default;
};

}  // namespace gpu_platform::outbound
