// extension/inputs/frequency_query.hpp - reads the document frequencies of a collection of which
// the items of a call are a part
//
// Each server of several counts the documents that have a term among its own (tfidf_frequencies).
// The sums weigh the terms of all servers alike.

#pragma once

#include "extension/base/postgres.hpp"

#include <cstdint>
#include <vector>

#include "extension/inputs/term_rows.hpp"

namespace gputext {

struct GivenFrequencies {
    bool given = false;
    std::vector<std::uint32_t> documents;  // that have the term, by its number
    std::uint32_t all = 0;                 // documents
    double average_length = 0;             // of these, where it is wanted
};

/// Runs the inner query, whose rows are (term, documents), (term, documents, first_id) or (term,
/// documents, first_id, occurrences), and the numbers of all documents, and of all their terms,
/// where the term is null. The last column must be there if `lengths` are wanted. Numbers the terms
/// in the order of the query if it has one; else by first_id, and where that is equal or not given,
/// by their bytes: so they have the numbers that read_terms() gives them where one server reads the
/// texts of all. Closes `terms`. Raises an error for other columns, nulls, a term that occurs
/// twice, and counts that cannot be.
void read_frequencies(const char* sql, bool lengths, TermNumbers& terms,
                      GivenFrequencies& frequencies);

}  // namespace gputext
