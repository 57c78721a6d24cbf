#pragma once

#include <string>
#include <vector>

#include "model/ids.h"
#include "node/record.h"

// Reads the files of attempts in the folder of the launcher. Only the node part writes there.

namespace gpu_platform::execution {

struct AttemptFiles {
  bool exists = false;      // its record: its start was begun once
  bool readable = false;    // false although it exists: nothing can be said of it now
  bool begun = false;       // the program may have been executed; false proves that it was not
  bool supervised = false;  // its supervisor lives, or is just being made
  node::Record record;
};

// `supervised` is read before the record: where it is false, the record is final.
AttemptFiles read_attempt(const std::string& folder, model::AttemptId attempt);

// Returns every attempt that has a record, ascending.
std::vector<model::AttemptId> list_attempts(const std::string& folder);

}  // namespace gpu_platform::execution
