// bench/varied_documents_bench.cpp - as many documents as wanted, made of real ones
//
// Arguments: FILE COUNT [LENGTH [SEED]]: a file of documents with a byte 0 between them, how many
// to make, and their mean length in bytes (2,000; the standard deviation is a quarter of it).
// Writes rows for COPY: a number, a tab, a document.
//
// A document takes runs of about eight words alternately of its base, document number % documents
// of the file, and of a random other one. So it keeps about half of its base's words, in their
// places or near them: far from a near-duplicate, while its characters are distributed as in real
// documents. Bytes that COPY or UTF-8 would not take are blanks.

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace {

std::vector<std::string> read_documents(const char* path) {
    std::ifstream file(path, std::ios::binary);
    const std::string all(std::istreambuf_iterator<char>(file), {});
    std::vector<std::string> documents;
    for (std::size_t begin = 0; begin < all.size();) {
        const std::size_t end = std::min(all.find('\0', begin), all.size());
        if (end > begin) documents.push_back(all.substr(begin, end - begin));
        begin = end + 1;
    }
    return documents;
}

/// A place in a document that words are taken from; behind its end it begins again.
struct Reader {
    std::string_view text;
    std::size_t at;

    /// The next word with the blanks behind it.
    std::string_view next() {
        if (at >= text.size()) at = 0;
        std::size_t end = at;
        while (end < text.size() && text[end] != ' ' && text[end] != '\n') ++end;
        while (end < text.size() && (text[end] == ' ' || text[end] == '\n')) ++end;
        const std::string_view word = text.substr(at, end - at);
        at = end;
        return word;
    }
};

void put(std::string_view word, std::string& row) {
    for (const char c : word) {
        if (c == '\n')
            row += "\\n";
        else if (c == '\\')
            row += "\\\\";
        else
            row += (static_cast<unsigned char>(c) < ' ' || c == '\x7f') ? ' ' : c;
    }
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 3) return std::fprintf(stderr, "wanted: FILE COUNT [LENGTH [SEED]]\n"), 2;
    const std::vector<std::string> documents = read_documents(arguments[1]);
    if (documents.empty()) return std::fprintf(stderr, "no documents\n"), 2;
    const long wanted = std::atol(arguments[2]);
    const double length = count > 3 ? std::atof(arguments[3]) : 2000;
    std::mt19937_64 random(count > 4 ? std::strtoull(arguments[4], nullptr, 10) : 1);
    std::normal_distribution<double> lengths(length, length / 4);
    std::string row;
    for (long number = 0; number < wanted; ++number) {
        const std::string& base = documents[static_cast<std::size_t>(number) % documents.size()];
        const std::string& donor = documents[random() % documents.size()];
        Reader own{base, 0}, other{donor, random() % donor.size()};
        const auto size = static_cast<std::size_t>(std::max(length / 4, lengths(random)));
        row = std::to_string(number) + '\t';
        other.next();  // to the begin of a word
        bool from_base = true;
        for (std::size_t taken = 0; taken < size;) {
            if (random() % 8 == 0) from_base = !from_base;
            const std::string_view word = (from_base ? own : other).next();
            put(word, row);
            taken += word.size();
        }
        row += '\n';
        std::fwrite(row.data(), 1, row.size(), stdout);
    }
}
