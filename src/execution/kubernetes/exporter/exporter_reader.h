#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "base/result.h"
#include "execution/kubernetes/exporter/exporter_scraper.h"
#include "kubernetes/client.h"
#include "kubernetes/kubeconfig.h"

namespace gpu_platform::execution {

// Reads the GPUs of a cluster's nodes on a thread and with connections of its own: exporters that
// hang hold up no job.
class ExporterReader {
 public:
  struct Options {
    kubernetes::ClusterAccess access;
    ExporterSettings settings;
    ExporterScraper::Take take;                         // called on the thread
    std::function<void(const std::string& line)> warn;  // the same
  };
  // Starts the thread. Errors are those of Client::make().
  static base::Result<std::unique_ptr<ExporterReader>> start(Options options);
  ~ExporterReader();
  ExporterReader(const ExporterReader&) = delete;
  ExporterReader& operator=(const ExporterReader&) = delete;

  // Ends the thread: a page that is being read is waited for, one that is on its way is not. More
  // than once.
  void stop();

  // Why there are no readings of a node; empty: there are. Any thread.
  std::string why_none(std::string_view node) const { return scraper_.why_none(node); }

 private:
  ExporterReader(Options options, std::unique_ptr<kubernetes::Client> client);
  void run();

  const std::unique_ptr<kubernetes::Client> client_;
  ExporterScraper scraper_;
  std::atomic<bool> is_stopping_{false};
  std::thread thread_;  // last: it uses all others
};

}  // namespace gpu_platform::execution
