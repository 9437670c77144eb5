// cpp/embeddings/detail/training_windows.hpp - windows of words in a training of
// cpp/embeddings/trainer.hpp

#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/embeddings/trainer.hpp"

namespace gputext {

// ---- Words that an epoch trains on ----

/// The tokens of a replica, from `first` to `end` - 1.
struct ReplicaRange {
    std::size_t first = 0, end = 0;
};
ReplicaRange replica_range(const TrainerParameters& parameters, std::size_t tokens,
                           std::uint32_t replica);

/// The entries of cpp/embeddings/trainer.hpp of an epoch of a replica, breaks included. O(tokens)
/// on the execution's threads. Errors: cancelled, out_of_memory.
Status training_entries(const TrainerParameters& parameters, const WordSampling& sampling,
                        const TokenStream& tokens, std::uint32_t replica, std::uint32_t epoch,
                        Execution& execution, std::vector<std::uint32_t>& entries);

/// One window; overwritten by the next.
struct TrainingWindow {
    std::vector<std::uint32_t> context;
    std::vector<std::uint32_t> outputs;  // the word itself first; none when there is no window
};

/// Windows of one replica in one epoch. The views must live as long.
class TrainingWindows {
public:
    TrainingWindows(const TrainerParameters& parameters, const WordSampling& sampling,
                    std::span<const std::uint32_t> entries, std::span<const std::uint32_t> farthest,
                    std::uint32_t replica, std::uint32_t epoch)
        : sampling_(sampling),
          entries_(entries),
          farthest_(farthest),
          far_count_(static_cast<std::uint32_t>(farthest.size() / sampling.keep.size())),
          window_(parameters.window),
          negative_(parameters.negative),
          key_(random_key(parameters.seed, TrainerParameters::kWindowUse + replica, epoch)) {}

    /// The window around an entry, O(window + negative).
    void find(std::size_t entry, TrainingWindow& window) const {
        window.context.clear();
        window.outputs.clear();
        const std::uint32_t word = entries_[entry];
        if (word == TrainerParameters::kBreak) return;
        const std::uint64_t base = random_bits(key_, entry);
        const std::size_t most = 1 + random_below(static_cast<std::uint32_t>(base >> 32), window_);
        find_context(entry, most, window.context);
        if (window.context.empty()) return;
        window.outputs.push_back(word);
        for (std::uint32_t q = 1; q <= negative_; ++q)
            if (const std::uint32_t drawn = draw(word, base, q); drawn != word)
                window.outputs.push_back(drawn);
    }

private:
    void find_context(std::size_t entry, std::size_t most,
                      std::vector<std::uint32_t>& context) const {
        std::size_t first = entry;
        while (first > 0 && entry - first < most &&
               entries_[first - 1] != TrainerParameters::kBreak)
            --first;
        const std::size_t end = std::min(entries_.size(), entry + most + 1);
        for (std::size_t i = first; i < end && entries_[i] != TrainerParameters::kBreak; ++i)
            if (i != entry) context.push_back(entries_[i]);
    }

    std::uint32_t draw(std::uint32_t word, std::uint64_t base, std::uint32_t q) const {
        const std::uint64_t bits = random_bits(base, q);
        if (far_count_ == 0 || random_bits(base, negative_ + q) >> 63 == 0)
            return draw_word(sampling_, bits);
        const std::size_t list = std::size_t{word} * far_count_;
        return farthest_[list + random_below(static_cast<std::uint32_t>(bits >> 32), far_count_)];
    }

    const WordSampling& sampling_;
    std::span<const std::uint32_t> entries_, farthest_;
    std::uint32_t far_count_, window_, negative_;
    std::uint64_t key_;
};

/// Where an epoch of so many entries is cut into steps.
struct TrainingSteps {
    std::size_t streams, length;  // of each, and so many steps

    TrainingSteps(std::size_t entries, std::uint32_t batch)
        : streams(batch), length((entries + batch - 1) / batch) {}

    /// The first step of a part.
    std::size_t begin(std::uint32_t part, std::uint32_t parts) const {
        return length * part / parts;
    }
};

/// The learning rate of a step.
inline float step_rate(const TrainerParameters& parameters, std::uint32_t epoch, std::size_t step,
                       std::size_t steps) {
    const double done = (epoch + static_cast<double>(step) / static_cast<double>(steps)) /
                        static_cast<double>(parameters.epochs);
    return static_cast<float>(static_cast<double>(parameters.learning_rate) *
                              std::max(1e-4, 1 - done));
}

}  // namespace gputext
