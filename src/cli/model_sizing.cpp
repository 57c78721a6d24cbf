#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include "api/convert/json_reader.h"
#include "api/convert/json_writer.h"
#include "api/convert/model_sizing.h"
#include "api/convert/problem.h"
#include "base/parse.h"
#include "base/result.h"
#include "cli/client_names.h"
#include "cli/commands.h"
#include "cli/json_view.h"
#include "cli/text.h"
#include "sizing/known_gpus.h"

namespace gpu_platform::cli {

namespace {

constexpr std::uintmax_t kMaxFileBytes = 1 << 20;

// The options of servers (vLLM, SGLang, TensorRT-LLM) that say something about the need, under all
// their names. The daemon takes them as settings of the first name.
struct ServerOption {
  std::string_view names;
  std::string_view value;
  std::string_view help;
};
constexpr ServerOption kServerOptions[] = {
    {"--tensor-parallel-size,--tp-size,--tp", "N", "GPUs that share each layer"},
    {"--pipeline-parallel-size,--pp-size,--pp", "N",
     "groups of GPUs, each with some of the layers"},
    {"--data-parallel-size,--dp-size,--dp", "N", "replicas of the model"},
    {"--decode-context-parallel-size,--dcp-size,--dcp", "N", "parts of the context when decoding"},
    {"--context-parallel-size,--cp-size,--cp", "N", "parts of the context"},
    {"--max-model-len,--context-length,--max-seq-len", "N", "tokens of a full context: 8192, 32k"},
    {"--max-num-seqs,--max-running-requests,--max-batch-size", "N", "sequences at once"},
    {"--max-num-batched-tokens", "N", "tokens of a step"},
    {"--gpu-memory-utilization,--mem-fraction-static", "SHARE", "of a GPU's memory: 0.9"},
    {"--dtype,--precision,--torch-dtype", "TYPE", "of the weights: auto, bfloat16, float32, …"},
    {"--quantization", "METHOD", "of the weights: awq, gptq, fp8, …"},
    {"--kv-cache-dtype", "TYPE", "of the key-value cache: auto, fp8, …"},
};

// One for each row of the table; absent where it is not given.
using ServerValues = std::array<std::optional<std::string>, std::size(kServerOptions)>;

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
    return base::invalid("--file", fmt::format("{}: is not a JSON object", harmless(path)));
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

base::Result<Json> read_options(const ServerValues& values, Json body) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!values[i]) continue;
    const std::string_view names = kServerOptions[i].names;
    const std::string name(names.substr(0, names.find(',')));
    if (values[i]->empty()) {
      return base::invalid(name, fmt::format("the value is empty; write {}, or leave {} out",
                                             kServerOptions[i].value, name));
    }
    body["settings"].push_back(setting(name, values_in(*values[i])));
  }
  return body;
}

// Answers as a daemon does, for the known types of GPU in place of a cluster's.
Called<std::string> answer_without_daemon(const std::string& body) {
  v1::ModelSizingRequest request;
  const auto needs_for = [&]() -> base::Result<v1::Needs> {
    TRY(api::read_json(body, request));
    TRY(api::check_limits(request));
    return api::size_model_server(request, sizing::known_gpus());
  };
  auto needs = needs_for();
  if (!needs) {
    const base::Error& error = needs.error();
    return std::unexpected(Failure{Failure::Kind::kProblem, error.message, error.field,
                                   api::to_json(api::to_problem(error, "")), error.code});
  }
  needs->add_notes("no daemon answers: these are known types of GPU, not those of a cluster");
  return api::to_json(*needs);
}

std::string size_or_unknown(const Json& needs, std::string_view key) {
  const auto bytes = integer_at(needs, key);
  return bytes ? readable_size(*bytes) : std::string("not known");
}

std::string billions_at(const Json& needs, std::string_view key) {
  return fmt::format("{:.1f} billion",
                     static_cast<double>(integer_at(needs, key).value_or(0)) / 1e9);
}

std::string model_line(const Json& needs) {
  if (!integer_at(needs, "parameters")) return "";
  const std::string name = text_at(needs, "model");
  std::string text =
      fmt::format("Model         {}{} parameters", name.empty() ? name : harmless(name) + ": ",
                  billions_at(needs, "parameters"));
  if (integer_at(needs, "active_parameters")) {
    text += fmt::format(", {} for each token", billions_at(needs, "active_parameters"));
  }
  const auto bits = number_at(needs, "weight_bits");
  return text + (bits ? fmt::format(", {:g} bits each\n", *bits) : "\n");
}

std::string memory_lines(const Json& needs) {
  const std::string rule = text_at(needs, "rule");
  const bool is_by_name = rule == "by_name";
  std::string text = "Memory        ";
  if (rule == "unknown") return text + "not known, because the model's size is not\n";
  if (is_by_name) {
    text +=
        fmt::format("by name: {}, the usual figure\n", size_or_unknown(needs, "gpu_memory_bytes"));
    if (!integer_at(needs, "weights_bytes")) return text;
    text += "              computed: ";
  }
  const auto tokens = integer_at(needs, "context_tokens");
  const bool has_cache = integer_at(needs, "cache_bytes").has_value();
  return text +
         fmt::format("weights {}, key-value cache {}{}, overhead {}\n",
                     size_or_unknown(needs, "weights_bytes"), size_or_unknown(needs, "cache_bytes"),
                     has_cache && tokens ? fmt::format(" for one context of {} tokens", *tokens)
                                         : std::string(),
                     size_or_unknown(needs, "overhead_bytes"));
}

std::string ask_line(const Json& needs) {
  const auto memory = integer_at(needs, "ask_gpu_memory_bytes");
  const std::int64_t nodes = integer_at(needs, "nodes").value_or(1);
  return fmt::format(
      "Ask for it    --gpus {}{}{}\n", text_at(needs, "gpus"),
      nodes > 1 ? fmt::format(" --nodes {}", nodes) : std::string(),
      memory ? " --gpu-memory " + base::written(base::Bytes(*memory)) : std::string());
}

std::string on_nodes(const Json& holding) {
  const std::int64_t nodes = integer_at(holding, "nodes").value_or(1);
  return nodes > 1 ? fmt::format("on {} nodes, ", nodes) : std::string();
}

// The GPUs of a type that takes another number of them.
std::string set_of(const Json& holding, const Json& needs) {
  const auto gpus = integer_at(holding, "gpus");
  if (!gpus || gpus == integer_at(needs, "gpus")) return "";
  return fmt::format("{} (tensor {} × pipeline {}), ",
                     counted(static_cast<std::uint64_t>(*gpus), "GPU"),
                     text_at(holding, "tensor_parallel"), text_at(holding, "pipeline_parallel"));
}

// What max-num-seqs, where it is said, makes of the room.
std::string beside_sequences(std::int64_t contexts, std::int64_t tokens, const Json& needs) {
  const auto sequences = integer_at(needs, "sequences");
  if (!sequences || *sequences <= 0) return "";
  if (contexts >= *sequences) return fmt::format("; {} sequences fit at full length", *sequences);
  return fmt::format("; {} sequences have {} tokens each", *sequences, tokens / *sequences);
}

std::string holding_line(const Json& holding, const Json& needs) {
  const auto tokens = integer_at(holding, "tokens");
  const auto contexts = integer_at(holding, "contexts");
  std::string text;
  if (!flag_at(holding, "fits")) {
    text = fmt::format("too small, has {}", size_or_unknown(holding, "gpu_memory_bytes"));
  } else if (!tokens || !contexts) {
    text = set_of(holding, needs) + on_nodes(holding) + "large enough";
  } else {
    text =
        fmt::format("{}{}{} tokens: {} of full length{}", set_of(holding, needs), on_nodes(holding),
                    *tokens, counted(static_cast<std::uint64_t>(*contexts), "sequence"),
                    beside_sequences(*contexts, *tokens, needs));
  }
  return fmt::format("  {:<14}{}\n", harmless(text_at(holding, "gpu_type")), text);
}

std::string holdings_text(const Json& needs) {
  std::string text;
  for (const Json& holding : list_at(needs, "holdings")) {
    if (text.empty()) text = "\nBeside the weights there is room for this:\n";
    text += holding_line(holding, needs);
  }
  return text;
}

std::string page(const Json& needs) {
  const auto count = [&](std::string_view key) { return text_at(needs, key); };
  const bool is_known = integer_at(needs, "ask_gpu_memory_bytes").has_value();
  std::string text = fmt::format(
      "{}, {}\n\n{}"
      "Parts         tensor {} × pipeline {} × largest of data {}, decode context {}, context {}\n",
      counted(static_cast<std::uint64_t>(integer_at(needs, "gpus").value_or(0)), "GPU"),
      is_known ? size_or_unknown(needs, "ask_gpu_memory_bytes") + " of memory each"
               : std::string("the memory is not known"),
      model_line(needs), count("tensor_parallel"), count("pipeline_parallel"),
      count("data_parallel"), count("decode_context_parallel"), count("context_parallel"));
  text += memory_lines(needs) + ask_line(needs);
  for (const std::string& note : texts_at(needs, "notes")) text += "note: " + harmless(note) + "\n";
  const auto unused = texts_at(needs, "unused");
  if (!unused.empty()) {
    text += "note: these settings say nothing about the need:";
    for (const std::string& name : unused) text += " " + harmless(name);
    text += "\n";
  }
  return text + holdings_text(needs);
}

}  // namespace

int run_estimate(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  std::optional<std::string> file;
  std::vector<std::string> words;
  ServerValues values;
  Output output;
  const auto dashes = std::ranges::find(invocation.words, "--");
  const std::vector<std::string> command(
      dashes == invocation.words.end() ? dashes : std::next(dashes), invocation.words.end());
  invocation.words =
      invocation.words.first(static_cast<std::size_t>(dashes - invocation.words.begin()));
  Arguments arguments(text);
  arguments.option("--file", file, "FILE", "a task in JSON, with its model and parameters")
      .output(output, {})
      .words("MODEL | SETTING=VALUE", words, 0, 1000,
             "as tp-size=4, dtype=bfloat16, max-model-len=8192");
  for (std::size_t i = 0; i < values.size(); ++i) {
    const ServerOption& option = kServerOptions[i];
    arguments.option(std::string(option.names), values[i], std::string(option.value),
                     std::string(option.help));
  }
  client::ServerChoice choice;
  add_server_options(arguments, choice);
  if (const auto done = arguments.parse(invocation.words, console)) return *done;
  if (!choice.server) choice.server = invocation.server;
  const bool is_server_named = choice.server.has_value();
  auto client = client_for(choice, console);
  if (!client) return client.error();
  base::Result<Json> body = Json::object();
  if (file) body = read_task(*file);
  if (body) body = read_words(words, *std::move(body));
  if (body) body = read_options(values, *std::move(body));
  if (!body) {
    return usage_error(console, body.error().field + ": " + body.error().message, text.name);
  }
  if (!command.empty()) (*body)["command"] = command;
  const std::string question = json_text(*body);
  auto answer = client->post("/v1/estimate", question);
  if (!answer && answer.error().kind == Failure::Kind::kNoDaemon && !is_server_named) {
    answer = answer_without_daemon(question);
  }
  if (!answer) return report(console, answer.error(), output.wants_documents());
  const auto needs = parse_object(*answer);
  if (output.is_document() || !needs) return print_document(console, output, *answer);
  console.out(page(*needs));
  return console.out_failed() ? kFailure : kOk;
}

}  // namespace gpu_platform::cli
