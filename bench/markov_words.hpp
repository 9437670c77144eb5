// bench/markov_words.hpp - generates words that resemble those of a list, by a Markov chain

#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/words.hpp"

namespace gputext::bench {

/// Gives the same numbers for the same seed everywhere: splitmix64.
class SplitMix {
public:
    explicit SplitMix(std::uint64_t seed) : state_(seed) {}
    std::uint64_t operator()() {
        std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
        z = (z ^ z >> 27) * 0x94d049bb133111eb;
        return z ^ z >> 31;
    }
    std::uint64_t below(std::uint64_t bound) {
        return static_cast<std::uint64_t>(static_cast<unsigned __int128>((*this)()) * bound >> 64);
    }

private:
    std::uint64_t state_;
};

/// Words one behind the other, that own their memory.
struct OwnWords {
    std::vector<std::uint8_t> bytes;
    std::vector<std::uint64_t> begins{0};

    void add(std::string_view word) {
        bytes.insert(bytes.end(), word.begin(), word.end());
        begins.push_back(bytes.size());
    }
    std::size_t size() const { return begins.size() - 1; }
    Words view() const { return {bytes.data(), begins.data(), size()}; }
};

/// A model of order three: each byte is drawn from those that follow the three before it in a list
/// of words.
class MarkovWords {
public:
    explicit MarkovWords(const std::vector<std::string>& words) {
        std::vector<bool> occurs(256);
        for (const std::string& word : words)
            for (const char c : word) occurs[static_cast<std::uint8_t>(c)] = true;
        for (unsigned byte = 0; byte < 256; ++byte)
            if (occurs[byte]) {
                symbols_[byte] = static_cast<std::uint32_t>(bytes_.size());
                bytes_.push_back(static_cast<char>(byte));
            }
        begins_.assign(bytes_.size() * bytes_.size() * bytes_.size() + 1, 0);
        for (const std::string& word : words)
            for_each(word, [&](std::size_t context, std::uint8_t) { ++begins_[context + 1]; });
        for (std::size_t i = 1; i < begins_.size(); ++i) begins_[i] += begins_[i - 1];
        followers_.resize(begins_.back());
        std::vector<std::uint32_t> next(begins_.begin(), begins_.end() - 1);
        for (const std::string& word : words)
            for_each(word, [&](std::size_t context, std::uint8_t symbol) {
                followers_[next[context]++] = symbol;
            });
    }

    /// `count` words, some of them equal, each of one or, with `compound`, two of the model's.
    OwnWords make(std::size_t count, bool compound, std::uint64_t seed,
                  Execution& execution) const {
        constexpr std::size_t kStep = 1 << 16;
        std::vector<OwnWords> parts((count + kStep - 1) / kStep);
        static_cast<void>(
            execution.parallel_for(parts.size(), [&](std::size_t part, unsigned) -> Status {
                SplitMix random(seed * 1000003 + part);
                std::string word;
                for (std::size_t i = part * kStep; i < std::min(count, (part + 1) * kStep); ++i) {
                    word.clear();
                    append(word, random);
                    if (compound) append(word, random);
                    parts[part].add(word);
                }
                return {};
            }));
        OwnWords all;
        std::uint64_t bytes = 0;
        for (const OwnWords& part : parts) bytes += part.bytes.size();
        all.bytes.resize(bytes);
        all.begins.resize(count + 1);
        std::vector<std::uint64_t> at(parts.size() + 1);
        for (std::size_t i = 0; i < parts.size(); ++i) at[i + 1] = at[i] + parts[i].bytes.size();
        static_cast<void>(
            execution.parallel_for(parts.size(), [&](std::size_t part, unsigned) -> Status {
                const OwnWords& own = parts[part];
                std::copy(own.bytes.begin(), own.bytes.end(),
                          all.bytes.begin() + static_cast<std::ptrdiff_t>(at[part]));
                for (std::size_t i = 0; i < own.size(); ++i)
                    all.begins[part * kStep + i + 1] = at[part] + own.begins[i + 1];
                return {};
            }));
        return all;
    }

private:
    static constexpr std::uint32_t kLongest = 60;

    std::size_t context_of(std::uint32_t a, std::uint32_t b, std::uint32_t c) const {
        return (std::size_t{a} * bytes_.size() + b) * bytes_.size() + c;
    }
    /// Calls what(context, symbol) for each byte of a word and its end, which is symbol 0.
    template <class What>
    void for_each(const std::string& word, const What& what) const {
        std::uint32_t a = 0, b = 0, c = 0;
        for (std::size_t i = 0; i <= word.size(); ++i) {
            const std::uint32_t symbol =
                i < word.size() ? symbols_[static_cast<std::uint8_t>(word[i])] : 0;
            what(context_of(a, b, c), static_cast<std::uint8_t>(symbol));
            a = b;
            b = c;
            c = symbol;
        }
    }
    void append(std::string& word, SplitMix& random) const {
        std::uint32_t a = 0, b = 0, c = 0;
        for (std::uint32_t length = 0; length < kLongest; ++length) {
            const std::size_t context = context_of(a, b, c);
            const std::uint32_t symbol =
                followers_[begins_[context] +
                           random.below(begins_[context + 1] - begins_[context])];
            if (symbol == 0) return;
            word.push_back(bytes_[symbol]);
            a = b;
            b = c;
            c = symbol;
        }
    }

    std::string bytes_ = std::string(1, '\0');  // of symbols; 0 is no byte's
    std::uint32_t symbols_[256] = {};
    std::vector<std::uint32_t> begins_;
    std::vector<std::uint8_t> followers_;
};

/// Walker's table: slot i is drawn as itself if a number below 2^32 is below `limits[i]`, else as
/// `others[i]`.
struct AliasTable {
    std::vector<std::uint32_t> limits, others;

    /// Weights of at most 2^32 - 1 slots.
    explicit AliasTable(const std::vector<double>& weights)
        : limits(weights.size()), others(weights.size()) {
        double sum = 0;
        for (const double weight : weights) sum += weight;
        std::vector<double> parts(weights.size());
        std::vector<std::uint32_t> small, large;
        for (std::size_t i = 0; i < weights.size(); ++i) {
            parts[i] = weights[i] / sum * static_cast<double>(weights.size());
            (parts[i] < 1 ? small : large).push_back(static_cast<std::uint32_t>(i));
        }
        while (!small.empty() && !large.empty()) {
            const std::uint32_t i = small.back(), j = large.back();
            small.pop_back();
            limits[i] = static_cast<std::uint32_t>(parts[i] * 4294967295.0);
            others[i] = j;
            parts[j] -= 1 - parts[i];
            if (parts[j] < 1) {
                large.pop_back();
                small.push_back(j);
            }
        }
        for (const auto* rest : {&small, &large})
            for (const std::uint32_t i : *rest) {
                limits[i] = UINT32_MAX;
                others[i] = i;
            }
    }
};

}  // namespace gputext::bench
