// extension/operators/knn_search.hpp - searches of gpu_knn, on a device or on the CPU

#pragma once

#include "extension/base/postgres.hpp"

#include <optional>

#include "cpp/base/vectors.hpp"
#include "cpp/bits/nearest_bits.hpp"
#include "cpp/knn/knn.hpp"
#include "cpp/strings/nearest_strings.hpp"
#include "cpp/terms/bm25.hpp"
#include "cpp/terms/knn.hpp"
#include "cpp/terms/tfidf.hpp"
#include "extension/operators/knn_rows.hpp"
#include "extension/server/computation.hpp"

namespace gputext {

/// What all of them have in common. Queries are searched in blocks whose neighbors fit into the
/// memory limit; a block of one query that does not is an error.
class KnnComputation : public Computation {
public:
    Neighbors answer;  // of the block's queries

    /// Begins the first block, or the next one. False where there are no more queries.
    bool next_block();
    /// After run_computation(): searches the items that were added (VectorRows::added()), and takes
    /// their neighbors into the answer, by numbers behind those of the other items.
    void search_added();
    /// After both: whether the block has been made smaller, since its neighbors do
    /// not fit into the limit, and is to be computed again.
    bool block_was_too_large();
    /// Whether no block comes after this one.
    bool is_last_block() const { return end_ == rows_.query_rows().size(); }
    /// The first query of the block, and the one after its last.
    std::size_t first_query() const { return begin_; }
    std::size_t end_query() const { return end_; }

    void prepare_for_cpu() override { rows_.items.await_vectors(); }
    bool copes_with(ErrorCode failure) override;
    void prepare_for_device() override {
        // A part of the queries is copied, and lies where sharing would move them from.
        if (!block_) rows_.query_rows().share();
        rows_.items.share();
    }
    Status take(const DaemonEvent& event, Stop stop) override {
        return keep(std::get<KnnAnswer>(event).read(stop));
    }

protected:
    KnnComputation(KnnRows& rows, std::size_t k, std::size_t memory_limit);

    Status keep(Result<Neighbors> found);
    JobSize size_at(double cpu_seconds) const;
    double pairs_of_block() const;
    /// Pairs that the block's search looks at.
    double searched_pairs() const;

    Vectors queries() const { return block_ ? block_->vectors() : rows_.query_rows().view(); }
    VectorFiles query_files() const;
    RowKeys keys() const;
    MatchKeys matches() const;
    /// How many neighbors the search has to find so that k are left.
    std::size_t k_of_search() const;
    /// The k nearest among items that were added, which only a search of dense vectors has.
    virtual Result<Neighbors> search_among(const Vectors&, std::size_t, const MatchKeys&,
                                           const RowKeys&, Execution&) {
        return Neighbors();
    }

    KnnRows& rows_;

private:
    void begin_block();
    void leave_out();
    Status search_added(const VectorRows& added, Execution& execution);
    /// The block's part of keys.
    template <class Keys>
    Keys of_block(Keys keys) const {
        if (!keys.queries.empty()) keys.queries = keys.queries.subspan(begin_, end_ - begin_);
        return keys;
    }

    std::size_t k_;
    std::size_t begin_ = 0, end_ = 0;  // of the block
    std::size_t most_queries_;         // of a block
    std::optional<RowRange> block_;    // none where the block is all queries
    bool too_large_ = false;
};

/// Search among vectors, by any metric.
class VectorKnnComputation final : public KnnComputation {
public:
    VectorKnnComputation(KnnRows& rows, const KnnParameters& parameters)
        : KnnComputation(rows, parameters.k, parameters.answer_limit), parameters_(parameters) {
        parameters_.k = k_of_search();
    }

    JobSize size() const override;
    Status compute(Execution& execution) override;
    Status submit(DaemonConnection& connection, Stop stop) override;

protected:
    Result<Neighbors> search_among(const Vectors& added, std::size_t k, const MatchKeys& matches,
                                   const RowKeys& keys, Execution& execution) override;

private:
    KnnParameters parameters_;
};

/// Search among texts, or among weights of terms.
class TermKnnComputation final : public KnnComputation {
public:
    TermKnnComputation(KnnRows& rows, const TermKnnParameters& parameters,
                       const TermParameters& weighting)
        : KnnComputation(rows, parameters.k, parameters.answer_limit),
          parameters_(parameters),
          weighting_(weighting) {
        parameters_.k = k_of_search();
        if (has_frequencies())
            factors_ = term_factors(weighting_, rows.frequencies.documents, rows.frequencies.all);
    }

    JobSize size() const override;
    Status compute(Execution& execution) override;
    Status submit(DaemonConnection& connection, Stop stop) override;

private:
    bool has_frequencies() const { return rows_.frequencies.given; }
    Status weigh_terms(WeighedItems& weighed, Execution& execution) const;

    TermKnnParameters parameters_;
    TermParameters weighting_;
    std::vector<double> factors_;  // of given frequencies
};

/// Search among strings, whose symbols are copied for a device.
class StringKnnComputation final : public KnnComputation {
public:
    StringKnnComputation(KnnRows& rows, const NearestStringsParameters& parameters)
        : KnnComputation(rows, parameters.k, parameters.answer_limit), parameters_(parameters) {
        parameters_.k = k_of_search();
    }

    JobSize size() const override;
    Status compute(Execution& execution) override;
    void prepare_for_device() override {}
    Status submit(DaemonConnection& connection, Stop stop) override;

private:
    Strings block() const;

    NearestStringsParameters parameters_;
};

/// Search among bit strings.
class BitKnnComputation final : public KnnComputation {
public:
    BitKnnComputation(KnnRows& rows, const NearestBitsParameters& parameters)
        : KnnComputation(rows, parameters.k, parameters.answer_limit), parameters_(parameters) {
        parameters_.k = k_of_search();
    }

    JobSize size() const override;
    Status compute(Execution& execution) override;
    Status submit(DaemonConnection& connection, Stop stop) override;

private:
    NearestBitsParameters parameters_;
};

}  // namespace gputext
