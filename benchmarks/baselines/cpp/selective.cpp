// SEQ(Quote q, Trade t, Halt h), q.price < t.price < h.price, under skip-till-any-match, strict ties, one stream.
// The rarest type is the pivot: only the window before each Halt is read. Matches come in the order of their Halts.
#include "stream.hpp"

#include <cstring>

namespace {

enum Label : uint8_t { NONE, QUOTE, TRADE, HALT };

struct Codes {
    const int32_t* type;
    const uint8_t* label_of_type;
    uint8_t operator()(int64_t i) const { return label_of_type[type[i]]; }
};

struct Text {
    const int32_t* offsets;
    const char* text;
    bool is(int64_t i, const char* name, int32_t length) const {
        return offsets[i + 1] - offsets[i] == length && std::memcmp(text + offsets[i], name, length) == 0;
    }
    uint8_t operator()(int64_t i) const {
        return is(i, "Halt", 4) ? HALT : is(i, "Quote", 5) ? QUOTE : is(i, "Trade", 5) ? TRADE : NONE;
    }
};

template <bool Rows, class Labels>
void match_halt(const Events& events, Labels label, int64_t halt, int64_t& low, int64_t window, std::vector<int64_t>& quotes,
                Matches& matches) {
    while (events.ts[halt] - events.ts[low] > window) ++low;
    quotes.clear();
    for (int64_t i = low; i < halt && events.ts[i] < events.ts[halt]; ++i) {
        const uint8_t kind = label(i);
        if (kind == QUOTE) quotes.push_back(i);
        if (kind != TRADE || !(events.value[i] < events.value[halt])) continue;
        for (const int64_t quote : quotes) {
            if (!(events.value[quote] < events.value[i] && events.ts[quote] < events.ts[i])) continue;
            ++matches.count;
            if (!Rows) continue;
            matches.columns[0].push_back(quote);
            matches.columns[1].push_back(i);
            matches.columns[2].push_back(halt);
        }
    }
}

template <bool Rows, class Labels>
Matches* match(const Events& events, Labels label, int64_t window) {
    auto* matches = new Matches;
    matches->columns.resize(3);
    std::vector<int64_t> quotes;
    int64_t low = 0;
    for (int64_t i = 0; i < events.rows; ++i)
        if (label(i) == HALT) match_halt<Rows>(events, label, i, low, window, quotes, *matches);
    return matches;
}

template <class Labels>
Matches* run(const Events& events, Labels label, int64_t window, bool rows) {
    return rows ? match<true>(events, label, window) : match<false>(events, label, window);
}

}  // namespace

extern "C" Matches* selective(const Events* events, const uint8_t* label_of_type, int64_t window, bool rows, bool) {
    if (!in_time_order(*events)) return nullptr;
    if (events->type == nullptr) return run(*events, Text{events->text_offsets, events->text}, window, rows);
    return run(*events, Codes{events->type, label_of_type}, window, rows);
}
