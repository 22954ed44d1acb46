// Access to the results from ctypes.
#include "stream.hpp"

extern "C" {
int64_t matches_count(const Matches* matches) { return matches->count; }
int64_t matches_columns(const Matches* matches) { return static_cast<int64_t>(matches->columns.size()); }
int64_t matches_size(const Matches* matches, int64_t column) { return static_cast<int64_t>(matches->columns[column].size()); }
const int64_t* matches_data(const Matches* matches, int64_t column) { return matches->columns[column].data(); }
void matches_free(Matches* matches) { delete matches; }
}
