#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "execution/engine.h"

// What the suite of all engines (engine_contract.h) needs of one of them.

namespace gpu_platform::execution::testing {

// What was told of one attempt, in the order of its coming.
struct Told {
  std::vector<Started> started;
  std::vector<Ended> ended;
  int cleaned = 0;
  std::string epilog_failure;  // of the last of these
  bool in_order = true;        // the first of each: started, ended, cleaned
  bool is_one_story = true;    // what was repeated was the same again

  void note(const Started& now) {
    if (started.empty()) {
      in_order = in_order && ended.empty() && cleaned == 0;
    } else {
      is_one_story = is_one_story && now.pid == started[0].pid && now.at == started[0].at;
    }
    started.push_back(now);
  }
  void note(const Ended& now) {
    if (ended.empty()) {
      in_order = in_order && cleaned == 0;
    } else {
      const Ended& first = ended[0];
      is_one_story = is_one_story && now.exit == first.exit && now.reason == first.reason &&
                     now.at == first.at;
    }
    ended.push_back(now);
  }
  void note(const Cleaned& now) {
    in_order = in_order && !ended.empty();
    ++cleaned;
    epilog_failure = now.epilog_failure;
  }
};

// What a job of the suite does.
struct Act {
  enum class Kind : std::uint8_t {
    kEnds,         // at once, with the code
    kWaits,        // for let_end(), and ends with the code
    kObeysTerm,    // runs until SIGTERM
    kIgnoresTerm,  // runs until SIGKILL
    kCrashes,      // ends by SIGSEGV
    kMissing,      // there is no such program
  };
  Kind kind = Kind::kEnds;
  std::uint8_t code = 0;
};

// An engine with what the suite must do around it. The engine's observations come to told().
class EngineHarness {
 public:
  virtual ~EngineHarness() = default;
  virtual std::string open() = 0;  // why it cannot be had here; empty: it is there
  // What the engine by its nature has not, as a reason to skip; empty: it has it.
  virtual std::string why_no_signals() const { return {}; }
  virtual std::string why_no_limit_while_away() const { return {}; }
  virtual Engine& engine() = 0;

  virtual void close() = 0;   // as a daemon that is killed: jobs go on
  virtual void reopen() = 0;  // an engine that knows nothing, and whose observations begin anew

  // A start without end that is in time. The job id is the suite's.
  virtual StartOrder order(std::uint64_t job, const Act& act) = 0;
  virtual void let_end(model::AttemptId attempt) = 0;
  virtual void kill_supervisor(model::AttemptId attempt) = 0;

  // Lets time pass until the condition holds; false where it never does.
  virtual bool wait_until(const std::function<bool()>& condition) = 0;
  virtual Told told(model::AttemptId attempt) const = 0;
  virtual int runs(model::AttemptId attempt) const = 0;       // how often its program began
  virtual bool is_ready(model::AttemptId attempt) const = 0;  // its handlers of signals are there
  virtual bool has_got_usr1(model::AttemptId) const { return false; }
  virtual bool is_over(model::AttemptId attempt) const = 0;       // it runs no more, told or not
  virtual bool is_forgotten(model::AttemptId attempt) const = 0;  // nothing is known of it
};

struct EngineUnderTest {
  const char* name;
  std::unique_ptr<EngineHarness> (*make)();
};

inline std::string name_of_engine(const ::testing::TestParamInfo<EngineUnderTest>& info) {
  return info.param.name;
}

// As a shell has it. A container's engine tells no signals but these numbers.
inline int status_of(const model::Exit& exit) {
  if (exit.signal) return 128 + *exit.signal;
  return exit.code ? *exit.code : -1;
}

}  // namespace gpu_platform::execution::testing
