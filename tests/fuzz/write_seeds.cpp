// tests/fuzz/write_seeds.cpp - writes each fuzzer's seeds as files into the folder of its name

#include <fstream>
#include <string>

#include "tests/fuzz/code_seeds.hpp"
#include "tests/fuzz/protocol_seeds.hpp"
#include "tests/fuzz/sketch_seeds.hpp"
#include "tests/fuzz/trie_seeds.hpp"

namespace {

template <class Inputs>
bool write(const std::string& folder, const Inputs& inputs) {
    int number = 0;
    for (const auto& input : inputs) {
        std::ofstream file(folder + "/seed-" + std::to_string(number++), std::ios::binary);
        file.write(reinterpret_cast<const char*>(input.data()),
                   static_cast<std::streamsize>(input.size()));
        if (!file) return false;
    }
    return true;
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 2) return 2;
    const std::string folder = arguments[1];
    const bool written = write(folder + "/protocol", gputext::testing::seed_inputs()) &&
                         write(folder + "/trie", gputext::testing::trie_seeds()) &&
                         write(folder + "/code", gputext::testing::code_seeds()) &&
                         write(folder + "/sketch", gputext::testing::sketch_seeds());
    return written ? 0 : 1;
}
