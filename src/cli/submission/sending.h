#pragma once

#include <expected>
#include <string>
#include <vector>

#include "cli/client_names.h"
#include "cli/commands.h"
#include "cli/submission/job_request.h"
#include "cli/words/arguments.h"
#include "gpu_platform/v1/jobs.pb.h"

// From the words of a command to a job that the daemon has accepted: what `submit`, `run`, `check`
// and `jobs rerun` have in common.

namespace gpu_platform::cli {

struct Submission {
  JobRequest request;
  bool is_unchecked = false;  // --no-check
};

// Adds the options of a job. The object must outlive `arguments`.
void define(Arguments& arguments, Submission& submission);

// Makes the job complete: its options, what it has from the caller, and a look at its files if it
// runs on this machine. Errors name the option.
base::Status complete(Console& console, const Client& client, const Submission& submission,
                      v1::JobSpec& spec);

// Tells such a mistake; returns the exit code.
int tell_mistake(Console& console, const base::Error& error, const CommandText& text);

struct Submitted {
  std::string id;
  std::string document;  // the daemon's answer
};

// Sends the job, with a warning if nothing asks for a GPU. Otherwise the exit code.
std::expected<Submitted, int> send(Console& console, Client& client, const Submission& submission,
                                   const v1::JobSpec& spec, bool wants_documents);

// Prints the id, and on a terminal what happens next.
void tell_submitted(Console& console, Client& client, const std::string& id);

// The body of a question about the job: its environment does not matter, and stays here.
std::string check_body(v1::JobSpec spec, base::Duration timeout);

}  // namespace gpu_platform::cli
