#include "cpp/link/protocol.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "cpp/base/stoppable.hpp"

namespace gputext {
namespace {

struct Header {
    std::uint32_t magic;
    std::uint16_t version;
    std::uint16_t type;
    std::uint32_t body_size;
    std::uint32_t descriptors;
};
static_assert(sizeof(Header) == 16);

template <class T>
concept Number = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;

class Writer {
public:
    explicit Writer(std::vector<std::uint8_t>& bytes) : bytes_(bytes) {}

    template <Number T>
    void number(const T& value) {
        const std::size_t at = bytes_.size();
        bytes_.resize(at + sizeof value);
        std::memcpy(bytes_.data() + at, &value, sizeof value);
    }
    void flag(const bool& value) { number(static_cast<std::uint8_t>(value)); }
    template <class Enum>
    void choice(const Enum& value, Enum) {
        number(static_cast<std::uint32_t>(value));
    }
    void text(const std::string& value, std::size_t longest) {
        const std::size_t length = std::min(value.size(), longest);
        number(static_cast<std::uint16_t>(length));
        bytes_.insert(bytes_.end(), value.begin(),
                      value.begin() + static_cast<std::ptrdiff_t>(length));
    }
    void block(const std::array<std::uint8_t, 256>& value) {
        bytes_.insert(bytes_.end(), value.begin(), value.end());
    }
    template <class T>
    void list(const std::vector<T>& values, std::size_t longest) {
        const std::size_t length = std::min(values.size(), longest);
        number(static_cast<std::uint32_t>(length));
        for (std::size_t i = 0; i < length; ++i) fields(*this, values[i]);
    }

private:
    std::vector<std::uint8_t>& bytes_;
};

/// Reads nothing more once something was wrong; what it has given until then is of no use.
class Reader {
public:
    explicit Reader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

    /// All bytes were read and all of them were right.
    bool complete() const { return good_ && bytes_.empty(); }

    template <Number T>
    void number(T& value) {
        take(&value, sizeof value);
    }
    void flag(bool& value) {
        std::uint8_t byte = 0;
        number(byte);
        if (byte > 1) good_ = false;
        value = byte == 1;
    }
    template <class Enum>
    void choice(Enum& value, Enum last) {
        std::uint32_t raw = 0;
        number(raw);
        if (raw > static_cast<std::uint32_t>(last))
            good_ = false;
        else
            value = static_cast<Enum>(raw);
    }
    void text(std::string& value, std::size_t longest) {
        std::uint16_t length = 0;
        number(length);
        if (length > longest || length > bytes_.size()) good_ = false;
        if (!good_) return;
        value.resize(length);
        take(value.data(), length);
        for (char& c : value)
            if (c < ' ' || c > '~') c = '?';
    }
    void block(std::array<std::uint8_t, 256>& value) { take(value.data(), value.size()); }
    template <class T>
    void list(std::vector<T>& values, std::size_t longest) {
        std::uint32_t length = 0;
        number(length);
        if (length > longest) good_ = false;
        for (std::uint32_t i = 0; good_ && i < length; ++i) fields(*this, values.emplace_back());
    }

private:
    void take(void* to, std::size_t size) {
        if (!good_ || size > bytes_.size()) {
            good_ = false;
            return;
        }
        if (size > 0) std::memcpy(to, bytes_.data(), size);
        bytes_ = bytes_.subspan(size);
    }

    std::span<const std::uint8_t> bytes_;
    bool good_ = true;
};

/// Which of them there are, consistent() knows.
constexpr auto kAnyStructure = static_cast<TrieStructure>(UINT32_MAX);

// Each message's fields, for writing and for reading.

template <class Archive>
void fields_of_limits(Archive& archive, auto& message) {
    archive.number(message.host_memory_limit);
    archive.number(message.device_memory_limit);
    archive.number(message.device);
}

template <class Archive>
void fields_of_report(Archive& archive, auto& message) {
    archive.number(message.device);
    archive.text(message.device_name, kMaxName);
    archive.number(message.seconds);
    archive.number(message.retries);
    archive.list(message.phases, kMaxPhases);
}

template <class Archive>
void fields_of_matrix(Archive& archive, auto& matrix) {
    archive.choice(matrix.element, ElementType::int32);
    archive.number(matrix.rows);
    archive.number(matrix.dimensions);
    archive.flag(matrix.sparse);
    archive.number(matrix.stored);
}

template <class Archive>
void fields_of_words(Archive& archive, auto& words) {
    archive.number(words.words);
    archive.number(words.bytes);
}

template <class Archive>
void fields(Archive& archive, auto& message) {
    using T = std::remove_cvref_t<decltype(message)>;
    if constexpr (std::is_same_v<T, Hello>) {
        archive.number(message.pid);
        archive.text(message.release, kMaxName);
    } else if constexpr (std::is_same_v<T, SubmitNearDuplicates>) {
        archive.number(message.documents);
        archive.number(message.bytes);
        archive.flag(message.has_signatures);
        archive.number(message.signature_bytes);
        archive.number(message.threshold);
        archive.choice(message.mode, NearDuplicateMode::exact);
        archive.number(message.signature_length);
        archive.block(message.character_lengths);
        fields_of_limits(archive, message);
    } else if constexpr (std::is_same_v<T, SubmitNeighbours>) {
        fields_of_matrix(archive, message.queries);
        fields_of_matrix(archive, message.items);
        archive.flag(message.has_keys);
        archive.number(message.k);
        archive.choice(message.metric, Metric::manhattan);
        archive.number(message.radius);
        archive.flag(message.include_ties);
        fields_of_limits(archive, message);
    } else if constexpr (std::is_same_v<T, SubmitTermNeighbours>) {
        fields_of_matrix(archive, message.queries);
        fields_of_matrix(archive, message.items);
        archive.flag(message.has_keys);
        archive.choice(message.weighting, TermWeighting::tf_idf);
        archive.number(message.min_document_frequency);
        archive.number(message.k);
        archive.number(message.radius);
        fields_of_limits(archive, message);
    } else if constexpr (std::is_same_v<T, SubmitOutliers>) {
        fields_of_matrix(archive, message.items);
        archive.number(message.k);
        archive.choice(message.metric, Metric::manhattan);
        archive.choice(message.ties, TieRule::breunig);
        fields_of_limits(archive, message);
    } else if constexpr (std::is_same_v<T, SubmitSimilarities>) {
        fields_of_matrix(archive, message.query);
        fields_of_matrix(archive, message.items);
        fields_of_limits(archive, message);
    } else if constexpr (std::is_same_v<T, SubmitWordLookup>) {
        archive.number(message.dictionary_bytes);
        fields_of_words(archive, message.words);
        fields_of_limits(archive, message);
    } else if constexpr (std::is_same_v<T, SubmitTrieBuild>) {
        archive.choice(message.structure, kAnyStructure);
        fields_of_words(archive, message.words);
        fields_of_limits(archive, message);
    } else if constexpr (std::is_same_v<T, SubmitWordSimilarity>) {
        archive.number(message.words);
        archive.flag(message.counted);
        archive.number(message.rows);
        archive.number(message.window);
        archive.flag(message.positions);
        archive.choice(message.weight, WordWeight::count);
        archive.number(message.discount);
        archive.number(message.features);
        archive.choice(message.measure, WordMeasure::jaccard);
        archive.number(message.top_k);
        fields_of_limits(archive, message);
    } else if constexpr (std::is_same_v<T, SubmitTraining>) {
        archive.number(message.words);
        archive.number(message.tokens);
        archive.number(message.known);
        archive.choice(message.model, WordModel::cbow);
        archive.number(message.dimensions);
        archive.number(message.window);
        archive.number(message.negative);
        archive.number(message.epochs);
        archive.number(message.replicas);
        archive.number(message.batch);
        archive.number(message.learning_rate);
        archive.number(message.damping);
        archive.number(message.seed);
        archive.number(message.far_count);
        archive.number(message.farthest_from);
        archive.number(message.average_every);
        archive.number(message.sample);
        fields_of_limits(archive, message);
    } else if constexpr (std::is_same_v<T, SubmitWordMovers>) {
        fields_of_matrix(archive, message.vectors);
        archive.number(message.pairs);
        archive.number(message.masses);
        archive.choice(message.method, MoversMethod::relaxed);
        fields_of_limits(archive, message);
    } else if constexpr (std::is_same_v<T, SubmitSequenceProbabilities>) {
        fields_of_matrix(archive, message.vectors);
        fields_of_matrix(archive, message.outputs);
        archive.number(message.sequences);
        archive.number(message.tokens);
        fields_of_limits(archive, message);
    } else if constexpr (std::is_same_v<T, Progress>) {
        archive.text(message.phase, kMaxName);
        archive.number(message.done);
        archive.number(message.total);
        archive.number(message.device);
        archive.number(message.epoch);
        archive.number(message.loss);
    } else if constexpr (std::is_same_v<T, NearDuplicatesReply>) {
        archive.number(message.documents);
        archive.number(message.pairs);
        fields_of_report(archive, message);
    } else if constexpr (std::is_same_v<T, KnnReply>) {
        archive.number(message.queries);
        archive.number(message.neighbours);
        archive.number(message.rescored);
        archive.number(message.escalated);
        fields_of_report(archive, message);
    } else if constexpr (std::is_same_v<T, ScoresReply>) {
        archive.number(message.rows);
        fields_of_report(archive, message);
    } else if constexpr (std::is_same_v<T, WordCodesReply>) {
        archive.number(message.words);
        fields_of_report(archive, message);
    } else if constexpr (std::is_same_v<T, TrieImageReply>) {
        archive.number(message.words);
        archive.number(message.bytes);
        fields_of_report(archive, message);
    } else if constexpr (std::is_same_v<T, TrainingReply>) {
        archive.number(message.words);
        archive.number(message.dimensions);
        archive.number(message.hub_lists);
        archive.number(message.hub_of);
        fields_of_report(archive, message);
    } else if constexpr (std::is_same_v<T, SequenceProbabilitiesReply>) {
        archive.number(message.sequences);
        archive.number(message.tokens);
        fields_of_report(archive, message);
    } else if constexpr (std::is_same_v<T, PhaseTime>) {
        archive.text(message.name, kMaxName);
        archive.number(message.seconds);
    } else if constexpr (std::is_same_v<T, ErrorReply>) {
        archive.choice(message.code, ErrorCode::internal_error);
        archive.text(message.message, kMaxSentence);
        archive.text(message.hint, kMaxSentence);
        archive.number(message.request);
    } else if constexpr (std::is_same_v<T, DeviceInfo>) {
        archive.text(message.name, kMaxName);
        archive.number(message.memory);
        archive.text(message.driver, kMaxName);
    } else if constexpr (std::is_same_v<T, DeviceList>) {
        archive.list(message.devices, kMaxDevices);
        archive.text(message.why_none, kMaxSentence);
    } else if constexpr (std::is_same_v<T, RunningJob>) {
        archive.number(message.pid);
        archive.text(message.operation, kMaxName);
        archive.number(message.device);
        archive.text(message.phase, kMaxName);
        archive.number(message.done);
        archive.number(message.total);
        archive.number(message.epoch);
        archive.number(message.loss);
        archive.number(message.rows);
        archive.number(message.bytes);
        archive.number(message.seconds);
    } else if constexpr (std::is_same_v<T, ActivityList>) {
        archive.list(message.jobs, kMaxActivity);
    } else if constexpr (std::is_same_v<T, CounterValues>) {
        archive.number(message.jobs);
        archive.number(message.rows);
        archive.number(message.bytes);
        archive.number(message.milliseconds);
        archive.number(message.retries);
        archive.number(message.failures);
        archive.number(message.cancelled);
    } else if constexpr (std::is_same_v<T, InjectFault>) {
        archive.text(message.fault, kMaxName);
    } else {
        static_assert(std::is_empty_v<T>, "a message whose fields are not listed");
    }
}

Status broken(const char* what) {
    return {ErrorCode::invalid_argument, what};
}

/// The message with a type's number, its fields as they are before reading; none for other numbers.
template <std::size_t Index = 0>
std::optional<Message> message_of_type(std::uint16_t type) {
    if constexpr (Index < std::variant_size_v<Message>) {
        using T = std::variant_alternative_t<Index, Message>;
        if (T::type == type) return T();
        return message_of_type<Index + 1>(type);
    } else {
        return std::nullopt;
    }
}

// What the fields' own bounds leave open.

constexpr std::uint64_t kMostStored = std::uint64_t{1} << 56;

bool possible(const MatrixShape& matrix) {
    constexpr std::uint64_t most_dimensions = std::uint64_t{1} << 31;
    return matrix.rows != UINT32_MAX && matrix.dimensions <= most_dimensions &&
           matrix.stored <= kMostStored;
}

bool possible(const WordsShape& words) {
    return words.words != UINT32_MAX && words.bytes <= kMostStored;
}

bool consistent(const MatrixShape& matrix) {
    if (!possible(matrix)) return false;
    return matrix.sparse ? matrix.element == ElementType::float32
                         : matrix.stored == matrix.rows * matrix.dimensions;
}

bool consistent_texts(const MatrixShape& matrix) {
    return possible(matrix) && matrix.sparse &&
           (matrix.element == ElementType::float32 || matrix.element == ElementType::int32);
}

bool consistent_model(const MatrixShape& matrix) {
    return consistent(matrix) && !matrix.sparse && matrix.element == ElementType::float32;
}

bool consistent(const Message& message) {
    if (const auto* reply = std::get_if<ErrorReply>(&message)) return reply->code != ErrorCode::ok;
    if (const auto* submit = std::get_if<SubmitNearDuplicates>(&message))
        return submit->documents < UINT32_MAX &&
               (submit->has_signatures || submit->signature_bytes == 0);
    if (const auto* submit = std::get_if<SubmitNeighbours>(&message))
        return consistent(submit->queries) && consistent(submit->items);
    if (const auto* submit = std::get_if<SubmitTermNeighbours>(&message))
        return consistent_texts(submit->queries) && consistent_texts(submit->items);
    if (const auto* submit = std::get_if<SubmitOutliers>(&message))
        return consistent(submit->items);
    if (const auto* submit = std::get_if<SubmitSimilarities>(&message))
        return consistent(submit->query) && consistent(submit->items);
    if (const auto* submit = std::get_if<SubmitWordLookup>(&message))
        return submit->dictionary_bytes <= kMostStored && possible(submit->words);
    if (const auto* submit = std::get_if<SubmitTrieBuild>(&message))
        return name_of(submit->structure)[0] != '\0' && possible(submit->words);
    if (const auto* submit = std::get_if<SubmitWordSimilarity>(&message))
        return submit->words != UINT32_MAX && submit->rows <= kMostStored;
    if (const auto* submit = std::get_if<SubmitTraining>(&message))
        return submit->words != UINT32_MAX && submit->known <= submit->words &&
               submit->tokens <= kMostStored &&
               submit->dimensions <= TrainerParameters::kMostDimensions;
    if (const auto* reply = std::get_if<TrainingReply>(&message))
        return reply->words != UINT32_MAX &&
               reply->dimensions <= TrainerParameters::kMostDimensions;
    if (const auto* submit = std::get_if<SubmitWordMovers>(&message))
        return consistent_model(submit->vectors) && submit->pairs != UINT32_MAX &&
               submit->masses <= kMostStored;
    if (const auto* submit = std::get_if<SubmitSequenceProbabilities>(&message))
        return consistent_model(submit->vectors) && consistent_model(submit->outputs) &&
               submit->vectors.rows == submit->outputs.rows &&
               submit->vectors.dimensions == submit->outputs.dimensions &&
               submit->sequences != UINT32_MAX && submit->tokens <= kMostStored;
    if (const auto* reply = std::get_if<SequenceProbabilitiesReply>(&message))
        return reply->tokens <= kMostStored;
    return true;
}

std::size_t files_of(const SubmitNearDuplicates& submit) {
    return submit.has_signatures ? 3 : 2;
}
std::size_t files_of(const SubmitNeighbours& submit) {
    return submit.queries.files() + submit.items.files() + (submit.has_keys ? 1 : 0);
}
std::size_t files_of(const SubmitTermNeighbours& submit) {
    return submit.queries.files() + submit.items.files() + (submit.has_keys ? 1 : 0);
}
std::size_t files_of(const SubmitOutliers& submit) {
    return submit.items.files();
}
std::size_t files_of(const SubmitSimilarities& submit) {
    return submit.query.files() + submit.items.files();
}
std::size_t files_of(const SubmitWordLookup&) {
    return 1 + WordsShape::files;
}
std::size_t files_of(const SubmitTrieBuild&) {
    return WordsShape::files;
}
std::size_t files_of(const SubmitWordSimilarity&) {
    return SubmitWordSimilarity::files;
}
std::size_t files_of(const SubmitTraining& submit) {
    return submit.known > 0 ? 4 : 3;
}
std::size_t files_of(const SubmitWordMovers&) {
    return SubmitWordMovers::files;
}
std::size_t files_of(const SubmitSequenceProbabilities&) {
    return SubmitSequenceProbabilities::files;
}
template <class T>
std::size_t files_of(const T&) {
    return std::is_base_of_v<JobReport, T> ? 1 : 0;
}

}  // namespace

bool submits_job(std::uint16_t type) {
    return type == SubmitNearDuplicates::type || type == SubmitNeighbours::type ||
           type == SubmitOutliers::type || type == SubmitSimilarities::type ||
           type == SubmitTermNeighbours::type || type == SubmitWordLookup::type ||
           type == SubmitTrieBuild::type || type == SubmitWordSimilarity::type ||
           type == SubmitTraining::type || type == SubmitWordMovers::type ||
           type == SubmitSequenceProbabilities::type;
}

std::size_t descriptors_of(const Message& message) {
    return std::visit([](const auto& alternative) { return files_of(alternative); }, message);
}

std::vector<std::uint8_t> encode(const Message& message) {
    std::vector<std::uint8_t> packet(sizeof(Header));
    Writer writer(packet);
    Header header{};
    std::visit(
        [&](const auto& alternative) {
            header.type = alternative.type;
            fields(writer, alternative);
        },
        message);
    header.magic = kProtocolMagic;
    header.version = kProtocolVersion;
    header.body_size = static_cast<std::uint32_t>(packet.size() - sizeof header);
    header.descriptors = static_cast<std::uint32_t>(descriptors_of(message));
    std::memcpy(packet.data(), &header, sizeof header);
    return packet;
}

Result<Message> decode(std::span<const std::uint8_t> packet, std::size_t descriptors) {
    Header header;
    if (packet.size() < sizeof header) return broken("a message shorter than its header");
    std::memcpy(&header, packet.data(), sizeof header);
    if (header.magic != kProtocolMagic) return broken("a message that does not begin as one");
    if (header.version != kProtocolVersion)
        return Status(ErrorCode::unavailable, "version " + std::to_string(header.version) +
                                                  " of the protocol instead of " +
                                                  std::to_string(kProtocolVersion));
    const auto body = packet.subspan(sizeof header);
    if (header.body_size != body.size()) return broken("a message of another length than it says");

    std::optional<Message> message = message_of_type(header.type);
    if (!message) return broken("a message of unknown type");
    Reader reader(body);
    std::visit([&](auto& alternative) { fields(reader, alternative); }, *message);
    if (!reader.complete() || !consistent(*message)) return broken("a message with wrong fields");
    if (header.descriptors != descriptors || descriptors != descriptors_of(*message))
        return broken("a message with a wrong number of file descriptors");
    return std::move(*message);
}

Status check_extents(std::span<const Extent> extents, std::uint64_t bytes) {
    for (const Extent& extent : extents)
        if (extent.begin > bytes || extent.size > bytes - extent.begin ||
            extent.size > std::numeric_limits<std::int32_t>::max())
            return broken("a document outside the packed bytes");
    return {};
}

std::vector<std::uint8_t> pack_signatures(GivenSignatures signatures, Stop stop) {
    const std::size_t table_size = signatures.size() * sizeof(PackedSignature);
    std::size_t letters = 0;
    for (const std::optional<Ctph>& signature : signatures)
        if (signature) letters += signature->letters.size();
    std::vector<std::uint8_t> file;
    file.reserve(table_size + letters);
    file.resize(table_size);
    for (std::size_t i = 0; i < signatures.size(); ++i) {
        if (i % 4096 == 0 && stop()) return file;
        if (!signatures[i]) continue;
        const Ctph& signature = *signatures[i];
        const PackedSignature packed{file.size() - table_size,
                                     signature.first_length,
                                     static_cast<std::uint16_t>(signature.letters.size()),
                                     signature.level,
                                     1,
                                     0};
        std::memcpy(file.data() + i * sizeof packed, &packed, sizeof packed);
        file.insert(file.end(), signature.letters.begin(), signature.letters.end());
    }
    return file;
}

Result<std::vector<std::optional<Ctph>>> unpack_signatures(std::span<const std::uint8_t> file,
                                                           std::size_t documents, Stop stop) {
    if (documents > file.size() / sizeof(PackedSignature)) return broken("too few signatures");
    const auto letters = file.subspan(documents * sizeof(PackedSignature));
    std::vector<std::optional<Ctph>> signatures(documents);
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < documents; ++i) {
        if (i % 4096 == 0 && stop()) return Status::cancelled();
        PackedSignature packed;
        std::memcpy(&packed, file.data() + i * sizeof packed, sizeof packed);
        if (packed.present == 0) {
            const PackedSignature none{};
            if (std::memcmp(&packed, &none, sizeof none) != 0) return broken("a wrong signature");
            continue;
        }
        if (packed.present != 1 || packed.zero != 0 || packed.begin != end ||
            packed.length > letters.size() - end || packed.first_length > packed.length)
            return broken("a wrong signature");
        Ctph& signature = signatures[i].emplace();
        signature.level = packed.level;
        signature.first_length = packed.first_length;
        const auto own = letters.subspan(end, packed.length);
        signature.letters.assign(own.begin(), own.end());
        if (!check_ctph(signature).ok()) return broken("a wrong signature");
        end += packed.length;
    }
    if (end != letters.size()) return broken("letters without a signature");
    return signatures;
}

std::optional<ReplyLayout> reply_layout(std::uint32_t documents, std::uint64_t pairs) {
    const std::uint64_t pairs_begin =
        (std::uint64_t{documents} * sizeof(std::uint32_t) + 7) / 8 * 8;
    constexpr std::uint64_t most = std::uint64_t{1} << 62;
    if (pairs > (most - pairs_begin) / sizeof(NearPair)) return std::nullopt;
    return ReplyLayout{pairs_begin, pairs_begin + pairs * sizeof(NearPair)};
}

Status check_row_begins(std::span<const std::uint64_t> begins, std::uint64_t stored, Stop stop) {
    std::uint64_t last = 0;
    for (std::size_t i = 0; i < begins.size(); ++i) {
        if (i % 65536 == 0 && stop()) return Status::cancelled();
        if (begins[i] < last || begins[i] > stored) return broken("a row outside its matrix");
        last = begins[i];
    }
    if (begins.empty() || begins.front() != 0 || last != stored)
        return broken("elements outside the rows");
    return {};
}

Status check_word_begins(std::span<const std::uint64_t> begins, std::uint64_t bytes, Stop stop) {
    if (begins.empty() || begins.front() != 0 || begins.back() != bytes)
        return broken("bytes outside the words");
    for (std::size_t i = 1; i < begins.size(); ++i) {
        if (i % 65536 == 0 && stop()) return Status::cancelled();
        // A word that begins before the last one would be longer than any.
        if (begins[i] - begins[i - 1] > UINT32_MAX) return broken("a word of impossible length");
    }
    return {};
}

std::optional<NeighboursLayout> neighbours_layout(std::uint32_t queries, std::uint64_t neighbours) {
    constexpr std::uint64_t most = std::uint64_t{1} << 56;
    if (neighbours > most) return std::nullopt;
    NeighboursLayout layout{};
    layout.distances_begin = (std::uint64_t{queries} + 1) * sizeof(std::uint64_t);
    layout.items_begin = layout.distances_begin + neighbours * sizeof(double);
    layout.size = layout.items_begin + neighbours * sizeof(std::uint32_t);
    return layout;
}

Result<Neighbours> unpack_neighbours(std::span<const std::uint8_t> file, std::uint32_t queries,
                                     std::uint32_t items, std::uint64_t neighbours, Stop stop) {
    const auto layout = neighbours_layout(queries, neighbours);
    if (!layout || layout->size != file.size()) return broken("neighbours in a wrong size");
    Neighbours answer;
    const auto copy = [&](auto& to, std::uint64_t begin, std::uint64_t count) {
        if (!stoppable_assign(to, count, {}, stop)) return false;
        if (count > 0) std::memcpy(to.data(), file.data() + begin, count * sizeof to[0]);
        return true;
    };
    if (!copy(answer.begins, 0, queries + std::uint64_t{1}) ||
        !copy(answer.distances, layout->distances_begin, neighbours) ||
        !copy(answer.items, layout->items_begin, neighbours))
        return Status::cancelled();
    if (Status status = check_row_begins(answer.begins, neighbours, stop); !status.ok())
        return status;
    for (std::uint64_t i = 0; i < neighbours; ++i) {
        if (i % kLookEvery == 0 && stop()) return Status::cancelled();
        if (answer.items[i] >= items) return broken("a neighbour that is no item");
    }
    return answer;
}

Result<std::vector<std::uint32_t>> unpack_codes(std::span<const std::uint8_t> file,
                                                std::uint32_t codes, std::uint32_t dictionary_words,
                                                Stop stop) {
    if (file.size() != codes * sizeof(std::uint32_t)) return broken("codes in a wrong size");
    std::vector<std::uint32_t> unpacked(codes);
    for (std::size_t begin = 0; begin < codes; begin += kLookEvery) {
        if (stop()) return Status::cancelled();
        const auto part = std::span(unpacked).subspan(begin).first(
            std::min<std::size_t>(kLookEvery, codes - begin));
        std::memcpy(part.data(), file.data() + begin * sizeof part[0], part.size_bytes());
        bool known = true;
        for (const std::uint32_t code : part)
            known &= code < dictionary_words || code == Trie::kNone;
        if (!known) return broken("a code that the dictionary does not have");
    }
    return unpacked;
}

}  // namespace gputext
