#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "kubernetes/client.h"
#include "kubernetes/endpoint.h"
#include "kubernetes/exec_plugin.h"
#include "libcurl/library.h"

// One request on its way: a handle of libcurl and what has come back. It belongs to a multi handle
// while it is under way; its callbacks come from there and only collect.

namespace gpu_platform::kubernetes {

// The sockets that libcurl has open for a client. It outlives the multi handle.
class Sockets {
 public:
  // Ends all connections: the server is silent on them, and further requests would be sent there.
  void break_all() const;

 private:
  friend class Transfer;
  std::set<curl_socket_t> open_;
};

class Transfer {
 public:
  struct Options {
    Sockets* sockets = nullptr;
    bool is_stream = false;
    bool is_fresh = false;  // on a new connection
    std::size_t max_body = 0;
    std::string user_agent;
  };
  // The request outlives it. Null where libcurl has no memory.
  static std::unique_ptr<Transfer> make(const Request& request, const Endpoint& endpoint,
                                        const Credential& credential, const Options& options);
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  ~Transfer() = default;

  CURL* handle() const { return easy_.get(); }
  std::int64_t begun_ns() const { return begun_ns_; }
  std::int64_t last_byte_ns() const { return last_byte_ns_; }  // when something came last; 0: never

  int status() const;
  base::Duration retry_after() const;        // 0: the server names none
  bool is_open() const { return is_open_; }  // a success whose head has come
  // What a stream has got since the last call.
  std::string take_bytes();
  bool has_bytes() const { return !bytes_.empty(); }
  // What came of it, once libcurl is done with it.
  Answer answer(CURLcode code);

 private:
  Transfer(CURL* easy, const Options& options);
  void set_request(const Request& request, const Endpoint& endpoint);
  bool set_headers(const Request& request, const Endpoint& endpoint, const Credential& credential,
                   const std::string& user_agent);
  void set_security(const Endpoint& endpoint, const Credential& credential);
  void set_connection(const Endpoint& endpoint, Sockets* sockets);

  static int on_socket(void* sockets, curl_socket_t socket, curlsocktype purpose);
  static int on_close(void* sockets, curl_socket_t socket);
  static std::size_t on_body(char* bytes, std::size_t one, std::size_t size, void* self);
  static std::size_t on_header(char* bytes, std::size_t one, std::size_t size, void* self);

  std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> easy_;
  std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)> headers_;
  std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)> connect_to_;
  bool is_stream_;
  std::size_t max_body_;
  bool is_too_large_ = false;
  bool is_open_ = false;
  std::string body_;
  std::string bytes_;
  std::int64_t begun_ns_ = 0;
  std::int64_t last_byte_ns_ = 0;
  char error_[CURL_ERROR_SIZE] = {};
};

}  // namespace gpu_platform::kubernetes
