#pragma once

// Types of the room, declared alone, for headers that only refer to them.

namespace gpu_platform::scheduling {

class PredictionScores;
class PreemptionHolds;
class Reservations;
class RunHistory;
struct OrderBasis;
struct PeriodUse;
struct PlannedStart;

}  // namespace gpu_platform::scheduling
