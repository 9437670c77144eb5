#include "extension/texts/column_texts.hpp"

#include <utility>

#include "extension/base/failure.hpp"
#include "extension/base/owned.hpp"
#include "extension/server/session_job.hpp"
#include "extension/texts/text_source.hpp"

namespace gputext {
namespace {

/// Texts that are made to terms, as gputextd may keep them.
class Texts final : public PackedColumn {
public:
    Texts(TextKind kind, std::uint64_t source) : kind_(kind), source_(source) {}

    ValueKind kind() const override {
        const bool terms = form_of(kind_) == TextForm::terms;
        return {MyDatabaseId, terms ? ValueForm::counted_terms : ValueForm::word_positions,
                ElementType::float32, 0, source_};
    }
    std::uint64_t size(std::size_t) const override { return 0; }

private:
    TextKind kind_;
    std::uint64_t source_;
};

}  // namespace

std::uint64_t ColumnTexts::parse(std::span<StoredValues* const> columns, ChosenRows rows) {
    if (parsed_) parsed_->release();
    attempt_or_raise([&] { parsed_.emplace(kind_, config_, memory_limit_); });
    return parsed_->read(columns, rows);
}

/// Makes a chunk of what was parsed; false where that would take too much memory.
bool ColumnTexts::make_chunk() {
    const std::uint64_t parsed = parsed_->texts().size * sizeof(std::uint32_t);
    if (parsed >= memory_limit_) return false;
    attempt_or_raise([&] { chunk_.emplace(); });
    bool made = false;
    run_threaded([this, parsed, &made](Execution& execution) -> Status {
        const Status status = chunk_->make(parsed_->texts(), memory_limit_ - parsed, execution);
        made = status.ok();
        return status.code() == ErrorCode::memory_limit ? Status() : status;
    });
    if (!made) chunk_.reset();
    return made;
}

/// Makes a chunk of what was parsed, and gives it to gputextd, if it was made by what `source`
/// stands for. Whether gputextd has it. There may be a chunk without that.
bool ColumnTexts::keep(ResidentRequest& request, std::uint64_t source) {
    if (source_of_texts(kind_, config_) != source || !make_chunk()) return false;
    std::uint64_t resident = 0;
    return request.store().add_terms(chunk_->message(), chunk_->files(), resident);
}

/// Nothing of it is resident.
std::uint64_t ColumnTexts::parse_and_keep(ResidentRequest& request, std::uint64_t source,
                                          StoredValues& values) {
    StoredValues* const columns[] = {&values};
    const std::uint64_t fault = parse(columns, {});
    if (fault < values.size()) return fault;
    keep(request, source);
    if (chunk_) {
        parsed_->release();
        parsed_.reset();
    }
    return fault;
}

/// Some of it is resident, or all.
std::uint64_t ColumnTexts::parse_missing_and_take(ResidentRequest& request, std::uint64_t source,
                                                  StoredValues& values) {
    StoredValues* const columns[] = {&values};
    bool complete = true;
    if (request.store().missing() > 0) {
        auto& missing = *make_owned<std::vector<std::uint32_t>>(CurrentMemoryContext);
        if (!request.store().missing(missing)) return parse(columns, {});
        const std::uint64_t fault = parse(columns, missing);
        if (fault < values.size()) return fault;
        complete = keep(request, source);
        chunk_.reset();
        parsed_->release();
        parsed_.reset();
    }
    if (complete && take(request.store())) return values.size();
    return parse(columns, {});
}

/// Finds the records of rows. False where some are not what they have to be.
bool ColumnTexts::list_taken() {
    bool aligned = true;
    attempt_or_raise([&] {
        for (const MappedTerms::Chunk& chunk : taken_->chunks()) words_.push_back(chunk.words);
        texts_.reserve(taken_->places().size());
        for (const TermPlace& place : taken_->places()) {
            aligned = aligned && (place.size | place.offset) % sizeof(std::uint32_t) == 0;
            const std::uint32_t size = place.size / sizeof(std::uint32_t);
            const std::span<const std::uint8_t> record = taken_->value(place);
            texts_.push_back(
                {reinterpret_cast<const std::uint32_t*>(record.data()), size, place.chunk});
            size_ += size;
        }
    });
    if (!aligned || size_ * sizeof(std::uint32_t) > memory_limit_) return false;
    bool right = false;
    run_threaded([this, &right](Execution& execution) -> Status {
        const Status status = check_texts(texts(), execution);
        right = status.ok();
        return status.code() == ErrorCode::invalid_argument ? Status() : status;
    });
    return right;
}

bool ColumnTexts::take(ValueStore& store) {
    if (!store.take_terms()) return false;
    attempt_or_raise([&] { taken_.emplace(std::move(store.taken_terms())); });
    if (list_taken()) return true;
    ereport(DEBUG1, (errmsg("reading values without gputextd, whose values do not fit")));
    release();
    return false;
}

std::uint64_t ColumnTexts::read_with(ResidentRequest& request, std::uint64_t source,
                                     StoredValues& values) {
    StoredValues* const columns[] = {&values};
    if (!request.ask(values, Texts(kind_, source))) return parse(columns, {});
    if (request.store().missing() == values.size()) return parse_and_keep(request, source, values);
    return parse_missing_and_take(request, source, values);
}

std::uint64_t ColumnTexts::read(std::span<StoredValues* const> columns) {
    StoredValues& values = *columns[0];
    const double seconds = seconds_of_parsing(kind_, values);
    const std::uint64_t source =
        columns.size() == 1 && ResidentRequest::worth_asking(values, seconds)
            ? source_of_texts(kind_, config_)
            : 0;
    if (source == 0) return parse(columns, {});
    auto& request = *make_owned<ResidentRequest>(CurrentMemoryContext, memory_limit_);
    const std::uint64_t fault = read_with(request, source, values);
    request.store().close();
    return fault;
}

ChunkedTexts ColumnTexts::texts() const {
    if (taken_) return {form_of(kind_), texts_, words_, size_};
    return chunk_ ? chunk_->texts() : parsed_->texts();
}

void ColumnTexts::release() {
    if (parsed_) parsed_->release();
    parsed_.reset();
    chunk_.reset();
    taken_.reset();
    texts_ = {};
    words_ = {};
    size_ = 0;
}

}  // namespace gputext
