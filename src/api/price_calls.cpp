#include "api/price_calls.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "api/call_context.h"
#include "api/convert/job.h"
#include "base/parse.h"
#include "model/instance_catalogue.h"
#include "os/clock.h"

namespace gpu_platform::api {

namespace {

void put_price(const model::PriceEntry& entry, v1::Price& out) {
  out.set_id(entry.id);
  out.set_gpu_type(entry.price.gpu_type);
  if (entry.price.capacity) out.set_capacity(std::string(to_string(*entry.price.capacity)));
  out.set_node(entry.price.node);
  out.set_per_gpu_hour(base::written(entry.price.per_hour));
  if (entry.begin.is_set()) to_proto(entry.begin, *out.mutable_from());
  if (entry.end.is_set()) to_proto(entry.end, *out.mutable_until());
  if (!entry.by.empty()) out.set_set_by(entry.by);
  if (entry.derived_from != 0) out.set_derived_from(entry.derived_from);
}

// The types of GPUs that have no price then, by name.
std::set<std::string> unpriced_types(const controller::Snapshot& snapshot, base::Instant at) {
  std::set<std::string> found;
  snapshot.nodes.for_each([&](std::uint64_t, const model::Node& node) {
    for (const model::Gpu& gpu : node.gpus) {
      if (found.contains(gpu.info.type)) continue;
      if (snapshot.prices->at(gpu.info.type, node.capacity, node.name, at) == nullptr) {
        found.insert(gpu.info.type);
      }
    }
  });
  return found;
}

base::Result<model::SetPrice> price_command(const v1::SetPriceRequest& request) {
  model::SetPrice command;
  model::Price& price = command.price;
  price.gpu_type = request.gpu_type();
  price.node = request.node();
  if (!request.capacity().empty()) {
    price.capacity = model::parse_capacity_class(request.capacity());
    if (!price.capacity) {
      return base::invalid("capacity", "capacity: must be on-demand, spot or reserved");
    }
  }
  const auto amount = base::parse_money(request.per_gpu_hour());
  if (!amount) return base::invalid("per_gpu_hour", "per_gpu_hour: " + amount.error().message);
  price.per_hour = *amount;
  if (request.has_from()) price.from = to_model(request.from());
  if (request.has_until()) price.until = to_model(request.until());
  return command;
}

base::Result<model::CorrectLedger> correction_command(const v1::CorrectLedgerRequest& request) {
  model::CorrectLedger command;
  command.user = request.user();
  command.team = request.team();
  command.project = request.project();
  command.text = request.text();
  const auto amount = base::parse_signed_money(request.amount());
  if (!amount) return base::invalid("amount", "amount: " + amount.error().message);
  command.amount = *amount;
  return command;
}

// Returns whether the entry follows from another, and a price that was given for spot capacity
// counts instead of it then.
bool is_overruled(const model::PriceBook& book, const model::PriceEntry& entry, base::Instant at) {
  if (entry.derived_from == 0 || entry.begin > at) return false;
  const model::Price& price = entry.price;
  const model::PriceEntry* counts =
      book.at(price.gpu_type, price.capacity.value_or(model::CapacityClass::kSpot), price.node, at);
  return counts != nullptr && counts->id != entry.id;
}

// Returns the last price of that type, class and node that a person set: the one of a command that
// has just been done.
base::Result<v1::Price> last_set(const controller::Snapshot& snapshot, const model::Price& price) {
  v1::Price out;
  for (const model::PriceEntry& entry : snapshot.prices->entries) {
    const bool is_it = !entry.by.empty() && entry.price.capacity == price.capacity &&
                       entry.price.node == price.node && entry.price.per_hour == price.per_hour &&
                       entry.derived_from == 0;
    if (is_it) put_price(entry, out);
  }
  return out;
}

}  // namespace

v1::ListPricesResponse PriceCalls::list(const v1::ListPricesRequest& request) const {
  const auto snapshot = context_.core.snapshots.snapshot();
  const base::Instant at = request.has_at() ? to_model(request.at()) : os::wall_now();
  v1::ListPricesResponse out;
  for (const model::PriceEntry& entry : snapshot->prices->entries) {
    const bool is_too_late = request.has_at() && entry.begin > at;
    if (is_too_late || has_ended(entry, at)) continue;
    if (!is_overruled(*snapshot->prices, entry, at)) put_price(entry, *out.add_prices());
  }
  out.set_currency(snapshot->policy->billing->currency);
  for (const std::string& type : unpriced_types(*snapshot, at)) out.add_unpriced(type);
  return out;
}

void PriceCalls::set(const v1::SetPriceRequest& request, const Peer& peer, Resume resume,
                     Done<v1::Price> done) const {
  auto command = price_command(request);
  if (!command) return done(std::unexpected(std::move(command).error()));
  const model::Price price = command->price;
  context_.send({peer.caller, *std::move(command)}, std::move(resume),
                [&context = context_, price,
                 done = std::move(done)](base::Result<model::CommandReply> reply) {
                  if (!reply) return done(std::unexpected(std::move(reply).error()));
                  done(last_set(*context.core.snapshots.snapshot(), price));
                });
}

void PriceCalls::withdraw(const v1::WithdrawPriceRequest& request, const Peer& peer, Resume resume,
                          Done<v1::Price> done) const {
  const std::uint32_t id = request.id();
  context_.send(
      {peer.caller, model::WithdrawPrice{id}}, std::move(resume),
      [&context = context_, id, done = std::move(done)](base::Result<model::CommandReply> reply) {
        if (!reply) return done(std::unexpected(std::move(reply).error()));
        v1::Price out;
        const auto snapshot = context.core.snapshots.snapshot();
        const model::PriceEntry* const entry = snapshot->prices->find(id);
        if (entry != nullptr) put_price(*entry, out);
        done(std::move(out));
      });
}

void PriceCalls::correct(const v1::CorrectLedgerRequest& request, const Peer& peer, Resume resume,
                         Done<v1::LedgerCorrection> done) const {
  auto command = correction_command(request);
  if (!command) return done(std::unexpected(std::move(command).error()));
  v1::LedgerCorrection made;
  made.set_user(command->user);
  made.set_team(command->team);
  made.set_project(command->project);
  made.set_amount(base::written(command->amount));
  made.set_text(command->text);
  context_.send(
      {peer.caller, *std::move(command)}, std::move(resume),
      [made = std::move(made), done = std::move(done)](base::Result<model::CommandReply> reply) {
        if (!reply) return done(std::unexpected(std::move(reply).error()));
        done(made);
      });
}

v1::ListInstancesResponse PriceCalls::instances(const v1::ListInstancesRequest&) const {
  v1::ListInstancesResponse out;
  for (const model::InstanceType& each : model::instance_catalogue()) {
    v1::Instance& instance = *out.add_instances();
    instance.set_name(std::string(each.name));
    instance.set_provider(std::string(each.provider));
    instance.set_gpu_type(std::string(each.gpu_type));
    instance.set_gpus(each.gpus);
  }
  return out;
}

}  // namespace gpu_platform::api
