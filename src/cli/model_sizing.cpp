#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include "base/parse.h"
#include "base/result.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/json_view.h"
#include "cli/text.h"

namespace gpu_platform::cli {

namespace {

constexpr std::uintmax_t kMaxFileBytes = 1 << 20;

Json setting(const std::string& name, Json values) {
  return Json{{"name", name}, {"values", std::move(values)}};
}

// "1,2,4" and "[1, 2, 4]" are three values.
Json values_in(std::string text) {
  std::erase_if(text, [](char c) { return c == ' ' || c == '[' || c == ']'; });
  Json values = Json::array();
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t comma = std::min(text.find(',', start), text.size());
    values.push_back(text.substr(start, comma - start));
    start = comma + 1;
  }
  return values;
}

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// {"model": {"id_or_path": NAME} or NAME, "parameters": {SETTING: VALUE or [VALUE…]}}
base::Result<Json> read_task(const std::string& path) {
  std::error_code failed;
  const std::uintmax_t size = std::filesystem::file_size(path, failed);
  if (failed) {
    return base::invalid("--file", fmt::format("{}: {}", harmless(path), failed.message()));
  }
  if (size > kMaxFileBytes) {
    return base::invalid("--file", fmt::format("{}: is larger than 1 MiB", harmless(path)));
  }
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const auto task = parse_object(text);
  if (!file || !task) {
    return base::invalid("--file", fmt::format("{}: is no JSON object", harmless(path)));
  }
  Json body;
  const Json& model = object_at(*task, "model");
  body["model"] = model.empty() ? text_at(*task, "model") : text_at(model, "id_or_path");
  body["settings"] = Json::array();
  for (const auto& [name, value] : object_at(*task, "parameters").items()) {
    Json values = Json::array();
    if (value.is_array()) {
      for (const Json& each : value) values.push_back(text_of(each));
    } else {
      values.push_back(text_of(value));
    }
    body["settings"].push_back(setting(name, std::move(values)));
  }
  return body;
}

// Words of the form NAME=VALUE are settings; the one that is not names the model.
base::Result<Json> read_words(const std::vector<std::string>& words, Json body) {
  bool has_model = false;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (equals != std::string::npos) {
      body["settings"].push_back(
          setting(word.substr(0, equals), values_in(word.substr(equals + 1))));
      continue;
    }
    if (has_model) {
      return base::invalid("MODEL", fmt::format("{}: one model is named already; settings are "
                                                "written as tp-size=4",
                                                harmless(word)));
    }
    has_model = true;
    body["model"] = word;
  }
  return body;
}

std::string size_at(const Json& needs, std::string_view key) {
  const auto bytes = integer_at(needs, key);
  return bytes ? readable_size(*bytes) : std::string("not known");
}

std::string page(const Json& needs) {
  const auto count = [&](std::string_view key) { return text_at(needs, key); };
  std::string text = fmt::format(
      "{}, {} of memory each\n\n"
      "Parts         tensor {} × pipeline {} × largest of data {}, decode context {}, context {}\n",
      counted(static_cast<std::uint64_t>(integer_at(needs, "gpus").value_or(0)), "GPU"),
      size_at(needs, "gpu_memory_bytes"), count("tensor_parallel"), count("pipeline_parallel"),
      count("data_parallel"), count("decode_context_parallel"), count("context_parallel"));
  if (text_at(needs, "rule") == "computed") {
    text += fmt::format("Memory        computed: weights {}, key-value cache {}, overhead {}\n",
                        size_at(needs, "weights_bytes"), size_at(needs, "cache_bytes"),
                        size_at(needs, "overhead_bytes"));
  } else {
    text += "Memory        the usual figure for the model's name\n";
  }
  text +=
      fmt::format("Ask for it    --gpus {} --gpu-memory {}\n", count("gpus"),
                  base::written(base::Bytes(integer_at(needs, "gpu_memory_bytes").value_or(0))));
  for (const std::string& note : texts_at(needs, "notes")) text += "note: " + harmless(note) + "\n";
  const auto unused = texts_at(needs, "unused");
  if (!unused.empty()) {
    text += "note: these settings say nothing about the need:";
    for (const std::string& name : unused) text += " " + harmless(name);
    text += "\n";
  }
  return text;
}

}  // namespace

int run_estimate(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  std::optional<std::string> file;
  std::vector<std::string> words;
  bool json = false;
  const auto dashes = std::ranges::find(invocation.words, "--");
  const std::vector<std::string> command(
      dashes == invocation.words.end() ? dashes : std::next(dashes), invocation.words.end());
  invocation.words =
      invocation.words.first(static_cast<std::size_t>(dashes - invocation.words.begin()));
  Arguments arguments(text);
  arguments.option("--file", file, "FILE", "a task in JSON, with its model and parameters")
      .flag("--json", json, "print JSON")
      .words("MODEL | SETTING=VALUE", words, 0, 1000,
             "as tp-size=4, dtype=bfloat16, max-model-len=8192");
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  base::Result<Json> body = Json::object();
  if (file) body = read_task(*file);
  if (body) body = read_words(words, *std::move(body));
  if (!body) {
    return usage_error(console, body.error().field + ": " + body.error().message, text.name);
  }
  if (!command.empty()) (*body)["command"] = command;
  const auto answer = client->post("/v1/estimate", json_text(*body));
  if (!answer) return report(console, answer.error(), json);
  const auto needs = parse_object(*answer);
  if (json || !needs) return print_document(console, *answer);
  console.out(page(*needs));
  return console.out_failed() ? kFailure : kOk;
}

}  // namespace gpu_platform::cli
