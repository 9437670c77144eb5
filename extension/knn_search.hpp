// extension/knn_search.hpp - searches of gpu_knn, on a device or on the CPU

#pragma once

#include "extension/postgres.hpp"

#include "cpp/knn.hpp"
#include "cpp/term_knn.hpp"
#include "cpp/term_weights.hpp"
#include "extension/computation.hpp"
#include "extension/knn_rows.hpp"

namespace gputext {

/// What all of them have in common.
class KnnSearch : public Computation {
public:
    Neighbours answer;

    void prepare_for_device() override {
        rows_.queries.share();
        rows_.items.share();
    }
    Status take(const DaemonEvent& event, Stop stop) override {
        return keep(std::get<NeighboursAnswer>(event).read(stop));
    }

protected:
    explicit KnnSearch(KnnRows& rows) : rows_(rows) {}

    Status keep(Result<Neighbours> found);
    JobSize size_at(double cpu_seconds) const;

    KnnRows& rows_;
};

/// Search among vectors, by any metric.
class VectorSearch final : public KnnSearch {
public:
    VectorSearch(KnnRows& rows, const KnnParameters& parameters)
        : KnnSearch(rows), parameters_(parameters) {}

    JobSize size() const override;
    Status compute(Execution& execution) override;
    Status submit(DaemonConnection& connection, Stop stop) override;

private:
    KnnParameters parameters_;
};

/// Search among texts, or among weights of terms.
class TermSearch final : public KnnSearch {
public:
    TermSearch(KnnRows& rows, const TermKnnParameters& parameters, const TermParameters& weighting)
        : KnnSearch(rows), parameters_(parameters), weighting_(weighting) {}

    JobSize size() const override;
    Status compute(Execution& execution) override;
    Status submit(DaemonConnection& connection, Stop stop) override;

private:
    TermKnnParameters parameters_;
    TermParameters weighting_;
};

}  // namespace gputext
