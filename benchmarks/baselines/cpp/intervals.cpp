// Listing 1 of TPStream: A meets, overlaps, starts or is during B; B meets, overlaps or finishes C, or C is during B; A before C.
// One pass derives the situations of every car, another matches them car by car. `finishes` is Table 1's: both end together, B starts first.
#include "stream.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace {

enum Kind { ACCELERATING, SPEEDING, BRAKING, KINDS };

struct Situation {
    int64_t ts;
    int64_t te;
    double speeds;  // their sum, in event order
    int64_t events;
};

using Situations = std::array<std::vector<Situation>, KINDS>;

struct Duration {
    int64_t at_least;
    int64_t at_most;
    bool holds(const Situation& s) const {
        const int64_t length = s.te - s.ts;
        return length > 0 && length >= at_least && length <= at_most;
    }
};

}  // namespace

// One table, read in place from Arrow's buffers; rows are in time order.
struct CarReports {
    const int64_t* ts;
    const int32_t* car;
    const double* speed;
    const double* accel;
    int64_t rows;
    int64_t cars;
};

struct Listing1 {
    double accelerating, speeding, braking;  // accel > accelerating, speed > speeding, accel < braking
    Duration durations[KINDS];
    int64_t window;
};

namespace {

bool in_time_order(const CarReports& reports) {
    int64_t backward = 0;
    for (int64_t i = 1; i < reports.rows; ++i) backward += reports.ts[i] < reports.ts[i - 1];
    return backward == 0;
}

// Runs still open at the end of the input are left out.
std::vector<Situations> derive(const CarReports& reports, const Listing1& query) {
    std::vector<Situations> closed(reports.cars);
    std::vector<std::array<Situation, KINDS>> open(reports.cars);
    std::vector<uint8_t> running(reports.cars, 0);  // a bit for each kind
    for (int64_t i = 0; i < reports.rows; ++i) {
        const int32_t car = reports.car[i];
        const double speed = reports.speed[i], accel = reports.accel[i];
        const uint8_t before = running[car];
        const uint8_t holding = (accel > query.accelerating) << ACCELERATING | (speed > query.speeding) << SPEEDING |
                                (accel < query.braking) << BRAKING;
        if ((before | holding) == 0) continue;
        running[car] = holding;
        for (int kind = 0; kind < KINDS; ++kind) {
            Situation& situation = open[car][kind];
            const bool ran = before >> kind & 1, runs = holding >> kind & 1;
            if (runs && !ran) situation = {reports.ts[i], 0, 0.0, 0};
            if (runs) situation.speeds += speed, ++situation.events;
            if (!ran || runs) continue;
            situation.te = reports.ts[i];
            if (query.durations[kind].holds(situation)) closed[car][kind].push_back(situation);
        }
    }
    return closed;
}

bool meets(const Situation& a, const Situation& b) { return a.te == b.ts; }
bool overlaps(const Situation& a, const Situation& b) { return a.ts < b.ts && b.ts < a.te && a.te < b.te; }
bool starts(const Situation& a, const Situation& b) { return a.ts == b.ts && a.te < b.te; }
bool during(const Situation& a, const Situation& b) { return b.ts < a.ts && a.te < b.te; }
bool finishes(const Situation& a, const Situation& b) { return a.ts < b.ts && b.ts < a.te && a.te == b.te; }
bool before(const Situation& a, const Situation& b) { return a.te < b.ts; }

bool leads_into(const Situation& a, const Situation& b) { return meets(a, b) || overlaps(a, b) || starts(a, b) || during(a, b); }
bool leads_out(const Situation& b, const Situation& c) { return during(c, b) || finishes(b, c) || overlaps(b, c) || meets(b, c); }

// Columns of Matches: RETURN's items with the bounds of the match before them; an average as the bits of a double.
void emit(int64_t car, int64_t start, int64_t end, const Situation& speeding, Matches& matches) {
    const double average = speeding.speeds / static_cast<double>(speeding.events);
    int64_t bits;
    std::memcpy(&bits, &average, sizeof bits);
    matches.columns[0].push_back(start);
    matches.columns[1].push_back(end);
    matches.columns[2].push_back(car);
    matches.columns[3].push_back(bits);
}

// Situations of one kind are disjoint, so that the A and the C that a B can go with stand side by side.
template <bool Rows>
void match_car(int64_t car, const Situations& situations, int64_t window, Matches& matches) {
    const auto &as = situations[ACCELERATING], &cs = situations[BRAKING];
    size_t first_a = 0, first_c = 0;
    for (const Situation& b : situations[SPEEDING]) {
        while (first_a < as.size() && as[first_a].te < b.ts) ++first_a;
        while (first_c < cs.size() && cs[first_c].ts <= b.ts) ++first_c;
        for (size_t i = first_a; i < as.size() && as[i].ts < b.te; ++i) {
            const Situation& a = as[i];
            if (!leads_into(a, b)) continue;
            for (size_t k = first_c; k < cs.size() && cs[k].ts <= b.te; ++k) {
                const Situation& c = cs[k];
                const int64_t start = std::min(a.ts, b.ts), end = std::max(b.te, c.te);
                if (!before(a, c) || !leads_out(b, c) || end - start > window) continue;
                ++matches.count;
                if (Rows) emit(car, start, end, b, matches);
            }
        }
    }
}

template <bool Rows>
void match(const CarReports& reports, const Listing1& query, Matches& matches) {
    const std::vector<Situations> situations = derive(reports, query);
    if (Rows) matches.columns.resize(4);
    for (int64_t car = 0; car < reports.cars; ++car) match_car<Rows>(car, situations[car], query.window, matches);
}

}  // namespace

extern "C" Matches* aggressive_drivers(const CarReports* reports, const Listing1* query, bool rows) {
    if (!in_time_order(*reports)) return nullptr;
    auto* matches = new Matches;
    (rows ? match<true> : match<false>)(*reports, *query, *matches);
    return matches;
}
