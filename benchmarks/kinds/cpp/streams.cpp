// Skip till any match over one stream; and the questions that the suite's own loops answer.
#include "kinds.hpp"

extern "C" {
Matches* medical(const Events*, const uint8_t* label_of_type, int64_t window, bool rows, bool pairs);
Matches* stocks(const Events*, const uint8_t* label_of_type, int64_t window, bool rows, bool pairs);
Matches* selective(const Events*, const uint8_t* label_of_type, int64_t window, bool rows, bool pairs);
}

namespace {

// The suite's loop over the same events, with a code for each type.
template <class Loop>
Matches* as_in_suite(const Asked& asked, Loop loop) {
    Matches* found = nullptr;
    delete answer(asked, 0, [&](const Events& events, const uint8_t* labels, Matches&) { found = loop(&events, labels, asked.window, true, false); });
    return found;
}

}  // namespace

extern "C" Matches* next_kleene(const Asked* asked) { return as_in_suite(*asked, stocks); }

extern "C" Matches* set_then_one(const Asked* asked) { return as_in_suite(*asked, medical); }

// This loop reads text itself.
extern "C" Matches* selective_prices(const Asked* asked) {
    const Events events{asked->ts, nullptr, asked->type, asked->value, asked->text_offsets, asked->text, asked->rows, 1};
    return selective(&events, asked->label_of_type, asked->window, true, true);
}

// SEQ(A a, C c), all matches: c more than twice a. Events may have the same time.
extern "C" Matches* distant_any(const Asked* asked) {
    return answer(*asked, 2, [&](const Events& events, const uint8_t* label_of_type, Matches& matches) {
        enum Label : uint8_t { NONE, A, C };
        struct Start {
            int64_t ts, row;
            double bound;
        };
        std::vector<Start> starts;
        size_t low = 0;
        for (int64_t i = 0; i < events.rows; ++i) {
            const uint8_t label = label_of_type[events.type[i]];
            if (label == A) starts.push_back({events.ts[i], i, 2 * events.value[i]});
            if (label != C) continue;
            while (low < starts.size() && events.ts[i] - starts[low].ts > asked->window) ++low;
            for (size_t k = low; k < starts.size(); ++k) {
                if (!(events.value[i] > starts[k].bound) || starts[k].ts == events.ts[i]) continue;
                matches.columns[0].push_back(starts[k].row);
                matches.columns[1].push_back(i);
            }
        }
        matches.count = static_cast<int64_t>(matches.columns[0].size());
    });
}
