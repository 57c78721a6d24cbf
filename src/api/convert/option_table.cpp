#include "api/convert/option_table.h"

#include <fmt/format.h>

#include "gpu_platform/v1/jobs.pb.h"
#include "gpu_platform/v1/options.pb.h"
#include "model/job_spec.h"

namespace gpu_platform::api {

namespace {

std::string in_table(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) {
    text.insert(at, 1, '\\');
  }
  return text;
}

}  // namespace

std::string option_table() {
  std::string table = "| option | meaning | `jobs update` |\n| --- | --- | --- |\n";
  const google::protobuf::Descriptor& spec = *v1::JobSpec::descriptor();
  for (int i = 0; i < spec.field_count(); ++i) {
    const auto& options = spec.field(i)->options();
    for (int j = 0; j < options.ExtensionSize(v1::option); ++j) {
      const v1::CommandOption& option = options.GetExtension(v1::option, j);
      const std::string value = option.value().empty() ? "" : " " + option.value();
      const std::string letter = option.letter().empty() ? "" : "`-" + option.letter() + "`, ";
      const bool clears = option.update() == v1::UPDATE_SETS_OR_CLEARS;
      table += fmt::format("| {}`{}` | {} | {} |\n", letter, in_table(option.flag() + value),
                           in_table(option.detail().empty() ? option.help() : option.detail()),
                           option.update() == v1::UPDATE_NEVER ? ""
                           : clears                            ? "yes, or `none`"
                                                               : "yes");
    }
  }
  return table;
}

}  // namespace gpu_platform::api
