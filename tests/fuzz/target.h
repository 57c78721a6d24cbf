#pragma once

#include <string>
#include <string_view>
#include <vector>

// Each program of this folder defines these. driver.cpp joins it with libFuzzer.

namespace gpu_platform::fuzz {

// Takes one input as a reader of such bytes would. Ends the process where a property does not
// hold; the same input does the same whenever it is run.
void run(std::string_view input);

// Encodings of today's code, from which a search begins beside the kept inputs (corpus/TARGET).
std::vector<std::string> seeds();

}  // namespace gpu_platform::fuzz
