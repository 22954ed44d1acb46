// What the loops for kinds of questions share: how they are asked, rows of all types in stream order, and lists of row numbers.
#pragma once
#include <cstring>

#include "../../baselines/cpp/stream.hpp"

// One question over one table that is read in place from Arrow's buffers; rows are in time order.
struct Asked {
    const int64_t* ts;
    const int32_t* key;   // dense stream keys; null for one stream
    const int32_t* type;  // dictionary codes of the event type; null for plain text
    const double* value;
    const double* second;  // another value
    const int32_t* text_offsets;
    const char* text;
    const uint8_t* label_of_type;  // of each dictionary code: 1, 2, … for the query's types, 0 for all others
    const char* const* names;      // of the query's types, in the order of their labels
    int64_t types;
    int64_t rows;
    int64_t streams;
    int64_t window;  // the longest time from the first event of a match to the last, or from one event to the next
};

constexpr int32_t ABSENT = INT32_MAX;

// The label of each row's type, where types are plain text. The query's are of eight bytes at most, so that each is one word.
inline std::vector<int32_t> labels_of_text(const Asked& asked) {
    constexpr int32_t WORD = 8;
    uint64_t words[256];
    int32_t lengths[256];
    for (int64_t name = 0; name < asked.types; ++name) {
        lengths[name] = static_cast<int32_t>(std::strlen(asked.names[name]));
        words[name] = 0;
        std::memcpy(&words[name], asked.names[name], lengths[name]);
    }
    std::vector<int32_t> labels(asked.rows);
    const int32_t last_word = asked.text_offsets[asked.rows] - WORD;
    for (int64_t i = 0; i < asked.rows; ++i) {
        const int32_t begin = asked.text_offsets[i], length = asked.text_offsets[i + 1] - begin;
        if (length == 0 || length > WORD) continue;
        uint64_t word = 0;
        if (begin <= last_word)
            std::memcpy(&word, asked.text + begin, WORD);
        else
            std::memcpy(&word, asked.text + begin, length);
        word &= ~uint64_t{0} >> (64 - 8 * length);
        int32_t label = 0;
        for (int32_t name = 0; name < asked.types; ++name) label = length == lengths[name] && word == words[name] ? name + 1 : label;
        labels[i] = label;
    }
    return labels;
}

// Runs `loop` over the events with a code for each type, whichever way types came; null if rows are in no order of time.
template <class Loop>
Matches* answer(const Asked& asked, size_t columns, Loop loop) {
    Events events{asked.ts, asked.key, asked.type, asked.value, asked.text_offsets, asked.text, asked.rows, asked.streams};
    if (!in_time_order(events)) return nullptr;
    std::vector<int32_t> codes;
    std::vector<uint8_t> same;
    const uint8_t* labels = asked.label_of_type;
    if (asked.text != nullptr) {
        codes = labels_of_text(asked);
        for (int64_t label = 0; label <= asked.types; ++label) same.push_back(static_cast<uint8_t>(label));
        events.type = codes.data(), labels = same.data();
    }
    auto* matches = new Matches;
    matches->columns.resize(columns);
    loop(events, labels, *matches);
    return matches;
}

// Calls `match` with the bounds of each stream.
template <class Match>
void each_stream(const Ordered& events, Match match) {
    for (size_t stream = 0; stream + 1 < events.start.size(); ++stream) match(events.start[stream], events.start[stream + 1]);
}

// Brings all rows into stream order; `label` says what is known of a row.
template <bool Labels, bool Values, class Label>
Ordered grouped(const Events& events, Label label) {
    Ordered ordered;
    ordered.start.assign(events.streams + 1, 0);
    for (int64_t i = 0; i < events.rows; ++i) ++ordered.start[events.key[i] + 1];
    for (int64_t stream = 0; stream < events.streams; ++stream) ordered.start[stream + 1] += ordered.start[stream];
    ordered.ts.reset(new int64_t[events.rows]);
    ordered.row.reset(new int32_t[events.rows]);
    if (Labels) ordered.label.reset(new uint8_t[events.rows]);
    if (Values) ordered.value.reset(new double[events.rows]);
    std::vector<int32_t> next(ordered.start);
    for (int64_t i = 0; i < events.rows; ++i) {
        const int32_t place = next[events.key[i]]++;
        ordered.ts[place] = events.ts[i];
        ordered.row[place] = static_cast<int32_t>(i);
        if (Labels) ordered.label[place] = label(i);
        if (Values) ordered.value[place] = events.value[i];
    }
    return ordered;
}

inline Ordered grouped_values(const Events& events) {
    return grouped<false, true>(events, [](int64_t) { return uint8_t{0}; });
}

// A column of lists: the offsets stand before the row numbers.
struct Lists {
    std::vector<int64_t>& offsets;
    std::vector<int64_t>& rows;

    Lists(Matches& matches, size_t column) : offsets(matches.columns[column]), rows(matches.columns[column + 1]) { offsets.push_back(0); }

    void close() { offsets.push_back(static_cast<int64_t>(rows.size())); }

    // A list of the events from place `first` to place `last`.
    void add(const Ordered& events, int32_t first, int32_t last) {
        rows.insert(rows.end(), events.row.get() + first, events.row.get() + last + 1);
        close();
    }
};
