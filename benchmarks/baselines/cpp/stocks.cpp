// SEQ(A a, B b+, C c) under skip-till-next-match, strict ties; one run per A event.
#include "stream.hpp"

namespace {

enum Label : uint8_t { NONE, A, B, C };
constexpr int32_t ABSENT = INT32_MAX;

// Columns of Matches: a, offsets of b, b, c.
void emit(const Ordered& events, int32_t first, int32_t first_b, int32_t end, Matches& matches) {
    auto &a = matches.columns[0], &offsets = matches.columns[1], &b = matches.columns[2], &c = matches.columns[3];
    a.push_back(events.row[first]);
    for (int32_t i = first_b; i < end; ++i)
        if (events.label[i] == B) b.push_back(events.row[i]);
    offsets.push_back(static_cast<int64_t>(b.size()));
    c.push_back(events.row[end]);
}

bool later_than_all(const Ordered& events, int32_t first_b, int32_t end) {
    for (int32_t i = end - 1; i >= first_b && events.ts[i] == events.ts[end]; --i)
        if (events.label[i] == B) return false;
    return true;
}

// A run ends at the first C after the first B that is later than the A: found backwards, in one pass.
template <bool Rows>
void chain(const Ordered& events, int32_t low, int32_t high, int64_t window, std::vector<int32_t>& next_b, std::vector<int32_t>& next_c,
           std::vector<int32_t>& ends, Matches& matches) {
    int32_t b = ABSENT, c = ABSENT;
    for (int32_t i = high - 1; i >= low; --i) {
        const uint8_t label = events.label[i];
        next_b[i - low] = b;
        next_c[i - low] = c;
        if (Rows) ends[i - low] = ABSENT;
        if (label == B) b = i;
        if (label == C) c = i;
        if (label != A) continue;
        int32_t first_b = b;
        while (first_b != ABSENT && events.ts[first_b] == events.ts[i]) first_b = next_b[first_b - low];
        int32_t end = first_b == ABSENT ? ABSENT : next_c[first_b - low];
        while (end != ABSENT && !later_than_all(events, first_b, end)) end = next_c[end - low];
        if (end == ABSENT || events.ts[end] - events.ts[i] > window) continue;
        ++matches.count;
        if (Rows) ends[i - low] = end, next_b[i - low] = first_b;
    }
    if (!Rows) return;
    for (int32_t i = low; i < high; ++i)
        if (ends[i - low] != ABSENT) emit(events, i, next_b[i - low], ends[i - low], matches);
}

template <bool Rows>
void match(const Events& events, const uint8_t* label_of_type, int64_t window, Matches& matches) {
    const Ordered ordered = order<Rows, false>(events, label_of_type);
    std::vector<int32_t> next_b, next_c, ends;
    if (Rows) matches.columns.resize(4), matches.columns[1].push_back(0);
    for (int64_t stream = 0; stream < events.streams; ++stream) {
        const int32_t low = ordered.start[stream], high = ordered.start[stream + 1];
        const size_t size = high - low;
        if (size > next_b.size()) next_b.resize(size), next_c.resize(size), ends.resize(size);
        chain<Rows>(ordered, low, high, window, next_b, next_c, ends, matches);
    }
}

}  // namespace

extern "C" Matches* stocks(const Events* events, const uint8_t* label_of_type, int64_t window, bool rows, bool) {
    if (!in_time_order(*events)) return nullptr;
    auto* matches = new Matches;
    (rows ? match<true> : match<false>)(*events, label_of_type, window, *matches);
    return matches;
}
