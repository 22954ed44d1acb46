// Loops for single questions about row patterns: they know the question, and that rows are in order of key and time.
// Each writes the key, the first and the last time and the number of rows of every match, and returns how many there are.
#include <cstdint>

struct Rows {
    const int32_t* key;
    const int64_t* ts;
    const double* price;
    const int64_t* size;
    const int32_t* level;
    const int8_t* kind;
    int64_t rows;
};

struct Found {
    int32_t* key;
    int64_t* first;
    int64_t* last;
    int64_t* count;
    int64_t matches;
};

static void add(const Rows& rows, Found& found, int64_t first, int64_t last) {
    found.key[found.matches] = rows.key[first];
    found.first[found.matches] = rows.ts[first];
    found.last[found.matches] = rows.ts[last];
    found.count[found.matches++] = last - first + 1;
}

static int64_t end_of(const Rows& rows, int64_t begin) {
    int64_t end = begin + 1;
    while (end < rows.rows && rows.key[end] == rows.key[begin]) end++;
    return end;
}

extern "C" void sessions(const Rows& rows, Found& found) {
    for (int64_t first = 0, r = 1; r <= rows.rows; r++) {
        if (r == rows.rows || rows.key[r] != rows.key[first] || rows.ts[r] - rows.ts[r - 1] >= 4) {
            add(rows, found, first, r - 1);
            first = r;
        }
    }
}

extern "C" void v_shape_next_row(const Rows& rows, Found& found) {
    for (int64_t first = 0; first < rows.rows; first++) {
        int64_t r = first + 1;
        while (r < rows.rows && rows.key[r] == rows.key[first] && rows.price[r] < rows.price[r - 1]) r++;
        if (r == first + 1) continue;
        int64_t bottom = r;
        while (r < rows.rows && rows.key[r] == rows.key[first] && rows.price[r] > rows.price[r - 1]) r++;
        if (r > bottom) add(rows, found, first, r - 1);
    }
}

extern "C" void funnel(const Rows& rows, Found& found) {
    for (int64_t begin = 0, end; begin < rows.rows; begin = end) {
        end = end_of(rows, begin);
        int64_t first = -1, sought = 0;
        for (int64_t r = begin; r < end; r++) {
            if (rows.kind[r] != sought) continue;
            first = sought == 0 ? r : first;
            if (++sought == 3) {
                add(rows, found, first, r);
                sought = 0;
            }
        }
    }
}

extern "C" void equal_rows(const Rows& rows, Found& found) {
    for (int64_t first = 0; first < rows.rows;) {
        int64_t r = first;
        while (r < rows.rows && rows.key[r] == rows.key[first] && rows.level[r] == 0) r++;
        if (r - first >= 2) add(rows, found, first, r - 1);
        first = r > first ? r : first + 1;
    }
}

extern "C" void above_the_first(const Rows& rows, Found& found) {
    for (int64_t first = 0; first < rows.rows;) {
        int64_t r = first + 1;
        while (r < rows.rows && rows.key[r] == rows.key[first] && rows.price[r] > rows.price[first]) r++;
        if (r - first >= 2) add(rows, found, first, r - 1);
        first = r;
    }
}

extern "C" void running_sum(const Rows& rows, Found& found) {
    for (int64_t first = 0; first < rows.rows;) {
        int64_t r = first, sum = 0;
        while (r < rows.rows && rows.key[r] == rows.key[first] && sum + rows.size[r] <= 100) sum += rows.size[r++];
        if (r > first) add(rows, found, first, r - 1);
        first = r > first ? r : first + 1;
    }
}
