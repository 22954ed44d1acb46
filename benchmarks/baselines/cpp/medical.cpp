// SEQ(AND(C c, P p+, D d), B b) under skip-till-next-match, strict ties; one run per C, P or D event.
#include "stream.hpp"

#include <algorithm>

namespace {

enum Label : uint8_t { NONE, C, P, D, B };
constexpr int32_t ABSENT = INT32_MAX;

// Columns of Matches: c, offsets of p, p, d, b.
void emit(const Ordered& events, int32_t first, int32_t end, Matches& matches) {
    auto &c = matches.columns[0], &offsets = matches.columns[1], &p = matches.columns[2], &d = matches.columns[3], &b = matches.columns[4];
    bool has_c = false, has_d = false;
    for (int32_t i = first; i < end; ++i) {
        const uint8_t label = events.label[i];
        if (label == P) p.push_back(events.row[i]);
        if (label == C && !has_c) c.push_back(events.row[i]), has_c = true;
        if (label == D && !has_d) d.push_back(events.row[i]), has_d = true;
    }
    offsets.push_back(static_cast<int64_t>(p.size()));
    b.push_back(events.row[end]);
}

// Is everything that the run has taken before `end` also earlier in time?
bool later_than_all(const Ordered& events, int32_t first, int32_t c, int32_t d, int32_t end) {
    for (int32_t i = end - 1; i >= first && events.ts[i] == events.ts[end]; --i)
        if (events.label[i] == P || i == c || i == d) return false;
    return true;
}

// Without conditions on pairs a run ends at the first B after the first C, P and D: found backwards, in one pass.
template <bool Rows>
void chain(const Ordered& events, int32_t low, int32_t high, int64_t window, std::vector<int32_t>& next_b, std::vector<int32_t>& ends,
           Matches& matches) {
    int32_t c = ABSENT, p = ABSENT, d = ABSENT, b = ABSENT;
    for (int32_t i = high - 1; i >= low; --i) {
        const uint8_t label = events.label[i];
        next_b[i - low] = b;
        c = label == C ? i : c;
        p = label == P ? i : p;
        d = label == D ? i : d;
        b = label == B ? i : b;
        const int32_t all = std::max(c, std::max(p, d));
        int32_t end = label == B || all == ABSENT ? ABSENT : next_b[all - low];
        while (end != ABSENT && !later_than_all(events, i, c, d, end)) end = next_b[end - low];
        if (end != ABSENT && events.ts[end] - events.ts[i] > window) end = ABSENT;
        matches.count += end != ABSENT;
        if (Rows) ends[i - low] = end;
    }
    if (!Rows) return;
    for (int32_t i = low; i < high; ++i)
        if (ends[i - low] != ABSENT) emit(events, i, ends[i - low], matches);
}

// prev(p.V) < p.V AND c.V < b.V: a run is walked event by event.
template <bool Rows>
void walk(const Ordered& events, int32_t first, int32_t high, int64_t window, Matches& matches) {
    const int64_t limit = events.ts[first] + window;
    std::vector<int64_t>* columns = matches.columns.data();
    const size_t p_size = Rows ? columns[2].size() : 0;
    int32_t c = ABSENT, p = ABSENT, d = ABSENT;
    int64_t taken = 0;
    for (int32_t i = first; i < high && events.ts[i] <= limit; ++i) {
        const uint8_t label = events.label[i];
        if (label == P && (p == ABSENT || events.value[p] < events.value[i])) {
            p = i, taken = events.ts[i];
            if (Rows) columns[2].push_back(events.row[i]);
        } else if (label == C && c == ABSENT) {
            c = i, taken = events.ts[i];
        } else if (label == D && d == ABSENT) {
            d = i, taken = events.ts[i];
        } else if (label == B && c != ABSENT && p != ABSENT && d != ABSENT && taken < events.ts[i] && events.value[c] < events.value[i]) {
            ++matches.count;
            if (!Rows) return;
            columns[0].push_back(events.row[c]);
            columns[1].push_back(static_cast<int64_t>(columns[2].size()));
            columns[3].push_back(events.row[d]);
            columns[4].push_back(events.row[i]);
            return;
        }
    }
    if (Rows) columns[2].resize(p_size);
}

template <bool Rows, bool Pairs>
void match(const Events& events, const uint8_t* label_of_type, int64_t window, Matches& matches) {
    const Ordered ordered = order<Rows, Pairs>(events, label_of_type);
    std::vector<int32_t> next_b, ends;
    if (Rows) matches.columns.resize(5), matches.columns[1].push_back(0);
    for (int64_t stream = 0; stream < events.streams; ++stream) {
        const int32_t low = ordered.start[stream], high = ordered.start[stream + 1];
        if (Pairs) {
            for (int32_t i = low; i < high; ++i)
                if (ordered.label[i] != B) walk<Rows>(ordered, i, high, window, matches);
            continue;
        }
        if (static_cast<size_t>(high - low) > next_b.size()) next_b.resize(high - low), ends.resize(high - low);
        chain<Rows>(ordered, low, high, window, next_b, ends, matches);
    }
}

}  // namespace

extern "C" Matches* medical(const Events* events, const uint8_t* label_of_type, int64_t window, bool rows, bool pairs) {
    if (!in_time_order(*events)) return nullptr;
    auto* matches = new Matches;
    auto run = rows ? (pairs ? match<true, true> : match<true, false>) : (pairs ? match<false, true> : match<false, false>);
    run(*events, label_of_type, window, *matches);
    return matches;
}
