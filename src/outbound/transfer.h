#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "libcurl/library.h"
#include "outbound/channel.h"
#include "outbound/outcome.h"

// One message at a time by libcurl, on connections that stay open between posts. No redirect is
// followed, no proxy of the environment is used, certificates are checked, and what the other side
// says is bounded in size and time, and thrown away.

namespace gpu_platform::outbound {

// Thread: one.
class Transfer {
 public:
  // `stop`: a transfer ends at once when this descriptor can be read; -1: there is none. It
  // outlives the transfer.
  static base::Result<std::unique_ptr<Transfer>> make(int stop);
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  ~Transfer() = default;

  // POST. A header is "Name: value". An answer counts by its status, as soon as its head is there.
  Outcome post(const Channel& channel, const std::string& url,
               const std::vector<std::string>& headers, const std::string& body);

  // SMTP, to all recipients of the channel; one that the server refuses alone is left out.
  // `needs_tls`: without STARTTLS the message stays. A password goes over TLS only.
  struct Mail {
    std::string url;
    std::string password;
    bool needs_tls = true;
    std::string message;
  };
  Outcome mail(const Channel& channel, const Mail& mail);

 private:
  using Easy = std::unique_ptr<CURL, decltype(&curl_easy_cleanup)>;
  using Multi = std::unique_ptr<CURLM, decltype(&curl_multi_cleanup)>;
  using List = std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)>;

  Transfer(Easy easy, Multi multi, int stop)
      : multi_(std::move(multi)), easy_(std::move(easy)), stop_(stop) {}
  void begin(const Channel& channel, const std::string& url, const char* protocols);
  // Returns false when it was stopped.
  bool perform(CURLcode& code);
  std::string problem_of(CURLcode code) const;
  Outcome http_outcome(CURLcode code) const;
  Outcome mail_outcome(CURLcode code) const;
  void take_head_line(std::string_view line);
  void take_mail_line(std::string_view line);

  static List list_of(const std::vector<std::string>& lines);
  static std::size_t on_line(char* bytes, std::size_t one, std::size_t size, void* self);
  static std::size_t on_body(char* bytes, std::size_t one, std::size_t size, void* self);
  static std::size_t on_read(char* bytes, std::size_t one, std::size_t size, void* self);

  Multi multi_;  // outlives the handle that it may have
  Easy easy_;
  int stop_;
  bool is_mail_ = false;
  std::string_view unsent_;  // of the message
  // What the other side has said so far.
  std::size_t heard_bytes_ = 0;
  int status_ = 0;
  bool is_head_complete_ = false;  // of HTTP, and not only an interim one
  std::string last_line_;          // of SMTP
  char error_[CURL_ERROR_SIZE] = {};
};

}  // namespace gpu_platform::outbound
