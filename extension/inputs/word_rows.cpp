#include "extension/inputs/word_rows.hpp"

#include "extension/base/failure.hpp"

namespace gputext {
namespace {

Status append_begin(MemoryFile& begins, std::uint64_t begin) {
    return begins.append({reinterpret_cast<const std::uint8_t*>(&begin), sizeof begin});
}

}  // namespace

std::uint32_t WordRows::add(std::string_view word) {
    const std::uint32_t number = recent_.number_of(word, size_);
    if (number != size_) return number;
    if (size_ == UINT32_MAX - 1)
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("the inner query gives more than 4294967294 words")));
    attempt_or_raise([&] { return append_begin(begins_, bytes_.size()); });
    bytes_.append(word.data(), word.size());
    return size_++;
}

void WordRows::finish() {
    bytes_.finish();
    attempt_or_raise([&]() -> Status {
        GPUTEXT_TRY(append_begin(begins_, bytes_.size()));
        return begins_.seal();
    });
}

Words WordRows::view() const {
    static constexpr std::uint8_t nothing = 0;
    return {bytes_.size() == 0 ? &nothing : bytes_.data(),
            reinterpret_cast<const std::uint64_t*>(begins_.data()), size_};
}

void WordRows::share() {
    file_ = bytes_.share();
}

}  // namespace gputext
