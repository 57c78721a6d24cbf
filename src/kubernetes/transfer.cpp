#include "kubernetes/transfer.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "kubernetes/text_file.h"
#include "os/clock.h"

namespace gpu_platform::kubernetes {
namespace {

constexpr long kConnectMs = 10'000;
// An API server closes connections that are idle for 90 s, and libcurl does not see that it has.
constexpr long kIdleSeconds = 30;
constexpr const char* kAcceptAll = "Accept: application/json, */*";
constexpr const char* kAcceptMetadata =
    "Accept: application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, application/json, */*";
constexpr std::size_t kMaxRefusal = std::size_t{1} << 20;  // of a stream; the rest is dropped

// A copy of the text, which libcurl keeps.
void set_blob(CURL* easy, CURLoption option, const std::string& text) {
  curl_blob blob{const_cast<char*>(text.data()), text.size(), CURL_BLOB_COPY};
  libcurl::curl().easy_setopt(easy, option, &blob);
}

bool is_success(int status) {
  return status >= 200 && status < 300;
}

const char* name_of(Method method) {
  switch (method) {
    case Method::kGet:
      return "GET";
    case Method::kPost:
      return "POST";
    case Method::kPut:
      return "PUT";
    case Method::kPatch:
      return "PATCH";
    case Method::kDelete:
      return "DELETE";
  }
  return "GET";
}

}  // namespace

Transfer::Transfer(CURL* easy, const Options& options)
    : easy_(easy, libcurl::curl().easy_cleanup),
      headers_(nullptr, libcurl::curl().slist_free_all),
      connect_to_(nullptr, libcurl::curl().slist_free_all),
      is_stream_(options.is_stream),
      max_body_(options.max_body),
      begun_ns_(os::monotonic_ns()) {}

std::unique_ptr<Transfer> Transfer::make(const Request& request, const Endpoint& endpoint,
                                         const Credential& credential, const Options& options) {
  CURL* easy = libcurl::curl().easy_init();
  if (easy == nullptr) return nullptr;
  std::unique_ptr<Transfer> transfer(new Transfer(easy, options));
  transfer->set_request(request, endpoint);
  transfer->set_connection(endpoint, options.sockets);
  if (options.is_fresh) libcurl::curl().easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
  transfer->set_security(endpoint, credential);
  if (!transfer->set_headers(request, endpoint, credential, options.user_agent)) return nullptr;
  return transfer;
}

void Transfer::set_request(const Request& request, const Endpoint& endpoint) {
  CURL* easy = easy_.get();
  libcurl::curl().easy_setopt(easy, CURLOPT_URL, (endpoint.base_url + request.path).c_str());
  libcurl::curl().easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
  if (request.method != Method::kGet) {
    if (!request.body.empty() || request.method == Method::kPost) {
      libcurl::curl().easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                                  static_cast<curl_off_t>(request.body.size()));
      libcurl::curl().easy_setopt(easy, CURLOPT_POSTFIELDS, request.body.data());
    }
    libcurl::curl().easy_setopt(easy, CURLOPT_CUSTOMREQUEST, name_of(request.method));
  }
  libcurl::curl().easy_setopt(easy, CURLOPT_ERRORBUFFER, error_);
  libcurl::curl().easy_setopt(easy, CURLOPT_WRITEFUNCTION, &Transfer::on_body);
  libcurl::curl().easy_setopt(easy, CURLOPT_WRITEDATA, this);
  libcurl::curl().easy_setopt(easy, CURLOPT_HEADERFUNCTION, &Transfer::on_header);
  libcurl::curl().easy_setopt(easy, CURLOPT_HEADERDATA, this);
}

void Transfer::set_connection(const Endpoint& endpoint, Sockets* sockets) {
  CURL* easy = easy_.get();
  libcurl::curl().easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, &Transfer::on_socket);
  libcurl::curl().easy_setopt(easy, CURLOPT_SOCKOPTDATA, sockets);
  libcurl::curl().easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, &Transfer::on_close);
  libcurl::curl().easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, sockets);
  libcurl::curl().easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
#if LIBCURL_VERSION_NUM >= 0x075700
  // A name that no name server answers for holds up neither a request that is given up nor an end.
  libcurl::curl().easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
#endif
  libcurl::curl().easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  libcurl::curl().easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
  libcurl::curl().easy_setopt(easy, CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
  // With HTTP/2 each message on the shared connection has libcurl look at every transfer, and
  // both sides pay for frames.
  libcurl::curl().easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  libcurl::curl().easy_setopt(easy, CURLOPT_MAXAGE_CONN, kIdleSeconds);
  libcurl::curl().easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, kConnectMs);
  libcurl::curl().easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
  libcurl::curl().easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, 30L);
  libcurl::curl().easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, 10L);
  // Always set: libcurl would take both from the environment.
  libcurl::curl().easy_setopt(easy, CURLOPT_PROXY, endpoint.proxy_url.c_str());
  libcurl::curl().easy_setopt(easy, CURLOPT_NOPROXY, "");
  if (!endpoint.connect_to.empty()) {
    connect_to_.reset(libcurl::curl().slist_append(nullptr, endpoint.connect_to.c_str()));
    libcurl::curl().easy_setopt(easy, CURLOPT_CONNECT_TO, connect_to_.get());
  }
}

void Transfer::set_security(const Endpoint& endpoint, const Credential& credential) {
  CURL* easy = easy_.get();
  libcurl::curl().easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, endpoint.skips_verification ? 0L : 1L);
  libcurl::curl().easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, endpoint.skips_verification ? 0L : 2L);
  libcurl::curl().easy_setopt(easy, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  if (!endpoint.ca_pem.empty()) {
    set_blob(easy, CURLOPT_CAINFO_BLOB, endpoint.ca_pem);
    // The blob replaces the host's file of authorities, but not its folder of them.
    libcurl::curl().easy_setopt(easy, CURLOPT_CAPATH, nullptr);
  }
  if (!credential.certificate_pem.empty()) {
    libcurl::curl().easy_setopt(easy, CURLOPT_SSLCERTTYPE, "PEM");
    libcurl::curl().easy_setopt(easy, CURLOPT_SSLKEYTYPE, "PEM");
    set_blob(easy, CURLOPT_SSLCERT_BLOB, credential.certificate_pem);
    set_blob(easy, CURLOPT_SSLKEY_BLOB, credential.key_pem);
  }
}

bool Transfer::set_headers(const Request& request, const Endpoint& endpoint,
                           const Credential& credential, const std::string& user_agent) {
  const std::string accept = request.wants_metadata ? kAcceptMetadata : kAcceptAll;
  std::vector<std::string> lines = {accept, "User-Agent: " + user_agent,
                                    "Expect:"};  // without it libcurl asks before large bodies
  if (!request.body.empty()) {
    const std::string& type = request.content_type;
    lines.push_back("Content-Type: " + (type.empty() ? "application/json" : type));
  } else {
    lines.emplace_back("Content-Type:");  // without it libcurl calls an empty body a form
  }
  if (!endpoint.host_header.empty()) lines.push_back("Host: " + endpoint.host_header);
  if (!credential.token.empty()) lines.push_back("Authorization: Bearer " + credential.token);
  for (const std::string& line : lines) {
    curl_slist* longer = libcurl::curl().slist_append(headers_.get(), line.c_str());
    if (longer == nullptr) return false;
    (void)headers_.release();
    headers_.reset(longer);
  }
  libcurl::curl().easy_setopt(easy_.get(), CURLOPT_HTTPHEADER, headers_.get());
  // A proxy gets none of these: it must not see the token.
  libcurl::curl().easy_setopt(easy_.get(), CURLOPT_HEADEROPT,
                              static_cast<long>(CURLHEADER_SEPARATE));
  return true;
}

int Transfer::status() const {
  long status = 0;
  libcurl::curl().easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &status);
  return static_cast<int>(status);
}

base::Duration Transfer::retry_after() const {
  curl_off_t seconds = 0;
  libcurl::curl().easy_getinfo(easy_.get(), CURLINFO_RETRY_AFTER, &seconds);
  return base::seconds(std::clamp<curl_off_t>(seconds, 0, 86'400));
}

std::string Transfer::take_bytes() {
  return std::exchange(bytes_, {});
}

Answer Transfer::answer(CURLcode code) {
  Answer answer;
  if (code == CURLE_OK) {
    answer.status = status();
    answer.body = std::move(body_);
  } else if (is_too_large_) {
    answer.failure = fmt::format("the answer is larger than {} bytes", max_body_);
  } else {
    answer.failure = printable(error_[0] != '\0' ? error_ : libcurl::curl().easy_strerror(code));
    if (answer.failure.starts_with("SSL certificate problem")) {
      answer.failure += "; is certificate-authority of the kubeconfig that of this server?";
    }
  }
  return answer;
}

int Transfer::on_socket(void* sockets, curl_socket_t socket, curlsocktype /*purpose*/) {
  static_cast<Sockets*>(sockets)->open_.insert(socket);
  return CURL_SOCKOPT_OK;
}

int Transfer::on_close(void* sockets, curl_socket_t socket) {
  static_cast<Sockets*>(sockets)->open_.erase(socket);
  return ::close(socket);
}

void Sockets::break_all() const {
  for (const curl_socket_t socket : open_) ::shutdown(socket, SHUT_RDWR);
}

std::size_t Transfer::on_body(char* bytes, std::size_t /*one*/, std::size_t size, void* self) {
  Transfer& transfer = *static_cast<Transfer*>(self);
  transfer.last_byte_ns_ = os::monotonic_ns();
  const int status = transfer.status();
  if (transfer.is_stream_) {
    const std::size_t room = kMaxRefusal - std::min(kMaxRefusal, transfer.body_.size());
    if (is_success(status)) {
      transfer.bytes_.append(bytes, size);
    } else {
      transfer.body_.append(bytes, std::min(size, room));
    }
    return size;
  }
  if (size > transfer.max_body_ - std::min(transfer.max_body_, transfer.body_.size())) {
    transfer.is_too_large_ = true;
    return 0;
  }
  transfer.body_.append(bytes, size);
  return size;
}

std::size_t Transfer::on_header(char* bytes, std::size_t /*one*/, std::size_t size, void* self) {
  Transfer& transfer = *static_cast<Transfer*>(self);
  transfer.last_byte_ns_ = os::monotonic_ns();
  const bool is_empty_line = size <= 2 && (bytes[0] == '\r' || bytes[0] == '\n');
  if (is_empty_line) transfer.is_open_ = is_success(transfer.status());
  return size;
}

}  // namespace gpu_platform::kubernetes
