// tests/fuzz/write_seeds.cpp - writes the seeds as files into the folder that is its argument

#include <fstream>
#include <string>

#include "tests/fuzz/protocol_seeds.hpp"

int main(int count, char** arguments) {
    if (count != 2) return 2;
    int number = 0;
    for (const auto& input : gputext::testing::seed_inputs()) {
        std::ofstream file(std::string(arguments[1]) + "/seed-" + std::to_string(number++),
                           std::ios::binary);
        file.write(reinterpret_cast<const char*>(input.data()),
                   static_cast<std::streamsize>(input.size()));
        if (!file) return 1;
    }
    return 0;
}
