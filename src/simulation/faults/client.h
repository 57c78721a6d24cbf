#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "base/result.h"
#include "controller/controller.h"
#include "model/command.h"
#include "simulation/faults/findings.h"
#include "simulation/faults/ledger.h"
#include "simulation/faults/setup.h"
#include "store/store.h"

namespace gpu_platform::simulation {

// The users who submit, cancel and kill jobs, and what they may rely on:
//   acknowledged   an acknowledged submission is there after any crash and ends exactly once;
//                  an unacknowledged one became at most one job
//   request-id     every answer to one request id names the same job
//   refused        what was refused became no job
//   disk-full      nothing new is accepted while only the reserve is left
//   stopped        an acknowledged cancel or kill of a job that had not ended ends it CANCELLED
//   requeued       after an acknowledged requeue a job ends only with another attempt, unless it is
//                  cancelled meanwhile or completes as it asked
//   recorded       an acknowledged end of a step is in the record of its job
//   archived       the archive holds each ended job once, exactly as it left the core
class Client {
 public:
  Client(base::Prng random, const Setup& setup, Findings& findings, Ledger& ledger,
         store::Journal& journal)
      : random_(random), setup_(setup), findings_(findings), ledger_(ledger), journal_(journal) {}

  // Commands for the next step.
  void submit_new(std::vector<controller::Input>& inputs);
  void submit_again(std::vector<controller::Input>& inputs);
  void stop_some(std::vector<controller::Input>& inputs);
  // Holds, releases, requeues, raises, signals, changes or records a step of a job, or does
  // something with many.
  void change_some(std::vector<controller::Input>& inputs);
  // The same, or a cancel, with a job that was acknowledged.
  void change_one(model::JobId job, std::vector<controller::Input>& inputs);
  // root sets the limit.
  void limit_one(model::JobId job, base::Duration limit, std::vector<controller::Input>& inputs);
  // Repeats every submission that has a request id and no answer.
  void submit_unanswered(std::vector<controller::Input>& inputs);

  // When all is over.
  void check_end(const store::Archive& archive);

 private:
  struct Submission {
    model::JobSpec spec;
    std::string environment;
    std::optional<model::JobId> job;  // as acknowledged
    bool is_refused = false;          // by the last answer
  };

  struct Aim {
    model::JobId job;
    model::Caller caller;
    bool is_other_user = false;
    bool whole_array = false;
  };
  // Draws an acknowledged job and the user who is about to do something with it.
  std::optional<Aim> draw_aim();
  std::optional<Aim> aim_at(model::JobId job) const;
  void act_on(const Aim& aim, model::JobAction action, std::vector<controller::Input>& inputs);
  void requeue(const Aim& aim, std::vector<controller::Input>& inputs);
  void update(const Aim& aim, std::vector<controller::Input>& inputs);
  void raise(const Aim& aim, std::vector<controller::Input>& inputs);
  void signal(const Aim& aim, std::vector<controller::Input>& inputs);
  // A step of the latest attempt that the journal knows begins, or has ended.
  void record_step(const Aim& aim, std::vector<controller::Input>& inputs);
  // Sends the command; counts it where it changes something.
  void send_change(const Aim& aim, decltype(model::Command::body) what, FaultKind kind,
                   std::vector<controller::Input>& inputs);
  void act_on_many(const model::Caller& caller, std::vector<controller::Input>& inputs);
  // Times, dependencies and an array, for a submission or a job that is there.
  void draw_times(base::Instant& begin, base::Instant& deadline);
  std::vector<model::Dependency> draw_dependencies();
  // Perhaps one of a reservation that is there, as far as the journal knows.
  void draw_reservation(model::JobSpec& spec);
  void change_start_conditions(model::UpdateJob& update);
  // Returns the ends of those targets that have ended as far as the journal knows.
  std::vector<model::EndedTarget> ended_of(const std::vector<model::Dependency>& asked) const;
  std::uint64_t members_of(model::JobId job) const;
  void note_stopped(const Aim& aim, const model::CommandReply& reply);
  void send(std::size_t index, std::vector<controller::Input>& inputs);
  void answered(std::size_t index, const base::Result<model::CommandReply>& reply);
  void check_submission(const Submission& submission);
  void check_requeued(model::JobId job, std::uint32_t attempts);
  void check_recorded(const model::Job& job);
  void check_archived(const model::Job& job, const store::Archive& archive);
  void check_audit(const store::Archive& archive);

  base::Prng random_;
  const Setup& setup_;
  Findings& findings_;
  Ledger& ledger_;
  store::Journal& journal_;
  std::vector<Submission> submissions_;
  std::vector<model::JobId> stopped_;  // acknowledged and changed something
  // Acknowledged, with a change or without, and the attempts before it.
  std::vector<std::pair<model::JobId, std::uint32_t>> requeued_;
  std::map<model::AttemptId, std::map<std::uint32_t, model::JobStep>> ended_steps_;
};

}  // namespace gpu_platform::simulation
