#include "execution/kubernetes/exporter/exporter_reader.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "os/clock.h"

namespace gpu_platform::execution {

namespace {

constexpr base::Duration kLongestReaderPause = base::seconds(1);
// Of one answer: the page of 16 GPUs with 7 instances each, with all fields and long labels, has 2
// MiB.
constexpr std::size_t kMaxBody = std::size_t{8} << 20;

}  // namespace

base::Result<std::unique_ptr<ExporterReader>> ExporterReader::start(Options options) {
  TRY_ASSIGN(std::unique_ptr<kubernetes::Client> client,
             kubernetes::Client::make(options.access, {.max_body = kMaxBody}));
  return std::unique_ptr<ExporterReader>(new ExporterReader(std::move(options), std::move(client)));
}

ExporterReader::ExporterReader(Options options, std::unique_ptr<kubernetes::Client> client)
    : client_(std::move(client)),
      scraper_(*client_, std::move(options.settings), std::move(options.take),
               std::move(options.warn)) {
  thread_ = std::thread([this] { run(); });
}

ExporterReader::~ExporterReader() {
  stop();
}

void ExporterReader::stop() {
  is_stopping_ = true;
  client_->wake();
  if (thread_.joinable()) thread_.join();
}

void ExporterReader::run() {
  while (!is_stopping_) {
    const std::int64_t now_ns = os::monotonic_ns();
    scraper_.advance(now_ns);
    base::Duration sleep = kLongestReaderPause;
    if (const std::int64_t due = scraper_.due_ns(); due != 0) {
      sleep = std::clamp(base::nanoseconds(due - now_ns), base::Duration(), kLongestReaderPause);
    }
    client_->poll(sleep);
  }
}

}  // namespace gpu_platform::execution
