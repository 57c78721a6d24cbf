#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/budget.h"
#include "model/event.h"
#include "model/job.h"
#include "model/node.h"
#include "model/policy.h"
#include "model/preemption_hold.h"
#include "model/price.h"
#include "model/reservation.h"
#include "model/run_time_team.h"
#include "model/token.h"

// Bytes of events, jobs, nodes, preemption holds, reservations, tokens and teams, as the store
// keeps them (docs/journal.md). Every composite value is written with its length, so fields
// appended later are skipped by an older reader and keep their defaults when an older record lacks
// them. Fields are never removed, reordered or given a new meaning.

namespace gpu_platform::model {

// Appends one record to a batch.
void append_record(const EventRecord& record, std::string& out);

// Calls visit for each record of a batch until it returns an error, which is passed on; kDataLoss
// for bytes that are no batch.
base::Status for_each_record(std::string_view bytes,
                             const std::function<base::Status(const EventRecord&)>& visit);

void append_job(const Job& job, std::string& out);
base::Result<Job> decode_job(std::string_view bytes);

// Appends jobs one after the other, as append_job does. A specification that a job shares with the
// one before it, as members of an array do, is copied and not encoded again.
class JobAppender {
 public:
  void append(const Job& job, std::string& out);

 private:
  std::shared_ptr<const JobSpec> spec_;
  std::string spec_bytes_;
};

void append_node(const Node& node, std::string& out);
void append_array(const JobArray& array, std::string& out);
base::Result<JobArray> decode_array(std::string_view bytes);

base::Result<Node> decode_node(std::string_view bytes);

void append_policy(const Policy& policy, std::string& out);
base::Result<Policy> decode_policy(std::string_view bytes);

void append_preemption_hold(const PreemptionHold& hold, std::string& out);
base::Result<PreemptionHold> decode_preemption_hold(std::string_view bytes);

// Reads values that were appended one after another.
void append_audit_entry(const AuditEntry& entry, std::string& out);
base::Result<std::vector<AuditEntry>> decode_audit_entries(std::string_view bytes);

void append_reservation(const Reservation& reservation, std::string& out);
base::Result<Reservation> decode_reservation(std::string_view bytes);

void append_token(const Token& token, std::string& out);
base::Result<Token> decode_token(std::string_view bytes);

void append_price_book(const PriceBook& prices, std::string& out);
base::Result<PriceBook> decode_price_book(std::string_view bytes);

void append_budget_state(const BudgetState& state, std::string& out);
base::Result<BudgetState> decode_budget_state(std::string_view bytes);

void append_run_time_team(const RunTimeTeam& team, std::string& out);
base::Result<RunTimeTeam> decode_run_time_team(std::string_view bytes);

}  // namespace gpu_platform::model
