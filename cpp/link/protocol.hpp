// cpp/link/protocol.hpp - wire format between a backend and gputextd
//
// The link is a Unix socket of type SOCK_SEQPACKET: one packet is one message, so nothing has to be
// put together again, the kernel keeps the descriptors with the message that they belong to, and a
// reader that finds one message broken loses no other. Messages are small (64 KiB at most); what
// may be large travels in files in memory whose descriptors go with the message (SCM_RIGHTS).
// Both ends run on one machine, so numbers are in its byte order and alignment is its own.
//
//     header    magic u32 "GPTX", version u16, type u16, size of the body u32, descriptors u32
//     body      the message's fields in the order of its struct below: numbers as they are,
//               bool u8, enum u32, text u16 length and bytes, list u32 length and elements
//
// The header stays the same in every version. A conversation:
//
//     client    Hello
//     server    Hello; of another version, or an ErrorReply, when it will not talk
//     client    a job (Submit...), one at a time, or one of the questions, at any time
//     server    Progress, now and then; at last the job's reply or ErrorReply
//               a question is answered in its turn, also during a job
//
// A client cancels its job by closing the socket. A message that is broken gets an ErrorReply, and
// the server closes.
//
// Descriptors, in this order, every file of exactly the size that follows from the message:
//     SubmitNearDuplicates   the documents' packed bytes: a sealed memfd or a plain file;
//                            Extent[documents], in a sealed memfd;
//                            with signatures: PackedSignature[documents] and the letters of all of
//                            them, in a sealed memfd
//     NearDuplicatesReply    u32 first_copies[documents], zeros up to a multiple of 8 bytes,
//                            NearPair[pairs], in a sealed memfd
//     SubmitNeighbours       the matrix of the queries; that of the items;
//                            with keys: u32[queries] and u32[items], in a sealed memfd
//     KnnReply        u64 begins[queries + 1], double distances[neighbours],
//                            u32 items[neighbours], in a sealed memfd
//     SubmitTermNeighbours   as SubmitNeighbours
//     SubmitOutliers         the matrix of the items
//     SubmitSimilarities     the matrix of the query, one row; that of the items
//     ScoresReply            double[rows], in a sealed memfd
//     SubmitWordLookup       the dictionary's image (cpp/trie/trie.hpp), in a sealed memfd; the
//     words WordCodesReply         u32 codes[words], Trie::kNone for a word that it does not have,
//     in a
//                            sealed memfd
//     SubmitTrieBuild        the words
//     TrieImageReply         the dictionary's image, in a sealed memfd
//     SubmitWordSimilarity   u32 words[rows] and u32 positions[rows] of a stream of tokens
//                            (cpp/thesaurus/cooccurrences.hpp); when counted, CountedTriple[rows]
//                            (cpp/thesaurus/cooccurrence_table.hpp) and u32 order[words]: the first
//                            file a sealed memfd or a plain file, the second one too but for the
//                            order, which is in a sealed memfd
//     SubmitTraining         u32 words[tokens] and u32 positions[tokens] of a stream of tokens,
//     each a
//                            sealed memfd or a plain file; u64 counts[words], in a sealed memfd;
//                            with known words: float vectors[known * dimensions] and as many of
//                            their output vectors, a sealed memfd or a plain file
//     TrainingReply          float vectors[words * dimensions] and as many of the output vectors,
//                            in a sealed memfd
//     SubmitWordMovers       the matrix of the model's vectors; of pairs
//     (cpp/embeddings/word_movers.hpp), u64
//                            begins[2 * pairs + 1] and u32 totals[pairs], each in a sealed memfd,
//                            and WordMass[masses], in a sealed memfd or a plain file
//     SubmitSequenceProbabilities
//                            the matrices of the model's vectors and of its output vectors; of
//                            sequences (cpp/embeddings/sequence_probability.hpp), u64
//                            begins[sequences + 1], in a sealed memfd, and u32 tokens[tokens], the
//                            same or a plain file
//     SequenceProbabilitiesReply
//                            double[sequences] and float[tokens], in a sealed memfd
// A matrix (cpp/base/vectors.hpp) is its elements, in a sealed memfd or a plain file; when sparse,
// also u32 columns[stored], the same, and u64 row_begins[rows + 1], in a sealed memfd. Words
// (cpp/base/words.hpp) are their bytes, in a sealed memfd or a plain file, and u64 begins[words +
// 1], in a sealed memfd. Sealed is: F_SEAL_SHRINK, F_SEAL_GROW and F_SEAL_WRITE. Then a mapping can
// never fault and what has been checked stays so.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/documents/ctph.hpp"
#include "cpp/documents/documents.hpp"
#include "cpp/documents/near_duplicates.hpp"
#include "cpp/embeddings/trainer.hpp"
#include "cpp/embeddings/word_movers.hpp"
#include "cpp/knn/knn.hpp"
#include "cpp/knn/outlier_factor.hpp"
#include "cpp/terms/tfidf.hpp"
#include "cpp/thesaurus/feature_weights.hpp"
#include "cpp/thesaurus/word_similarity.hpp"
#include "cpp/trie/trie.hpp"

namespace gputext {

inline constexpr std::uint32_t kProtocolMagic = 0x58545047;  // "GPTX" in memory
inline constexpr std::uint16_t kProtocolVersion = 5;
inline constexpr std::size_t kMaxMessageSize = 65536;
inline constexpr std::size_t kMaxDescriptors = 7;

// Longer texts are cut and longer lists end there when written, and are errors when read.
inline constexpr std::size_t kMaxName = 128;
inline constexpr std::size_t kMaxSentence = 2048;
inline constexpr std::size_t kMaxDevices = 64;
inline constexpr std::size_t kMaxActivity = 128;
inline constexpr std::size_t kMaxPhases = 64;

/// The first message of each side.
struct Hello {
    static constexpr std::uint16_t type = 1;
    std::uint32_t pid = 0;
    /// The server's version and a digest of its sources. Empty from a client.
    std::string release;
};

/// What every job says, whatever its operator.
struct JobLimits {
    std::uint64_t host_memory_limit = 0;
    std::uint64_t device_memory_limit = 0;  // bytes; 0 is as much as the device gives
    std::int32_t device = -1;               // the only one to use, or -1 for any
};

struct SubmitNearDuplicates : JobLimits {
    static constexpr std::uint16_t type = 2;
    std::uint32_t documents = 0;
    std::uint64_t bytes = 0;  // size of the packed documents
    bool has_signatures = false;
    std::uint64_t signature_bytes = 0;  // size of that file; 0 without signatures
    double threshold = 0;               // the rest as in NearDuplicateParameters
    NearDuplicateMode mode = NearDuplicateMode::ctph;
    std::uint32_t signature_length = 0;
    std::array<std::uint8_t, 256> character_lengths{};
};

/// Sent a few times a second while a job waits and runs.
struct Progress {
    static constexpr std::uint16_t type = 3;
    std::string phase;
    std::uint64_t done = 0;
    std::uint64_t total = 0;
    std::int32_t device = -1;  // -1 while the job waits for one
    std::uint32_t epoch = 0;   // as in Execution
    double loss = 0;           // the same
};

/// What every answer to a job says.
struct JobReport {
    std::int32_t device = 0;  // that ran the job
    std::string device_name;
    double seconds = 0;         // from the start on the device to the reply
    std::uint32_t retries = 0;  // with less memory, after the device had run out of it
    std::vector<PhaseTime> phases;
};

struct NearDuplicatesReply : JobReport {
    static constexpr std::uint16_t type = 4;
    std::uint32_t documents = 0;
    std::uint64_t pairs = 0;
};

struct ErrorReply {
    static constexpr std::uint16_t type = 5;
    ErrorCode code = ErrorCode::internal_error;  // never ok
    std::string message;
    std::string hint;
    std::uint16_t request = 0;  // type of the message that it replies to; 0 for one not understood
};

/// The reply to a request of that type.
inline ErrorReply error_reply(std::uint16_t request, const Status& status) {
    return {status.code(), status.message(), status.hint(), request};
}

struct AskDevices {
    static constexpr std::uint16_t type = 6;
};

struct DeviceInfo {
    std::string name;
    std::uint64_t memory = 0;  // bytes
    std::string driver;
};

struct DeviceList {
    static constexpr std::uint16_t type = 7;
    std::vector<DeviceInfo> devices;
    std::string why_none;  // a sentence when there are none
};

struct AskActivity {
    static constexpr std::uint16_t type = 8;
};

struct RunningJob {
    std::uint32_t pid = 0;  // of the client
    std::string operation;
    std::int32_t device = -1;  // -1 while it waits for one
    std::string phase;
    std::uint64_t done = 0;
    std::uint64_t total = 0;
    std::uint32_t epoch = 0;  // as in Execution
    double loss = 0;          // the same
    std::uint64_t rows = 0;   // of its input
    std::uint64_t bytes = 0;  // of its input
    double seconds = 0;       // since it was submitted
};

struct ActivityList {
    static constexpr std::uint16_t type = 9;
    std::vector<RunningJob> jobs;  // the oldest kMaxActivity ones
};

struct AskCounters {
    static constexpr std::uint16_t type = 10;
};

/// Since the server started. A job that ended is exactly one of jobs, failures and cancelled.
struct CounterValues {
    static constexpr std::uint16_t type = 11;
    std::uint64_t jobs = 0;          // answered
    std::uint64_t rows = 0;          // of their inputs
    std::uint64_t bytes = 0;         // the same
    std::uint64_t milliseconds = 0;  // that devices worked for any job
    std::uint64_t retries = 0;
    std::uint64_t failures = 0;
    std::uint64_t cancelled = 0;
};

/// For tests: see cpp/daemon/fault.hpp. Refused unless the server was started to allow it.
struct InjectFault {
    static constexpr std::uint16_t type = 12;
    std::string fault;
};

/// A matrix whose elements lie in files.
struct MatrixShape {
    ElementType element = ElementType::float32;
    std::uint32_t rows = 0;
    std::uint64_t dimensions = 0;
    bool sparse = false;
    std::uint64_t stored = 0;  // elements in all; of a dense matrix rows * dimensions

    std::size_t files() const { return sparse ? 3 : 1; }
    std::uint64_t bytes() const {
        return stored * (element_size(element) + (sparse ? sizeof(std::uint32_t) : 0));
    }
};

struct SubmitNeighbours : JobLimits {
    static constexpr std::uint16_t type = 13;
    MatrixShape queries;
    MatrixShape items;
    bool has_keys = false;
    std::uint64_t k = 0;  // the rest as in KnnParameters
    Metric metric = Metric::cosine;
    double radius = 0;
    bool include_ties = false;
};

struct KnnReply : JobReport {
    static constexpr std::uint16_t type = 14;
    std::uint32_t queries = 0;
    std::uint64_t neighbours = 0;
    std::uint64_t rescored = 0;  // as in Neighbours
    std::uint64_t escalated = 0;
};

struct SubmitOutliers : JobLimits {
    static constexpr std::uint16_t type = 15;
    MatrixShape items;
    std::uint64_t k = 0;  // the rest as in OutlierParameters
    Metric metric = Metric::euclidean;
    TieRule ties = TieRule::sklearn;
};

struct SubmitSimilarities : JobLimits {
    static constexpr std::uint16_t type = 16;
    MatrixShape query;
    MatrixShape items;
};

/// A number for each row: the answer to SubmitOutliers and SubmitSimilarities.
struct ScoresReply : JobReport {
    static constexpr std::uint16_t type = 17;
    std::uint32_t rows = 0;
};

/// Texts: sparse matrices of float32 or int32, answered by a KnnReply.
struct SubmitTermNeighbours : JobLimits {
    static constexpr std::uint16_t type = 18;
    MatrixShape queries;
    MatrixShape items;
    bool has_keys = false;
    TermWeighting weighting = TermWeighting::tf_idf;  // as in TermParameters
    std::uint32_t min_document_frequency = 0;         // the same
    std::uint64_t k = 0;                              // the rest as in TermKnnParameters
    double radius = 0;
};

/// How many words there are in files.
struct WordsShape {
    std::uint32_t words = 0;  // below 2^32 - 1
    std::uint64_t bytes = 0;  // of all of them

    static constexpr std::size_t files = 2;
    std::uint64_t input_bytes() const { return bytes + words * sizeof(std::uint64_t); }
};

/// Answered by the codes of the words. That the image is one which build_trie() made or
/// validate_trie() has accepted is the client's word; the server checks that it is whole and has
/// its checksum. A device may keep the dictionary for the next job with it.
struct SubmitWordLookup : JobLimits {
    static constexpr std::uint16_t type = 19;
    std::uint64_t dictionary_bytes = 0;  // size of the image
    WordsShape words;
};

struct WordCodesReply : JobReport {
    static constexpr std::uint16_t type = 20;
    std::uint32_t words = 0;
};

/// Answered by the image of a dictionary of the words, which come in any order, each any number of
/// times.
struct SubmitTrieBuild : JobLimits {
    static constexpr std::uint16_t type = 21;
    TrieStructure structure = TrieStructure::front;
    WordsShape words;
};

struct TrieImageReply : JobReport {
    static constexpr std::uint16_t type = 22;
    std::uint32_t words = 0;  // of the request
    std::uint64_t bytes = 0;  // of the image
};

/// The neighbours of words by what stands beside them in texts, or by counts of that; answered by a
/// KnnReply, whose distances are similarities.
struct SubmitWordSimilarity : JobLimits {
    static constexpr std::uint16_t type = 23;
    std::uint32_t words = 0;  // of the vocabulary
    bool counted = false;
    std::uint64_t rows = 0;                  // tokens, or triples
    std::uint32_t window = 1;                // as in CooccurrenceShape; of tokens only
    bool positions = true;                   // the same
    WordWeight weight = WordWeight::lin;     // as in WeightParameters
    double discount = 0;                     // the same
    std::uint64_t features = 0;              // the same
    WordMeasure measure = WordMeasure::lin;  // as in SimilarityParameters
    std::uint32_t top_k = 1;                 // the same

    static constexpr std::size_t files = 2;
};

/// Vectors of words from the texts that they stand in, and from those that the first words have
/// already.
struct SubmitTraining : JobLimits {
    static constexpr std::uint16_t type = 24;
    std::uint32_t words = 0;  // of the vocabulary
    std::uint64_t tokens = 0;
    std::uint32_t known = 0;                // words that have vectors, the first ones
    WordModel model = WordModel::skipgram;  // the rest as in TrainingParameters
    std::uint32_t dimensions = 1;
    std::uint32_t window = 1;
    std::uint32_t negative = 1;
    std::uint32_t epochs = 1;
    std::uint32_t replicas = 1;
    std::uint32_t batch = 1;
    float learning_rate = 0;
    float damping = 0;
    std::uint64_t seed = 0;
    std::uint32_t far_count = 0;
    std::uint32_t farthest_from = 0;
    std::uint64_t average_every = 0;
    double sample = 0;  // as in word_sampling()
};

struct TrainingReply : JobReport {
    static constexpr std::uint16_t type = 25;
    std::uint32_t words = 0;
    std::uint32_t dimensions = 0;
    std::uint64_t hub_lists = 0;  // as in Training::Hub
    std::uint64_t hub_of = 0;     // the same
};

/// Word Mover's Distances of pairs of texts, answered by a ScoresReply.
struct SubmitWordMovers : JobLimits {
    static constexpr std::uint16_t type = 26;
    MatrixShape vectors;  // of the model's words: dense, float32
    std::uint32_t pairs = 0;
    std::uint64_t masses = 0;  // of all pairs
    MoversMethod method = MoversMethod::exact;

    static constexpr std::size_t files = 4;
};

/// How likely sequences of a model's words are.
struct SubmitSequenceProbabilities : JobLimits {
    static constexpr std::uint16_t type = 28;
    MatrixShape vectors;  // of the model's words: dense, float32
    MatrixShape outputs;  // of the same shape
    std::uint32_t sequences = 0;
    std::uint64_t tokens = 0;  // of all sequences

    static constexpr std::size_t files = 4;
};

struct SequenceProbabilitiesReply : JobReport {
    static constexpr std::uint16_t type = 29;
    std::uint32_t sequences = 0;
    std::uint64_t tokens = 0;
};

using Message =
    std::variant<Hello, SubmitNearDuplicates, Progress, NearDuplicatesReply, ErrorReply, AskDevices,
                 DeviceList, AskActivity, ActivityList, AskCounters, CounterValues, InjectFault,
                 SubmitNeighbours, KnnReply, SubmitOutliers, SubmitSimilarities, ScoresReply,
                 SubmitTermNeighbours, SubmitWordLookup, WordCodesReply, SubmitTrieBuild,
                 TrieImageReply, SubmitWordSimilarity, SubmitTraining, TrainingReply,
                 SubmitWordMovers, SubmitSequenceProbabilities, SequenceProbabilitiesReply>;

/// Whether messages of that type submit jobs.
bool submits_job(std::uint16_t type);

/// The packet of a message. Texts and lists that are too long are cut.
std::vector<std::uint8_t> encode(const Message& message);

/// The message of a packet that came with so many descriptors. Whatever the bytes are, reads none
/// beyond them; numbers in the message are only bounded where this header says so, and texts are
/// printable ASCII, other bytes replaced. Errors: invalid_argument; unavailable when the packet is
/// of another version.
Result<Message> decode(std::span<const std::uint8_t> packet, std::size_t descriptors);

/// How many descriptors go with a message.
std::size_t descriptors_of(const Message& message);

// ---- What lies in the files ----

/// Ok when every document lies within so many packed bytes and is below 2^31 bytes.
Status check_extents(std::span<const Extent> extents, std::uint64_t bytes);

struct PackedSignature {
    std::uint64_t begin;         // of the letters, counted from the first signature's
    std::uint16_t first_length;  // as in Ctph
    std::uint16_t length;        // of all letters
    std::uint8_t level;
    std::uint8_t present;  // 0: there is none, all else is 0 then; or 1
    std::uint16_t zero;
};
static_assert(sizeof(PackedSignature) == 16);

/// Packs signatures for a file. The result is of no use once `stop` has asked to stop.
std::vector<std::uint8_t> pack_signatures(GivenSignatures signatures, Stop stop = {});

/// The inverse, of a file for so many documents; invalid_argument for anything that pack_signatures
/// would not write; cancelled.
Result<std::vector<std::optional<Ctph>>> unpack_signatures(std::span<const std::uint8_t> file,
                                                           std::size_t documents, Stop stop = {});

/// Size of the file of a reply, and where the pairs begin. Null when no machine could hold it.
struct ReplyLayout {
    std::uint64_t pairs_begin;
    std::uint64_t size;
};
std::optional<ReplyLayout> reply_layout(std::uint32_t documents, std::uint64_t pairs);

/// Ok when a sparse matrix' rows begin one after the other, from the first element that is stored
/// to the last.
Status check_row_begins(std::span<const std::uint64_t> begins, std::uint64_t stored, Stop stop);

/// Ok when the words lie one after the other within so many bytes, and each is below 4 GB.
Status check_word_begins(std::span<const std::uint64_t> begins, std::uint64_t bytes, Stop stop);

/// Layout of a reply's file. Null when no machine could hold it.
struct NeighboursLayout {
    std::uint64_t distances_begin;
    std::uint64_t items_begin;
    std::uint64_t size;
};
std::optional<NeighboursLayout> neighbours_layout(std::uint32_t queries, std::uint64_t neighbours);

/// The neighbours in a file of that layout, aligned; invalid_argument for any that are not of so
/// many queries and items; cancelled. O(queries + neighbours).
Result<Neighbours> unpack_neighbours(std::span<const std::uint8_t> file, std::uint32_t queries,
                                     std::uint32_t items, std::uint64_t neighbours, Stop stop = {});

/// The codes in a file of so many; invalid_argument for any that is neither Trie::kNone nor that of
/// one of so many words of a dictionary; cancelled. O(codes).
Result<std::vector<std::uint32_t>> unpack_codes(std::span<const std::uint8_t> file,
                                                std::uint32_t codes, std::uint32_t dictionary_words,
                                                Stop stop = {});

}  // namespace gputext
