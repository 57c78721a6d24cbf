#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <yaml-cpp/yaml.h>

#include "config/configuration.h"
#include "config/yaml/structure_reader.h"

namespace gpu_platform::config {

// Reads the lists about money (accounting.prices, accounting.discounts, accounting.owned). Problems
// go to `problems` with their places.
class AccountingReader : private StructureReader {
 public:
  // `problems` must outlive it.
  explicit AccountingReader(std::vector<Problem>& problems) : StructureReader(problems) {}

  using StructureReader::in_file;
  static bool reads(std::string_view path);
  void read(const std::string& path, const YAML::Node& list);
  // Checks what needs the whole file: teams, the currency, prices at the same time. Puts the
  // billing together; the organisation must be there.
  void finish(Configuration& configuration);

 private:
  // An entry of a list.
  struct Place {
    std::string key;  // "accounting.prices[2]"
    std::string file;
    int line = 0;
    int column = 0;
  };
  struct ReadPrice {
    model::Price price;
    std::string currency;  // empty: that of the site
    Place place;
  };
  // What a GPU of the site's own costs.
  struct Owned {
    model::Price price;  // without its amount
    base::MicroUsd purchase;
    std::uint32_t lifetime_months = 1;  // what is absent or wrong is reported
    std::uint32_t power_watts = 0;
    std::optional<base::MicroUsd> per_kwh;  // absent: that of the site
    base::MicroUsd room_per_month;
    Place place;
  };
  struct ReadDiscount {
    model::Discount discount;
    Place place;
  };

  void read_price(const YAML::Node& map, std::size_t index);
  void read_discount(const YAML::Node& map, std::size_t index);
  void read_owned(const YAML::Node& map, std::size_t index);
  // Returns false if the key is none of those that say which GPUs an entry is of.
  bool read_which(std::string_view key, const YAML::Node& value, model::Price& price);
  void check_time(const YAML::Node& map, const model::Price& price);
  std::optional<base::MicroUsd> money(const YAML::Node& node, std::string_view what,
                                      base::MicroUsd most);
  base::Instant time(const YAML::Node& node, std::string_view what);
  Place place_of(const YAML::Node& map, std::size_t index) const;
  static base::MicroUsd per_hour(const Owned& owned, base::MicroUsd per_kwh);

  void report_at(const Place& place, std::string message);
  void check_overlaps();
  void check_discounts(const model::Organisation& organisation);
  void note_types(Configuration& configuration) const;
  void note_gaps(Configuration& configuration) const;

  bool has_prices_ = false;
  std::vector<ReadPrice> prices_;
  std::vector<Owned> owned_;
  std::vector<ReadDiscount> discounts_;
};

}  // namespace gpu_platform::config
