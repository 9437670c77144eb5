// bench/code_tokens_bench.cpp - lexer of source code: MB/s on one core
//
// Argument: a file of source code. It is repeated up to 100 MB, which are read at once, too.

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "bench/stopwatch.hpp"
#include "cpp/code/code_tokens.hpp"

using namespace gputext;

namespace {

void measure(const char* name, const std::string& source, int rounds) {
    double best = 1e9;
    std::size_t tokens = 0, lines = 0;
    for (int round = 0; round < rounds; ++round) {
        const bench::Stopwatch watch;
        const auto code = code_tokens(source);
        if (!code.ok()) return;
        best = std::min(best, watch.seconds());
        tokens = code->tokens.size();
        lines = code->line_ends.size();
    }
    const double bytes = static_cast<double>(source.size());
    std::printf("code_tokens, %s: %.1f MB, %zu tokens, %zu lines, %.3f s, %.1f MB/s\n", name,
                1e-6 * bytes, tokens, lines, best, 1e-6 * bytes / best);
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 2) return 2;
    std::ifstream file(arguments[1], std::ios::binary);
    const std::string source((std::istreambuf_iterator<char>(file)),
                             std::istreambuf_iterator<char>());
    if (source.empty()) return 1;
    measure("the file", source, 10);
    std::string large;
    while (large.size() < 100000000) large += source;
    measure("100 MB", large, 3);
    return 0;
}
