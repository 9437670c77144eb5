// extension/operators/word_lookup.hpp - looks words up in a dictionary, on a device or on the CPU

#pragma once

#include "extension/base/postgres.hpp"

#include <cstdint>
#include <span>
#include <vector>

#include "cpp/trie/trie.hpp"
#include "extension/rows/word_rows.hpp"
#include "extension/server/computation.hpp"

namespace gputext {

class WordLookupComputation final : public Computation {
public:
    /// `rows` rows have led to the words. All of them outlive this.
    WordLookupComputation(std::span<const std::uint8_t> image, const Trie& trie, WordRows& words,
                          std::uint64_t rows)
        : image_(image), trie_(trie), words_(words), rows_(rows) {}

    std::vector<std::uint32_t> codes;  // of the words, by their numbers

    JobSize size() const override;
    Status compute(Execution& execution) override;
    void prepare_for_device() override { words_.share(); }
    Status submit(DaemonConnection& connection, Stop stop) override;
    Status take(const DaemonEvent& answer, Stop stop) override;

private:
    std::span<const std::uint8_t> image_;
    const Trie& trie_;
    WordRows& words_;
    std::uint64_t rows_;
};

}  // namespace gputext
