#include "cli/submission/sending.h"

#include <fmt/format.h>

#include "api/convert/json_writer.h"
#include "base/parse.h"
#include "cli/submission/local_check.h"
#include "cli/submission/next_step.h"
#include "client/submission.h"
#include "gpu_platform/v1/planning.pb.h"
#include "model/job_spec.h"

namespace gpu_platform::cli {

namespace {

// The fewest nodes on which so many GPUs are divided equally, with at most `most` on each.
std::uint64_t nodes_for(std::uint64_t gpus, std::uint64_t most) {
  std::uint64_t nodes = 2;
  while (nodes < gpus && (gpus % nodes != 0 || gpus / nodes > most)) ++nodes;
  return nodes;
}

// Names what shows the types of this cluster.
Failure with_hint_at_types(Failure failure) {
  if (failure.code == base::ErrorCode::kFailedPrecondition && failure.field == "--gpu-type") {
    failure.message += "; 'gpu-platform nodes' lists the types";
  }
  return failure;
}

// Says how more GPUs than a node has are asked for.
Failure with_hint_at_nodes(Failure failure, const v1::JobSpec& spec) {
  constexpr std::string_view kLargest = "the largest node";
  const std::size_t largest = failure.message.find(kLargest);
  if (failure.field != "--gpus" || largest == std::string::npos || spec.nodes() > 1) return failure;
  const std::size_t digits = failure.message.find_first_of("0123456789", largest);
  if (digits == std::string::npos) return failure;
  const std::size_t end = failure.message.find_first_not_of("0123456789", digits);
  const auto most = base::parse_count(failure.message.substr(digits, end - digits), 1, 65535);
  if (!most) return failure;
  failure.message +=
      fmt::format("; use --nodes {} or --allow-cross-node", nodes_for(spec.gpus(), *most));
  return failure;
}

// The time limit was not typed itself.
Failure with_hint_at_gpu_time(Failure failure, const JobOptions& options) {
  if (failure.field == "--time" && options.has("--gpu-time")) {
    failure.message += "; it follows from --gpu-time " + *options.text("--gpu-time");
  }
  return failure;
}

}  // namespace

void define(Arguments& arguments, Submission& submission) {
  submission.request.options.define(arguments);
  arguments
      .many("--env-file", submission.request.environment_files, "FILE",
            "environment variables from a file with lines NAME=VALUE; may be repeated")
      .flag("--no-check", submission.is_unchecked,
            "do not look for the directory, the program and the output's folder, which may be made "
            "later");
}

base::Status complete(Console& console, const Client& client, const Submission& submission,
                      v1::JobSpec& spec) {
  TRY(put_options(console, submission.request, spec));
  TRY(put_callers(console, submission.request, spec));
  if (submission.is_unchecked || spec.command().empty()) return {};
  const ProcessEnvironment& process_environment = console.process_environment();
  TRY(check_shell_line(process_environment, spec));
  if (!is_local_job(client, spec)) return {};
  return check_files(process_environment, spec);
}

int tell_mistake(Console& console, const base::Error& error, const CommandText& text) {
  return usage_error(
      console,
      error.field.empty() ? error.message : fmt::format("{}: {}", error.field, error.message),
      text.name);
}

std::expected<Submitted, int> send(Console& console, Client& client, const Submission& submission,
                                   const v1::JobSpec& spec, bool wants_documents) {
  if (!spec.has_gpus()) {
    console.warning(
        "nothing asks for a GPU: this is a CPU job (--gpus N asks for GPUs, --gpus 0 "
        "silences this)");
  }
  auto answer = client::submit_job(console, client, spec);
  if (!answer) {
    const JobOptions& options = submission.request.options;
    Failure failure = with_option_name(std::move(answer).error(), &options);
    failure = with_hint_at_gpu_time(std::move(failure), options);
    return std::unexpected(report(console,
                                  with_hint_at_nodes(with_hint_at_types(std::move(failure)), spec),
                                  wants_documents));
  }
  const v1::Job job = client::message_of<v1::Job>(*answer).value_or(v1::Job());
  const std::string& id = job.id();
  for (const std::string& warning : job.warnings()) console.warning(with_option_name(warning));
  if (id.empty()) {
    console.error("the daemon's answer has no job id");
    return std::unexpected(kFailure);
  }
  return Submitted{id, std::move(*answer)};
}

void tell_submitted(Console& console, Client& client, const std::string& id) {
  console.out(id + "\n");
  if (!is_told_next_step(console.process_environment())) return;
  const std::string next = next_step_of(console, client, id);
  console.note(fmt::format("submitted job {}; {}{}logs: gpu-platform jobs logs -f {}", id, next,
                           next.empty() ? "" : "; ", id));
}

std::string check_body(v1::JobSpec spec, base::Duration timeout) {
  v1::CheckJobRequest request;
  spec.clear_environment();
  spec.clear_request_id();
  *request.mutable_spec() = std::move(spec);
  request.set_timeout_seconds(static_cast<double>(base::whole_milliseconds(timeout)) / 1000);
  std::string body;
  api::append_request_json(body, request);
  return body;
}

}  // namespace gpu_platform::cli
