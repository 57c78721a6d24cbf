#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/ledger.h"

// The bytes of a batch of the ledger's lines. A line says what differs from the one of its kind
// before it: eight GPUs of one attempt differ by their UUID alone. Names of nodes, GPUs, types,
// users and teams are the same for years, and are numbers. docs/journal.md describes the format.

namespace gpu_platform::store {

// The number of a name that is not empty; from 1.
using NumberOfName = std::function<base::Result<std::uint64_t>(std::string_view name)>;
// Returns the name, valid until the next call; kDataLoss where no name has that number.
using NameOfNumber = std::function<base::Result<std::string_view>(std::uint64_t number)>;

// Fails as number_of does.
base::Result<std::string> encode_lines(std::span<const model::LedgerLine> lines,
                                       const NumberOfName& number_of);

// Calls visit for each of the `count` lines, in their order, until it returns an error, which is
// passed on. The line is valid until visit returns. kDataLoss when the bytes are not those of so
// many lines; those before the damage have been visited then.
base::Status visit_lines(std::string_view payload, std::uint64_t count, const NameOfNumber& name_of,
                         const std::function<base::Status(const model::LedgerLine&)>& visit);

}  // namespace gpu_platform::store
