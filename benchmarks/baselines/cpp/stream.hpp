// What the hand-written loops share: their input, the filter with counting sort, and their results.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

// One table, read in place from Arrow's buffers; rows are in time order.
struct Events {
    const int64_t* ts;
    const int32_t* key;   // dense stream keys, 0 … streams - 1; null for one stream
    const int32_t* type;  // dictionary codes of the event type; null for plain text
    const double* value;
    const int32_t* text_offsets;  // the event type as plain text
    const char* text;
    int64_t rows;
    int64_t streams;
};

// The events of the query's own types, stream by stream, in time order within each.
struct Ordered {
    std::unique_ptr<int64_t[]> ts;
    std::unique_ptr<uint8_t[]> label;
    std::unique_ptr<int32_t[]> row;
    std::unique_ptr<double[]> value;
    std::vector<int32_t> start;  // of each stream, and the end of the last
};

// Row numbers of the matches: one vector per column, list offsets being a column of their own.
struct Matches {
    int64_t count = 0;
    std::vector<std::vector<int64_t>> columns;
};

inline bool in_time_order(const Events& events) {
    int64_t backward = 0;
    for (int64_t i = 1; i < events.rows; ++i) backward += events.ts[i] < events.ts[i - 1];
    return backward == 0;
}

// Keeps the rows whose label is not 0 and brings them into stream order.
template <bool Rows, bool Values>
Ordered order(const Events& events, const uint8_t* label_of_type) {
    std::unique_ptr<int32_t[]> kept(new int32_t[events.rows + 1]);
    std::vector<int32_t> start(events.streams + 1, 0);
    int64_t size = 0;
    for (int64_t i = 0; i < events.rows; ++i) {
        const int32_t relevant = label_of_type[events.type[i]] != 0;
        kept[size] = static_cast<int32_t>(i);
        size += relevant;
        start[events.key[i]] += relevant;
    }
    int32_t total = 0;
    for (auto& bound : start) {
        const int32_t count = bound;
        bound = total;
        total += count;
    }
    Ordered ordered;
    ordered.ts.reset(new int64_t[size]);
    ordered.label.reset(new uint8_t[size]);
    if (Rows) ordered.row.reset(new int32_t[size]);
    if (Values) ordered.value.reset(new double[size]);
    std::vector<int32_t> next(start);
    for (int64_t k = 0; k < size; ++k) {
        const int32_t i = kept[k];
        const int32_t place = next[events.key[i]]++;
        ordered.ts[place] = events.ts[i];
        ordered.label[place] = label_of_type[events.type[i]];
        if (Rows) ordered.row[place] = i;
        if (Values) ordered.value[place] = events.value[i];
    }
    ordered.start = std::move(start);
    return ordered;
}
