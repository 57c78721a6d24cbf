#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "health/rules.h"
#include "health/verdict.h"

// Evidence in memory: what the replay and the tests judge from. Thread: one owner.

namespace gpu_platform::health {

class CaseBook : public Records {
 public:
  // Names a GPU and its place before there is evidence of it.
  void add_gpu(const GpuKey& gpu);
  // Keeps one piece. Of the pieces of a job that has started here, what they do not say of their
  // job, user and program is filled in.
  void add(const GpuKey& gpu, model::Evidence piece);
  void add_to_node(std::string_view node, model::Evidence piece);
  // Starts and ends of jobs, as a piece for each of its GPUs.
  void start_job(const std::vector<GpuKey>& gpus, const model::Evidence& start);
  void end_job(model::JobId job, const model::Evidence& end);

  // The GPUs to judge again since the last call, each once: those of the pieces, and those whose
  // statistics look at them.
  std::vector<std::string> take_touched();

  GpuKey key(std::string_view uuid) const;  // the GPU must be known
  std::vector<std::string> gpus() const;
  // A GPU that a job of no known start used is not among them.
  std::vector<GpuKey> gpus_of_job(model::JobId job) const;

  std::span<const model::Evidence> of_gpu(std::string_view uuid) const override;
  std::span<const model::Evidence> of_node(std::string_view node) const override;
  std::vector<std::string_view> gpus_with_job(model::JobId job) const override;
  std::vector<std::string_view> gpus_with_program(std::string_view user,
                                                  std::string_view program) const override;
  std::vector<std::string_view> gpus_of_node(std::string_view node) const override;

 private:
  struct Gpu {
    std::string node;
    std::string type;
    std::vector<model::Evidence> pieces;
  };
  struct Job {
    std::string user;
    std::string program;
    std::set<std::string> gpus;
  };
  using Names = std::set<std::string, std::less<>>;
  Gpu& gpu_at(const GpuKey& gpu);
  void touch_gang(const Gpu& gpu, const model::Evidence& piece);

  std::map<std::string, Gpu, std::less<>> gpus_;
  std::map<std::string, std::vector<model::Evidence>, std::less<>> nodes_;
  std::map<std::string, Names, std::less<>> gpus_of_nodes_;
  std::map<model::JobId, Job> jobs_;
  std::map<std::pair<std::string, std::string>, Names> gpus_of_programs_;
  Names touched_;
};

}  // namespace gpu_platform::health
