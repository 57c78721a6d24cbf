#include "outbound/sender.h"

#include <utility>

#include <fmt/format.h>

#include "os/clock.h"
#include "outbound/address.h"
#include "outbound/command.h"
#include "outbound/control.h"
#include "outbound/mail_message.h"
#include "outbound/secret_file.h"
#include "outbound/signature.h"

namespace gpu_platform::outbound {

namespace {

using base::Result;

Outcome failed_by(const base::Error& error) {
  const std::string field = error.field.empty() ? "" : error.field + ": ";
  return {Outcome::Kind::kFailed, field + error.message, {}};
}

std::string alertmanager_url(std::string url) {
  while (url.ends_with('/')) url.pop_back();
  return url + "/api/v2/alerts";
}

}  // namespace

Outcome Sender::send(const Delivery& delivery) {
  if (const base::Status status = check(channel_); !status) return failed_by(status.error());
  if (channel_.kind == ChannelKind::kCommand) return run_command(channel_, delivery, stop_);
  if (has_control(delivery.key) || has_control(delivery.content_type)) {
    return {Outcome::Kind::kRefused, "its key or type has characters of control", {}};
  }
  if (transfer_ == nullptr) {
    Result<std::unique_ptr<Transfer>> made = Transfer::make(stop_);
    if (!made) return failed_by(made.error());
    transfer_ = *std::move(made);
  }
  const Result<std::string> where = url();
  if (!where) return failed_by(where.error());
  return channel_.kind == ChannelKind::kMail ? mail(*where, delivery) : post(*where, delivery);
}

Result<std::string> Sender::url() const {
  if (channel_.url_file.empty()) return channel_.url;
  TRY_ASSIGN(std::string url, read_secret(channel_.url_file));
  const Result<Address> address = check_address(channel_, url);
  if (!address) return base::invalid("url_file", address.error().message);
  return url;
}

Result<std::vector<std::string>> Sender::headers(const Delivery& delivery) const {
  const std::string type =
      delivery.content_type.empty() ? "application/json" : delivery.content_type;
  std::vector<std::string> headers{"Content-Type: " + type, "Idempotency-Key: " + delivery.key,
                                   "Expect:"};  // no question whether the body may come
  if (channel_.secret_file.empty()) return headers;
  TRY_ASSIGN(const std::string secret, read_secret(channel_.secret_file));
  if (channel_.kind != ChannelKind::kWebhook) {
    if (has_control(secret)) {
      return base::invalid("secret_file", "the token has characters of control");
    }
    headers.push_back("Authorization: Bearer " + secret);
    return headers;
  }
  const std::int64_t seconds = os::wall_now().unix_ns() / 1'000'000'000;
  headers.push_back(fmt::format("X-GPU-Platform-Timestamp: {}", seconds));
  headers.push_back(fmt::format("X-GPU-Platform-Signature: sha256={}",
                                hmac_sha256(secret, fmt::format("{}.{}", seconds, delivery.body))));
  return headers;
}

Outcome Sender::post(const std::string& url, const Delivery& delivery) {
  const Result<std::vector<std::string>> lines = headers(delivery);
  if (!lines) return failed_by(lines.error());
  const bool is_alertmanager = channel_.kind == ChannelKind::kAlertmanager;
  return transfer_->post(channel_, is_alertmanager ? alertmanager_url(url) : url, *lines,
                         delivery.body);
}

Outcome Sender::mail(const std::string& url, const Delivery& delivery) {
  const Result<Address> address = check_address(channel_, url);
  if (!address) return failed_by(address.error());
  Channel channel = channel_;
  if (!delivery.to.empty()) channel.to = delivery.to;
  if (tells_owners(channel)) {
    return {Outcome::Kind::kRefused, "it is for the owner of a job, and names none", {}};
  }
  Transfer::Mail mail{.url = url,
                      .password = {},
                      .needs_tls = !address->is_this_machine && !channel_.allow_plain_text,
                      .message = mail_message(channel, delivery)};
  if (!channel_.user.empty()) {
    Result<std::string> password = read_secret(channel_.secret_file);
    if (!password) return failed_by(password.error());
    mail.password = *std::move(password);
  }
  return transfer_->mail(channel, mail);
}

}  // namespace gpu_platform::outbound
