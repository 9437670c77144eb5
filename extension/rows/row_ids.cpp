#include "extension/rows/row_ids.hpp"

extern "C" {
#include "mb/pg_wchar.h"
#include "utils/lsyscache.h"
}

#include <cstring>

#include "extension/base/failure.hpp"

namespace gputext {
namespace {

/// Bytes of an id in a message; what is longer is cut.
constexpr int kLongestName = 200;

}  // namespace

void RowIds::append(Datum id) {
    const std::size_t begin = append_id(bytes_, type_, id);
    attempt_or_raise([&] { begins_.push_back(begin); });
}

void RowIds::reorder(const std::vector<std::uint32_t>& order) {
    if (order.empty()) return;
    attempt_or_raise([&] {
        std::vector<std::uint64_t> ordered;
        ordered.reserve(order.size());
        for (const std::uint32_t row : order) ordered.push_back(begins_[row]);
        begins_.swap(ordered);
    });
}

const char* RowIds::name_of(const char* word, Datum id) const {
    Oid output;
    bool is_varlena;
    getTypeOutputInfo(type_.oid, &output, &is_varlena);
    char* const text = OidOutputFunctionCall(output, id);
    const int length = static_cast<int>(std::strlen(text));
    if (length <= kLongestName) return psprintf("%s %s", word, text);
    return psprintf("%s %.*s...", word, pg_mbcliplen(text, length, kLongestName), text);
}

}  // namespace gputext
