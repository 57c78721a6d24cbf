#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include "api/convert/json_reader.h"
#include "api/convert/json_writer.h"
#include "api/convert/message_limits.h"
#include "api/convert/model_sizing.h"
#include "api/convert/problem.h"
#include "base/parse.h"
#include "base/result.h"
#include "cli/client_names.h"
#include "cli/commands.h"
#include "cli/text/json_view.h"
#include "cli/text/message_text.h"
#include "cli/text/text.h"
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

std::string size_or_unknown(bool is_known, std::uint64_t bytes) {
  return is_known ? readable_size(as_signed(bytes)) : std::string("not known");
}

std::string billions(std::uint64_t number) {
  return fmt::format("{:.1f} billion", static_cast<double>(number) / 1e9);
}

std::string model_line(const v1::Needs& needs) {
  if (!needs.has_parameters()) return "";
  const std::string& name = needs.model();
  std::string text =
      fmt::format("Model         {}{} parameters", name.empty() ? name : harmless(name) + ": ",
                  billions(needs.parameters()));
  if (needs.has_active_parameters()) {
    text += fmt::format(", {} for each token", billions(needs.active_parameters()));
  }
  return text + if_known(needs.has_weight_bits(), needs.weight_bits(), ", {:g} bits each") + "\n";
}

std::string memory_lines(const v1::Needs& needs) {
  std::string text = "Memory        ";
  if (needs.rule() == "unknown") return text + "not known, because the model's size is not\n";
  if (needs.rule() == "by_name") {
    text += fmt::format("by name: {}, the usual figure\n",
                        size_or_unknown(needs.has_gpu_memory_bytes(), needs.gpu_memory_bytes()));
    if (!needs.has_weights_bytes()) return text;
    text += "              computed: ";
  }
  const bool is_of_context = needs.has_cache_bytes() && needs.has_context_tokens();
  return text + fmt::format("weights {}, key-value cache {}{}, overhead {}\n",
                            size_or_unknown(needs.has_weights_bytes(), needs.weights_bytes()),
                            size_or_unknown(needs.has_cache_bytes(), needs.cache_bytes()),
                            if_known(is_of_context, needs.context_tokens(),
                                     " for one context of {} tokens"),
                            size_or_unknown(needs.has_overhead_bytes(), needs.overhead_bytes()));
}

std::string ask_line(const v1::Needs& needs) {
  const std::string memory =
      needs.has_ask_gpu_memory_bytes()
          ? " --gpu-memory " + base::written(base::Bytes(as_signed(needs.ask_gpu_memory_bytes())))
          : "";
  return fmt::format("Ask for it    --gpus {}{}{}\n", needs.gpus(),
                     if_known(needs.nodes() > 1, needs.nodes(), " --nodes {}"), memory);
}

// The GPUs of a type that takes another number of them, and the nodes.
std::string set_of(const v1::GpuHolding& holding, const v1::Needs& needs) {
  std::string text;
  if (holding.gpus() != 0 && holding.gpus() != needs.gpus()) {
    text = fmt::format("{} (tensor {} × pipeline {}), ", counted(holding.gpus(), "GPU"),
                       holding.tensor_parallel(), holding.pipeline_parallel());
  }
  return text + if_known(holding.nodes() > 1, holding.nodes(), "on {} nodes, ");
}

// What max-num-seqs, where it is said, makes of the room.
std::string beside_sequences(const v1::GpuHolding& holding, const v1::Needs& needs) {
  const std::uint64_t sequences = needs.sequences();
  if (sequences == 0) return "";
  if (holding.contexts() >= sequences) {
    return fmt::format("; {} sequences fit at full length", sequences);
  }
  return fmt::format("; {} sequences have {} tokens each", sequences, holding.tokens() / sequences);
}

std::string holding_line(const v1::GpuHolding& holding, const v1::Needs& needs) {
  std::string text;
  if (!holding.fits()) {
    text = fmt::format("too small, has {}", readable_size(as_signed(holding.gpu_memory_bytes())));
  } else if (!holding.has_tokens() || !holding.has_contexts()) {
    text = set_of(holding, needs) + "large enough";
  } else {
    text = fmt::format("{}{} tokens: {} of full length{}", set_of(holding, needs), holding.tokens(),
                       counted(holding.contexts(), "sequence"), beside_sequences(holding, needs));
  }
  return fmt::format("  {:<14}{}\n", harmless(holding.gpu_type()), text);
}

std::string holdings_text(const v1::Needs& needs) {
  std::string text;
  for (const v1::GpuHolding& holding : needs.holdings()) {
    if (text.empty()) text = "\nBeside the weights there is room for this:\n";
    text += holding_line(holding, needs);
  }
  return text;
}

std::string page(const v1::Needs& needs) {
  const std::string memory =
      needs.has_ask_gpu_memory_bytes()
          ? readable_size(as_signed(needs.ask_gpu_memory_bytes())) + " of memory each"
          : "the memory is not known";
  std::string text = fmt::format(
      "{}, {}\n\n{}"
      "Parts         tensor {} × pipeline {} × largest of data {}, decode context {}, context {}\n",
      counted(needs.gpus(), "GPU"), memory, model_line(needs), needs.tensor_parallel(),
      needs.pipeline_parallel(), needs.data_parallel(), needs.decode_context_parallel(),
      needs.context_parallel());
  text += memory_lines(needs) + ask_line(needs);
  for (const std::string& note : needs.notes()) text += "note: " + harmless(note) + "\n";
  if (!needs.unused().empty()) {
    text += "note: these settings have no effect on the need:";
    for (const std::string& name : needs.unused()) text += " " + harmless(name);
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
  const auto needs = client::message_of<v1::Needs>(*answer);
  if (output.is_document() || !needs) return print_document(console, output, *answer);
  console.out(page(*needs));
  return console.out_failed() ? kFailure : kOk;
}

}  // namespace gpu_platform::cli
