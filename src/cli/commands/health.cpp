#include <set>
#include <string>

#include <fmt/format.h>

#include "cli/client_names.h"
#include "cli/commands.h"
#include "cli/screen/repeat.h"
#include "cli/text/gpu_text.h"
#include "cli/text/job_names.h"
#include "cli/text/message_text.h"
#include "cli/text/text.h"
#include "cli/words/gpu_choice.h"

// gpu-platform health: the GPUs with something wrong, and all of one GPU.

namespace gpu_platform::cli {

namespace {

// The jobs whose names the page needs.
std::set<std::string> jobs_of_page(const v1::GpuHealth& health) {
  std::set<std::string> jobs(health.gpu().jobs().begin(), health.gpu().jobs().end());
  for (const v1::GpuProcess& process : health.processes()) {
    if (!process.job().empty()) jobs.insert(process.job());
  }
  return jobs;
}

int show_one(Console& console, Client& client, const GpuChoice& which, const Output& output) {
  return show_message<v1::GpuHealth>(
      console, client, output, "/v1/gpus/health?" + which.query(),
      [&](Console& shown, const v1::GpuHealth& health) {
        shown.out(
            health_page(health, output.page_style(shown), job_names(client, jobs_of_page(health))));
      });
}

void print_all(Console& console, const Output& output, v1::ListGpusResponse& answer,
               bool with_well) {
  GpuHealthList& gpus = *answer.mutable_gpus();
  put_in_node_order(gpus, [](const v1::GpuHealth& health) { return health.gpu().node(); });
  if (gpus.empty()) return console.note("there are no GPUs");
  const base::Instant now = console.process_environment().now();
  const auto all = static_cast<std::size_t>(gpus.size());
  std::size_t unwell = 0;
  std::size_t emulated = 0;
  for (const v1::GpuHealth& health : gpus) {
    unwell += troubles_of(health, now).empty() ? 0 : 1;
    emulated += health.gpu().emulated() ? 1 : 0;
  }
  console.out(fmt::format(
      "{}{}, {}\n", counted(all, "GPU"), emulated_mark(emulated, all),
      unwell == 0 ? std::string("nothing wrong") : fmt::format("{} with something wrong", unwell)));
  const Table table =
      health_table(gpus, now, {.with_well = with_well, .has_marks = emulated < all});
  if (!table.empty()) console.out("\n" + table.render(output.style(console)));
  if (unwell > 0) console.note("'gpu-platform health NODE:INDEX' tells the story of one GPU");
  if (!with_well && unwell > 0 && unwell < all) {
    console.note("--all shows the other GPUs, too");
  }
}

}  // namespace

int run_health(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  GpuChoice which;
  Output output;
  Arguments arguments(text);
  bool all = false;
  which.add_to(arguments);
  arguments.flag("--all", all, "also GPUs with nothing wrong")
      .output_and_watch(output, {"gpus", "gpu/uuid"});
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  which.take_word();
  if (which.given() > 1) {
    return usage_error(console, "give at most one of NODE, NODE:INDEX, --gpu-id, --gpu and --node",
                       text.name);
  }
  if (const auto mistake = which.mistake()) return usage_error(console, *mistake, text.name);
  if (which.is_one_gpu()) {
    output.names = {"", "gpu/uuid"};
    return show_one(console, *client, which, output);
  }
  return show_message<v1::ListGpusResponse>(
      console, *client, output, which.node ? "/v1/gpus?" + which.query() : "/v1/gpus",
      [&](Console& shown, v1::ListGpusResponse& answer) { print_all(shown, output, answer, all); });
}

}  // namespace gpu_platform::cli
