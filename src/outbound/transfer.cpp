#include "outbound/transfer.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/utf8.h"

namespace gpu_platform::outbound {

namespace {

using libcurl::curl;

constexpr std::size_t kMaxHeardBytes = 64UL * 1024;
constexpr std::size_t kMaxShown = 300;
constexpr int kLookMs = 1000;   // libcurl's own times end the wait earlier
constexpr int kFarewell = 221;  // SMTP's answer to QUIT

Outcome failed(std::string problem, base::Duration retry_after = {}) {
  return {Outcome::Kind::kFailed, std::move(problem), retry_after};
}

std::string printable(std::string_view text) {
  std::string shown;
  while (!text.empty() && shown.size() < kMaxShown) {
    const std::string_view before = text;
    const char32_t character = base::take_character(text);
    if (character == '\r' || character == '\n') continue;
    shown += base::is_harmful(character) ? std::string_view("?")
                                         : before.substr(0, before.size() - text.size());
  }
  return shown;
}

// 0: it is none.
int number_of(std::string_view digits) {
  int number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return error == std::errc() && end == digits.data() + digits.size() ? number : 0;
}

// That we are not known, not allowed or at the wrong place is a fault of the channel, not of the
// message: 401, 403, 404, 405, 407 and 410. 408 and 429 pass by themselves.
bool may_be_mended(int status) {
  constexpr int kStatuses[] = {401, 403, 404, 405, 407, 408, 410, 429};
  return std::ranges::find(kStatuses, status) != std::end(kStatuses);
}

template <class Value>
void set(CURL* easy, CURLoption option, Value value) {
  curl().easy_setopt(easy, option, value);
}

}  // namespace

base::Result<std::unique_ptr<Transfer>> Transfer::make(int stop) {
  TRY(libcurl::load());
  Easy easy(curl().easy_init(), curl().easy_cleanup);
  Multi multi(curl().multi_init(), curl().multi_cleanup);
  if (easy == nullptr || multi == nullptr) {
    return base::fail(base::ErrorCode::kUnavailable, "libcurl has no memory");
  }
  return std::unique_ptr<Transfer>(new Transfer(std::move(easy), std::move(multi), stop));
}

void Transfer::begin(const Channel& channel, const std::string& url, const char* protocols) {
  heard_bytes_ = 0;
  status_ = 0;
  is_head_complete_ = false;
  last_line_.clear();
  error_[0] = '\0';
  CURL* easy = easy_.get();
  curl().easy_reset(easy);
  const auto timeout_ms = static_cast<long>(base::whole_milliseconds(channel.timeout));
  set(easy, CURLOPT_URL, url.c_str());
  set(easy, CURLOPT_PROTOCOLS_STR, protocols);
  set(easy, CURLOPT_FOLLOWLOCATION, 0L);
  // Empty ones: not the environment's either.
  set(easy, CURLOPT_PROXY, channel.proxy.c_str());
  set(easy, CURLOPT_NOPROXY, "");
  set(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);  // the proxy's answer is not the other side's
  set(easy, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  if (!channel.ca_file.empty()) set(easy, CURLOPT_CAINFO, channel.ca_file.c_str());
  set(easy, CURLOPT_TIMEOUT_MS, std::max(1L, timeout_ms));
  set(easy, CURLOPT_NOSIGNAL, 1L);
  set(easy, CURLOPT_QUICK_EXIT, 1L);  // its end does not wait for a name server
  set(easy, CURLOPT_ERRORBUFFER, error_);
  set(easy, CURLOPT_HEADERFUNCTION, &Transfer::on_line);
  set(easy, CURLOPT_HEADERDATA, static_cast<void*>(this));
  set(easy, CURLOPT_WRITEFUNCTION, &Transfer::on_body);
  set(easy, CURLOPT_WRITEDATA, static_cast<void*>(this));
}

Transfer::List Transfer::list_of(const std::vector<std::string>& lines) {
  List list(nullptr, curl().slist_free_all);
  for (const std::string& line : lines) {
    curl_slist* longer = curl().slist_append(list.get(), line.c_str());
    CHECK(longer != nullptr);  // no memory
    (void)list.release();
    list.reset(longer);
  }
  return list;
}

Outcome Transfer::post(const Channel& channel, const std::string& url,
                       const std::vector<std::string>& headers, const std::string& body) {
  begin(channel, url, "http,https");
  is_mail_ = false;
  CURL* easy = easy_.get();
  const List list = list_of(headers);
  set(easy, CURLOPT_HTTPHEADER, list.get());
  set(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(easy, CURLOPT_USERAGENT, "gpu-platform");
  set(easy, CURLOPT_POST, 1L);
  set(easy, CURLOPT_POSTFIELDS, body.data());
  set(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
  CURLcode code = CURLE_OK;
  const bool is_done = perform(code);
  if (!is_done && !is_head_complete_) return {Outcome::Kind::kStopped, "stopped", {}};
  return http_outcome(code);
}

Outcome Transfer::mail(const Channel& channel, const Mail& mail) {
  begin(channel, mail.url, "smtp,smtps");
  is_mail_ = true;
  CURL* easy = easy_.get();
  const std::string from = "<" + channel.from + ">";
  std::vector<std::string> to;
  for (const std::string& address : channel.to) to.push_back("<" + address + ">");
  const List recipients = list_of(to);
  const bool needs_tls = mail.needs_tls || !channel.user.empty();
  set(easy, CURLOPT_USE_SSL, static_cast<long>(needs_tls ? CURLUSESSL_ALL : CURLUSESSL_TRY));
  if (!channel.user.empty()) {
    set(easy, CURLOPT_USERNAME, channel.user.c_str());
    set(easy, CURLOPT_PASSWORD, mail.password.c_str());
  }
  set(easy, CURLOPT_MAIL_FROM, from.c_str());
  set(easy, CURLOPT_MAIL_RCPT, recipients.get());
  set(easy, CURLOPT_MAIL_RCPT_ALLLOWFAILS, 1L);
  // A message cannot be read twice, as a connection that turns out to be closed would need.
  set(easy, CURLOPT_FORBID_REUSE, 1L);
  unsent_ = mail.message;
  set(easy, CURLOPT_UPLOAD, 1L);
  set(easy, CURLOPT_READFUNCTION, &Transfer::on_read);
  set(easy, CURLOPT_READDATA, static_cast<void*>(this));
  CURLcode code = CURLE_OK;
  if (!perform(code)) return {Outcome::Kind::kStopped, "stopped", {}};
  return mail_outcome(code);
}

bool Transfer::perform(CURLcode& code) {
  code = CURLE_FAILED_INIT;
  curl().multi_add_handle(multi_.get(), easy_.get());
  int running = 1;
  bool is_stopped = false;
  while (true) {
    if (curl().multi_perform(multi_.get(), &running) != CURLM_OK || running == 0) break;
    curl_waitfd stop{stop_, CURL_WAIT_POLLIN, 0};
    const CURLMcode waited =
        curl().multi_poll(multi_.get(), &stop, stop_ < 0 ? 0 : 1, kLookMs, nullptr);
    is_stopped = stop.revents != 0;
    if (is_stopped || waited != CURLM_OK) break;
  }
  int left = 0;
  while (const CURLMsg* message = curl().multi_info_read(multi_.get(), &left)) {
    if (message->msg == CURLMSG_DONE) code = message->data.result;
  }
  curl().multi_remove_handle(multi_.get(), easy_.get());
  return !is_stopped;
}

std::string Transfer::problem_of(CURLcode code) const {
  const char* words = error_[0] != '\0' ? error_ : curl().easy_strerror(code);
  return printable(words);
}

Outcome Transfer::http_outcome(CURLcode code) const {
  if (!is_head_complete_) {
    return failed(code == CURLE_OK ? "the answer ends in its head" : problem_of(code));
  }
  if (status_ >= 200 && status_ < 300) return {};
  std::string problem = fmt::format("the other side answers with status {}", status_);
  const bool is_refused = status_ >= 400 && status_ < 500 && !may_be_mended(status_);
  if (is_refused) return {Outcome::Kind::kRefused, std::move(problem), {}};
  if (status_ < 400) problem += ": a redirect, which is not followed";
  curl_off_t retry_after_s = 0;
  curl().easy_getinfo(easy_.get(), CURLINFO_RETRY_AFTER, &retry_after_s);
  // Longer ones are cut by the caller; so long that it cannot overflow.
  constexpr curl_off_t kDayS = 86'400;
  return failed(std::move(problem), base::seconds(std::clamp<curl_off_t>(retry_after_s, 0, kDayS)));
}

// That the server does not know us (a wrong password) or has no TLS is a fault of the channel: the
// message waits until it is mended. That it refuses sender, recipients or text is the message's.
Outcome Transfer::mail_outcome(CURLcode code) const {
  if (code == CURLE_OK) return {};
  // A connection that ends before the text was sent has no answer to it: the last one was about a
  // single recipient.
  const bool is_answer = code == CURLE_SEND_ERROR || code == CURLE_WEIRD_SERVER_REPLY ||
                         (code == CURLE_RECV_ERROR && unsent_.empty());
  const bool is_refused = is_answer && status_ >= 500 && status_ < 600;
  std::string problem = problem_of(code);
  if (is_answer && status_ >= 400) {
    problem = "the server answers: " + printable(last_line_);
  } else if (code == CURLE_RECV_ERROR) {
    problem = "the server ended the connection: " + problem;
  }
  return {is_refused ? Outcome::Kind::kRefused : Outcome::Kind::kFailed, std::move(problem), {}};
}

void Transfer::take_head_line(std::string_view line) {
  if (line.starts_with("HTTP/")) {
    const std::size_t space = line.find(' ');
    status_ = space == std::string_view::npos ? 0 : number_of(line.substr(space + 1, 3));
  } else if (line == "\r\n" || line == "\n") {
    is_head_complete_ = status_ >= 200;
  }
}

// Of several answers the last one before QUIT says what came of the message.
void Transfer::take_mail_line(std::string_view line) {
  const int code = number_of(line.substr(0, 3));
  if (code < 200 || code == kFarewell) return;
  status_ = code;
  last_line_ = line;
}

std::size_t Transfer::on_line(char* bytes, std::size_t one, std::size_t size, void* self) {
  auto& transfer = *static_cast<Transfer*>(self);
  transfer.heard_bytes_ += one * size;
  if (transfer.heard_bytes_ > kMaxHeardBytes) return 0;
  const std::string_view line(bytes, one * size);
  transfer.is_mail_ ? transfer.take_mail_line(line) : transfer.take_head_line(line);
  return one * size;
}

std::size_t Transfer::on_body(char* /*bytes*/, std::size_t one, std::size_t size, void* self) {
  auto& transfer = *static_cast<Transfer*>(self);
  transfer.heard_bytes_ += one * size;
  return transfer.heard_bytes_ > kMaxHeardBytes ? 0 : one * size;
}

std::size_t Transfer::on_read(char* bytes, std::size_t one, std::size_t size, void* self) {
  auto& transfer = *static_cast<Transfer*>(self);
  const std::size_t count = std::min(one * size, transfer.unsent_.size());
  std::memcpy(bytes, transfer.unsent_.data(), count);
  transfer.unsent_.remove_prefix(count);
  return count;
}

}  // namespace gpu_platform::outbound
