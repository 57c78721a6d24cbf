#include "cli/submission/local_check.h"

#include <algorithm>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "cli/submission/job_script.h"
#include "cli/text/text.h"
#include "model/job_spec.h"

namespace gpu_platform::cli {

namespace {

constexpr std::string_view kComesLater = "--no-check submits it as it is";

using client::PathKind;

bool is_file(PathKind kind) {
  return kind == PathKind::kFile || kind == PathKind::kProgram;
}

std::string absolute(const std::string& path, const std::string& folder) {
  return path.starts_with('/') ? path : folder + "/" + path;
}

base::Status check_directory(const ProcessEnvironment& process_environment,
                             const v1::JobSpec& spec) {
  switch (process_environment.path_kind(spec.workdir())) {
    case PathKind::kNothing:
      return base::invalid("--workdir", fmt::format("'{}' does not exist: the job could not start; "
                                                    "make it with mkdir -p, or {}",
                                                    spec.workdir(), kComesLater));
    case PathKind::kFile:
    case PathKind::kProgram:
      return base::invalid("--workdir",
                           fmt::format("'{}' is not a folder: name a folder", spec.workdir()));
    default:
      return {};
  }
}

// The file that a person means who leaves out the "./", and how to run it.
std::string hint_of_file(const ProcessEnvironment& process_environment, const v1::JobSpec& spec) {
  const std::string& word = spec.command(0);
  if (word.find('/') != std::string::npos ||
      !is_file(process_environment.path_kind(process_environment.directory + "/" + word))) {
    return {};
  }
  std::vector<std::string> words(spec.command().begin(), spec.command().end());
  if (word.ends_with(".py")) {
    words.insert(words.begin(), "python3");
    return "write " + shell_quoted(words);
  }
  words.front().insert(0, "./");
  return "write " + shell_quoted(words);
}

base::Status check_named_program(const ProcessEnvironment& process_environment,
                                 const v1::JobSpec& spec) {
  // Jobs on emulated nodes have one of their own (docs/emulator.md).
  if (spec.command(0) == "nvidia-smi") return {};
  const auto path = spec.environment().find("PATH");
  if (path == spec.environment().end() ||
      is_in_path(process_environment, spec.command(0), path->second))
    return {};
  const std::string hint = hint_of_file(process_environment, spec);
  if (!hint.empty()) {
    return base::invalid({}, fmt::format("there is no program '{}' in PATH, but a file of "
                                         "this name is here: {}",
                                         spec.command(0), hint));
  }
  return base::invalid({}, fmt::format("there is no program '{}' in PATH: write its path, or "
                                       "{}",
                                       spec.command(0), kComesLater));
}

base::Status check_program(const ProcessEnvironment& process_environment, const v1::JobSpec& spec) {
  const std::string& word = spec.command(0);
  if (word.find('/') == std::string::npos) return check_named_program(process_environment, spec);
  const std::string file = absolute(word, spec.workdir());
  switch (process_environment.path_kind(file)) {
    case PathKind::kNothing:
      return base::invalid(
          {}, fmt::format("there is no program '{}'{}: correct the path, or "
                          "{}",
                          word, word.starts_with('/') ? "" : " in " + spec.workdir(), kComesLater));
    case PathKind::kFolder:
      return base::invalid({}, fmt::format("'{}' is a folder: name a program", word));
    case PathKind::kFile:
      return base::invalid({}, fmt::format("'{}' is not executable: {}", word,
                                           word.ends_with(".py") ? "write python3 " + word
                                                                 : "write chmod +x " + word));
    case PathKind::kProgram:
    case PathKind::kUnknown:
      return {};
  }
  return {};
}

// A pattern in the folder's part is known only when the job starts.
base::Status check_folder_of(const ProcessEnvironment& process_environment, std::string_view option,
                             const std::string& file, const v1::JobSpec& spec) {
  const std::size_t slash = file.rfind('/');
  if (slash == std::string::npos || slash == 0) return {};
  const std::string folder = file.substr(0, slash);
  if (folder.find('%') != std::string::npos) return {};
  switch (process_environment.path_kind(absolute(folder, spec.workdir()))) {
    case PathKind::kNothing:
      return base::invalid(
          std::string(option),
          fmt::format("the folder '{}' does not exist: make it with mkdir -p, or {}", folder,
                      kComesLater));
    case PathKind::kFile:
    case PathKind::kProgram:
      return base::invalid(std::string(option),
                           fmt::format("'{}' is not a folder: name a file in a folder", folder));
    default:
      return {};
  }
}

}  // namespace

bool is_local_job(const Client& client, const v1::JobSpec& spec) {
  const auto is_socket = [](const http::Server& server) {
    return server.kind == http::Server::Kind::kSocket;
  };
  return spec.image().empty() && spec.user().empty() &&
         std::ranges::all_of(client.servers(), is_socket);
}

base::Status check_shell_line(const ProcessEnvironment& process_environment,
                              const v1::JobSpec& spec) {
  if (spec.command_size() != 1 || !spec.image().empty()) return {};
  const std::string& word = spec.command(0);
  const bool is_line =
      word.find(' ') != std::string::npos &&
      (word.find_first_of("|&;<>$*`") != std::string::npos || word.find('/') == std::string::npos);
  if (!is_line || is_file(process_environment.path_kind(absolute(word, spec.workdir())))) return {};
  return base::invalid(
      {}, fmt::format("'{}' is a line for a shell, and no shell reads it: use -- {}", word,
                      shell_quoted({"sh", "-c", word})));
}

base::Status check_files(const ProcessEnvironment& process_environment, const v1::JobSpec& spec) {
  TRY(check_directory(process_environment, spec));
  TRY(check_program(process_environment, spec));
  TRY(check_folder_of(process_environment, "--output", spec.output(), spec));
  return check_folder_of(process_environment, "--error", spec.error(), spec);
}

}  // namespace gpu_platform::cli
