#include "cli/jobs/job_use.h"

#include <fmt/format.h>

#include "base/percent.h"
#include "cli/text/output.h"
#include "cli/text/use_text.h"
#include "gpu_platform/v1/use.pb.h"

namespace gpu_platform::cli {

void tell_use(Console& console, Client& client, const std::string& id) {
  const auto use = client.ask<v1::JobUse>(fmt::format("/v1/jobs/{}/use", base::percent_encoded(id)),
                                          "the use of a job");
  if (!use) return console.warning(use.error().message);
  if (use->attempts().empty()) return console.note("nothing was read of its GPUs");
  console.err(use_page(*use, Output().style(console)));
}

}  // namespace gpu_platform::cli
