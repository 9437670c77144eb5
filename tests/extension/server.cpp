#include "tests/extension/server.hpp"

extern "C" {
#include "storage/bufpage.h"
}

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#undef vsnprintf

namespace {

gputext::testing::ServerError error("");
std::string message;

std::string formatted(const char* format, va_list values) {
    char text[1000];
    std::vsnprintf(text, sizeof text, format, values);
    return text;
}

#define FORMAT_INTO(place)             \
    va_list values;                    \
    va_start(values, format);          \
    place = formatted(format, values); \
    va_end(values);                    \
    return 0

struct Free {
    void operator()(void* memory) const { std::free(memory); }
};

}  // namespace

extern "C" {

bool errstart(int, const char*) {
    error = gputext::testing::ServerError("");
    message.clear();
    return true;
}
bool errstart_cold(int level, const char* domain) {
    return errstart(level, domain);
}
int errcode(int sqlstate) {
    return error.sqlstate = sqlstate, 0;
}
int errmsg(const char* format, ...) {
    FORMAT_INTO(message);
}
int errdetail(const char* format, ...) {
    FORMAT_INTO(error.detail);
}
int errdetail_internal(const char* format, ...) {
    FORMAT_INTO(error.detail);
}
int errhint(const char*, ...) {
    return 0;
}
void errfinish(const char*, int, const char*) {
    gputext::testing::ServerError raised(message);
    raised.sqlstate = error.sqlstate;
    raised.detail = error.detail;
    throw raised;
}

/// Lives until the program ends.
void* palloc(Size size) {
    static std::vector<std::unique_ptr<void, Free>> all;
    all.emplace_back(std::malloc(size));
    return all.back().get();
}

varlena* pg_detoast_datum(varlena* value) {
    return value;
}

void PageInit(Page page, Size size, Size special) {
    std::memset(page, 0, size);
    auto* const header = reinterpret_cast<PageHeader>(page);
    header->pd_lower = SizeOfPageHeaderData;
    header->pd_upper = header->pd_special = static_cast<LocationIndex>(size - MAXALIGN(special));
    PageSetPageSizeAndVersion(page, size, PG_PAGE_LAYOUT_VERSION);
}
}

// What lies in memory contexts is not given back here, and is no leak.
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options() {
    return "detect_leaks=0";
}
