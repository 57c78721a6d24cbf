#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/memory/memory_store.h"

namespace gpu_platform::simulation {

// The planted defect lost-job: calls a batch durable although it is stored only with the next one,
// as a group commit that answers too early would. Passes everything else on to the store.
class LyingJournal final : public store::Journal {
 public:
  explicit LyingJournal(store::MemoryStore& store) : store_(store) {}

  base::Status append(const store::Commit& commit) override;
  base::Status replay(
      model::EventSeq after,
      const std::function<base::Status(const model::EventRecord&)>& visit) const override;
  model::EventSeq first_seq() const override { return store_.first_seq(); }
  model::EventSeq last_seq() const override;
  base::Status put_snapshot(const store::StoredSnapshot& snapshot) override;
  base::Result<std::optional<store::StoredSnapshot>> newest_snapshot(
      std::string* damaged) const override {
    return store_.newest_snapshot(damaged);
  }
  base::Status drop_jobs(std::span<const model::JobId> jobs) override {
    return store_.drop_jobs(jobs);
  }
  store::LedgerGap ledger_gap() const override { return store_.ledger_gap(); }
  base::Status put_ledger(std::span<const store::LedgerBatch> batches,
                          model::EventSeq upto) override {
    return store_.put_ledger(batches, upto);
  }
  store::Headroom headroom() override { return store_.headroom(); }
  base::Result<std::string> environment(std::string_view ref) const override;

  void crash() { held_back_.reset(); }

 private:
  struct Batch {
    std::vector<model::EventRecord> events;
    std::vector<model::Job> ended_jobs;
    std::vector<model::LedgerLine> ledger;
    std::vector<store::Environment> new_environments;
    std::vector<std::string> dropped_environments;
  };
  base::Status store_held_back();

  store::MemoryStore& store_;
  std::optional<Batch> held_back_;
};

}  // namespace gpu_platform::simulation
