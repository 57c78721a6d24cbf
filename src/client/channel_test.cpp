#include "client/channel.h"

#include <filesystem>
#include <fstream>

#include <openssl/evp.h>
#include <openssl/sha.h>

#include "client/exit_code.h"
#include "client/fake_server_test.h"
#include "client/fake_tls_server_test.h"
#include "client/process_fixture_test.h"

namespace gpu_platform::client {
namespace {

// What a server answers to a request for a WebSocket.
std::string accepted(const std::string& request) {
  constexpr std::string_view kKey = "Sec-WebSocket-Key: ";
  const std::size_t at = request.find(kKey) + kKey.size();
  const std::string key =
      request.substr(at, request.find('\r', at) - at) + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  std::array<unsigned char, SHA_DIGEST_LENGTH> hash{};
  SHA1(reinterpret_cast<const unsigned char*>(key.data()), key.size(), hash.data());
  std::string answer(4 * ((hash.size() + 2) / 3), '\0');
  EVP_EncodeBlock(reinterpret_cast<unsigned char*>(answer.data()), hash.data(),
                  static_cast<int>(hash.size()));
  return fmt::format(
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      "Sec-WebSocket-Accept: {}\r\n\r\n",
      answer);
}

// A message of a server, at most 64 KiB.
std::string message(const model::Frame& frame) {
  const std::string bytes = model::encode_frame(frame);
  std::string head = "\x82";
  if (bytes.size() < 126) {
    head.push_back(static_cast<char>(bytes.size()));
  } else {
    head.push_back(126);
    head.push_back(static_cast<char>(bytes.size() >> 8));
    head.push_back(static_cast<char>(bytes.size() & 0xff));
  }
  return head + bytes;
}

// The payload of the client's first message, which is masked; empty while it is not whole.
std::string payload_of(const std::string& bytes) {
  if (bytes.size() < 8) return {};
  const auto at = [&](std::size_t i) {
    return static_cast<std::size_t>(static_cast<unsigned char>(bytes[i]));
  };
  const bool is_long = (at(1) & 0x7f) == 126;
  const std::size_t size = is_long ? at(2) << 8 | at(3) : at(1) & 0x7f;
  const std::size_t begin = is_long ? 8 : 6;
  if (bytes.size() < begin + size) return {};
  std::string payload = bytes.substr(begin, size);
  for (std::size_t i = 0; i < size; ++i) payload[i] ^= bytes[begin - 4 + i % 4];
  return payload;
}

// Over TLS and over plain TCP.
class Channels : public Process, public testing::WithParamInterface<bool> {
 protected:
  Channels() : authority_(make_authority()) {
    file_ = (std::filesystem::temp_directory_path() / fmt::format("gp-channel-{}.pem", ::getpid()))
                .string();
    std::ofstream(file_) << authority_.pem();
  }
  ~Channels() override { std::filesystem::remove(file_); }

  FakeTlsServer::Options options() const {
    return GetParam() ? FakeTlsServer::Options{.shown = make_certificate(
                                                   {.alternative_names = http::kThisMachine,
                                                    .issuer = &authority_})}
                      : FakeTlsServer::Options{};
  }
  Client client_of(const FakeTlsServer& server) const {
    http::Server place = *http::parse_server(server.address());
    place.token = "gpt_s3cret";
    place.tls.authorities = file_;
    return Client({place});
  }

  TestCertificate authority_;
  std::string file_;
};

TEST_P(Channels, CarryFramesBothWaysWithTheToken) {
  const std::string large(20'000, 'i');
  std::string received;
  FakeTlsServer::Options wanted = options();
  wanted.after_answer = [&](const std::function<std::string()>& read) {
    while (payload_of(received).empty()) {
      const std::string bytes = read();
      if (bytes.empty()) return;
      received += bytes;
    }
  };
  FakeTlsServer server(wanted, [&](const std::string& request) {
    return accepted(request) + message(model::OpenedFrame{7}) +
           message(model::OutputFrame{std::string(30'000, 'o')});
  });
  Client client = client_of(server);
  boost::asio::io_context io;
  const auto channel = Channel::open(io, client, "/v1/jobs/1/exec");
  ASSERT_TRUE(channel.has_value()) << channel.error().message;
  std::vector<std::size_t> outputs;
  int closed = 0;
  (*channel)->begin({[&](const model::Frame& frame) {
                       if (std::holds_alternative<model::OpenedFrame>(frame)) {
                         (*channel)->send(model::InputFrame{large});
                       }
                       if (const auto* output = std::get_if<model::OutputFrame>(&frame)) {
                         outputs.push_back(output->bytes.size());
                       }
                     },
                     [&] { ++closed; }});
  io.run();
  EXPECT_EQ(outputs, std::vector<std::size_t>{30'000});
  EXPECT_EQ(payload_of(received), model::encode_frame(model::InputFrame{large}));
  EXPECT_EQ(closed, 1);
  EXPECT_TRUE(has(server.requests().front(), "\r\nAuthorization: Bearer gpt_s3cret\r\n"));
  EXPECT_TRUE(has(server.requests().front(), fmt::format("Host: 127.0.0.1:{}\r\n", server.port())));
}

TEST_P(Channels, TellWhyOneIsRefused) {
  FakeTlsServer server(options(), [](const std::string&) {
    return json_answer(R"({"code":"PERMISSION_DENIED","detail":"not your job"})", 403);
  });
  Client client = client_of(server);
  boost::asio::io_context io;
  const auto channel = Channel::open(io, client, "/v1/jobs/1/exec");
  ASSERT_FALSE(channel.has_value());
  EXPECT_EQ(exit_code_of(channel.error()), kRefused);
  EXPECT_EQ(channel.error().message, "not your job");
}

TEST_P(Channels, CloseWhileTheyWait) {
  FakeTlsServer::Options wanted = options();
  wanted.after_answer = [](const std::function<std::string()>& read) {
    while (!read().empty()) {
    }
  };
  FakeTlsServer server(wanted, accepted);
  Client client = client_of(server);
  boost::asio::io_context io;
  const auto channel = Channel::open(io, client, "/v1/jobs/1/exec");
  ASSERT_TRUE(channel.has_value()) << channel.error().message;
  int closed = 0;
  (*channel)->begin({[](const model::Frame&) {}, [&] { ++closed; }});
  boost::asio::post(io, [&] { (*channel)->close(); });
  io.run();
  EXPECT_EQ(closed, 1);
}

INSTANTIATE_TEST_SUITE_P(Doors, Channels, testing::Bool(),
                         [](const auto& door) { return std::string(door.param ? "Tls" : "Tcp"); });

}  // namespace
}  // namespace gpu_platform::client
