#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "kubernetes/json_reader.h"

namespace gpu_platform::execution {

// The pods of a namespace that export the readings of their nodes' GPUs, by what a cluster says of
// them. Pure.
class ExporterPods {
 public:
  // `takes_all`: a selector has chosen the pods already; else those with a label of NVIDIA's
  // exporter count (app.kubernetes.io/name=dcgm-exporter or app=nvidia-dcgm-exporter).
  explicit ExporterPods(bool takes_all) : takes_all_(takes_all) {}

  static kubernetes::JsonFields fields();

  void begin_list();  // what is not put before end_list() is gone
  void put(const nlohmann::json& pod);
  void remove(const nlohmann::json& pod);
  void end_list();

  // The node's pod to ask: of those that are ready the first by name, else of all; null: there is
  // none. Valid until the next change.
  struct Pod {
    std::string name;
    bool is_ready = false;
  };
  const Pod* pod_on(std::string_view node) const;

  // The nodes whose pods have changed since the last call, ascending.
  std::vector<std::string> take_changed();

 private:
  struct Known {
    std::string node;
    bool is_listed = false;
  };
  void forget(const std::string& name);

  const bool takes_all_;
  std::map<std::string, Known> known_;                            // by the pod's name
  std::map<std::string, std::vector<Pod>, std::less<>> by_node_;  // ready ones first, then by name
  std::vector<std::string> changed_;
};

}  // namespace gpu_platform::execution
