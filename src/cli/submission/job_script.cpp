#include "cli/submission/job_script.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include <fmt/format.h>

#include "api/convert/text_forms.h"
#include "cli/submission/text_file.h"
#include "client/script_words.h"
#include "client/timed_look.h"
#include "os/descriptor.h"

namespace gpu_platform::cli {

namespace {

// One word of a command has at most 128 KiB.
constexpr std::size_t kLargestScript = std::size_t{96} * 1024;
constexpr std::string_view kMark = "#!";
constexpr std::array<std::string_view, 6> kShells = {"sh", "bash", "dash", "ash", "ksh", "zsh"};

std::string last_part(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

std::string_view first_line(std::string_view script) {
  return script.substr(0, script.find('\n'));
}

// The name of the interpreter: "bash" of "#!/usr/bin/env bash".
std::string interpreter_name(std::string_view script) {
  const auto words = client::shell_words(first_line(script).substr(kMark.size()));
  if (!words) return {};
  for (const std::string& word : *words) {
    if (word.starts_with('-')) continue;
    std::string name = last_part(word);
    if (name != "env") return name;
  }
  return {};
}

bool is_of_shell(std::string_view script) {
  return std::ranges::find(kShells, interpreter_name(script)) != kShells.end();
}

// A little more than a script may have, so that a longer one is noticed.
std::string beginning_of(int fd) {
  std::string text(kLargestScript + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = ::read(fd, text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    size += static_cast<std::size_t>(got);
  }
  text.resize(size);
  return text;
}

// Nothing if the file is none that begins with "#!".
std::optional<std::string> script_text(const std::string& path) {
  const os::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status{};
  if (!file.is_open() || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return std::nullopt;
  }
  std::string text = beginning_of(file.get());
  if (!text.starts_with(kMark)) return std::nullopt;
  return text;
}

base::Status check_script_text(std::string_view text) {
  if (text.size() > kLargestScript) {
    return base::invalid({}, fmt::format("it has more than {} KiB: let a short script call it",
                                         kLargestScript / 1024));
  }
  if (text.find('\0') != std::string_view::npos || !api::is_valid_utf8(text)) {
    return base::invalid({}, "it is not a text in UTF-8");
  }
  if (first_line(text).ends_with('\r')) {
    return base::invalid({}, "its lines end as in DOS: convert it with dos2unix");
  }
  return {};
}

base::Result<JobScript> script_from_input(const ProcessEnvironment& process_environment) {
  JobScript script{"script", "script", {}, true};
  TRY_ASSIGN(script.text, read_text_file(process_environment, "-", kLargestScript));
  if (!script.text.starts_with(kMark)) {
    return base::invalid({}, "it does not begin with an interpreter, as in #!/bin/bash");
  }
  if (!is_of_shell(script.text)) {
    return base::invalid({}, fmt::format("'{}' is not a shell: write the script to a file",
                                         interpreter_name(script.text)));
  }
  TRY(check_script_text(script.text));
  return script;
}

// The files that the word may mean, in this order.
std::vector<std::string> candidates(const ProcessEnvironment& process_environment,
                                    const ScriptPlace& place) {
  if (place.word.starts_with('/')) {
    return place.has_image ? std::vector<std::string>() : std::vector{place.word};
  }
  std::vector<std::string> files;
  const bool has_slash = place.word.find('/') != std::string::npos;
  if (has_slash && !place.has_image) files.push_back(place.workdir + "/" + place.word);
  if (has_slash || !is_in_path(process_environment, place.word, place.path)) {
    files.push_back(process_environment.directory + "/" + place.word);
  }
  return files;
}

}  // namespace

bool is_in_path(const ProcessEnvironment& process_environment, std::string_view program,
                std::string_view path) {
  while (!path.empty()) {
    const std::size_t end = std::min(path.find(':'), path.size());
    const std::string folder(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
    if (!folder.starts_with('/')) return true;
    const auto kind = process_environment.path_kind(fmt::format("{}/{}", folder, program));
    if (kind == client::PathKind::kProgram || kind == client::PathKind::kUnknown) return true;
  }
  return false;
}

base::Result<std::optional<JobScript>> find_script(const ProcessEnvironment& process_environment,
                                                   const ScriptPlace& place) {
  if (place.word == "-") {
    auto script = script_from_input(process_environment);
    if (!script) return base::invalid("standard input", script.error().message);
    return std::optional(*std::move(script));
  }
  if (place.word.empty() || place.word.find('\0') != std::string::npos) return std::nullopt;
  const std::vector<std::string> files = candidates(process_environment, place);
  for (const std::string& file : files) {
    auto text = client::timed_look(script_text, file).value_or(std::nullopt);
    if (!text) continue;
    JobScript script{last_part(place.word), place.word, *std::move(text), false};
    // Seen from the folder of the job, the word may mean nothing.
    if (place.workdir != process_environment.directory && !place.has_image) script.called = file;
    const auto lines = option_lines(script.text);
    if (!lines) {
      return base::invalid(fmt::format("{}: {}", place.word, lines.error().field),
                           lines.error().message);
    }
    script.is_copied =
        is_of_shell(script.text) && (!place.word.starts_with('/') || !lines->empty());
    if (script.is_copied) {
      if (const auto checked = check_script_text(script.text); !checked) {
        return base::invalid(place.word, checked.error().message);
      }
    }
    return std::optional(std::move(script));
  }
  return std::nullopt;
}

std::vector<std::string> command_of(const JobScript& script,
                                    const std::vector<std::string>& arguments) {
  std::vector<std::string> command = client::interpreter_of(script.text);
  // "bash -" ends the options, and there is one more.
  if (command.size() == 2 && (command[1] == "-" || command[1] == "--")) command.pop_back();
  command.insert(command.end(), {"-c", script.text, script.called});
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

base::Result<std::vector<client::OptionLine>> option_lines(std::string_view script) {
  return client::option_lines(script, {kGpuLine, kSbatchLine});
}

}  // namespace gpu_platform::cli
