#include "cpp/daemon/operator_job.hpp"

namespace gputext {

std::unique_ptr<OperatorJob> operator_job(const Message& message) {
    if (const auto* submit = std::get_if<SubmitNearDuplicates>(&message))
        return near_duplicates_job(*submit);
    if (const auto* submit = std::get_if<SubmitNeighbours>(&message))
        return neighbours_job(*submit);
    if (const auto* submit = std::get_if<SubmitTermNeighbours>(&message))
        return term_knn_job(*submit);
    if (const auto* submit = std::get_if<SubmitOutliers>(&message))
        return outlier_factor_job(*submit);
    if (const auto* submit = std::get_if<SubmitSimilarities>(&message))
        return similarities_job(*submit);
    if (const auto* submit = std::get_if<SubmitWordLookup>(&message))
        return word_lookup_job(*submit);
    if (const auto* submit = std::get_if<SubmitTrieBuild>(&message)) return trie_build_job(*submit);
    if (const auto* submit = std::get_if<SubmitWordSimilarity>(&message))
        return word_similarity_job(*submit);
    if (const auto* submit = std::get_if<SubmitTraining>(&message)) return word2vec_job(*submit);
    if (const auto* submit = std::get_if<SubmitWordMovers>(&message))
        return word_movers_job(*submit);
    if (const auto* submit = std::get_if<SubmitSequenceProbabilities>(&message))
        return sequence_probability_job(*submit);
    return nullptr;
}

Status map_file(const FileDescriptor& from, std::uint64_t size, Trust trust, MappedFile& mapped) {
    Result<MappedFile> result = MappedFile::map(from.get(), size, trust);
    if (!result.ok()) return result.status();
    mapped = std::move(*result);
    return {};
}

Status append_array(MemoryFile& file, const void* data, std::size_t bytes) {
    return file.append({static_cast<const std::uint8_t*>(data), bytes});
}

}  // namespace gputext
