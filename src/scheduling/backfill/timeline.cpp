#include "scheduling/backfill/timeline.h"

#include <algorithm>
#include <limits>
#include <set>

#include "scheduling/placement/by_load.h"
#include "scheduling/placement/place.h"

namespace gpu_platform::scheduling {

// One search for the earliest moment. Between two moments at which a booking comes within reach of
// the job's time limit things only get better, so the first good moment of such a stretch is found
// by doubling steps and then by halves; `applied_` gains have been carried into the trial.
class Timeline::Search {
 public:
  Search(Timeline& timeline, const model::ResourceRequest& request, base::Duration time_limit,
         const Sooner& sooner)
      : timeline_(timeline),
        sooner_(sooner),
        request_(request),
        time_limit_(time_limit),
        reaches_(reaches_of(request, time_limit, timeline.grace_)),
        next_own_(timeline.own_.begin()),
        begin_(timeline.trial_.mark()) {
    note_sooner();
  }
  ~Search() { timeline_.trial_.rollback_to(begin_); }
  Search(const Search&) = delete;
  Search& operator=(const Search&) = delete;

  std::optional<Slot> run() {
    for (std::size_t first = 0; gain(first) != nullptr;) {
      const base::Instant stretch_end = end_of_stretch(gain(first)->at);
      if (!search_stretch(first, stretch_end)) continue;
      return found_;
    }
    return std::nullopt;
  }

 private:
  // In the order in which they are gone.
  void note_sooner() {
    for (const auto& [attempt, gone] : sooner_) {
      early_.push_back({gone.at, gone.allocation, attempt});
    }
    std::ranges::stable_sort(early_, {}, &Gain::at);
  }

  // The first moment not before `at` after which one more booking is within reach.
  std::optional<base::Instant> next_obstacle(base::Instant at) const {
    std::optional<base::Instant> next;
    for (const base::Duration reach : reaches_) {
      const auto start = std::ranges::lower_bound(timeline_.booked_starts_, at + reach);
      if (start == timeline_.booked_starts_.end()) continue;
      const base::Instant met = at + (*start - (at + reach));
      next = std::min(next.value_or(met), met);
    }
    return next;
  }
  // Returns the longest time that the job takes on any type that it accepts.
  static std::vector<base::Duration> reaches_of(const model::ResourceRequest& request,
                                                base::Duration time_limit, base::Duration grace) {
    std::vector<base::Duration> reaches;
    for (std::size_t choice = 0; choice < gpu_choices(request); ++choice) {
      const auto speed = speed_of_choice(request, choice);
      reaches.push_back(model::limit_at_speed(time_limit, speed) + grace);
    }
    std::ranges::sort(reaches);
    const auto repeats = std::ranges::unique(reaches);
    reaches.erase(repeats.begin(), repeats.end());
    return reaches;
  }
  base::Instant end_of_stretch(base::Instant at) const {
    return next_obstacle(at).value_or(base::Instant(std::numeric_limits<std::int64_t>::max()));
  }

  // True when found; else `first` is moved behind the stretch.
  bool search_stretch(std::size_t& first, base::Instant end) {
    Trial::Mark behind_bad = timeline_.trial_.mark();
    std::size_t bad = first;  // gains below are applied and known not to be enough
    for (std::size_t step = 1; gain(bad) != nullptr && gain(bad)->at <= end; step *= 2) {
      const std::size_t good = last_within(bad, step, end);
      if (try_at(good)) {
        halve(bad, good, behind_bad);
        return true;
      }
      behind_bad = timeline_.trial_.mark();
      bad = good + 1;
    }
    first = bad;
    return false;
  }

  // The index `step` gains on, counted from `from` as the first, or the stretch's last.
  std::size_t last_within(std::size_t from, std::size_t step, base::Instant end) {
    std::size_t index = from;
    while (index + 1 < from + step && gain(index + 1) != nullptr && gain(index + 1)->at <= end) {
      ++index;
    }
    return index;
  }

  // A gain below `bad` is not enough; one up to `good` is.
  void halve(std::size_t bad, std::size_t good, Trial::Mark behind_bad) {
    while (bad < good) {
      const std::size_t middle = bad + (good - bad) / 2;
      timeline_.trial_.rollback_to(behind_bad);
      applied_ = bad;
      if (try_at(middle)) {
        good = middle;
      } else {
        bad = middle + 1;
        behind_bad = timeline_.trial_.mark();
      }
    }
  }

  bool try_at(std::size_t index) {
    for (; applied_ <= index; ++applied_) {
      const model::Allocation* given_back = gain(applied_)->given_back;
      if (given_back == nullptr) continue;
      timeline_.trial_.release(*given_back);
      const std::uint64_t changes = given_back->nodes.size();
      timeline_.changes_left_ -= std::min(timeline_.changes_left_, changes);
    }
    const base::Instant at = gain(index)->at;
    auto allocation = timeline_.place_at(at, request_, {time_limit_, time_limit_});
    if (!allocation) return false;
    found_ = Slot{at, *std::move(allocation)};
    return true;
  }

  // Returns the index-th of all gains in order; null after the last one.
  const Gain* gain(std::size_t index) {
    while (gains_.size() <= index) {
      const Gain* running = next_running();
      const Gain* early = next_early_ == early_.size() ? nullptr : &early_[next_early_];
      const bool is_early = early != nullptr && (running == nullptr || early->at <= running->at);
      const Gain* next = is_early ? early : running;
      const bool has_own = next_own_ != timeline_.own_.end();
      if (next == nullptr && !has_own) return nullptr;
      if (next != nullptr && (!has_own || next->at <= next_own_->first)) {
        gains_.push_back(*next);
        ++(is_early ? next_early_ : next_running_);
      } else {
        gains_.push_back(next_own_->second);
        ++next_own_;
      }
    }
    return &gains_[index];
  }

  // Returns the next gain from attempts that stay until their ends.
  const Gain* next_running() {
    while (true) {
      const Gain* running = timeline_.running_gain(next_running_);
      if (running == nullptr || !sooner_.contains(running->attempt)) return running;
      ++next_running_;
    }
  }

  Timeline& timeline_;
  const Sooner& sooner_;
  std::vector<Gain> early_;
  std::size_t next_early_ = 0;
  const model::ResourceRequest& request_;
  const base::Duration time_limit_;
  const std::vector<base::Duration> reaches_;
  std::deque<Gain> gains_;
  std::size_t next_running_ = 0;
  std::multimap<base::Instant, Gain>::const_iterator next_own_;
  const Trial::Mark begin_;
  std::size_t applied_ = 0;
  std::optional<Slot> found_;
};

Timeline::Timeline(Trial& trial, const RunningEnds& running, const Reservations& reservations,
                   const Options& options)
    : trial_(trial),
      running_ends_(running),
      reservations_(reservations),
      now_(options.now),
      grace_(options.grace),
      changes_left_(options.max_changes),
      next_running_(running.ends().begin()),
      last_running_(running.ends().end()) {
  note_reservations();
}

// The begin of a reservation is a gain to its own jobs and an end to the others, and its end the
// other way round. Of one that repeats itself a week's days, and the last one, are sought as such
// moments; a place found at any moment is checked against all of its occurrences.
void Timeline::note_reservations() {
  const auto note = [&](const model::Occurrence& occurrence) {
    for (const base::Instant at : {occurrence.begin, occurrence.end}) {
      if (at <= now_) continue;
      own_.emplace(at, Gain{at, nullptr});
      booked_starts_.push_back(at);
    }
  };
  for (const auto& [name, reservation] : reservations_.all()) {
    auto next = occurrence_after(reservation, now_);
    for (std::size_t left = kOccurrencesAhead; next && left > 0; --left) {
      note(*next);
      next = occurrence_after(reservation, next->end);
    }
    if (const auto last = next ? last_occurrence(reservation) : std::nullopt) note(*last);
  }
  std::ranges::sort(booked_starts_);
}

base::Instant Timeline::end_of(base::Instant start, base::Duration time_limit) const {
  return start + time_limit + grace_;
}

std::optional<model::Allocation> Timeline::place_now(const model::ResourceRequest& request,
                                                     base::Duration time_limit,
                                                     base::Duration untouched) {
  return place_at(now_, request, {time_limit, untouched});
}

std::optional<base::Instant> Timeline::first_touched(const model::Allocation& allocation,
                                                     base::Duration time_limit) {
  const base::Instant end = end_of(now_, model::limit_at_speed(time_limit, allocation.speed));
  std::set<base::Instant> starts;
  for (const model::NodeAllocation& part : allocation.nodes) {
    const auto kept = kept_.find(part.node);
    if (kept == kept_.end()) continue;
    for (const Kept& each : kept->second) {
      if (each.start < end) starts.insert(each.start);
    }
  }
  for (const base::Instant start : starts) {
    const Trial::Mark mark = trial_.mark();
    withhold(now_, start + kNextInstant);
    const bool is_untouched = is_free(trial_.cluster(), allocation, Accepts::kDegraded);
    trial_.rollback_to(mark);
    if (!is_untouched) return start;
  }
  return std::nullopt;
}

std::optional<Slot> Timeline::earliest(const model::ResourceRequest& request,
                                       base::Duration time_limit, const Sooner& sooner) {
  if (changes_left_ == 0) return std::nullopt;
  return Search(*this, request, time_limit, sooner).run();
}

void Timeline::start(const model::Allocation& allocation, base::Duration time_limit,
                     std::optional<base::Instant> gone_by) {
  trial_.take(allocation);
  started_.push_back(allocation);
  const base::Instant end =
      gone_by.value_or(end_of(now_, model::limit_at_speed(time_limit, allocation.speed)));
  own_.emplace(end, Gain{end, &started_.back()});
}

void Timeline::book(const Slot& slot, base::Duration time_limit, Keeps keeps) {
  const base::Instant end =
      end_of(slot.start, model::limit_at_speed(time_limit, slot.allocation.speed));
  const bool is_part = model::is_part(slot.allocation);
  for (const model::NodeAllocation& part : slot.allocation.nodes) {
    Kept kept{.start = slot.start,
              .end = end,
              .gpus = is_part && keeps == Keeps::kPart ? 0 : gpus_of(part),
              .cpus = part.cpus,
              .memory = part.memory,
              .part = {},
              .freed = freed_on(part.node, slot.start)};
    if (is_part) kept.part = KeptPart{part.grants.front(), slot.allocation.tenant};
    kept_[part.node].push_back(std::move(kept));
  }
  own_.emplace(end, Gain{end, nullptr});
  booked_starts_.insert(std::ranges::upper_bound(booked_starts_, slot.start), slot.start);
  ++bookings_;
}

std::optional<model::Allocation> Timeline::place_at(base::Instant at,
                                                    const model::ResourceRequest& request,
                                                    const Times& times) {
  if (!meets_reservations(at, request, times.limit)) {
    return kept_.empty() ? place(trial_, request) : place_between(at, request, times);
  }
  if (request.reservation.empty()) return place_between(at, request, times);
  const model::Reservation* reservation = reservations_.find(request.reservation);
  const auto inside = reservation == nullptr || !occurrence_at(*reservation, at)
                          ? std::nullopt
                          : request_inside(*reservation, request);
  return inside ? place_between(at, *inside, times) : std::nullopt;
}

// Checks the job's longest time. A job of no reservation meets none if that time meets none.
bool Timeline::meets_reservations(base::Instant at, const model::ResourceRequest& request,
                                  base::Duration time_limit) const {
  if (!request.reservation.empty()) return true;
  if (reservations_.empty()) return false;
  return reservations_.is_any_between(at, end_of(at, model::longest_limit(request, time_limit)));
}

bool Timeline::reservations_allow(const model::ResourceRequest& request, const Slot& slot,
                                  base::Duration time_limit) const {
  const base::Instant end =
      end_of(slot.start, model::limit_at_speed(time_limit, slot.allocation.speed));
  return reservations_.allow(request, slot.allocation, {slot.start, end});
}

std::optional<model::Allocation> Timeline::place_between(base::Instant at,
                                                         const model::ResourceRequest& request,
                                                         const Times& times) {
  const Trial::Mark begin = trial_.mark();
  withhold_excluded(trial_, request);
  const auto place_now = [&] { return place_choices_between(at, request, times); };
  std::optional<model::Allocation> allocation = place_by_load(trial_, request, place_now);
  if (!allocation && may_try_degraded(trial_.cluster(), request)) {
    trial_.expose_degraded();
    allocation = place_by_load(trial_, request, place_now);
  }
  trial_.rollback_to(begin);
  return allocation;
}

std::optional<model::Allocation> Timeline::place_choices_between(
    base::Instant at, const model::ResourceRequest& request, const Times& times) {
  std::optional<model::Allocation> allocation;
  // On a slower type it takes longer and may meet bookings that it does not meet on a faster one.
  for (std::size_t choice = 0; choice < gpu_choices(request) && !allocation; ++choice) {
    const Trial::Mark mark = trial_.mark();
    const auto speed = speed_of_choice(request, choice);
    const base::Instant end = end_of(at, model::limit_at_speed(times.limit, speed));
    if (!reservations_.has_own_during(request, {at, end})) continue;
    withhold(at, end_of(at, model::limit_at_speed(times.untouched, speed)));
    reservations_.withhold_from(trial_, request, {at, end});
    allocation = place_choice(trial_.cluster(), request, choice);
    trial_.rollback_to(mark);
  }
  return allocation;
}

std::vector<Timeline::Freed> Timeline::freed_on(model::NodeId node, base::Instant by) {
  std::vector<Freed> freed;
  for (std::size_t i = 0; const Gain* gain = running_gain(i); ++i) {
    if (gain->at > by) break;
    const bool is_part = model::is_part(*gain->given_back);
    for (const model::NodeAllocation& part : gain->given_back->nodes) {
      if (part.node != node) continue;
      freed.push_back({gain->at, part.cpus, part.memory, is_part ? &part.grants.front() : nullptr});
    }
  }
  return freed;
}

// Takes out of the trial what bookings need between the two moments: their GPUs, and as many CPUs
// and as much memory as overlapping bookings need together, less what running attempts give back
// before. What this cycle starts may give back some too; then more is left over than counted here,
// never less.
void Timeline::withhold(base::Instant from, base::Instant until) {
  for (const auto& [node, parts] : kept_) {
    FreeState most;  // that is needed at once
    for (const Kept& kept : parts) {
      if (kept.start >= until || kept.end <= from) continue;
      most.gpus |= kept.gpus;
      std::uint32_t cpus = 0;
      base::Bytes memory;
      for (const Kept& other : parts) {
        if (other.start > kept.start || other.end <= kept.start || other.end <= from) continue;
        cpus += other.cpus;
        memory += other.memory;
      }
      for (const Freed& freed : kept.freed) {
        if (freed.at <= from) continue;
        cpus -= std::min(cpus, freed.cpus);
        memory -= std::min(memory, freed.memory);
      }
      most.cpus = std::max(most.cpus, cpus);
      most.memory = std::max(most.memory, memory);
    }
    if (most != FreeState{}) trial_.withhold(node, most);
    withhold_parts(node, from, until);
  }
}

// Returns the most that the bookings need at once of the GPU that `kept` has a part of, while it
// has it: as CPUs are counted.
model::GpuGrant Timeline::needed_beside(const std::vector<Kept>& parts, const Kept& kept,
                                        base::Instant from) {
  model::GpuGrant need = kept.part->grant;
  for (const Kept& other : parts) {
    if (&other == &kept || !other.part || other.start > kept.start || other.end <= kept.start ||
        other.end <= from || other.part->grant.gpu_index != need.gpu_index) {
      continue;
    }
    need.share += other.part->grant.share;
    need.memory += other.part->grant.memory;
  }
  for (const Freed& freed : kept.freed) {
    const bool is_of_it = freed.part != nullptr && freed.part->gpu_index == need.gpu_index;
    if (!is_of_it || freed.at <= from) continue;
    need.share -= std::min(need.share, freed.part->share);
    need.memory -= std::min(need.memory, freed.part->memory);
  }
  return need;
}

namespace {

// What the bookings of parts of one GPU need of it.
struct NeededOfGpu {
  model::GpuGrant most;
  std::vector<model::Tenant> tenants;
  bool is_of_one_mode = true;
};

}  // namespace

// The same for parts of GPUs. Who joins a GPU has to agree with all whose parts are booked there.
void Timeline::withhold_parts(model::NodeId node, base::Instant from, base::Instant until) {
  std::map<std::uint32_t, NeededOfGpu> by_gpu;
  const std::vector<Kept>& parts = kept_.find(node)->second;
  for (const Kept& kept : parts) {
    const bool is_alone = !kept.part || kept.gpus != 0;
    if (is_alone || kept.start >= until || kept.end <= from) continue;
    const model::GpuGrant need = needed_beside(parts, kept, from);
    NeededOfGpu& needed = by_gpu.try_emplace(need.gpu_index, NeededOfGpu{need, {}}).first->second;
    needed.most.share = std::max(needed.most.share, need.share);
    needed.most.memory = std::max(needed.most.memory, need.memory);
    needed.tenants.push_back(kept.part->tenant);
    needed.is_of_one_mode = needed.is_of_one_mode && needed.most.mode == need.mode;
  }
  for (const auto& [gpu, needed] : by_gpu) {
    if (needed.is_of_one_mode) {
      trial_.withhold_part({node, gpu}, needed.most, needed.tenants);
    } else {
      trial_.withhold_gpus(node, GpuMask{1} << gpu);
    }
  }
}

// Returns what all bookings of that moment need together.
FreeState Timeline::booked_at(model::NodeId node, base::Instant at) const {
  FreeState booked;
  const auto kept = kept_.find(node);
  if (kept == kept_.end()) return booked;
  for (const Kept& each : kept->second) {
    if (each.start > at || each.end <= at) continue;
    if (!each.part) booked.gpus |= each.gpus;
    booked.cpus += each.cpus;
    booked.memory += each.memory;
  }
  return booked;
}

// Returns whether the GPU has room for all parts of it that are booked for that moment.
bool Timeline::is_booked_part_there(model::NodeId node, base::Instant at,
                                    const KeptPart& part) const {
  KeptPart needed = part;
  needed.grant.share = {};
  needed.grant.memory = {};
  for (const Kept& each : kept_.find(node)->second) {
    const bool counts = each.part && each.start <= at && each.end > at &&
                        each.part->grant.gpu_index == part.grant.gpu_index;
    if (!counts) continue;
    needed.grant.share += each.part->grant.share;
    needed.grant.memory += each.part->grant.memory;
  }
  const PartState* state = trial_.cluster().gpu_parts().find({node, part.grant.gpu_index});
  if (state == nullptr) {
    const FreeState& free = trial_.cluster().find(node)->free;
    return ((free.gpus | free.degraded) >> part.grant.gpu_index & 1) != 0;
  }
  return state->mode == part.grant.mode && state->free_share >= needed.grant.share &&
         state->free_memory >= needed.grant.memory &&
         trial_.cluster().gpu_parts().admits(*state, part.tenant);
}

bool Timeline::is_there_despite(const Staying& staying, const Slot& booked) {
  const auto is_near = [&](const model::Allocation& other) {
    return std::ranges::any_of(booked.allocation.nodes, [&](const model::NodeAllocation& part) {
      return std::ranges::find(other.nodes, part.node, &model::NodeAllocation::node) !=
             other.nodes.end();
    });
  };
  const Trial::Mark mark = trial_.mark();
  for (const auto& [key, allocation] : running_ends_.ends()) {
    if (gain_at(key.end) > booked.start) break;
    const auto stays = staying.find(key.attempt);
    const bool is_gone = stays == staying.end() || stays->second <= booked.start;
    if (is_gone && is_near(allocation)) trial_.release(allocation);
  }
  for (const auto& [at, gain] : own_) {
    if (at > booked.start) break;
    if (gain.given_back != nullptr && is_near(*gain.given_back)) trial_.release(*gain.given_back);
  }
  const bool is_there =
      std::ranges::all_of(booked.allocation.nodes, [&](const model::NodeAllocation& part) {
        const FreeState needed = booked_at(part.node, booked.start);
        const FreeState& free = trial_.cluster().find(part.node)->free;
        if ((needed.gpus & ~(free.gpus | free.degraded)) != 0 || needed.cpus > free.cpus ||
            needed.memory > free.memory) {
          return false;
        }
        return !model::is_part(booked.allocation) ||
               is_booked_part_there(part.node, booked.start,
                                    {part.grants.front(), booked.allocation.tenant});
      });
  trial_.rollback_to(mark);
  return is_there;
}

// Returns when the resources that are held until then become free.
base::Instant Timeline::gain_at(base::Instant end) const {
  const base::Instant next = now_ + kNextInstant;
  return end == RunningEnds::kAnyTime ? next : std::max(next, end + grace_);
}

// Returns the index-th of the gains from attempts that ran when the cycle began.
const Timeline::Gain* Timeline::running_gain(std::size_t index) {
  while (running_.size() <= index) {
    if (next_running_ == last_running_) return nullptr;
    const auto& [key, allocation] = *next_running_++;
    running_.push_back({gain_at(key.end), &allocation, key.attempt});
  }
  return &running_[index];
}

}  // namespace gpu_platform::scheduling
