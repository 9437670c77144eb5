#include "extension/order/row_ids.hpp"

extern "C" {
#include "mb/pg_wchar.h"
#include "utils/lsyscache.h"
}

#include <algorithm>
#include <cstring>
#include <utility>

#include "cpp/base/large_pages.hpp"
#include "cpp/base/row_buckets.hpp"
#include "extension/base/failure.hpp"
#include "extension/values/row_threads.hpp"

namespace gputext {
namespace {

/// Bytes of an id in a message; what is longer is cut.
constexpr int kLongestName = 200;

}  // namespace

RowIds::RowIds(const IdType& type, std::size_t memory_limit)
    : type_(type),
      stride_(type.by_value ? sizeof(Datum) : MAXALIGN(std::max<int>(type.length, 0))),
      bytes_(memory_limit) {}

void RowIds::append(Datum id) {
    const std::size_t begin = append_id(bytes_, type_, id);
    if (stride_ == 0) attempt_or_raise([&] { begins_.push_back(begin); });
    ++size_;
}

void RowIds::at(std::span<const std::uint32_t> rows, Datum* ids) const {
    for (std::size_t i = 0; i < rows.size(); ++i) ids[i] = at(rows[i]);
    if (type_.by_value) return;
    for (std::size_t i = 0; i < rows.size(); ++i) __builtin_prefetch(DatumGetPointer(ids[i]));
}

void RowIds::reorder(const std::vector<std::uint32_t>& order) {
    if (order.empty()) return;
    run_on_rows(order.size(), [&](Execution& execution) -> Status {
        if (type_.by_value) {
            std::vector<Datum> ordered;
            resize_pages(ordered, order.size());
            GPUTEXT_TRY(gather(
                order, ordered.data(), [this](std::uint32_t row) { return at(row); }, execution));
            ordered_.swap(ordered);
        } else {
            std::vector<std::uint64_t> ordered;
            resize_pages(ordered, order.size());
            GPUTEXT_TRY(gather(
                order, ordered.data(), [this](std::uint32_t row) { return begin_of(row); },
                execution));
            begins_.swap(ordered);
        }
        return {};
    });
    if (type_.by_value)
        packed_ = reinterpret_cast<const std::uint8_t*>(ordered_.data());
    else
        stride_ = 0;
    places_ = begins_.data();
}

RememberedIds RowIds::copy() const {
    RememberedIds ids{type_, size_, stride_, bytes(), {}, begins_};
    ids.packed.resize((bytes() + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t));
    std::memcpy(ids.packed.data(), packed_, bytes());
    return ids;
}

void RowIds::take(std::shared_ptr<const RememberedIds> ids) {
    remembered_ = std::move(ids);
    size_ = remembered_->size;
    stride_ = remembered_->stride;
    packed_ = reinterpret_cast<const std::uint8_t*>(remembered_->packed.data());
    places_ = remembered_->begins.data();
}

void RowIds::release() {
    bytes_.release();
    ordered_ = {};
    remembered_.reset();
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
