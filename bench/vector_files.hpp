// bench/vector_files.hpp - files of float rows for the benchmarks of vectors

#pragma once

#include <cstddef>
#include <fstream>
#include <random>
#include <vector>

namespace gputext::bench {

/// `count` floats from a file of them or, without one, normally distributed from a fixed seed.
inline std::vector<float> floats(std::size_t count, unsigned seed, const char* file) {
    std::vector<float> floats(count);
    if (file != nullptr) {
        std::ifstream(file, std::ios::binary)
            .read(reinterpret_cast<char*>(floats.data()),
                  static_cast<std::streamsize>(count * sizeof(float)));
        return floats;
    }
    std::mt19937_64 generator(seed);
    std::normal_distribution<float> normal;
    for (float& element : floats) element = normal(generator);
    return floats;
}

}  // namespace gputext::bench
