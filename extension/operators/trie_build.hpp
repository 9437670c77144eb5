// extension/operators/trie_build.hpp - builds a dictionary from its words, on a device or on the
// CPU

#pragma once

#include "extension/base/postgres.hpp"

#include <cstdint>
#include <vector>

#include "cpp/base/vocabulary.hpp"
#include "cpp/trie/trie.hpp"
#include "extension/server/computation.hpp"

namespace gputext {

class TrieBuildComputation final : public Computation {
public:
    /// The words outlive this.
    TrieBuildComputation(TrieStructure structure, const Vocabulary& words)
        : structure_(structure), words_(words) {}

    std::vector<std::uint8_t> image;

    JobSize size() const override;
    Status compute(Execution& execution) override;
    void prepare_for_device() override {}  // submit() copies the words
    Status submit(DaemonConnection& connection, Stop stop) override;
    Status take(const DaemonEvent& answer, Stop stop) override;

private:
    TrieStructure structure_;
    const Vocabulary& words_;
};

}  // namespace gputext
