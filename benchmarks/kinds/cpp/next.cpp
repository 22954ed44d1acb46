// Skip till next match per key: of each start, the first events that can be bound. Loops that mind events of one time say so.
#include "kinds.hpp"

#include <algorithm>
#include <array>

// SEQ(A a, B b+, C c): each b above the b before, c below the last b.
extern "C" Matches* next_rising(const Asked* asked) {
    return answer(*asked, 4, [&](const Events& all, const uint8_t* label_of_type, Matches& matches) {
        enum Label : uint8_t { NONE, A, B, C };
        const Ordered events = order<true, true>(all, label_of_type);
        auto &as = matches.columns[0], &cs = matches.columns[3];
        Lists bs(matches, 1);
        each_stream(events, [&](int32_t low, int32_t high) {
            for (int32_t a = low; a < high; ++a) {
                if (events.label[a] != A) continue;
                const int64_t limit = events.ts[a] + asked->window;
                const size_t before = bs.rows.size();
                double last = 0;
                int32_t c = a + 1;
                for (; c < high && events.ts[c] <= limit; ++c) {
                    const bool has_b = bs.rows.size() > before;
                    if (events.label[c] == C && has_b && events.value[c] < last) break;
                    if (events.label[c] != B || (has_b && !(events.value[c] > last))) continue;
                    last = events.value[c];
                    bs.rows.push_back(events.row[c]);
                }
                if (c == high || events.ts[c] > limit) {
                    bs.rows.resize(before);
                    continue;
                }
                as.push_back(events.row[a]);
                bs.close();
                cs.push_back(events.row[c]);
            }
        });
        matches.count = static_cast<int64_t>(as.size());
    });
}

// SEQ(A a, B b+, C c): the mean of all b is above a.
extern "C" Matches* mean_above(const Asked* asked) {
    return answer(*asked, 4, [&](const Events& all, const uint8_t* label_of_type, Matches& matches) {
        enum Label : uint8_t { NONE, A, B, C };
        const Ordered events = order<true, true>(all, label_of_type);
        auto &as = matches.columns[0], &cs = matches.columns[3];
        Lists bs(matches, 1);
        each_stream(events, [&](int32_t low, int32_t high) {
            for (int32_t a = low; a < high; ++a) {
                if (events.label[a] != A) continue;
                const int64_t limit = events.ts[a] + asked->window;
                const size_t before = bs.rows.size();
                double sum = 0;
                int32_t c = a + 1;
                for (; c < high && events.ts[c] <= limit; ++c) {
                    const size_t count = bs.rows.size() - before;
                    if (events.label[c] == C && count > 0 && sum / static_cast<double>(count) > events.value[a]) break;
                    if (events.label[c] != B) continue;
                    sum += events.value[c];
                    bs.rows.push_back(events.row[c]);
                }
                if (c == high || events.ts[c] > limit) {
                    bs.rows.resize(before);
                    continue;
                }
                as.push_back(events.row[a]);
                bs.close();
                cs.push_back(events.row[c]);
            }
        });
        matches.count = static_cast<int64_t>(as.size());
    });
}

// SEQ(A a, NOT(N n), C c): no N later than a and earlier than c. Events may have the same time.
extern "C" Matches* negation_middle(const Asked* asked) {
    return answer(*asked, 2, [&](const Events& all, const uint8_t* label_of_type, Matches& matches) {
        enum Label : uint8_t { NONE, A, N, C };
        const Ordered events = order<true, false>(all, label_of_type);
        each_stream(events, [&](int32_t low, int32_t high) {
            for (int32_t a = low; a < high; ++a) {
                if (events.label[a] != A) continue;
                const int64_t begin = events.ts[a], limit = begin + asked->window;
                int64_t forbidden = INT64_MAX;  // the time of the first N
                for (int32_t i = a + 1; i < high && events.ts[i] <= limit && forbidden >= events.ts[i]; ++i) {
                    if (events.ts[i] == begin) continue;
                    if (events.label[i] == N) forbidden = std::min(forbidden, events.ts[i]);
                    if (events.label[i] != C) continue;
                    matches.columns[0].push_back(events.row[a]);
                    matches.columns[1].push_back(events.row[i]);
                    break;
                }
            }
        });
        matches.count = static_cast<int64_t>(matches.columns[0].size());
    });
}

// SEQ(A a, C c, NOT(N n)): no N later than c in the window that a opens. Events may have the same time.
extern "C" Matches* negation_end(const Asked* asked) {
    return answer(*asked, 2, [&](const Events& all, const uint8_t* label_of_type, Matches& matches) {
        enum Label : uint8_t { NONE, A, C, N };
        const Ordered events = order<true, false>(all, label_of_type);
        each_stream(events, [&](int32_t low, int32_t high) {
            for (int32_t a = low; a < high; ++a) {
                if (events.label[a] != A) continue;
                const int64_t limit = events.ts[a] + asked->window;
                int32_t c = a + 1;
                while (c < high && (events.label[c] != C || events.ts[c] == events.ts[a])) ++c;
                if (c == high || events.ts[c] > limit) continue;
                int32_t n = c + 1;
                while (n < high && events.ts[n] <= limit && (events.label[n] != N || events.ts[n] == events.ts[c])) ++n;
                if (n < high && events.ts[n] <= limit) continue;
                matches.columns[0].push_back(events.row[a]);
                matches.columns[1].push_back(events.row[c]);
            }
        });
        matches.count = static_cast<int64_t>(matches.columns[0].size());
    });
}

// OR(SEQ(A a, B b), SEQ(C c, D d)): b above a, d below c. Events may have the same time; an absent variable is -1.
extern "C" Matches* or_of_two(const Asked* asked) {
    return answer(*asked, 4, [&](const Events& all, const uint8_t* label_of_type, Matches& matches) {
        enum Label : uint8_t { NONE, A, B, C, D };
        const Ordered events = order<true, true>(all, label_of_type);
        auto& columns = matches.columns;
        each_stream(events, [&](int32_t low, int32_t high) {
            for (int32_t first = low; first < high; ++first) {
                const uint8_t label = events.label[first];
                if (label != A && label != C) continue;
                const double value = events.value[first];
                for (int32_t i = first + 1; i < high && events.ts[i] - events.ts[first] <= asked->window; ++i) {
                    if (events.label[i] != label + 1 || events.ts[i] == events.ts[first]) continue;
                    if (!(label == A ? events.value[i] > value : events.value[i] < value)) continue;
                    columns[0].push_back(label == A ? events.row[first] : -1);
                    columns[1].push_back(label == A ? events.row[i] : -1);
                    columns[2].push_back(label == C ? events.row[first] : -1);
                    columns[3].push_back(label == C ? events.row[i] : -1);
                    break;
                }
            }
        });
        matches.count = static_cast<int64_t>(columns[0].size());
    });
}

// SEQ(A a, C c): the first c more than twice a, far behind it.
extern "C" Matches* distant_next(const Asked* asked) {
    return answer(*asked, 2, [&](const Events& all, const uint8_t* label_of_type, Matches& matches) {
        enum Label : uint8_t { NONE, A, C };
        const Ordered events = order<true, true>(all, label_of_type);
        each_stream(events, [&](int32_t low, int32_t high) {
            for (int32_t a = low; a < high; ++a) {
                if (events.label[a] != A) continue;
                const int64_t limit = events.ts[a] + asked->window;
                const double bound = 2 * events.value[a];
                int32_t c = a + 1;
                while (c < high && events.ts[c] <= limit && (events.label[c] != C || !(events.value[c] > bound))) ++c;
                if (c == high || events.ts[c] > limit) continue;
                matches.columns[0].push_back(events.row[a]);
                matches.columns[1].push_back(events.row[c]);
            }
        });
        matches.count = static_cast<int64_t>(matches.columns[0].size());
    });
}

// SEQ(AND(A a, … F f), G g): found backwards, with the next event of each type at hand.
extern "C" Matches* set_of_six(const Asked* asked) {
    return answer(*asked, 7, [&](const Events& all, const uint8_t* label_of_type, Matches& matches) {
        constexpr uint8_t SET = 6, G = 7;
        const Ordered events = order<true, false>(all, label_of_type);
        std::vector<int32_t> next_g;
        each_stream(events, [&](int32_t low, int32_t high) {
            std::array<int32_t, SET> next;
            next.fill(ABSENT);
            next_g.resize(std::max<size_t>(next_g.size(), high - low));
            int32_t g = ABSENT;
            for (int32_t i = high - 1; i >= low; --i) {
                next_g[i - low] = g;
                if (events.label[i] == G) {
                    g = i;
                    continue;
                }
                next[events.label[i] - 1] = i;
                const int32_t last = *std::max_element(next.begin(), next.end());
                const int32_t end = last == ABSENT ? ABSENT : next_g[last - low];
                if (end == ABSENT || events.ts[end] - events.ts[i] > asked->window) continue;
                for (uint8_t v = 0; v < SET; ++v) matches.columns[v].push_back(events.row[next[v]]);
                matches.columns[SET].push_back(events.row[end]);
            }
        });
        matches.count = static_cast<int64_t>(matches.columns[0].size());
    });
}

// SEQ of five steps: found backwards, with the next event of each step and what follows it at hand.
extern "C" Matches* funnel(const Asked* asked) {
    return answer(*asked, 5, [&](const Events& all, const uint8_t* label_of_type, Matches& matches) {
        constexpr uint8_t STEPS = 5;
        const Ordered events = order<true, false>(all, label_of_type);
        std::vector<int32_t> following;
        each_stream(events, [&](int32_t low, int32_t high) {
            std::array<int32_t, STEPS + 2> next;
            next.fill(ABSENT);
            following.resize(std::max<size_t>(following.size(), high - low));
            for (int32_t i = high - 1; i >= low; --i) {
                const uint8_t step = events.label[i];
                following[i - low] = next[step + 1];
                next[step] = i;
                if (step != 1) continue;
                std::array<int32_t, STEPS> places{i};
                int32_t end = i;
                for (uint8_t k = 1; k < STEPS && end != ABSENT; ++k) places[k] = end = following[end - low];
                if (end == ABSENT || events.ts[end] - events.ts[i] > asked->window) continue;
                for (uint8_t k = 0; k < STEPS; ++k) matches.columns[k].push_back(events.row[places[k]]);
            }
        });
        matches.count = static_cast<int64_t>(matches.columns[0].size());
    });
}

// SEQ(A a, B b, C c), robust: the first b above a from which a c more than 40 above b follows in the window.
extern "C" Matches* robust(const Asked* asked) {
    return answer(*asked, 3, [&](const Events& all, const uint8_t* label_of_type, Matches& matches) {
        enum Label : uint8_t { NONE, A, B, C };
        const Ordered events = order<true, true>(all, label_of_type);
        each_stream(events, [&](int32_t low, int32_t high) {
            for (int32_t a = low; a < high; ++a) {
                if (events.label[a] != A) continue;
                int32_t end = a;
                while (end + 1 < high && events.ts[end + 1] - events.ts[a] <= asked->window) ++end;
                for (int32_t b = a + 1; b <= end; ++b) {
                    if (events.label[b] != B || !(events.value[b] > events.value[a])) continue;
                    const double bound = events.value[b] + 40;
                    int32_t c = b + 1;
                    while (c <= end && (events.label[c] != C || !(events.value[c] > bound))) ++c;
                    if (c > end) continue;
                    matches.columns[0].push_back(events.row[a]);
                    matches.columns[1].push_back(events.row[b]);
                    matches.columns[2].push_back(events.row[c]);
                    break;
                }
            }
        });
        matches.count = static_cast<int64_t>(matches.columns[0].size());
    });
}
