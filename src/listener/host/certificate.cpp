#include "listener/host/certificate.h"

#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <ctime>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "os/descriptor.h"

namespace gpu_platform::listener {

namespace {

constexpr std::string_view kCertificateKey = "api.tls.certificate";
constexpr std::string_view kKeyKey = "api.tls.key";
constexpr int kWarnDays = 14;

struct FreeParts {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
template <class Part>
using Owned = std::unique_ptr<Part, FreeParts>;

std::unexpected<base::Error> refuse_file(std::string_view key, const std::string& path,
                                         std::string_view why) {
  return base::fail(base::ErrorCode::kFailedPrecondition, fmt::format("{}: {} {}", key, path, why),
                    std::string(key));
}

int no_passphrase(char*, int, int, void*) {
  return -1;
}

base::Result<std::string> read_file(std::string_view key, const std::string& path, bool is_secret) {
  const os::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  const auto cannot = [&] {
    return refuse_file(key, path, fmt::format("cannot be read: {}", ::strerrordesc_np(errno)));
  };
  if (!file.is_open()) return cannot();
  struct stat about{};
  if (::fstat(file.get(), &about) != 0) return cannot();
  if (!S_ISREG(about.st_mode)) return refuse_file(key, path, "is not a file");
  if (is_secret && (about.st_mode & S_IRWXO) != 0) {
    return refuse_file(key, path, "is open to all users: take their rights away (chmod o= FILE)");
  }
  std::string text(kMaxPem + 1, '\0');
  const ssize_t size = ::read(file.get(), text.data(), text.size());
  if (size < 0) return cannot();
  if (static_cast<std::size_t>(size) > kMaxPem) {
    return refuse_file(key, path, fmt::format("is larger than {} bytes", kMaxPem));
  }
  text.resize(static_cast<std::size_t>(size));
  return text;
}

Owned<BIO> text_reader(const std::string& text) {
  return Owned<BIO>(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::string warning_of(const X509& certificate, std::time_t now, const std::string& path) {
  const auto is_before = [](const ASN1_TIME* time, std::time_t when) {
    return X509_cmp_time(time, &when) < 0;
  };
  if (!is_before(X509_get0_notBefore(&certificate), now)) {
    return fmt::format("the certificate {} is not valid yet", path);
  }
  if (is_before(X509_get0_notAfter(&certificate), now)) {
    return fmt::format("the certificate {} has expired: clients refuse it", path);
  }
  if (is_before(X509_get0_notAfter(&certificate), now + kWarnDays * 86'400)) {
    return fmt::format("the certificate {} expires in less than {} days", path, kWarnDays);
  }
  return {};
}

// A time that an Instant does not hold is the last one that it does.
base::Instant end_of(const X509& certificate) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(&certificate), &parts) != 1) return {};
  constexpr std::int64_t kLastSeconds = INT64_MAX / 1'000'000'000;
  const std::int64_t seconds = std::min<std::int64_t>(timegm(&parts), kLastSeconds);
  return base::Instant(seconds * 1'000'000'000);
}

void add_stamp(std::string& out, const std::string& path) {
  struct stat about{};
  if (::stat(path.c_str(), &about) != 0) {
    out += "-;";
    return;
  }
  out += fmt::format("{} {} {} {}.{} {};", about.st_dev, about.st_ino, about.st_size,
                     about.st_mtim.tv_sec, about.st_mtim.tv_nsec, about.st_mode);
}

}  // namespace

base::Result<CheckedCertificate> read_certificate(const CertificateFiles& files,
                                                  base::Instant now) {
  CheckedCertificate checked;
  TRY_ASSIGN(checked.texts.chain, read_file(kCertificateKey, files.certificate, false));
  TRY_ASSIGN(checked.texts.key, read_file(kKeyKey, files.key, true));
  const Owned<BIO> chain = text_reader(checked.texts.chain);
  const Owned<X509> certificate(PEM_read_bio_X509(chain.get(), nullptr, no_passphrase, nullptr));
  const Owned<BIO> secret = text_reader(checked.texts.key);
  const Owned<EVP_PKEY> key(PEM_read_bio_PrivateKey(secret.get(), nullptr, no_passphrase, nullptr));
  ERR_clear_error();
  if (certificate == nullptr) {
    return refuse_file(kCertificateKey, files.certificate, "has no certificate as PEM");
  }
  if (key == nullptr) {
    return refuse_file(kKeyKey, files.key, "has no private key as PEM without a passphrase");
  }
  const bool does_fit = X509_check_private_key(certificate.get(), key.get()) == 1;
  ERR_clear_error();
  if (!does_fit) {
    return refuse_file(kKeyKey, files.key, fmt::format("is not the key of {}", files.certificate));
  }
  checked.ends_at = end_of(*certificate);
  checked.warning = warning_of(*certificate, now.unix_ns() / 1'000'000'000, files.certificate);
  return checked;
}

std::string stamp_of(const CertificateFiles& files) {
  std::string stamp;
  add_stamp(stamp, files.certificate);
  add_stamp(stamp, files.key);
  return stamp;
}

}  // namespace gpu_platform::listener
