#include "cpp/documents/near_duplicate_check.hpp"

#include <algorithm>
#include <new>
#include <span>
#include <string_view>
#include <vector>

#include "cpp/base/stoppable.hpp"
#include "cpp/documents/detail/folded_text.hpp"
#include "cpp/documents/detail/gram_set.hpp"
#include "cpp/documents/edit_distance.hpp"

namespace gputext {
namespace {

/// A text as characters.
class CharacterText {
public:
    /// `text` must live as long as this.
    void assign(Bytes text, const CharacterLengths& lengths, Stop stop) {
        bytes_ = text;
        narrow_ = is_narrow(text, lengths, stop);
        symbols_.clear();
        length_ = narrow_ ? text.size() : count_characters(text, lengths, stop);
    }

    bool narrow() const { return narrow_; }
    std::size_t length() const { return length_; }

    /// A number for each character.
    std::span<const std::uint32_t> symbols(const CharacterLengths& lengths, Stop stop) {
        // There are fewer numbers than characters if an earlier call was stopped.
        if (symbols_.size() < length_) decode_characters(bytes_, lengths, symbols_, stop);
        return symbols_;
    }

    /// A byte for each character.
    Bytes folded(const CharacterLengths& lengths, Stop stop) {
        if (narrow_) return bytes_;
        if (!stoppable_assign(folded_, length_, std::uint8_t{0}, stop)) return {};
        std::size_t at = 0;
        for (std::size_t from = 0; from < length_ && !stop(); from += kLookEvery)
            fold_characters(bytes_, lengths, at,
                            std::span(folded_).subspan(from, std::min(kLookEvery, length_ - from)));
        return folded_;
    }

private:
    Bytes bytes_;
    bool narrow_ = true;
    std::size_t length_ = 0;
    std::vector<std::uint32_t> symbols_;
    std::vector<std::uint8_t> folded_;
};

}  // namespace

struct NearDuplicateCheck::Scratch {
    std::vector<std::uint8_t> document;
    CharacterLengths lengths = CharacterLengths::single_byte();
    double threshold = 0;
    bool prepared = false;
    CharacterText text, other;
    GramSet grams;
    EditDistance edit_distance;

    Result<std::size_t> distance(std::size_t limit, Stop stop) {
        if (text.narrow() && other.narrow())
            return edit_distance(text.folded(lengths, stop), other.folded(lengths, stop), limit,
                                 stop);
        const auto mine = text.symbols(lengths, stop);
        const auto theirs = other.symbols(lengths, stop);
        if (stop()) return Status::cancelled();
        return edit_distance(mine, theirs, limit, stop);
    }
};

NearDuplicateCheck::NearDuplicateCheck() : scratch_(std::make_unique<Scratch>()) {}
NearDuplicateCheck::~NearDuplicateCheck() = default;
NearDuplicateCheck::NearDuplicateCheck(NearDuplicateCheck&&) noexcept = default;
NearDuplicateCheck& NearDuplicateCheck::operator=(NearDuplicateCheck&&) noexcept = default;

void NearDuplicateCheck::prepare(Bytes document, const CharacterLengths& lengths, double threshold,
                                 Stop stop) {
    Scratch& scratch = *scratch_;
    scratch.prepared = false;
    scratch.document.clear();
    const std::string_view bytes(reinterpret_cast<const char*>(document.data()), document.size());
    if (!stoppable_append(scratch.document, bytes, stop)) return;
    scratch.lengths = lengths;
    scratch.threshold = threshold;
    scratch.text.assign(scratch.document, lengths, stop);
    scratch.grams.assign(scratch.text.folded(lengths, stop), stop);
    scratch.prepared = !stop();
}

Bytes NearDuplicateCheck::document() const {
    return scratch_->document;
}

double NearDuplicateCheck::threshold() const {
    return scratch_->threshold;
}

Result<bool> NearDuplicateCheck::is_near(Bytes other, Stop stop) try {
    Scratch& scratch = *scratch_;
    if (!scratch.prepared) return Status::cancelled();
    scratch.other.assign(other, scratch.lengths, stop);
    const std::size_t mine = scratch.text.length();
    const std::size_t theirs = scratch.other.length();
    const std::size_t limit = most_edits_within(scratch.threshold, mine + theirs);
    if (std::max(mine, theirs) - std::min(mine, theirs) > limit) return false;
    const Bytes folded = scratch.other.folded(scratch.lengths, stop);
    const std::size_t least = scratch.grams.absent(folded, limit, stop);
    if (stop()) return Status::cancelled();
    if (least > limit) return false;
    const Result<std::size_t> distance = scratch.distance(limit, stop);
    if (!distance.ok()) return distance.status();
    return *distance <= limit;
} catch (const std::bad_alloc&) {
    return Status::out_of_memory();
}

}  // namespace gputext
