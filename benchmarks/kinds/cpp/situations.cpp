// Situations of one key: H is a run of high values, L one of high second values. No two events of a key have the same time.
#include "kinds.hpp"

namespace {

enum Holds : uint8_t { NEITHER, H, L };
constexpr int32_t NONE = -1;

Ordered by_key(const Asked& asked, const Events& all, double bound) {
    return grouped<true, false>(all, [&](int64_t i) {
        return static_cast<uint8_t>((asked.value[i] > bound ? H : NEITHER) | (asked.second[i] > bound ? L : NEITHER));
    });
}

struct Run {
    int32_t first, end;  // the end is the event after the last
};

// The runs of one kind that have ended.
void runs_of(const Ordered& events, int32_t low, int32_t high, uint8_t kind, std::vector<Run>& runs) {
    runs.clear();
    for (int32_t i = low, first = NONE; i < high; ++i) {
        const bool holds = events.label[i] & kind;
        if (holds && first == NONE) first = i;
        if (holds || first == NONE) continue;
        runs.push_back({first, i});
        first = NONE;
    }
}

}  // namespace

// H overlaps L: L starts in H and ends after it. In one L, at most one H ends that started before it.
extern "C" Matches* situations_few(const Asked* asked) {
    return answer(*asked, 4, [&](const Events& all, const uint8_t*, Matches& matches) {
        const Ordered events = by_key(*asked, all, 95);
        Lists hs(matches, 0), ls(matches, 2);
        each_stream(events, [&](int32_t low, int32_t high) {
            int32_t h = NONE, l = NONE;  // where the open ones start
            Run overlapping{NONE, NONE};
            for (int32_t i = low; i < high; ++i) {
                const uint8_t holds = events.label[i];
                if (h != NONE && !(holds & H)) {
                    if (l > h && (holds & L)) overlapping = {h, i};
                    h = NONE;
                }
                if (l != NONE && !(holds & L)) {
                    if (overlapping.first != NONE && events.ts[i] - events.ts[overlapping.first] <= asked->window) {
                        ++matches.count;
                        hs.add(events, overlapping.first, overlapping.end - 1);
                        ls.add(events, l, i - 1);
                    }
                    l = NONE, overlapping.first = NONE;
                }
                if (h == NONE && (holds & H)) h = i;
                if (l == NONE && (holds & L)) l = i;
            }
        });
    });
}

// H before L: all L that start after H has ended, in the window.
extern "C" Matches* situations_many(const Asked* asked) {
    return answer(*asked, 4, [&](const Events& all, const uint8_t*, Matches& matches) {
        const Ordered events = by_key(*asked, all, 50);
        Lists hs(matches, 0), ls(matches, 2);
        std::vector<Run> high_runs, low_runs;
        each_stream(events, [&](int32_t low, int32_t high) {
            runs_of(events, low, high, H, high_runs);
            runs_of(events, low, high, L, low_runs);
            size_t first = 0;
            for (const Run& h : high_runs) {
                while (first < low_runs.size() && low_runs[first].first <= h.end) ++first;
                for (size_t k = first; k < low_runs.size(); ++k) {
                    const Run& l = low_runs[k];
                    if (events.ts[l.end] - events.ts[h.first] > asked->window) break;
                    ++matches.count;
                    hs.add(events, h.first, h.end - 1);
                    ls.add(events, l.first, l.end - 1);
                }
            }
        });
    });
}

// H overlaps or meets L, detected when H ends: L goes on, or starts, with that event, of which it is the last that is seen.
extern "C" Matches* situations_early(const Asked* asked) {
    return answer(*asked, 4, [&](const Events& all, const uint8_t*, Matches& matches) {
        const Ordered events = by_key(*asked, all, 80);
        Lists hs(matches, 0), ls(matches, 2);
        each_stream(events, [&](int32_t low, int32_t high) {
            int32_t h = NONE, l = NONE;
            for (int32_t i = low; i < high; ++i) {
                const uint8_t holds = events.label[i];
                if (!(holds & L)) l = NONE;
                if (l == NONE && (holds & L)) l = i;
                if (h != NONE && !(holds & H)) {
                    if (l > h && events.ts[i] - events.ts[h] <= asked->window) {
                        ++matches.count;
                        hs.add(events, h, i - 1);
                        ls.add(events, l, i);
                    }
                    h = NONE;
                }
                if (h == NONE && (holds & H)) h = i;
            }
        });
    });
}
