#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "base/check.h"
#include "http/testing/certificates.h"

namespace gpu_platform::outbound {

// A server of SMTP for tests, on a free port of this machine. One connection at a time.
class SmtpServer {
 public:
  struct Options {
    std::optional<http::TestCertificate> certificate;  // then it offers STARTTLS
    bool wants_password = false;                       // offers AUTH PLAIN
    // The answers to what begins so; "." is the end of a message. Others are taken.
    // After an empty one the connection ends.
    std::map<std::string, std::string> answers;
  };
  struct Mail {
    std::string from;
    std::vector<std::string> to;  // that were taken
    std::string text;             // without the dots that the transfer has added
    bool is_tls = false;
  };

  explicit SmtpServer(Options options) : options_(std::move(options)), tls_(nullptr, SSL_CTX_free) {
    if (options_.certificate) {
      tls_.reset(SSL_CTX_new(TLS_server_method()));
      SSL_CTX_use_certificate(tls_.get(), options_.certificate->certificate.get());
      SSL_CTX_use_PrivateKey(tls_.get(), options_.certificate->key.get());
    }
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    CHECK(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) == 0);
    CHECK(::listen(listener_, 8) == 0);
    CHECK(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { accept_all(); });
  }
  ~SmtpServer() {
    {
      const std::scoped_lock lock(mutex_);
      is_stopped_ = true;
      ::shutdown(listener_, SHUT_RDWR);
      if (connection_ >= 0) ::shutdown(connection_, SHUT_RDWR);
    }
    thread_.join();
    ::close(listener_);
  }
  SmtpServer(const SmtpServer&) = delete;
  SmtpServer& operator=(const SmtpServer&) = delete;

  std::string url() const { return fmt::format("smtp://127.0.0.1:{}", port_); }
  std::vector<Mail> mails() const {
    const std::scoped_lock lock(mutex_);
    return mails_;
  }
  // All commands of all connections, in their order, after "TLS " where they came over TLS.
  std::vector<std::string> commands() const {
    const std::scoped_lock lock(mutex_);
    return commands_;
  }

 private:
  void accept_all() {
    sigset_t pipes;
    sigemptyset(&pipes);
    sigaddset(&pipes, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipes, nullptr);
    while (true) {
      const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) return;
      {
        const std::scoped_lock lock(mutex_);
        connection_ = is_stopped_ ? -1 : fd;
      }
      if (connection_ >= 0) serve();
      const std::scoped_lock lock(mutex_);
      if (session_ != nullptr) SSL_free(session_);
      session_ = nullptr;
      connection_ = -1;
      ::close(fd);
    }
  }

  void serve() {
    Mail mail;
    say("220 test.invalid ESMTP");
    while (const std::optional<std::string> line = read_line()) {
      note(*line);
      if (const std::string* answer = scripted(*line)) {
        if (answer->empty()) return;
        say(*answer);
      } else if (line->starts_with("EHLO")) {
        greet();
      } else if (*line == "STARTTLS") {
        say("220 go on");
        session_ = SSL_new(tls_.get());
        SSL_set_fd(session_, connection_);
        if (SSL_accept(session_) != 1) return;
      } else if (*line == "AUTH PLAIN") {
        say("334 ");
      } else if (line->starts_with("MAIL FROM:")) {
        mail = {.from = line->substr(10), .is_tls = session_ != nullptr};
        say("250 ok");
      } else if (line->starts_with("RCPT TO:")) {
        mail.to.push_back(line->substr(8));
        say("250 ok");
      } else if (*line == "DATA") {
        say("354 go on");
        if (!take_text(mail)) return;
      } else if (*line == "QUIT") {
        say("221 bye");
        return;
      } else {
        say("235 ok");  // the password
      }
    }
  }

  void greet() {
    say("250-test.invalid");
    if (options_.certificate && session_ == nullptr) say("250-STARTTLS");
    if (options_.wants_password) say("250-AUTH PLAIN");
    say("250 8BITMIME");
  }

  bool take_text(Mail& mail) {
    while (std::optional<std::string> line = read_line()) {
      if (*line != ".") {
        mail.text += (line->starts_with('.') ? line->substr(1) : *line) + "\r\n";
        continue;
      }
      const std::string* answer = scripted(".");
      if (answer == nullptr) {
        const std::scoped_lock lock(mutex_);
        mails_.push_back(mail);
      }
      if (answer != nullptr && answer->empty()) return false;
      say(answer == nullptr ? "250 taken" : *answer);
      return true;
    }
    return false;
  }

  const std::string* scripted(std::string_view line) const {
    for (const auto& [start, answer] : options_.answers) {
      if (line.starts_with(start)) return &answer;
    }
    return nullptr;
  }

  void note(const std::string& line) {
    const std::scoped_lock lock(mutex_);
    commands_.push_back((session_ != nullptr ? "TLS " : "") + line);
  }

  void say(const std::string& words) const {
    const std::string line = words + "\r\n";
    const int size = static_cast<int>(line.size());
    if (session_ != nullptr) {
      (void)SSL_write(session_, line.data(), size);
    } else {
      (void)::send(connection_, line.data(), line.size(), MSG_NOSIGNAL);
    }
  }

  std::optional<std::string> read_line() const {
    std::string line;
    char c = 0;
    while ((session_ != nullptr ? SSL_read(session_, &c, 1)
                                : static_cast<int>(::recv(connection_, &c, 1, 0))) == 1) {
      if (c == '\n') return line;
      if (c != '\r') line += c;
    }
    return std::nullopt;
  }

  const Options options_;
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> tls_;
  int listener_ = -1;
  int port_ = 0;
  mutable std::mutex mutex_;
  int connection_ = -1;     // changed by its thread alone
  SSL* session_ = nullptr;  // of its thread; null: plain text
  std::vector<Mail> mails_;
  std::vector<std::string> commands_;
  bool is_stopped_ = false;
  std::thread thread_;
};

}  // namespace gpu_platform::outbound
