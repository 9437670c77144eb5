#include "cpp/link/nearest_strings.hpp"

#include <span>
#include <vector>

namespace gputext {
namespace {

Status add_strings(const Strings& strings, RequestFiles& files, StringsShape& shape, Stop stop) {
    if (strings.size() >= UINT32_MAX) return too_many("strings");
    // Some of a table's strings may begin anywhere.
    const std::uint64_t first = strings.begins.empty() ? 0 : strings.begins.front();
    std::vector<std::uint64_t> begins(1, 0);
    begins.reserve(strings.size() + 1);
    for (std::size_t i = 0; i < strings.size(); ++i) {
        if (i % kLookEvery == 0 && stop()) return Status::cancelled();
        begins.push_back(strings.begins[i + 1] - first);
    }
    shape = {static_cast<std::uint32_t>(strings.size()), begins.back()};
    GPUTEXT_TRY(files.add_copy(std::span<const std::uint64_t>(begins), stop));
    return files.add_copy(std::span(strings.symbols + first, shape.symbols), stop);
}

}  // namespace

Status NearestStringsRequest::pack(Packed& packed, Stop stop) const {
    SubmitNearestStrings& message = packed.message;
    message.parameters = parameters;
    GPUTEXT_TRY(add_strings(queries, packed.files, message.queries, stop));
    GPUTEXT_TRY(add_strings(items, packed.files, message.items, stop));
    GPUTEXT_TRY(
        packed.files.add(keys, matches, message.has_keys, message.has_matches, stop));
    packed.expected.queries = message.queries.strings;
    packed.expected.items = message.items.strings;
    return {};
}

}  // namespace gputext
