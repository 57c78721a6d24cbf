#pragma once

#include <string>
#include <string_view>

#include <google/protobuf/map.h>

#include "base/result.h"
#include "cli/client_names.h"

// --env-file: lines NAME=VALUE, as tools for containers have them.

namespace gpu_platform::cli {

// Puts the variables of the text into `environment`, in place of those that are there. Empty lines
// and lines that begin with "#" mean nothing, "export " before a name is left out, and a value in
// quotes is what is between them: '…' as it stands, "…" with \n, \", \\ and \$. Other values are as
// they are written, without blanks around them. The error names the line and never shows a value.
base::Status read_environment(std::string_view text,
                              google::protobuf::Map<std::string, std::string>& environment);

// The same of a file, which is relative to the current directory. The error names the option.
base::Status put_environment_file(const ProcessEnvironment& process_environment,
                                  const std::string& file,
                                  google::protobuf::Map<std::string, std::string>& environment);

}  // namespace gpu_platform::cli
