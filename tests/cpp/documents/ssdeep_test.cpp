// tests/cpp/documents/ssdeep_test.cpp - ssdeep's hash and comparison against vectors, definitions
// and the program

#include "cpp/documents/ssdeep.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cpp/documents/detail/hash_batches.hpp"
#include "tests/support/test_size.hpp"

namespace gputext {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::string_view alphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// Documents. The generator is spelt out (splitmix64), for the vectors must come out the same
// with every standard library.

class Random {
public:
    explicit Random(std::uint64_t seed) : state_(seed) {}

    std::uint64_t next() {
        state_ += 0x9e3779b97f4a7c15;
        std::uint64_t z = state_;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        return z ^ (z >> 31);
    }
    std::size_t below(std::size_t bound) { return static_cast<std::size_t>(next() % bound); }
    bool one_in(std::size_t n) { return below(n) == 0; }
    std::uint8_t byte() { return static_cast<std::uint8_t>(next()); }
    double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

private:
    std::uint64_t state_;
};

/// The seed of a property test: GPUTEXT_TEST_SEED, or a new one that is printed.
std::uint64_t property_seed() {
    const char* given = std::getenv("GPUTEXT_TEST_SEED");
    const std::uint64_t seed = given != nullptr ? std::stoull(given) : std::random_device()();
    std::cout << "GPUTEXT_TEST_SEED=" << seed << '\n';
    return seed;
}

Bytes random_bytes(std::uint64_t seed, std::size_t size) {
    Random random(seed);
    Bytes out(size);
    for (auto& byte : out) byte = random.byte();
    return out;
}

Bytes text_like(std::uint64_t seed, std::size_t size) {
    constexpr std::string_view letters = "eeeetttaaooiinnsshhrrdlu    \n,.(){};=_0123456789";
    Random random(seed);
    Bytes out(size);
    for (auto& byte : out) byte = static_cast<std::uint8_t>(letters[random.below(letters.size())]);
    return out;
}

Bytes low_entropy(std::uint64_t seed, std::size_t size) {
    Random random(seed);
    const std::uint8_t base = random.byte();
    const std::size_t rarity = 2 + random.below(40);
    Bytes out(size, base);
    for (auto& byte : out) {
        if (random.one_in(rarity)) byte = static_cast<std::uint8_t>(base + random.below(3));
    }
    return out;
}

Bytes repeated(const Bytes& unit, std::size_t size) {
    Bytes out(size);
    for (std::size_t i = 0; i < size; ++i) out[i] = unit[i % unit.size()];
    return out;
}

Bytes repeated(std::string_view unit, std::size_t size) {
    return repeated(Bytes(unit.begin(), unit.end()), size);
}

Bytes joined(Bytes head, const Bytes& tail) {
    head.insert(head.end(), tail.begin(), tail.end());
    return head;
}

std::string repeated_text(std::string_view unit, std::size_t size) {
    const Bytes bytes = repeated(unit, size);
    return {bytes.begin(), bytes.end()};
}

/// Seven zeros at the end or more make the final rolling hash zero, which changes the last letter.
Bytes with_zeros(Bytes document, std::size_t zeros) {
    document.resize(document.size() + zeros);
    return document;
}

Bytes mutated(Random& random, Bytes document) {
    for (std::size_t edits = 1 + random.below(8); edits > 0; --edits) {
        const auto at = static_cast<std::ptrdiff_t>(random.below(document.size() + 1));
        const std::size_t length = 1 + random.below(50);
        const auto place = document.begin() + at;
        if (random.one_in(2)) {
            const Bytes added = random_bytes(random.next(), length);
            document.insert(place, added.begin(), added.end());
        } else {
            const auto rest = document.end() - place;
            document.erase(place, place + std::min(rest, static_cast<std::ptrdiff_t>(length)));
        }
    }
    return document;
}

Bytes any_document(Random& random, std::size_t size) {
    const std::uint64_t seed = random.next();
    switch (random.below(6)) {
        case 0:
            return random_bytes(seed, size);
        case 1:
            return low_entropy(seed, size);
        case 2:
            return repeated(random_bytes(seed, 1 + random.below(2000)), size);
        case 3:
            return with_zeros(random_bytes(seed, size - size / 4), size / 4);
        default:
            return text_like(seed, size);
    }
}

// The definitions, as plainly as can be.

std::uint32_t reference_rolling_hash(const Bytes& document, std::size_t position) {
    std::uint32_t hash = 0;
    std::uint32_t shifted = 0;
    for (std::size_t j = 0; j < 7 && j <= position; ++j) {
        const std::uint32_t byte = document[position - j];
        hash += byte + static_cast<std::uint32_t>(7 - j) * byte;
        shifted ^= byte << (5 * j);
    }
    return hash + shifted;
}

std::size_t reference_cuts(const Bytes& document, std::uint64_t block_size) {
    std::size_t cuts = 0;
    for (std::size_t i = 0; i < document.size(); ++i) {
        cuts += reference_rolling_hash(document, i) % block_size == block_size - 1;
    }
    return cuts;
}

std::string reference_part(const Bytes& document, std::uint64_t block_size, std::size_t limit) {
    std::string text;
    std::string stored;
    unsigned hash = 0x27;
    std::uint32_t rolling = 0;
    for (std::size_t i = 0; i < document.size(); ++i) {
        rolling = reference_rolling_hash(document, i);
        hash = ((hash * 19) ^ document[i]) % 64;
        if (rolling % block_size != block_size - 1) continue;
        if (text.size() < limit - 1) {
            text += alphabet[hash];
            hash = 0x27;
        } else {
            stored = alphabet[hash];
        }
    }
    return text + (rolling != 0 ? std::string(1, alphabet[hash]) : stored);
}

std::string reference_hash(const Bytes& document) {
    std::uint64_t block_size = 3;
    while (block_size * 64 < document.size()) block_size *= 2;
    while (block_size > 3 && reference_cuts(document, block_size) < 32) block_size /= 2;
    return std::to_string(block_size) + ":" + reference_part(document, block_size, 64) + ":" +
           reference_part(document, 2 * block_size, 32);
}

std::string collapsed(std::string_view text) {
    std::string out;
    for (const char c : text) {
        const std::size_t n = out.size();
        if (n >= 3 && out[n - 1] == c && out[n - 2] == c && out[n - 3] == c) continue;
        out += c;
    }
    return out;
}

int reference_lcs(std::string_view a, std::string_view b) {
    std::vector<std::vector<int>> best(a.size() + 1, std::vector<int>(b.size() + 1));
    for (std::size_t i = 1; i <= a.size(); ++i) {
        for (std::size_t j = 1; j <= b.size(); ++j) {
            best[i][j] = a[i - 1] == b[j - 1] ? best[i - 1][j - 1] + 1
                                              : std::max(best[i - 1][j], best[i][j - 1]);
        }
    }
    return best[a.size()][b.size()];
}

bool reference_share_seven(std::string_view a, std::string_view b) {
    for (std::size_t i = 0; i + 7 <= a.size(); ++i) {
        if (b.find(a.substr(i, 7)) != std::string_view::npos) return true;
    }
    return false;
}

int reference_score(const std::string& a, const std::string& b, std::uint64_t block_size) {
    if (!reference_share_seven(a, b)) return 0;
    const int letters = static_cast<int>(a.size() + b.size());
    int score = (letters - 2 * reference_lcs(a, b)) * 64 / letters;
    score = 100 - 100 * score / 64;
    if (block_size >= 45) return score;
    return std::min(score, static_cast<int>(block_size / 3 * std::min(a.size(), b.size())));
}

struct ReferenceSignature {
    std::uint64_t block_size;
    std::string single;
    std::string doubled;
};

ReferenceSignature reference_parse(const std::string& text) {
    const std::size_t first = text.find(':');
    const std::size_t second = text.find(':', first + 1);
    return {std::stoull(text), collapsed(text.substr(first + 1, second - first - 1)),
            collapsed(text.substr(second + 1))};
}

int reference_compare(const std::string& a, const std::string& b) {
    const ReferenceSignature x = reference_parse(a);
    const ReferenceSignature y = reference_parse(b);
    if (x.block_size == 2 * y.block_size) return reference_score(x.single, y.doubled, x.block_size);
    if (y.block_size == 2 * x.block_size) return reference_score(x.doubled, y.single, y.block_size);
    if (x.block_size != y.block_size) return 0;
    if (x.single == y.single && x.doubled == y.doubled) return 100;
    return std::max(reference_score(x.single, y.single, x.block_size),
                    reference_score(x.doubled, y.doubled, 2 * x.block_size));
}

// Signatures that resemble each other.

std::string mutated_part(Random& random, std::string part, std::size_t limit) {
    for (std::size_t edits = random.below(8); edits > 0; --edits) {
        const std::size_t at = random.below(part.size() + 1);
        const char letter = alphabet[random.below(alphabet.size())];
        switch (random.below(4)) {
            case 0:
                part.insert(at, 1, letter);
                break;
            case 1:
                part.insert(at, 1 + random.below(6), letter);
                break;
            case 2:
                part.erase(at, 1 + random.below(4));
                break;
            default:
                if (at < part.size()) part[at] = letter;
        }
    }
    return part.substr(0, limit);
}

std::string random_part(Random& random, std::size_t limit) {
    std::string part(random.below(limit + 1), 'A');
    for (char& letter : part) letter = alphabet[random.below(alphabet.size())];
    return part;
}

/// Members of one family mostly share a block size or have neighboring ones, and share text: the
/// first part of one may be the second part of another.
std::vector<std::string> signature_family(Random& random, std::size_t members) {
    const std::size_t level = random.one_in(2) ? random.below(6) : random.below(30);
    const std::string base = random_part(random, 64);
    std::vector<std::string> out;
    for (std::size_t i = 0; i < members; ++i) {
        const std::uint64_t size = std::uint64_t{3} << (level + random.below(2));
        out.push_back(std::to_string(size) + ":" + mutated_part(random, base, 64) + ":" +
                      mutated_part(random, base.substr(0, 32), 32));
    }
    return out;
}

// Vectors: the signatures were printed by the ssdeep program, version 2.14.1.

struct Vector {
    const char* name;
    Bytes document;
    const char* signature;
};

std::vector<Vector> vectors() {
    return {
        {"empty", {}, "3::"},
        {"one byte", repeated("a", 1), "3:E:E"},
        {"one zero", with_zeros({}, 1), "3::"},
        {"one byte 255", {255}, "3:a:a"},
        {"short", repeated("Hello, world!", 13), "3:a6/E:asE"},
        {"pangram", repeated("The quick brown fox jumps over the lazy dog. ", 450),
         "6:FHIG8NIG8NIG8NIG8NIG8NIG8NIG8NIG8NIG8NIGY:Fg66666666G"},
        {"7 zeros", with_zeros({}, 7), "3::"},
        {"10000 zeros", with_zeros({}, 10000), "3::"},
        {"10000 times a", repeated("a", 10000), "3:tjl:X"},
        {"5000 times 255", Bytes(5000, 255), "3:RRL:LL"},
        {"period 2", repeated("ab", 4096), "3:uC:uC"},
        {"period 10", repeated("0123456789", 100000),
         "24:LrgggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggO:LD"},
        {"period 1000", repeated(random_bytes(1, 1000), 50000),
         "1536:J82828282828282828282828282828282828282828282828282828282828282/"
         ":JZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZt"},
        {"random 6", random_bytes(2, 6), "3:rW:rW"},
        {"random 7", random_bytes(2, 7), "3:rk:rk"},
        {"random 8", random_bytes(2, 8), "3:rv:rv"},
        {"random 191", random_bytes(3, 191),
         "3:R0fXpamWb02YyGSd7aE6omVvUZN71NAMnWkrE89y2YEU/EOu1j9jUj2jLvQPRW51:ehamyx5P/"
         "vNoMR94zumusSEW"},
        {"random 192", random_bytes(3, 192),
         "3:R0fXpamWb02YyGSd7aE6omVvUZN71NAMnWkrE89y2YEU/EOu1j9jUj2jLvQPRW5f:ehamyx5P/"
         "vNoMR94zumusSES"},
        {"random 193", random_bytes(3, 193),
         "3:R0fXpamWb02YyGSd7aE6omVvUZN71NAMnWkrE89y2YEU/EOu1j9jUj2jLvQPRW5f:ehamyx5P/"
         "vNoMR94zumusSEEn"},
        {"random 383", random_bytes(4, 383),
         "6:6iui6FmU/QX1Fjro0NaeqWapPX9QDLzAT2jTsG1zYYrgMuw6lwUF3ooyKp:6zFdiDY0Na19eM2jYG1zH0wUYs"},
        {"random 384", random_bytes(4, 384),
         "6:6iui6FmU/QX1Fjro0NaeqWapPX9QDLzAT2jTsG1zYYrgMuw6lwUF3ooyKt:6zFdiDY0Na19eM2jYG1zH0wUYi"},
        {"random 385", random_bytes(4, 385),
         "6:6iui6FmU/QX1Fjro0NaeqWapPX9QDLzAT2jTsG1zYYrgMuw6lwUF3ooyKs:6zFdiDY0Na19eM2jYG1zH0wUY9"},
        {"random 511", random_bytes(5, 511),
         "12:I41mw3TiUiPUTiCoBE2AuMfYUlY6AqAsCuQv1a9AgEl:Lmw2vPyryNwPlY6AqfClJx"},
        {"random 512", random_bytes(5, 512),
         "12:I41mw3TiUiPUTiCoBE2AuMfYUlY6AqAsCuQv1a9AgEI:Lmw2vPyryNwPlY6AqfClJU"},
        {"random 513", random_bytes(5, 513),
         "12:I41mw3TiUiPUTiCoBE2AuMfYUlY6AqAsCuQv1a9AgEa:Lmw2vPyryNwPlY6AqfClJ+"},
        {"random 12288", random_bytes(6, 12288),
         "192:qbk1p3k1MBtwAAd4DnijIh+I/Eb27YF8n04BCxjibzLMEIKCak8dGx2uT3xukQZM:qbB1C0dwnaiWgzDXkJx/"
         "huq"},
        {"random 12289", random_bytes(6, 12289),
         "192:qbk1p3k1MBtwAAd4DnijIh+I/Eb27YF8n04BCxjibzLMEIKCak8dGx2uT3xukQZr:qbB1C0dwnaiWgzDXkJx/"
         "huR"},
        {"30 cuts", random_bytes(1023, 100),
         "3:xHRw4HxBiM1WtKosJYRuEBMAoXR9VGB:xHRNR80qKVJWuqiLkB"},
        {"31 cuts", random_bytes(1013, 100),
         "3:aSyrYPqQ7WqrDiA0lgCocSHfa5AW6YDn:aSbWO+FlgR1HfaiW64"},
        {"32 cuts", random_bytes(1001, 100),
         "3:QKROUfgimLYzz/do18OOpArIDjyqxut8A:QLU5mkzz/LAMDjOD"},
        {"62 cuts", random_bytes(1014, 192),
         "3:E/"
         "Bzwnpn5HnF0oPljH+gkbbvU0QYCu7Ap8Zg5UJJO8K9+dcpktnLDJESLSh8Pw5:ERwLHFTPljH+"
         "gkbo02u5i85cpknvJESs"},
        {"63 cuts", random_bytes(1128, 192),
         "3:Ooet/aL9IxWV9NYBILoshSNx+pyQ1HNdhQ/dMroNnehv/aqcBsiXqqfPxdkbACZf:Oo6/GDXLodCDHN/"
         "Q1MrSvqws0qqfZmbd"},
        {"64 cuts", random_bytes(1005, 192),
         "3:JS1V5bDF96U2giRU4DSZHnqiMYKwARSXnxtWOl/cXj7F32xn/USDGlzBjAcOqCzL:Jk5L6LR6HMnwARskOlfn/"
         "d8pPOqC/"},
        {"65 cuts", random_bytes(1010, 192),
         "3:hFfwNydDDvOZsT6UI+RDOrPxqsNamAI08ozd5XFHphH6KRi0KwwUDipXs7LYVsdJ:hqNydeZy/"
         "I+6AV5x51HphHbjMp87WsKq"},
        {"30 cuts, then zeros", with_zeros(random_bytes(1011, 100), 7),
         "3:9rphZ5tf3XpY48FQIijg+kiuEOll/l:/bpEq4iSlt"},
        {"31 cuts, then zeros", with_zeros(random_bytes(1061, 100), 7),
         "3:NwFhq9UyUJR05VP1fBm8bYO4A7Ao/sl:eFhhLS5VNc2UW/E"},
        {"32 cuts, then zeros", with_zeros(random_bytes(1013, 100), 7),
         "3:aSyrYPqQ7WqrDiA0lgCocSHfa5AW6YDl:aSbWO+FlgR1HfaiW6o"},
        {"62 cuts, then zeros", with_zeros(random_bytes(1001, 190), 7),
         "3:QKROUfgimLYzz/do18OOpArIDjyqxut8nY8Ki8ZcZyAyp0OigSd6jbje4GXflX:QLU5mkzz/"
         "LAMDjOvG2opURPbj"},
        {"63 cuts, then zeros", with_zeros(random_bytes(1012, 190), 7),
         "3:MGlpyVfujSejN06k/L99u48ATsjyCwUVG9g+j0jHqN31ORlffW5cC5uBphejG/"
         "t:MGlpyVfuhjCL8tAyKN31ORlmL5ufhB"},
        {"64 cuts, then zeros", with_zeros(random_bytes(1033, 190), 7),
         "3:kTSzVAn922q6xU4+twavmuIpaB/"
         "j8aWxgvfwY0EWNkReivSwJT6vMAw9NMn6wtll:kmBodxUlPI0huuU4oLiTgMAwYR"},
        {"65 cuts, then zeros", with_zeros(random_bytes(1136, 190), 7),
         "3:uNUMJdlo1ocZS7a5O/HdwXLK1wMDs1w5KEfg5y6HnpQP9WptufyA/"
         "+CVMVri4Hi2:ubnlMocvO1K+m11wU2OHn+PQufV5B"},
        {"30 cuts at the double", random_bytes(1004, 180),
         "3:Nzsb74T6q69otwdKTrI+0z4BwoNbE82onUizEJ+kAr7fd1Phl6cCNox:h8x/"
         "otwdoI+0Wwo682onUiYc3v6zNox"},
        {"31 cuts at the double", random_bytes(1032, 180),
         "3:w6FF+UqULV/"
         "bGwD0Ms0NVjX+v8W4VgRZd+tzS5vFrXzlWKY9YeUnTLXanAqmzF6Z:wU1Jp68F7YqsUS5dDzlNYW3LXqEzF6co"},
        {"32 cuts at the double", random_bytes(1026, 180),
         "3:Vyd8glDqcWotgwjfTWufwtSkgrBvo0DmUg5Kc9PXAHolhH6SmDNx7dLbFufB:Qd8g/tgwj/"
         "wtCBvoimUgUchXAHo7H6S/"},
        {"33 cuts at the double", random_bytes(1014, 180),
         "3:E/"
         "Bzwnpn5HnF0oPljH+gkbbvU0QYCu7Ap8Zg5UJJO8K9+dcpktnLDJESLShW:ERwLHFTPljH+"
         "gkbo02u5i85cpknvJESj"},
        {"30 cuts at the double, then zeros", with_zeros(random_bytes(1004, 180), 7),
         "3:Nzsb74T6q69otwdKTrI+0z4BwoNbE82onUizEJ+kAr7fd1Phl6cCNoj1:h8x/"
         "otwdoI+0Wwo682onUiYc3v6zNo"},
        {"31 cuts at the double, then zeros", with_zeros(random_bytes(1027, 180), 7),
         "3:+Y4PjzN/v6ohGzjMaQ4SfYqBBLDH+iFjfioV+S9+RqfhgvadnkqpTURE1N4l:+Y4bzN/"
         "phGz1Q4AYwBH+04p0hbdeuYl"},
        {"32 cuts at the double, then zeros", with_zeros(random_bytes(1091, 180), 7),
         "3:C+tueOVemvcwxOA93GBRIpqQgk05h9trOaMtCCewicQLG9mMu448vHfzdoE9Tere:"
         "CSNOl2RigkE9w5tCCewJeG9XvxLeQQAX"},
        {"33 cuts at the double, then zeros", with_zeros(random_bytes(1035, 180), 7),
         "3:eWBpHk6jjhUo2ntNAMxZ2DtRBpep8m6xo66JdsVv7KwW4g0RNMEl9rjJen:tTHXhyn/"
         "XaDtRBwSm6xKJOVzKj+Njrjs"},
        {"31 cuts at the first guess", random_bytes(1011, 6500),
         "96:QIaw3nAzc9qRvQ+jh97epuCvZcASWY+N2b16umj+fLm2dr9MJxv3FWr7jS6G2BuN:"
         "faw392Q87ebvZcASFH6h2dZM3fFWDDWp"},
        {"32 cuts at the first guess", random_bytes(1005, 6500),
         "192:IMNVeyWypDV4bbokFKqE2a+D7LYtrEZpk:I6VeyWyIbbo+KqC+sxsy"},
        {"text 11000", text_like(7, 11000),
         "192:mJP/e2FK+prgb1FqGDRD1hUcXuOTPoMvFY3Q9WgMmcnGEL7vI:mJe2FKergbzqG11hUyTQMvFY3Q9umKvI"},
        {"low entropy 11000", low_entropy(8, 11000),
         "6:r7O7647u7+q7Q7m7a7O7a1f27k7S7O7U7a7y1fiv7m7w7Mfu7kDU7E7u7G7EZK7o:OFfMZD+"
         "2fxMfR4aDKDEDef4f+o"},
        {"random, then zeros", with_zeros(random_bytes(9, 3000), 100000),
         "48:OnwE1iizAB3CqWlPD36/cv5DkuFiSV2u9E6gU49rnXYqJZ8LkS:fE1TzedW0/cv5Dl8Y2dBXYq3/"},
        {"zeros, then random", joined(with_zeros({}, 100000), random_bytes(10, 3000)),
         "48:giBTvC4Js0fSf9j6AEd6+g/UgqOiNTu9xW376CCVpIHNVEOoCYDIk5mmC/"
         "DvgGpa:fVR9A6CUgqrhu0e7pItpoCYnmmCdp5A"},
        {"text, then one letter", joined(text_like(11, 5000), repeated("x", 60000)),
         "96:+Bw3copWPu4bAAUm4/"
         "dKQAwIeZLWHg31gXj8A+U7DIXNXww2WGShg7WxD:+iso14hidKxRe0eQZ+nNgw29Shg7WxD"},
        {"random 1 MB", random_bytes(12, 1000000),
         "24576:r5VYjKGizYp15P85v8CP68nQKrI3ivWolGke8bFVt:NyjbizY5Pgku6FPceK3"},
        {"text 1 MB", text_like(13, 1000000),
         "24576:WzlYHOYo3Nie+v1dZXCg1TbecW1wBNzDKnrFR:WGuYIiHJCtqBpir/"},
        {"text 1 MB, then zeros", with_zeros(text_like(14, 1000000), 7),
         "24576:gE6p3tFdBp3MUOTiDR9j+V5jUkaGWLsHaGLaW926OIQ:gPtFLOUOTiDRoV5jUkavLylQ"},
    };
}

TEST(SsdeepHash, Vectors) {
    for (const Vector& vector : vectors()) {
        EXPECT_EQ(*ssdeep_hash(vector.document), vector.signature) << vector.name;
    }
}

TEST(RollingHash, AgreesWithDefinition) {
    const Bytes document = random_bytes(1, 1000);
    std::size_t visited = 0;
    std::uint32_t last_hash = 0;
    const auto every_position = [](std::uint32_t) { return true; };
    const auto check = [&](std::size_t end, std::uint32_t hash) {
        EXPECT_EQ(end, ++visited);
        EXPECT_EQ(hash, reference_rolling_hash(document, end - 1));
    };
    ASSERT_TRUE(for_each_marked(document, every_position, check, last_hash, {}));
    EXPECT_EQ(visited, document.size());
    EXPECT_EQ(last_hash, reference_rolling_hash(document, document.size() - 1));

    constexpr std::size_t count = 100;
    std::array<std::uint32_t, count> hashes;
    for (std::size_t begin = 7; begin + count <= document.size(); ++begin) {
        rolling_hashes<count>(&document[begin], hashes.data());
        for (std::size_t i = 0; i < count; ++i) {
            ASSERT_EQ(hashes[i], reference_rolling_hash(document, begin + i));
        }
    }
}

TEST(SsdeepHash, AgreesWithDefinitionAtEverySize) {
    Random random(property_seed());
    const std::size_t sizes = testing::kFewer ? 800 : 1700;
    for (std::size_t size = 0; size < sizes; ++size) {
        for (int repeat = 0; repeat < 4; ++repeat) {
            const Bytes document = any_document(random, size);
            ASSERT_EQ(*ssdeep_hash(document), reference_hash(document)) << size;
        }
    }
}

TEST(SsdeepHash, ParsesAndScoresHundredWithItself) {
    Random random(property_seed());
    for (int repeat = 0; repeat < 2000; ++repeat) {
        const Bytes document = any_document(random, random.below(20000));
        const std::string signature = *ssdeep_hash(document);
        ASSERT_TRUE(parse_ssdeep(signature).ok()) << signature;
        const Result<int> score = ssdeep_compare(signature, signature);
        ASSERT_TRUE(score.ok()) << score.status().message();
        ASSERT_EQ(*score, 100) << signature;
    }
}

TEST(SsdeepCompare, AgreesWithDefinitionAndIsSymmetric) {
    Random random(property_seed());
    const int families = testing::rounds(testing::kSanitized ? 100 : 300, testing::kSanitized ? 100 : 1000);
    int positive = 0;
    for (int family = 0; family < families; ++family) {
        const std::vector<std::string> signatures = signature_family(random, 12);
        for (const std::string& a : signatures) {
            for (const std::string& b : signatures) {
                const Result<int> score = ssdeep_compare(a, b);
                ASSERT_TRUE(score.ok()) << score.status().message();
                ASSERT_EQ(*score, reference_compare(a, b)) << a << '\n' << b;
                ASSERT_EQ(*score, *ssdeep_compare(b, a)) << a << '\n' << b;
                positive += *score > 0 && *score < 100;
            }
        }
    }
    EXPECT_GT(positive, families);
}

TEST(SsdeepCompare, SeesSharedLettersAtEveryPlace) {
    const std::string shared = "0123456";
    for (std::size_t i = 0; i + shared.size() <= 64; ++i) {
        for (std::size_t j = 0; j + shared.size() <= 64; ++j) {
            for (const std::size_t length : {std::size_t{6}, std::size_t{7}}) {
                std::string a = repeated_text("ABC", 64);
                std::string b = repeated_text("XYZ", 64);
                a.replace(i, length, shared, 0, length);
                b.replace(j, length, shared, 0, length);
                a = "96:" + a + ":";
                b = "96:" + b + ":";
                const int score = *ssdeep_compare(a, b);
                ASSERT_EQ(score, reference_compare(a, b)) << a << '\n' << b;
                ASSERT_EQ(score > 0, length == 7) << a << '\n' << b;
            }
        }
    }
}

TEST(SsdeepCompare, CountsALineOfASignatureFile) {
    const Result<int> score =
        ssdeep_compare("96:abcdefghij:klmnopq,\"a.txt\"", "96:abcdefghij:klmnopq,");
    ASSERT_TRUE(score.ok()) << score.status().message();
    EXPECT_EQ(*score, 100);
}

TEST(SsdeepCompare, CutsRunsToThree) {
    EXPECT_EQ(*ssdeep_compare("3:AAAAAAAAAA:", "3:AAA:"), 100);
    const std::string run(1000000, 'A');
    EXPECT_EQ(*ssdeep_compare("3:" + run + ":" + run, "3:AAA:AAA"), 100);
}

TEST(SsdeepCompare, KnowsAllBlockSizes) {
    for (int level = 0; level <= SsdeepSignature::max_level; ++level) {
        const std::string text = std::to_string(std::uint64_t{3} << level) + ":abc:d";
        const Result<SsdeepSignature> signature = parse_ssdeep(text);
        ASSERT_TRUE(signature.ok()) << signature.status().message();
        EXPECT_EQ(signature->level, level);
    }
}

struct Malformed {
    std::string text;
    const char* reason;
};

std::vector<Malformed> malformed() {
    using namespace std::string_literals;
    const char* no_colon = "has no colon";
    const char* no_second = "has no second colon";
    const char* size = "does not begin with a block size";
    const char* character = "holds a character outside";
    const char* many = "has more than 64 letters";
    std::string letters;
    while (letters.size() < 64) letters += "AB";
    return {
        {"", no_colon},
        {"abc", no_colon},
        {"3", no_colon},
        {"3,:", size},
        {"3:", no_second},
        {"3:abc", no_second},
        {"3:abc,def", no_second},
        {":abc:def", size},
        {"::", size},
        {"0:abc:def", size},
        {"1:abc:def", size},
        {"2:abc:def", size},
        {"5:abc:def", size},
        {"9:abc:def", size},
        {"03:abc:def", size},
        {"+3:abc:def", size},
        {"-3:abc:def", size},
        {" 3:abc:def", size},
        {"3 :abc:def", size},
        {"3.0:abc:def", size},
        {"0x3:abc:def", size},
        {"3\0:abc:def"s, size},
        {"4294967299:abc:def", size},            // 2^32 + 3
        {"6442450944:abc:def", size},            // 3 * 2^31
        {"18446744073709551619:abc:def", size},  // 2^64 + 3
        {std::string(1000000, '3') + ":abc:def", size},
        {"3:ab c:def", character},
        {"3:abc:de f", character},
        {"3:abc:def\n", character},
        {"3:a\0c:def"s, character},
        {"3:abc:def\0"s, character},
        {"3:abc:def:ghi", character},
        {"3:abc,d:ef", character},
        {"3:\xc3\xa4:def", character},
        {"3:abc=:def", character},
        {"3:" + letters + "A:", many},
        {"3::" + letters + "A", many},
        {"3:" + std::string(1000000, 'A') + letters + ":", many},
    };
}

TEST(SsdeepCompare, RefusesMalformedSignatures) {
    for (const Malformed& bad : malformed()) {
        for (const bool second : {false, true}) {
            const std::string good = "3:abc:def";
            const Result<int> score =
                second ? ssdeep_compare(good, bad.text) : ssdeep_compare(bad.text, good);
            ASSERT_FALSE(score.ok()) << bad.text.substr(0, 80);
            EXPECT_EQ(score.status().code(), ErrorCode::invalid_argument);
            const std::string& message = score.status().message();
            EXPECT_NE(message.find(bad.reason), std::string::npos) << message;
            EXPECT_EQ(message.find(second ? "second ssdeep signature" : "first ssdeep signature"),
                      0U)
                << message;
            EXPECT_LT(message.size(), 200U);
            EXPECT_TRUE(std::all_of(message.begin(), message.end(), [](char c) {
                return c >= ' ' && c <= '~';
            })) << message;
        }
    }
}

TEST(SsdeepCompare, SurvivesAnyText) {
    Random random(property_seed());
    constexpr std::string_view characters = "3369:::,,ABCDEFG+/ \"\n\\";
    for (int repeat = 0; repeat < testing::rounds(200000); ++repeat) {
        std::string text(random.below(40), ' ');
        for (char& c : text) c = characters[random.below(characters.size())];
        const Result<int> score = ssdeep_compare(text, text);
        ASSERT_TRUE(!score.ok() || *score == 100) << text;
    }
}

// The program itself, as a black box.

class TemporaryDirectory {
public:
    TemporaryDirectory() {
        std::string name = (std::filesystem::temp_directory_path() / "ssdeep_test.XXXXXX").string();
        if (mkdtemp(name.data()) != nullptr) path_ = name;
    }
    ~TemporaryDirectory() {
        std::error_code ignored;
        if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
    }
    TemporaryDirectory(const TemporaryDirectory&) = delete;
    TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

    const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
};

class SsdeepProgram : public ::testing::Test {
protected:
    void SetUp() override {
        ASSERT_EQ(std::system("command -v ssdeep >/dev/null 2>&1"), 0)
            << "the ssdeep program is not in PATH; install the package ssdeep";
        ASSERT_FALSE(directory_.path().empty()) << "cannot make a temporary directory";
    }

    /// Runs a command and calls visit with each line that it prints, without its end.
    static void for_each_line(const std::string& command,
                              const std::function<void(std::string_view)>& visit) {
        std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
        ASSERT_NE(pipe, nullptr) << command;
        char* line = nullptr;
        std::size_t capacity = 0;
        ssize_t length = 0;
        while ((length = getline(&line, &capacity, pipe.get())) >= 0) {
            std::string_view text(line, static_cast<std::size_t>(length));
            if (text.ends_with('\n')) text.remove_suffix(1);
            visit(text);
        }
        free(line);
        EXPECT_EQ(pclose(pipe.release()), 0) << command;
    }

    std::string quoted_path(const char* name = "") const {
        return "'" + (directory_.path() / name).string() + "'";
    }

    void write(const std::string& name, const void* data, std::size_t size) const {
        std::ofstream file(directory_.path() / name, std::ios::binary);
        file.write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
        ASSERT_TRUE(file.flush().good()) << "cannot write " << directory_.path() / name;
    }

    void write_signatures(const std::string& name, const std::vector<std::string>& signatures) {
        std::string text = "ssdeep,1.1--blocksize:hash:hash,filename\n";
        for (std::size_t i = 0; i < signatures.size(); ++i) {
            text += signatures[i] + ",\"" + std::to_string(i) + "\"\n";
        }
        write(name, text.data(), text.size());
    }

    TemporaryDirectory directory_;
};

/// The text between double quotes at the front, which is taken off; nothing if there is none.
std::optional<std::string_view> take_quoted(std::string_view& text) {
    if (!text.starts_with('"')) return std::nullopt;
    const std::size_t end = text.find('"', 1);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view inside = text.substr(1, end - 1);
    text.remove_prefix(end + 1);
    return inside;
}

template <class Number>
std::optional<Number> whole_number(std::string_view text) {
    Number number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return number;
}

/// Small sizes are the most frequent; up to 100 KB.
std::size_t skewed_size(Random& random) {
    return static_cast<std::size_t>(std::pow(100000.0, random.unit() * random.unit())) -
           random.below(2);
}

TEST_F(SsdeepProgram, PrintsTheSameHashes) {
    const std::uint64_t seed = property_seed();
    Random random(seed);
    const auto documents = testing::rounds<std::size_t>(20000, testing::kSanitized ? 20000 : 100000);
    std::vector<std::string> expected;
    Bytes document;
    for (std::size_t i = 0; i < documents; ++i) {
        document = random.one_in(3) ? mutated(random, std::move(document))
                                    : any_document(random, skewed_size(random));
        expected.push_back(*ssdeep_hash(document));
        ASSERT_NO_FATAL_FAILURE(write(std::to_string(i), document.data(), document.size()));
    }
    std::vector<bool> seen(documents);
    std::size_t wrong = 0;
    for_each_line("ssdeep -s -b -r " + quoted_path(), [&](std::string_view line) {
        const std::size_t comma = line.find(',');
        if (comma == std::string_view::npos || line.starts_with("ssdeep,")) return;
        std::string_view rest = line.substr(comma + 1);
        const auto name = take_quoted(rest);
        const auto number = name ? whole_number<std::size_t>(*name) : std::nullopt;
        ASSERT_TRUE(number && *number < documents) << line;
        seen[*number] = true;
        if (line.substr(0, comma) != expected[*number] && ++wrong <= 10) {
            ADD_FAILURE() << line << "\nbut here " << expected[*number] << " (seed " << seed << ")";
        }
    });
    EXPECT_EQ(wrong, 0U);
    EXPECT_EQ(std::count(seen.begin(), seen.end(), true), static_cast<std::ptrdiff_t>(documents));
}

TEST_F(SsdeepProgram, PrintsTheSameScores) {
    const std::uint64_t seed = property_seed();
    Random random(seed);
    const std::size_t families = testing::kFewer ? 10 : 54;
    std::vector<std::string> known;
    std::vector<std::string> input;
    for (std::size_t family = 0; family < families; ++family) {
        const std::vector<std::string> signatures = signature_family(random, 120);
        known.insert(known.end(), signatures.begin(), signatures.begin() + 60);
        input.insert(input.end(), signatures.begin() + 60, signatures.end());
    }
    ASSERT_NO_FATAL_FAILURE(write_signatures("known", known));
    ASSERT_NO_FATAL_FAILURE(write_signatures("input", input));
    std::size_t pairs = 0;
    std::size_t positive = 0;
    std::size_t wrong = 0;
    const std::string command =
        "ssdeep -s -c -a -k " + quoted_path("known") + " " + quoted_path("input");
    for_each_line(command, [&](std::string_view line) {
        if (line.empty()) return;
        std::string_view rest = line;
        const auto a = take_quoted(rest);
        if (rest.starts_with(',')) rest.remove_prefix(1);
        const auto b = take_quoted(rest);
        if (rest.starts_with(',')) rest.remove_prefix(1);
        const auto score = whole_number<int>(rest);
        ASSERT_TRUE(a && b && score) << line;
        const auto first = whole_number<std::size_t>(*a);
        const auto second = whole_number<std::size_t>(*b);
        ASSERT_TRUE(first && second && *first < input.size() && *second < known.size()) << line;
        const Result<int> ours = ssdeep_compare(input[*first], known[*second]);
        ++pairs;
        positive += *score > 0;
        if ((!ours.ok() || *ours != *score) && ++wrong <= 10) {
            ADD_FAILURE() << input[*first] << ' ' << known[*second] << ": " << *score << " (seed "
                          << seed << ")";
        }
    });
    EXPECT_EQ(wrong, 0U);
    EXPECT_EQ(pairs, known.size() * input.size());
    EXPECT_GT(positive, pairs / 200);
    std::cout << pairs << " pairs, " << positive << " of them with a score above 0\n";
}

}  // namespace
}  // namespace gputext
