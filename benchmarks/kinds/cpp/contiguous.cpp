// Neighbours of one key: rises and falls, runs of one type, sessions. No two events of a key have the same time.
#include "kinds.hpp"

#include <algorithm>

namespace {

// The last place of the run from `i` in which values rise, or fall.
int32_t rises(const Ordered& events, int32_t i, int32_t high) {
    while (i + 1 < high && events.value[i + 1] > events.value[i]) ++i;
    return i;
}

int32_t falls(const Ordered& events, int32_t i, int32_t high) {
    while (i + 1 < high && events.value[i + 1] < events.value[i]) ++i;
    return i;
}

// The last place from `i` to `last` that is in the window of `first`.
int32_t in_window(const Ordered& events, int32_t first, int32_t i, int32_t last, int64_t window) {
    while (i < last && events.ts[i + 1] - events.ts[first] <= window) ++i;
    return i;
}

}  // namespace

// SEQ(a, b+, c): b rises from a, c falls; matches do not overlap. Of the starts with one end the earliest in the window is taken.
extern "C" Matches* rise_fall(const Asked* asked) {
    return answer(*asked, 4, [&](const Events& all, const uint8_t*, Matches& matches) {
        const Ordered events = grouped_values(all);
        auto &as = matches.columns[0], &cs = matches.columns[3];
        Lists bs(matches, 1);
        each_stream(events, [&](int32_t low, int32_t high) {
            for (int32_t a = low; a < high;) {
                const int32_t peak = rises(events, a, high), c = peak + 1;
                if (c >= high) break;
                while (a < peak && events.ts[c] - events.ts[a] > asked->window) ++a;
                if (a == peak || !(events.value[c] < events.value[peak])) {
                    a = c;
                    continue;
                }
                as.push_back(events.row[a]);
                bs.add(events, a + 1, peak);
                cs.push_back(events.row[c]);
                a = c + 1;
            }
        });
        matches.count = static_cast<int64_t>(as.size());
    });
}

// SEQ(a, b+, c+): b falls from a, c rises from b as far as the window reaches; every start counts.
extern "C" Matches* v_shape(const Asked* asked) {
    return answer(*asked, 5, [&](const Events& all, const uint8_t*, Matches& matches) {
        const Ordered events = grouped_values(all);
        auto& as = matches.columns[0];
        Lists bs(matches, 1), cs(matches, 3);
        each_stream(events, [&](int32_t low, int32_t high) {
            for (int32_t start = low; start < high;) {
                const int32_t bottom = falls(events, start, high), top = rises(events, bottom, high);
                for (int32_t a = start, end = bottom; a < bottom; ++a) {
                    end = in_window(events, a, end, top, asked->window);
                    if (end == bottom) continue;
                    as.push_back(events.row[a]);
                    bs.add(events, a + 1, bottom);
                    cs.add(events, bottom + 1, end);
                }
                start = std::max(top, start + 1);
            }
        });
        matches.count = static_cast<int64_t>(as.size());
    });
}

// SEQ(a, b+, c+, d+, e+): fall, rise, fall, rise; matches do not overlap. Earlier starts are complete earlier, or at the same event.
extern "C" Matches* w_shape(const Asked* asked) {
    return answer(*asked, 9, [&](const Events& all, const uint8_t*, Matches& matches) {
        const Ordered events = grouped_values(all);
        auto& as = matches.columns[0];
        Lists bs(matches, 1), cs(matches, 3), ds(matches, 5), es(matches, 7);
        each_stream(events, [&](int32_t low, int32_t high) {
            for (int32_t start = low; start < high;) {
                const int32_t b = falls(events, start, high), c = rises(events, b, high);
                const int32_t d = falls(events, c, high), top = rises(events, d, high);
                int32_t a = start, e = d;
                if (b > start && c > b && d > c)
                    while (a < b && (e = in_window(events, a, d, top, asked->window)) == d) ++a;
                if (e == d) {
                    start = std::max(c, start + 1);
                    continue;
                }
                as.push_back(events.row[a]);
                bs.add(events, a + 1, b);
                cs.add(events, b + 1, c);
                ds.add(events, c + 1, d);
                es.add(events, d + 1, e);
                start = e + 1;
            }
        });
        matches.count = static_cast<int64_t>(as.size());
    });
}

// SEQ(A a, B b+, C c): an A, then nothing but B, then a C.
extern "C" Matches* label_runs(const Asked* asked) {
    return answer(*asked, 4, [&](const Events& all, const uint8_t* label_of_type, Matches& matches) {
        enum Label : uint8_t { NONE, A, B, C };
        const Ordered events = grouped<true, false>(all, [&](int64_t i) { return label_of_type[all.type[i]]; });
        auto &as = matches.columns[0], &cs = matches.columns[3];
        Lists bs(matches, 1);
        each_stream(events, [&](int32_t low, int32_t high) {
            for (int32_t a = low; a < high; ++a) {
                if (events.label[a] != A) continue;
                int32_t c = a + 1;
                while (c < high && events.label[c] == B) ++c;
                if (c == high || c == a + 1 || events.label[c] != C || events.ts[c] - events.ts[a] > asked->window) continue;
                as.push_back(events.row[a]);
                bs.add(events, a + 1, c - 1);
                cs.push_back(events.row[c]);
            }
        });
        matches.count = static_cast<int64_t>(as.size());
    });
}

// SEQ(a, b+): longest runs of two events and more whose gaps are no longer than the window.
extern "C" Matches* sessions(const Asked* asked) {
    return answer(*asked, 3, [&](const Events& all, const uint8_t*, Matches& matches) {
        const Ordered events = grouped<false, false>(all, [](int64_t) { return uint8_t{0}; });
        auto& as = matches.columns[0];
        Lists bs(matches, 1);
        each_stream(events, [&](int32_t low, int32_t high) {
            for (int32_t a = low, last = low; a < high; a = ++last) {
                while (last + 1 < high && events.ts[last + 1] - events.ts[last] <= asked->window) ++last;
                if (last == a) continue;
                as.push_back(events.row[a]);
                bs.add(events, a + 1, last);
            }
        });
        matches.count = static_cast<int64_t>(as.size());
    });
}
