#include "cpp/link/client.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "cpp/base/exception_status.hpp"
#include "cpp/base/stoppable.hpp"
#include "cpp/link/memory_file.hpp"
#include "cpp/trie/image.hpp"

namespace gputext {
namespace {

using MaybeEvent = Result<std::optional<DaemonEvent>>;

const char* const kSeeLog = "The server's log says why. It is started again for the next job.";

Status gone() {
    return {ErrorCode::unavailable, "gputextd ended unexpectedly", kSeeLog};
}

Status broken_reply(const std::string& what) {
    return {ErrorCode::unavailable, "gputextd sent a reply that makes no sense: " + what, kSeeLog};
}

/// What work() returns, or what it threw as a Status.
template <class Return, class Work>
Return guarded(Work&& work) noexcept {
    return status_or_exception([&]() -> Return { return work(); });
}

MaybeEvent some(DaemonEvent event) {
    return std::optional<DaemonEvent>(std::move(event));
}

Status could_not_connect(const std::string& path) {
    const std::string reason = std::strerror(errno);
    if (errno == EAGAIN)
        return {ErrorCode::unavailable, "too many sessions wait for gputextd",
                "Try the statement again."};
    return {ErrorCode::unavailable, "could not connect to gputextd at \"" + path + "\": " + reason};
}

template <class T>
std::span<const std::uint8_t> bytes_of(std::span<const T> array) {
    return {reinterpret_cast<const std::uint8_t*>(array.data()), array.size_bytes()};
}

Status append(MemoryFile& file, std::span<const std::uint8_t> bytes, Stop stop) {
    while (!bytes.empty()) {
        if (stop()) return Status::cancelled();
        const auto part = bytes.first(std::min(kLookEvery, bytes.size()));
        if (Status status = file.append(part); !status.ok()) return status;
        bytes = bytes.subspan(part.size());
    }
    return stop() ? Status::cancelled() : Status();
}

/// All of the file, sealed.
Status fill(MemoryFile& file, std::span<const std::uint8_t> bytes, Stop stop) {
    Status status = append(file, bytes, stop);
    return status.ok() ? file.seal() : status;
}

MatrixShape shape_of(const Vectors& vectors) {
    MatrixShape shape;
    shape.element = vectors.type;
    shape.rows = static_cast<std::uint32_t>(vectors.rows);
    shape.dimensions = vectors.dimensions;
    shape.sparse = vectors.sparse();
    shape.stored = shape.sparse ? vectors.row_begins.back() : vectors.rows * vectors.dimensions;
    return shape;
}

/// The files of one matrix, in the order of the message.
class MatrixFiles {
public:
    Status set(const VectorFiles& files, Stop stop) {
        if (files.vectors.rows >= UINT32_MAX)
            return {ErrorCode::invalid_argument, "more than 4294967294 rows"};
        shape_ = shape_of(files.vectors);
        Status status = add(files.elements, elements_, bytes_of_elements(files.vectors), stop);
        if (!status.ok() || !shape_.sparse) return status;
        status = add(files.columns, columns_, bytes_of(files.vectors.columns), stop);
        if (status.ok()) status = add(-1, begins_, bytes_of(files.vectors.row_begins), stop);
        return status;
    }

    const MatrixShape& shape() const { return shape_; }
    void append_to(std::vector<int>& descriptors) const {
        descriptors.insert(descriptors.end(), descriptors_.begin(), descriptors_.end());
    }

private:
    std::span<const std::uint8_t> bytes_of_elements(const Vectors& vectors) const {
        return {static_cast<const std::uint8_t*>(vectors.elements),
                shape_.stored * element_size(shape_.element)};
    }

    /// The file that is given, or else one with these bytes.
    Status add(int given, MemoryFile& made, std::span<const std::uint8_t> bytes, Stop stop) {
        if (given < 0)
            if (Status status = fill(made, bytes, stop); !status.ok()) return status;
        descriptors_.push_back(given < 0 ? made.descriptor() : given);
        return {};
    }

    MatrixShape shape_;
    MemoryFile elements_, columns_, begins_;
    std::vector<int> descriptors_;
};

MatrixShape shape_of(const WordVectors& vectors) {
    return {ElementType::float32, static_cast<std::uint32_t>(vectors.words), vectors.dimensions,
            false, vectors.words * vectors.dimensions};
}

/// The files of words, in the order of the message.
class WordsFiles {
public:
    Status set(const WordFiles& files, Stop stop) {
        const Words& words = files.words;
        if (words.size() >= UINT32_MAX)
            return {ErrorCode::invalid_argument, "more than 4294967294 words"};
        shape_ = {static_cast<std::uint32_t>(words.size()), words.byte_count()};
        descriptors_[0] = files.bytes;
        descriptors_[1] = files.begins;
        if (files.bytes < 0) {
            Status status = fill(bytes_, std::span(words.bytes, shape_.bytes), stop);
            if (!status.ok()) return status;
            descriptors_[0] = bytes_.descriptor();
        }
        if (files.begins >= 0) return {};
        const std::uint64_t none = 0;
        const std::span begins(words.size() == 0 ? &none : words.begins, words.size() + 1);
        Status status = fill(begins_, bytes_of(begins), stop);
        descriptors_[1] = begins_.descriptor();
        return status;
    }

    const WordsShape& shape() const { return shape_; }
    const int* descriptors() const { return descriptors_; }

private:
    WordsShape shape_;
    MemoryFile bytes_, begins_;
    int descriptors_[WordsShape::files] = {-1, -1};
};

/// What all requests have in common.
template <class Request>
void set_limits(JobLimits& limits, const Request& request, std::size_t host_memory_limit) {
    limits.host_memory_limit = host_memory_limit;
    limits.device_memory_limit = request.device_memory_limit;
    limits.device = request.device;
}

/// Files of queries, items and keys, and the request fields that all searches share.
class SearchFiles {
public:
    template <class Request, class Submit>
    Status set(const Request& request, Submit& message, Stop stop) {
        message.has_keys = !request.keys.queries.empty() || !request.keys.items.empty();
        Status status = queries_.set(request.queries, stop);
        if (status.ok()) status = items_.set(request.items, stop);
        if (status.ok() && message.has_keys) {
            status = append(keys_, bytes_of(request.keys.queries), stop);
            if (status.ok()) status = fill(keys_, bytes_of(request.keys.items), stop);
        }
        if (!status.ok()) return status;
        message.queries = queries_.shape();
        message.items = items_.shape();
        message.k = request.parameters.k;
        message.radius = request.parameters.radius;
        set_limits(message, request, request.parameters.memory_limit);
        queries_.append_to(descriptors_);
        items_.append_to(descriptors_);
        if (message.has_keys) descriptors_.push_back(keys_.descriptor());
        return {};
    }

    std::span<const int> descriptors() const { return descriptors_; }

private:
    MatrixFiles queries_, items_;
    MemoryFile keys_;
    std::vector<int> descriptors_;
};

Result<MappedFile> map_answer(const Packet& packet, std::uint64_t size) {
    auto file = MappedFile::map(packet.descriptors[0].get(), size, Trust::sealed);
    if (file.status().code() == ErrorCode::invalid_argument)
        return broken_reply(file.status().message());
    return file;
}

SubmitNearDuplicates message_of(const NearDuplicatesRequest& request) {
    SubmitNearDuplicates message;
    message.documents = static_cast<std::uint32_t>(request.extents.size());
    message.bytes = request.bytes_size;
    message.has_signatures = !request.signatures.empty();
    message.threshold = request.parameters.threshold;
    message.mode = request.parameters.mode;
    message.signature_length = static_cast<std::uint32_t>(request.parameters.signature_length);
    set_limits(message, request, request.parameters.memory_limit);
    for (unsigned byte = 0; byte < 256; ++byte)
        message.character_lengths[byte] =
            static_cast<std::uint8_t>(request.characters.of(static_cast<std::uint8_t>(byte)));
    return message;
}

}  // namespace

Result<NearDuplicates> NearDuplicatesAnswer::read(Stop stop) const noexcept {
    return guarded<Result<NearDuplicates>>([&]() -> Result<NearDuplicates> {
        const auto layout = reply_layout(summary.documents, summary.pairs);
        if (!layout || layout->size != file.bytes().size()) return broken_reply("a wrong size");
        auto answer = NearDuplicates::from_parts(
            file.array<std::uint32_t>(0, summary.documents),
            file.array<NearPair>(layout->pairs_begin, summary.pairs), stop);
        if (answer.status().code() == ErrorCode::invalid_argument)
            return broken_reply(answer.status().message());
        return answer;
    });
}

Result<Neighbours> KnnAnswer::read(Stop stop) const noexcept {
    return guarded<Result<Neighbours>>([&]() -> Result<Neighbours> {
        auto answer =
            unpack_neighbours(file.bytes(), summary.queries, items, summary.neighbours, stop);
        if (answer.status().code() == ErrorCode::invalid_argument)
            return broken_reply(answer.status().message());
        if (!answer.ok()) return answer;
        (*answer).rescored = summary.rescored;
        (*answer).escalated = summary.escalated;
        return answer;
    });
}

Result<std::vector<double>> ScoresAnswer::read(Stop stop) const noexcept {
    using Scores = Result<std::vector<double>>;
    return guarded<Scores>([&]() -> Scores {
        const auto from = file.array<double>(0, summary.rows);
        std::vector<double> scores;
        if (!stoppable_assign(scores, from.size(), 0.0, stop)) return Status::cancelled();
        std::copy(from.begin(), from.end(), scores.begin());
        return scores;
    });
}

Result<std::vector<std::uint32_t>> WordCodesAnswer::read(Stop stop) const noexcept {
    using Codes = Result<std::vector<std::uint32_t>>;
    return guarded<Codes>([&]() -> Codes {
        auto codes = unpack_codes(file.bytes(), summary.words, dictionary_words, stop);
        if (codes.status().code() == ErrorCode::invalid_argument)
            return broken_reply(codes.status().message());
        return codes;
    });
}

Result<std::vector<std::uint8_t>> TrieImageAnswer::read(Stop stop) const noexcept {
    using Image = Result<std::vector<std::uint8_t>>;
    return guarded<Image>([&]() -> Image {
        const Result<TrieHeader> header = read_trie_header(file.bytes());
        if (!header.ok()) return broken_reply(header.status().message());
        if (header->words > summary.words) return broken_reply("a dictionary of other words");
        std::vector<std::uint8_t> image;
        if (!stoppable_assign(image, file.bytes().size(), std::uint8_t{0}, stop))
            return Status::cancelled();
        std::memcpy(image.data(), file.bytes().data(), image.size());
        return image;
    });
}

Result<TrainingModel> TrainingAnswer::read(Stop stop) const noexcept {
    return guarded<Result<TrainingModel>>([&]() -> Result<TrainingModel> {
        TrainingModel model;
        const std::uint64_t size = std::uint64_t{summary.words} * summary.dimensions;
        const auto copy = [&](std::vector<float>& to, std::uint64_t begin) {
            const auto from = file.array<float>(begin * sizeof(float), size);
            if (!stoppable_assign(to, size, 0.0f, stop)) return false;
            std::copy(from.begin(), from.end(), to.begin());
            return true;
        };
        if (!copy(model.vectors, 0) || !copy(model.outputs, size)) return Status::cancelled();
        const auto finite = [](float x) { return std::isfinite(x); };
        if (!std::all_of(model.vectors.begin(), model.vectors.end(), finite) ||
            !std::all_of(model.outputs.begin(), model.outputs.end(), finite))
            return broken_reply("vectors that are not finite");
        return model;
    });
}

Result<SequenceProbabilities> SequenceProbabilitiesAnswer::read(Stop stop) const noexcept {
    return guarded<Result<SequenceProbabilities>>([&]() -> Result<SequenceProbabilities> {
        const auto sequences = file.array<double>(0, summary.sequences);
        const auto tokens = file.array<float>(sequences.size_bytes(), summary.tokens);
        SequenceProbabilities answer;
        if (!stoppable_assign(answer.sequences, sequences.size(), 0.0, stop) ||
            !stoppable_assign(answer.tokens, tokens.size(), 0.0f, stop))
            return Status::cancelled();
        std::copy(sequences.begin(), sequences.end(), answer.sequences.begin());
        std::copy(tokens.begin(), tokens.end(), answer.tokens.begin());
        return answer;
    });
}

const JobReport* report_of(const DaemonEvent& event) {
    return std::visit(
        [](const auto& alternative) -> const JobReport* {
            if constexpr (requires { alternative.summary; })
                return &alternative.summary;
            else
                return nullptr;
        },
        event);
}

Result<std::unique_ptr<DaemonConnection>> DaemonConnection::connect(
    const std::string& path) noexcept {
    using Connected = Result<std::unique_ptr<DaemonConnection>>;
    return guarded<Connected>([&]() -> Connected {
        const auto address = socket_address(path);
        if (!address)
            return Status(ErrorCode::invalid_argument,
                          "the path of a socket must have 1 to 107 bytes: \"" + path + "\"");
        FileDescriptor socket = new_message_socket();
        if (!socket.valid())
            return Status(ErrorCode::io_error,
                          std::string("could not make a socket: ") + std::strerror(errno));
        // On a Unix socket this succeeds or fails at once.
        if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&*address),
                      sizeof *address) != 0)
            return could_not_connect(path);
        if (!peer_of_same_user(socket.get()))
            return Status(ErrorCode::unavailable,
                          "the program that listens at \"" + path + "\" runs as another user");
        std::unique_ptr<DaemonConnection> connection(new DaemonConnection(std::move(socket)));
        const Hello hello{static_cast<std::uint32_t>(getpid()), {}};
        if (Status status = connection->send(hello); !status.ok()) return status;
        return connection;
    });
}

Status DaemonConnection::send(const Message& message, std::span<const int> descriptors) {
    if (ended_) return gone();
    switch (send_packet(socket_.get(), encode(message), descriptors)) {
        case Sent::all:
            return {};
        case Sent::not_now:
            return {ErrorCode::unavailable, "gputextd is too busy to take a message",
                    "Try the statement again."};
        default:
            return gone();
    }
}

Status DaemonConnection::submit(const NearDuplicatesRequest& request, Stop stop) noexcept {
    return guarded<Status>([&] { return send_job(request, stop); });
}

Status DaemonConnection::submit(const KnnRequest& request, Stop stop) noexcept {
    return guarded<Status>([&] { return send_job(request, stop); });
}

Status DaemonConnection::submit(const TermKnnRequest& request, Stop stop) noexcept {
    return guarded<Status>([&] { return send_job(request, stop); });
}

Status DaemonConnection::submit(const OutlierFactorRequest& request, Stop stop) noexcept {
    return guarded<Status>([&] { return send_job(request, stop); });
}

Status DaemonConnection::submit(const SimilaritiesRequest& request, Stop stop) noexcept {
    return guarded<Status>([&] { return send_job(request, stop); });
}

Status DaemonConnection::submit(const WordLookupRequest& request, Stop stop) noexcept {
    return guarded<Status>([&] { return send_job(request, stop); });
}

Status DaemonConnection::submit(const TrieBuildRequest& request, Stop stop) noexcept {
    return guarded<Status>([&] { return send_job(request, stop); });
}

Status DaemonConnection::submit(const WordSimilarityRequest& request, Stop stop) noexcept {
    return guarded<Status>([&] { return send_job(request, stop); });
}

Status DaemonConnection::submit(const TrainingRequest& request, Stop stop) noexcept {
    return guarded<Status>([&] { return send_job(request, stop); });
}

Status DaemonConnection::submit(const WordMoversRequest& request, Stop stop) noexcept {
    return guarded<Status>([&] { return send_job(request, stop); });
}

Status DaemonConnection::submit(const SequenceProbabilityRequest& request, Stop stop) noexcept {
    return guarded<Status>([&] { return send_job(request, stop); });
}

Status DaemonConnection::send_job(const Message& message, std::span<const int> descriptors,
                                  Expected expected) {
    if (expected_.type != 0)
        return {ErrorCode::invalid_argument, "a job is running on this connection already"};
    Status status = send(message, descriptors.first(descriptors_of(message)));
    if (status.ok()) expected_ = expected;
    return status;
}

Status DaemonConnection::send_job(const NearDuplicatesRequest& request, Stop stop) {
    if (request.extents.size() >= UINT32_MAX)
        return {ErrorCode::invalid_argument, "more than 4294967294 documents"};
    MemoryFile extents;
    MemoryFile signatures;
    SubmitNearDuplicates message = message_of(request);
    Status status = fill(extents, bytes_of(request.extents), stop);
    if (status.ok() && message.has_signatures) {
        const auto packed = pack_signatures(request.signatures, stop);
        status = fill(signatures, packed, stop);
        message.signature_bytes = signatures.size();
    }
    if (!status.ok()) return status;
    const int files[] = {request.bytes_descriptor, extents.descriptor(), signatures.descriptor()};
    return send_job(message, files, {NearDuplicatesReply::type, message.documents, 0});
}

Status DaemonConnection::send_job(const KnnRequest& request, Stop stop) {
    SearchFiles files;
    SubmitNeighbours message;
    if (Status status = files.set(request, message, stop); !status.ok()) return status;
    message.metric = request.parameters.metric;
    message.include_ties = request.parameters.include_ties;
    return send_job(message, files.descriptors(),
                    {KnnReply::type, message.queries.rows, message.items.rows});
}

Status DaemonConnection::send_job(const TermKnnRequest& request, Stop stop) {
    SearchFiles files;
    SubmitTermNeighbours message;
    if (Status status = files.set(request, message, stop); !status.ok()) return status;
    message.weighting = request.terms.weighting;
    message.min_document_frequency = request.terms.min_document_frequency;
    return send_job(message, files.descriptors(),
                    {KnnReply::type, message.queries.rows, message.items.rows});
}

Status DaemonConnection::send_job(const OutlierFactorRequest& request, Stop stop) {
    MatrixFiles items;
    if (Status status = items.set(request.items, stop); !status.ok()) return status;
    SubmitOutliers message;
    message.items = items.shape();
    message.k = request.parameters.k;
    message.metric = request.parameters.metric;
    message.ties = request.parameters.ties;
    set_limits(message, request, request.parameters.memory_limit);
    std::vector<int> files;
    items.append_to(files);
    return send_job(message, files, {ScoresReply::type, message.items.rows, 0});
}

Status DaemonConnection::send_job(const SimilaritiesRequest& request, Stop stop) {
    MatrixFiles query, items;
    Status status = query.set(request.query, stop);
    if (status.ok()) status = items.set(request.items, stop);
    if (!status.ok()) return status;
    SubmitSimilarities message;
    message.query = query.shape();
    message.items = items.shape();
    set_limits(message, request, 0);
    std::vector<int> files;
    query.append_to(files);
    items.append_to(files);
    return send_job(message, files, {ScoresReply::type, message.items.rows, 0});
}

Status DaemonConnection::send_job(const WordLookupRequest& request, Stop stop) {
    MemoryFile dictionary;
    WordsFiles words;
    Status status = fill(dictionary, request.dictionary, stop);
    if (status.ok()) status = words.set(request.words, stop);
    if (!status.ok()) return status;
    SubmitWordLookup message;
    message.dictionary_bytes = request.dictionary.size();
    message.words = words.shape();
    set_limits(message, request, 0);
    const int files[] = {dictionary.descriptor(), words.descriptors()[0], words.descriptors()[1]};
    return send_job(message, files,
                    {WordCodesReply::type, message.words.words, request.dictionary_words});
}

Status DaemonConnection::send_job(const TrieBuildRequest& request, Stop stop) {
    WordsFiles words;
    if (Status status = words.set(request.words, stop); !status.ok()) return status;
    SubmitTrieBuild message;
    message.structure = request.structure;
    message.words = words.shape();
    set_limits(message, request, 0);
    return send_job(message, {words.descriptors(), WordsShape::files},
                    {TrieImageReply::type, message.words.words, 0});
}

Status DaemonConnection::send_job(const WordSimilarityRequest& request, Stop stop) {
    MemoryFile order;
    int files[] = {request.first, request.second};
    if (request.counted) {
        if (Status status = fill(order, bytes_of(request.order), stop); !status.ok()) return status;
        files[1] = order.descriptor();
    }
    SubmitWordSimilarity message;
    message.words = request.shape.words;
    message.counted = request.counted;
    message.rows = request.rows;
    message.window = request.shape.window;
    message.positions = request.shape.positions;
    message.weight = request.weighting.weight;
    message.discount = request.weighting.discount;
    message.features = request.weighting.features;
    message.measure = request.parameters.measure;
    message.top_k = request.parameters.top_k;
    set_limits(message, request, request.parameters.memory_limit);
    return send_job(message, files, {KnnReply::type, message.words, message.words});
}

Status DaemonConnection::send_job(const TrainingRequest& request, Stop stop) {
    if (request.counts.size() >= UINT32_MAX)
        return {ErrorCode::invalid_argument, "more than 4294967294 words"};
    MemoryFile counts;
    if (Status status = fill(counts, bytes_of(request.counts), stop); !status.ok()) return status;
    const TrainingParameters& parameters = request.parameters;
    SubmitTraining message;
    message.words = static_cast<std::uint32_t>(request.counts.size());
    message.tokens = request.tokens;
    message.known = request.known_words;
    message.model = parameters.model;
    message.dimensions = parameters.dimensions;
    message.window = parameters.window;
    message.negative = parameters.negative;
    message.epochs = parameters.epochs;
    message.replicas = parameters.replicas;
    message.batch = parameters.batch;
    message.learning_rate = parameters.learning_rate;
    message.damping = parameters.damping;
    message.seed = parameters.seed;
    message.far_count = parameters.far_count;
    message.farthest_from = parameters.farthest_from;
    message.average_every = parameters.average_every;
    message.sample = request.sample;
    set_limits(message, request, request.host_memory_limit);
    const int files[] = {request.words, request.positions, counts.descriptor(), request.known};
    return send_job(message, files, {TrainingReply::type, message.words, message.dimensions});
}

Status DaemonConnection::send_job(const WordMoversRequest& request, Stop stop) {
    const TextPairs& pairs = request.pairs;
    if (pairs.size() >= UINT32_MAX)
        return {ErrorCode::invalid_argument, "more than 4294967294 pairs"};
    MemoryFile begins, totals;
    Status status = fill(begins, bytes_of(pairs.begins), stop);
    if (status.ok()) status = fill(totals, bytes_of(pairs.totals), stop);
    if (!status.ok()) return status;
    SubmitWordMovers message;
    message.vectors = shape_of(request.vectors);
    message.pairs = static_cast<std::uint32_t>(pairs.size());
    message.masses = pairs.masses.size();
    message.method = request.parameters.method;
    set_limits(message, request, request.parameters.memory_limit);
    const int files[] = {request.elements, begins.descriptor(), totals.descriptor(),
                         request.masses};
    return send_job(message, files, {ScoresReply::type, message.pairs, 0, 0});
}

Status DaemonConnection::send_job(const SequenceProbabilityRequest& request, Stop stop) {
    const TokenSequences& sequences = request.sequences;
    if (sequences.size() >= UINT32_MAX)
        return {ErrorCode::invalid_argument, "more than 4294967294 sequences"};
    MemoryFile begins;
    if (Status status = fill(begins, bytes_of(sequences.begins), stop); !status.ok()) return status;
    SubmitSequenceProbabilities message;
    message.vectors = shape_of(request.model.vectors);
    message.outputs = shape_of(request.model.outputs);
    message.sequences = static_cast<std::uint32_t>(sequences.size());
    message.tokens = sequences.tokens.size();
    set_limits(message, request, 0);
    const int files[] = {request.elements, request.output_elements, begins.descriptor(),
                         request.tokens};
    return send_job(message, files,
                    {SequenceProbabilitiesReply::type, message.sequences, 0, message.tokens});
}

Status DaemonConnection::ask_devices() noexcept {
    return guarded<Status>([&] { return send(AskDevices()); });
}

Status DaemonConnection::ask_activity() noexcept {
    return guarded<Status>([&] { return send(AskActivity()); });
}

Status DaemonConnection::ask_counters() noexcept {
    return guarded<Status>([&] { return send(AskCounters()); });
}

Status DaemonConnection::inject_fault(const std::string& fault) noexcept {
    return guarded<Status>([&] { return send(InjectFault{fault}); });
}

MaybeEvent DaemonConnection::receive() noexcept {
    MaybeEvent event = guarded<MaybeEvent>([&] { return receive_packet_or_none(); });
    if (!event.ok()) {
        ended_ = true;
        expected_ = {};
    }
    return event;
}

MaybeEvent DaemonConnection::receive_packet_or_none() {
    Packet packet;
    for (;;) {
        switch (receive_packet(socket_.get(), packet)) {
            case Received::nothing:
                return std::optional<DaemonEvent>();
            case Received::closed:
                return gone();
            case Received::broken:
                return broken_reply("a message that is too large or has lost files");
            case Received::packet:
                MaybeEvent event = understand(packet);
                if (!event.ok() || event->has_value()) return event;
        }
    }
}

/// No event for the hello, which the connection keeps.
MaybeEvent DaemonConnection::understand(Packet& packet) {
    Result<Message> message = decode(packet.bytes, packet.descriptors.size());
    if (message.status().code() == ErrorCode::unavailable) {
        other_protocol_ = true;
        return Status(ErrorCode::unavailable, "gputextd speaks " + message.status().message(),
                      "It is of another release of gputext: restart the server.");
    }
    if (!message.ok()) return broken_reply(message.status().message());
    if (auto* error = std::get_if<ErrorReply>(&*message)) {
        const bool of_job = submits_job(error->request);
        if (of_job) expected_ = {};
        return some(
            Failed{{error->code, std::move(error->message), std::move(error->hint)}, of_job});
    }
    if (!greeted_) {
        const auto* const hello = std::get_if<Hello>(&*message);
        if (hello == nullptr) return broken_reply("a message before the hello");
        release_ = hello->release;
        greeted_ = true;
        return std::optional<DaemonEvent>();
    }
    if (const auto* reply = std::get_if<NearDuplicatesReply>(&*message))
        return take_answer(*reply, packet);
    if (const auto* reply = std::get_if<KnnReply>(&*message)) return take_answer(*reply, packet);
    if (const auto* reply = std::get_if<ScoresReply>(&*message)) return take_answer(*reply, packet);
    if (const auto* reply = std::get_if<WordCodesReply>(&*message))
        return take_answer(*reply, packet);
    if (const auto* reply = std::get_if<TrieImageReply>(&*message))
        return take_answer(*reply, packet);
    if (const auto* reply = std::get_if<TrainingReply>(&*message))
        return take_answer(*reply, packet);
    if (const auto* reply = std::get_if<SequenceProbabilitiesReply>(&*message))
        return take_answer(*reply, packet);
    if (auto* progress = std::get_if<Progress>(&*message)) return some(std::move(*progress));
    if (auto* devices = std::get_if<DeviceList>(&*message)) return some(std::move(*devices));
    if (auto* jobs = std::get_if<ActivityList>(&*message)) return some(std::move(*jobs));
    if (auto* counters = std::get_if<CounterValues>(&*message)) return some(*counters);
    return broken_reply("a message that only a client sends");
}

/// An answer to the job that is running, as far as the message says.
Status DaemonConnection::check_answer(std::uint16_t type, std::uint32_t rows) {
    if (expected_.type == 0) return broken_reply("an answer to no job");
    if (expected_.type != type) return broken_reply("an answer to another kind of job");
    if (expected_.rows != rows) return broken_reply("an answer of another number of rows");
    expected_.type = 0;
    return {};
}

MaybeEvent DaemonConnection::take_answer(const NearDuplicatesReply& reply, const Packet& packet) {
    if (Status status = check_answer(reply.type, reply.documents); !status.ok()) return status;
    const auto layout = reply_layout(reply.documents, reply.pairs);
    if (!layout) return broken_reply("an answer of impossible size");
    auto file = map_answer(packet, layout->size);
    if (!file.ok()) return file.status();
    return some(NearDuplicatesAnswer{reply, std::move(*file)});
}

MaybeEvent DaemonConnection::take_answer(const KnnReply& reply, const Packet& packet) {
    if (Status status = check_answer(reply.type, reply.queries); !status.ok()) return status;
    const auto layout = neighbours_layout(reply.queries, reply.neighbours);
    if (!layout) return broken_reply("an answer of impossible size");
    auto file = map_answer(packet, layout->size);
    if (!file.ok()) return file.status();
    return some(KnnAnswer{reply, expected_.items, std::move(*file)});
}

MaybeEvent DaemonConnection::take_answer(const ScoresReply& reply, const Packet& packet) {
    if (Status status = check_answer(reply.type, reply.rows); !status.ok()) return status;
    auto file = map_answer(packet, std::uint64_t{reply.rows} * sizeof(double));
    if (!file.ok()) return file.status();
    return some(ScoresAnswer{reply, std::move(*file)});
}

MaybeEvent DaemonConnection::take_answer(const WordCodesReply& reply, const Packet& packet) {
    if (Status status = check_answer(reply.type, reply.words); !status.ok()) return status;
    auto file = map_answer(packet, std::uint64_t{reply.words} * sizeof(std::uint32_t));
    if (!file.ok()) return file.status();
    return some(WordCodesAnswer{reply, expected_.items, std::move(*file)});
}

MaybeEvent DaemonConnection::take_answer(const TrieImageReply& reply, const Packet& packet) {
    if (Status status = check_answer(reply.type, reply.words); !status.ok()) return status;
    auto file = map_answer(packet, reply.bytes);
    if (!file.ok()) return file.status();
    return some(TrieImageAnswer{reply, std::move(*file)});
}

MaybeEvent DaemonConnection::take_answer(const TrainingReply& reply, const Packet& packet) {
    if (Status status = check_answer(reply.type, reply.words); !status.ok()) return status;
    if (reply.dimensions != expected_.items) return broken_reply("vectors of other dimensions");
    const std::uint64_t size = std::uint64_t{2} * reply.words * reply.dimensions * sizeof(float);
    auto file = map_answer(packet, size);
    if (!file.ok()) return file.status();
    return some(TrainingAnswer{reply, std::move(*file)});
}

MaybeEvent DaemonConnection::take_answer(const SequenceProbabilitiesReply& reply,
                                         const Packet& packet) {
    if (Status status = check_answer(reply.type, reply.sequences); !status.ok()) return status;
    if (reply.tokens != expected_.tokens)
        return broken_reply("an answer of another number of tokens");
    auto file = map_answer(packet, reply.sequences * sizeof(double) + reply.tokens * sizeof(float));
    if (!file.ok()) return file.status();
    return some(SequenceProbabilitiesAnswer{reply, std::move(*file)});
}

}  // namespace gputext
