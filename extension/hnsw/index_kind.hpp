// extension/hnsw/index_kind.hpp - what an index of pgvector's access method hnsw is of

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "utils/relcache.h"
}

#include <cstddef>

#include "cpp/base/vectors.hpp"
#include "cpp/knn/distance.hpp"

namespace gputext::hnsw {

struct IndexKind {
    ElementType element;  // float32 for the type vector, float16 for halfvec
    std::size_t dimensions;
    Metric metric;    // of the values as the index has them
    bool normalized;  // to length 1, without rows of zeros
    unsigned m, ef_construction;

    std::size_t row_bytes() const { return dimensions * element_size(element); }
};

/// Why gputext leaves the build of an index to pgvector: a clause for a message, such as "its
/// vectors are of type bit".
struct Reason {
    char text[200] = "";
    /// What the user can do about it, who then gets a WARNING; empty where that is nothing.
    char hint[200] = "";

    bool given() const { return text[0] != '\0'; }
};

/// What there is to know of an index of an access method whose handler is pgvector's hnswhandler.
/// Sets `reason` unless the index can be built here: for a version of pgvector that was not tried,
/// values that are no dense vectors, and what pgvector itself refuses.
IndexKind kind_of(Relation index, Reason& reason);

}  // namespace gputext::hnsw
