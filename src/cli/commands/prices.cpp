#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/parse.h"
#include "cli/client_names.h"
#include "cli/commands.h"
#include "cli/screen/repeat.h"
#include "cli/text/local_clock.h"
#include "cli/text/message_text.h"
#include "cli/text/table.h"
#include "cli/text/text.h"
#include "cli/words/input.h"
#include "client/request_text.h"
#include "gpu_platform/v1/prices.pb.h"
#include "http/http.h"

// What GPUs cost, and corrections of the ledger.

namespace gpu_platform::cli {

namespace {

constexpr std::string_view kPricesPath = "/v1/prices";

struct PriceOptions {
  std::vector<std::string> words;
  std::optional<std::string> gpu_type, capacity, node, from, until, at;
  std::optional<std::string> user, team, project, why;
  Output output;
};

std::string origin_of_price(const v1::Price& price) {
  if (price.has_derived_from()) return fmt::format("from price {}", price.derived_from());
  return price.has_set_by() ? price.set_by() : "configuration";
}

std::string bound_text(bool is_set, const google::protobuf::Timestamp& field) {
  const auto at = is_set ? time_of(field) : std::nullopt;
  return at ? short_time(*at) : std::string();
}

void print_prices(Console& console, const Output& output, const v1::ListPricesResponse& answer) {
  constexpr auto kRight = Column::Align::kRight;
  Table table({{"ID", kRight},
               {"GPU TYPE"},
               {"CAPACITY"},
               {"NODES"},
               {fmt::format("{}/HOUR", harmless(answer.currency())), kRight},
               {"FROM"},
               {"UNTIL"},
               {"SET BY"}});
  for (const v1::Price& price : answer.prices()) {
    table.add({fmt::format("{}", price.id()), price.gpu_type().empty() ? "all" : price.gpu_type(),
               price.capacity(), price.node(), price.per_gpu_hour(),
               bound_text(price.has_from(), price.from()),
               bound_text(price.has_until(), price.until()), origin_of_price(price)});
  }
  if (table.empty()) {
    console.note("there are no prices");
  } else {
    console.out(table.render(output.style(console)));
  }
  for (const std::string& type : answer.unpriced()) {
    console.note(
        fmt::format("{} has no price: its use is not free, it is unpriced", harmless(type)));
  }
}

base::Result<v1::SetPriceRequest> price_request(const PriceOptions& o, base::Instant now) {
  v1::SetPriceRequest request;
  const auto amount = base::parse_money(o.words.front());
  if (!amount) return base::invalid("PRICE", amount.error().message);
  request.set_per_gpu_hour(base::written(*amount));
  if (o.gpu_type) {
    TRY(check_text("--gpu-type", *o.gpu_type));
    request.set_gpu_type(*o.gpu_type);
  }
  if (o.capacity) {
    TRY(check_text("--capacity", *o.capacity));
    request.set_capacity(*o.capacity);
  }
  if (o.node) {
    TRY(check_text("--node", *o.node));
    request.set_node(*o.node);
  }
  if (o.from) TRY(put_future_time("--from", *o.from, now, *request.mutable_from()));
  if (o.until) TRY(put_future_time("--until", *o.until, now, *request.mutable_until()));
  return request;
}

base::Result<v1::CorrectLedgerRequest> correction_request(const PriceOptions& o) {
  v1::CorrectLedgerRequest request;
  const auto amount = base::parse_signed_money(o.words.front());
  if (!amount) return base::invalid("AMOUNT", amount.error().message);
  request.set_amount(base::written(*amount));
  if (!o.why) return base::invalid("--text", "say why");
  TRY(check_text("--text", *o.why));
  request.set_text(*o.why);
  if (o.user) {
    TRY(check_text("--user", *o.user));
    request.set_user(*o.user);
  }
  if (o.team) {
    TRY(check_text("--team", *o.team));
    request.set_team(*o.team);
  }
  if (o.project) {
    TRY(check_text("--project", *o.project));
    request.set_project(*o.project);
  }
  return request;
}

int show_price(Console& console, const Called<std::string>& answer, const Output& output,
               std::string_view done) {
  if (!answer) return report(console, answer.error(), output.wants_documents());
  const auto price = client::message_of<v1::Price>(*answer);
  if (output.is_document() || !price) return print_document(console, output, *answer);
  console.out(fmt::format("price {} is {}\n", price->id(), done));
  return console.out_failed() ? kFailure : kOk;
}

}  // namespace

int run_prices_list(const CommandText& text, Invocation& invocation) {
  PriceOptions o;
  Arguments arguments(text);
  arguments
      .option(
          "--at", o.at, "TIME",
          "those that counted then: 7d, monday, a time (default: those that count now or later)")
      .output(o.output, {"prices", "id"});
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  std::string target(kPricesPath);
  if (o.at) {
    const auto at = past_time("--at", *o.at, invocation.console.process_environment().now());
    if (!at) return usage_error(invocation.console, at.error(), text.name);
    std::string query;
    http::append_query(query, "at", *at);
    target += "?" + query;
  }
  return show_message<v1::ListPricesResponse>(
      invocation.console, *client, o.output, target,
      [&](Console& console, const v1::ListPricesResponse& answer) {
        print_prices(console, o.output, answer);
      });
}

int run_prices_set(const CommandText& text, Invocation& invocation) {
  PriceOptions o;
  Arguments arguments(text);
  arguments.words("PRICE", o.words, 1, 1, "of one GPU for an hour: 4.90")
      .option("--gpu-type", o.gpu_type, "TYPE", "a type or family of GPUs")
      .option("--capacity", o.capacity, "CLASS",
              "on-demand, spot or reserved (default: all; spot costs less by the discount)")
      .option("--node", o.node, "PATTERN", "only GPUs of these nodes: 'dgx-a*'")
      .option("--from", o.from, "TIME", "when it begins (default: now)")
      .option("--until", o.until, "TIME", "when it ends (default: never)")
      .output(o.output, {"", "id"});
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  const auto request = price_request(o, invocation.console.process_environment().now());
  if (!request) return usage_error(invocation.console, request.error(), text.name);
  return show_price(invocation.console,
                    client->post(std::string(kPricesPath), client::request_text(*request)),
                    o.output, "set");
}

int run_prices_withdraw(const CommandText& text, Invocation& invocation) {
  PriceOptions o;
  Arguments arguments(text);
  arguments.words("ID", o.words, 1, 1, "the price, as 'prices list' shows it")
      .output(o.output, {"", "id"});
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  const auto id = base::parse_count(o.words.front(), 1, UINT32_MAX);
  if (!id) {
    return usage_error(invocation.console, fmt::format("ID: {}", id.error().message), text.name);
  }
  return show_price(invocation.console, client->remove(fmt::format("{}/{}", kPricesPath, *id)),
                    o.output, "withdrawn");
}

int run_prices_instances(const CommandText& text, Invocation& invocation) {
  PriceOptions o;
  Arguments arguments(text);
  arguments.output(o.output, {"instances", "name"});
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  return show_message<v1::ListInstancesResponse>(
      invocation.console, *client, o.output, "/v1/instances",
      [&](Console& console, const v1::ListInstancesResponse& answer) {
        Table table({{"INSTANCE"}, {"PROVIDER"}, {"GPU TYPE"}, {"GPUS", Column::Align::kRight}});
        for (const v1::Instance& each : answer.instances()) {
          table.add(
              {each.name(), each.provider(), each.gpu_type(), fmt::format("{}", each.gpus())});
        }
        console.out(table.render(o.output.style(console)));
      });
}

int run_usage_correct(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  PriceOptions o;
  Arguments arguments(text);
  arguments.words("AMOUNT", o.words, 1, 1, "12.50 charges, and -12.50 takes back")
      .option("--user", o.user, "USER", "whose bill it is in")
      .option("--team", o.team, "TEAM", "the team that it counts for")
      .option("--project", o.project, "PROJECT", "the project that it counts for")
      .option("--text", o.why, "TEXT", "why")
      .output(o.output, {"", "user"});
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  const auto request = correction_request(o);
  if (!request) return usage_error(console, request.error(), text.name);
  const auto answer = client->post("/v1/ledger/corrections", client::request_text(*request));
  if (!answer) return report(console, answer.error(), o.output.wants_documents());
  if (o.output.is_document()) return print_document(console, o.output, *answer);
  console.out(fmt::format("the ledger is corrected by {}\n", request->amount()));
  return console.out_failed() ? kFailure : kOk;
}

}  // namespace gpu_platform::cli
