// cpp/link/operators.hpp - the list of the operators that gputextd runs
//
// What the link knows of operators follows from this list: the messages (protocol.hpp), what a
// session submits and receives (client.hpp), and the jobs (cpp/daemon/operator_job.hpp).
//
// An operator is a request, as a session gives it, with
//     limits                  a JobLimits
//     pack(packed, stop)      fills a PackedRequest of its message, files and answer
// its message, with
//     type, operation         a number of its own, and the name
//     limits                  the request's
//     fields()                what travels (wire.hpp)
//     consistent()            whether the fields are possible together; may be left out
//     files()                 how many descriptors go with it
//     rows(), bytes()         of its input, for activity and counters
// and its answer, with
//     summary                 the reply's message, with type, report, fields(), consistent()
//     file_size()             of the file that comes with the reply, or why it cannot be the answer
//     file, read()            the file, and what lies in it
// Several operators may have the same answer.

#pragma once

#include "cpp/link/cosine_similarity.hpp"
#include "cpp/link/dbscan.hpp"
#include "cpp/link/hnsw_links.hpp"
#include "cpp/link/k_means.hpp"
#include "cpp/link/knn.hpp"
#include "cpp/link/near_duplicates.hpp"
#include "cpp/link/nearest_bits.hpp"
#include "cpp/link/nearest_strings.hpp"
#include "cpp/link/outlier_factor.hpp"
#include "cpp/link/sequence_probability.hpp"
#include "cpp/link/term_knn.hpp"
#include "cpp/link/trie_build.hpp"
#include "cpp/link/type_list.hpp"
#include "cpp/link/word2vec.hpp"
#include "cpp/link/word_lookup.hpp"
#include "cpp/link/word_movers.hpp"
#include "cpp/link/word_similarity.hpp"

namespace gputext {

using Operators =
    TypeList<NearDuplicatesRequest, KnnRequest, TermKnnRequest, NearestStringsRequest,
             NearestBitsRequest, OutlierFactorRequest, DbscanRequest, CosineSimilarityRequest,
             KMeansRequest, HnswLinksRequest, WordLookupRequest, TrieBuildRequest,
             WordSimilarityRequest, Word2VecRequest, WordMoversRequest, SequenceProbabilityRequest>;

template <class Request>
using SubmitOf = typename Request::Packed::Submit;
template <class Request>
using AnswerOf = typename Request::Packed::Answer;
template <class Answer>
using ReplyOf = decltype(Answer::summary);

/// Their messages, their answers, and the messages of these.
using Submits = Each<SubmitOf, Operators>;
using Answers = Unique<Each<AnswerOf, Operators>>;
using Replies = Each<ReplyOf, Answers>;

/// A message that submits a job.
template <class Message>
concept SubmitsJob = requires {
    Message::operation;
};

}  // namespace gputext
