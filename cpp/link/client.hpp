// cpp/link/client.hpp - client of gputextd, for a database session
//
// For a database session: it never blocks, starts no thread, raises no signal and lets no exception
// out. Whatever gputextd sends, the worst outcome is a Status.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "cpp/base/vectors.hpp"
#include "cpp/base/words.hpp"
#include "cpp/documents/near_duplicates.hpp"
#include "cpp/embeddings/sequence_probability.hpp"
#include "cpp/embeddings/word2vec.hpp"
#include "cpp/embeddings/word_movers.hpp"
#include "cpp/knn/knn.hpp"
#include "cpp/knn/outlier_factor.hpp"
#include "cpp/link/file_descriptor.hpp"
#include "cpp/link/mapped_file.hpp"
#include "cpp/link/message_socket.hpp"
#include "cpp/link/protocol.hpp"
#include "cpp/terms/knn.hpp"
#include "cpp/terms/tfidf.hpp"
#include "cpp/thesaurus/feature_weights.hpp"
#include "cpp/thesaurus/word_similarity.hpp"
#include "cpp/trie/trie.hpp"

namespace gputext {

/// What to compute. Files and arrays stay the caller's and may go after submit().
struct NearDuplicatesRequest {
    NearDuplicateParameters parameters;     // simd is the server's own choice
    std::uint64_t device_memory_limit = 0;  // bytes; 0 for as much as the device gives
    std::int32_t device = -1;               // number of the only device to use, or -1 for any
    int bytes_descriptor = -1;     // a MemoryFile after seal(), or a plain file nobody changes
    std::uint64_t bytes_size = 0;  // of the whole file
    std::span<const Extent> extents;
    CharacterLengths characters = CharacterLengths::single_byte();
    GivenSignatures signatures;  // empty, or one a document
};

/// Vectors, and the files that hold them where there are any: MemoryFiles after seal(), or plain
/// files nobody changes. Without files the vectors are copied into some by submit().
struct VectorFiles {
    Vectors vectors;
    int elements = -1;  // vectors.elements and nothing else
    int columns = -1;   // vectors.columns and nothing else; sparse vectors only
};

struct KnnRequest {
    KnnParameters parameters;
    VectorFiles queries;
    VectorFiles items;
    RowKeys keys;
    std::uint64_t device_memory_limit = 0;  // as in NearDuplicatesRequest
    std::int32_t device = -1;               // the same
};

/// Texts, as the counts or weights of their terms.
struct TermKnnRequest {
    TermParameters terms;
    TermKnnParameters parameters;
    VectorFiles queries;
    VectorFiles items;
    RowKeys keys;
    std::uint64_t device_memory_limit = 0;
    std::int32_t device = -1;
};

struct OutlierFactorRequest {
    OutlierParameters parameters;
    VectorFiles items;
    std::uint64_t device_memory_limit = 0;
    std::int32_t device = -1;
};

struct SimilaritiesRequest {
    VectorFiles query;
    VectorFiles items;
    std::uint64_t device_memory_limit = 0;
    std::int32_t device = -1;
};

/// Words, and the files that hold them where there are any.
struct WordFiles {
    Words words;
    int bytes = -1;   // words.bytes and nothing else, as in VectorFiles; -1: they are copied
    int begins = -1;  // words.begins and nothing else, sealed; -1: they are copied
};

struct WordLookupRequest {
    std::span<const std::uint8_t> dictionary;  // the image; it is copied
    std::uint32_t dictionary_words = 0;        // that it has
    WordFiles words;
    std::uint64_t device_memory_limit = 0;
    std::int32_t device = -1;
};

struct TrieBuildRequest {
    TrieStructure structure = TrieStructure::front;
    WordFiles words;
    std::uint64_t device_memory_limit = 0;
    std::int32_t device = -1;
};

/// Tokens of texts, in files as in VectorFiles; or counts, and the order of their words.
struct WordSimilarityRequest {
    CooccurrenceShape shape;               // of counts: words alone
    bool counted = false;                  // else tokens
    std::uint64_t rows = 0;                // tokens, or CountedTriples
    int first = -1;                        // the words of the tokens; or the CountedTriples
    int second = -1;                       // the positions of the tokens
    std::span<const std::uint32_t> order;  // of the words that are counted; it is copied
    WeightParameters weighting;
    SimilarityParameters parameters;
    std::uint64_t device_memory_limit = 0;
    std::int32_t device = -1;
};

/// Tokens of texts, in files as in VectorFiles.
struct TrainingRequest {
    TrainingParameters parameters;
    double sample = 0;                      // of word_sampling()
    std::uint64_t tokens = 0;               // of the stream
    int words = -1;                         // theirs
    int positions = -1;                     // theirs
    std::span<const std::uint64_t> counts;  // of the vocabulary; they are copied
    std::uint32_t known_words = 0;          // the first ones, which have vectors
    int known = -1;                         // their vectors, and then their outputs
    std::uint64_t host_memory_limit = 0;
    std::uint64_t device_memory_limit = 0;
    std::int32_t device = -1;
};

struct WordMoversRequest {
    MoversParameters parameters;
    WordVectors vectors;
    int elements = -1;  // of the vectors, as in VectorFiles
    TextPairs pairs;    // begins and totals are copied
    int masses = -1;    // pairs.masses and nothing else, as elements
    std::uint64_t device_memory_limit = 0;
    std::int32_t device = -1;
};

struct SequenceProbabilityRequest {
    NextWordModel model;
    int elements = -1;         // of the vectors, as in VectorFiles
    int output_elements = -1;  // of the output vectors
    TokenSequences sequences;  // begins are copied
    int tokens = -1;           // sequences.tokens and nothing else, as elements
    std::uint64_t device_memory_limit = 0;
    std::int32_t device = -1;
};

/// The answer to a job, still in the file that it came in.
struct NearDuplicatesAnswer {
    NearDuplicatesReply summary;
    MappedFile file;

    /// Checks and copies it, O(documents + pairs). Errors: unavailable for an answer that is none;
    /// cancelled; out_of_memory.
    Result<NearDuplicates> read(Stop stop = {}) const noexcept;
};

/// Answer to a KnnRequest, a TermKnnRequest or a WordSimilarityRequest.
struct KnnAnswer {
    KnnReply summary;
    std::uint32_t items = 0;  // that the request had
    MappedFile file;

    Result<Neighbours> read(Stop stop = {}) const noexcept;
};

/// Answer to an OutlierFactorRequest, a SimilaritiesRequest or a WordMoversRequest: a number for
/// each item or pair.
struct ScoresAnswer {
    ScoresReply summary;
    MappedFile file;

    Result<std::vector<double>> read(Stop stop = {}) const noexcept;
};

/// Answer to a WordLookupRequest: the code of each word.
struct WordCodesAnswer {
    WordCodesReply summary;
    std::uint32_t dictionary_words = 0;  // of the request
    MappedFile file;

    Result<std::vector<std::uint32_t>> read(Stop stop = {}) const noexcept;
};

/// Answer to a TrieBuildRequest: a complete image with its checksum.
struct TrieImageAnswer {
    TrieImageReply summary;
    MappedFile file;

    Result<std::vector<std::uint8_t>> read(Stop stop = {}) const noexcept;
};

/// Answer to a TrainingRequest: finite numbers.
struct TrainingAnswer {
    TrainingReply summary;
    MappedFile file;

    Result<TrainingModel> read(Stop stop = {}) const noexcept;
};

/// Answer to a SequenceProbabilityRequest.
struct SequenceProbabilitiesAnswer {
    SequenceProbabilitiesReply summary;
    MappedFile file;

    Result<SequenceProbabilities> read(Stop stop = {}) const noexcept;
};

/// The server's word that a job failed, or that it will not do something else that was asked.
struct Failed {
    Status status;
    bool of_job;  // the job has ended, and another one may be submitted
};

using DaemonEvent =
    std::variant<Progress, NearDuplicatesAnswer, KnnAnswer, ScoresAnswer, WordCodesAnswer,
                 TrieImageAnswer, TrainingAnswer, SequenceProbabilitiesAnswer, Failed, DeviceList,
                 ActivityList, CounterValues>;

/// What an event says of a job that has been answered; null for any other event.
const JobReport* report_of(const DaemonEvent& event);

class DaemonConnection {
public:
    /// Connects and says hello, without waiting for the server's: requests may follow at once.
    /// Errors: unavailable when nobody listens there, another user does, or so many wait that it
    /// should be tried again; invalid_argument for the path; out_of_memory, io_error.
    static Result<std::unique_ptr<DaemonConnection>> connect(const std::string& path) noexcept;

    /// Closes, which cancels a job that is running.
    ~DaemonConnection() = default;
    DaemonConnection(const DaemonConnection&) = delete;
    DaemonConnection& operator=(const DaemonConnection&) = delete;

    /// Readable when receive() may have something.
    int fd() const { return socket_.get(); }

    /// Whether gputextd has answered the hello. It reads nothing else before, so that a job sent on
    /// a connection that ends without it has not been looked at.
    bool greeted() const { return greeted_; }
    /// What gputextd said in its hello: see Hello. Empty before.
    const std::string& release() const { return release_; }
    /// Whether receive() has ended with an error since gputextd speaks another version of the
    /// protocol.
    bool other_protocol() const { return other_protocol_; }

    // Each of these sends one message. An error that is unavailable means that the connection is of
    // no use any more; what the server may have said about it is still to be received.

    /// One job at a time. Copies extents and signatures into memory files. Errors: unavailable;
    /// cancelled; out_of_memory; io_error when the system gives no descriptor.
    Status submit(const NearDuplicatesRequest& request, Stop stop = {}) noexcept;
    /// Submits a search; copies keys and the begins of rows.
    Status submit(const KnnRequest& request, Stop stop = {}) noexcept;
    Status submit(const TermKnnRequest& request, Stop stop = {}) noexcept;
    Status submit(const OutlierFactorRequest& request, Stop stop = {}) noexcept;
    Status submit(const SimilaritiesRequest& request, Stop stop = {}) noexcept;
    /// Copies the dictionary, and the words where they lie in no files.
    Status submit(const WordLookupRequest& request, Stop stop = {}) noexcept;
    Status submit(const TrieBuildRequest& request, Stop stop = {}) noexcept;
    Status submit(const WordSimilarityRequest& request, Stop stop = {}) noexcept;
    Status submit(const TrainingRequest& request, Stop stop = {}) noexcept;
    Status submit(const WordMoversRequest& request, Stop stop = {}) noexcept;
    Status submit(const SequenceProbabilityRequest& request, Stop stop = {}) noexcept;
    Status ask_devices() noexcept;
    Status ask_activity() noexcept;
    Status ask_counters() noexcept;
    /// For the next job of this connection, or the next connection: see cpp/daemon/fault.hpp.
    Status inject_fault(const std::string& fault) noexcept;

    /// The next event, or none so far. To be called until there is none whenever fd() is readable.
    /// Errors, after which the connection is of no use: unavailable when gputextd ended, is of
    /// another version, or has sent what it must not; out_of_memory.
    Result<std::optional<DaemonEvent>> receive() noexcept;

private:
    explicit DaemonConnection(FileDescriptor socket) : socket_(std::move(socket)) {}

    /// What the answer to the job that is running has to be.
    struct Expected {
        std::uint16_t type = 0;   // of the message; 0: there is no job
        std::uint32_t rows = 0;   // documents, queries, rows with a score, words, or sequences
        std::uint32_t items = 0;  // among which neighbours are, words with a code, or dimensions
        std::uint64_t tokens = 0;
    };

    Status send(const Message& message, std::span<const int> descriptors = {});
    Status send_job(const Message& message, std::span<const int> descriptors, Expected expected);
    Status send_job(const NearDuplicatesRequest& request, Stop stop);
    Status send_job(const KnnRequest& request, Stop stop);
    Status send_job(const TermKnnRequest& request, Stop stop);
    Status send_job(const OutlierFactorRequest& request, Stop stop);
    Status send_job(const SimilaritiesRequest& request, Stop stop);
    Status send_job(const WordLookupRequest& request, Stop stop);
    Status send_job(const TrieBuildRequest& request, Stop stop);
    Status send_job(const WordSimilarityRequest& request, Stop stop);
    Status send_job(const TrainingRequest& request, Stop stop);
    Status send_job(const WordMoversRequest& request, Stop stop);
    Status send_job(const SequenceProbabilityRequest& request, Stop stop);
    Result<std::optional<DaemonEvent>> receive_packet_or_none();
    Result<std::optional<DaemonEvent>> understand(Packet& packet);
    Status check_answer(std::uint16_t type, std::uint32_t rows);
    Result<std::optional<DaemonEvent>> take_answer(const NearDuplicatesReply& reply,
                                                   const Packet& packet);
    Result<std::optional<DaemonEvent>> take_answer(const KnnReply& reply, const Packet& packet);
    Result<std::optional<DaemonEvent>> take_answer(const ScoresReply& reply, const Packet& packet);
    Result<std::optional<DaemonEvent>> take_answer(const WordCodesReply& reply,
                                                   const Packet& packet);
    Result<std::optional<DaemonEvent>> take_answer(const TrieImageReply& reply,
                                                   const Packet& packet);
    Result<std::optional<DaemonEvent>> take_answer(const TrainingReply& reply,
                                                   const Packet& packet);
    Result<std::optional<DaemonEvent>> take_answer(const SequenceProbabilitiesReply& reply,
                                                   const Packet& packet);

    FileDescriptor socket_;
    bool greeted_ = false;
    bool other_protocol_ = false;
    std::string release_;
    bool ended_ = false;  // receive() has returned an error
    Expected expected_;
};

}  // namespace gputext
