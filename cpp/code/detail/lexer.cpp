#include "cpp/code/detail/lexer.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "cpp/base/stoppable.hpp"

namespace gputext {
namespace {

bool is_own(std::string_view name) {
    if (name.starts_with(kVariableWord)) return name.substr(kVariableWord.size()).starts_with('_');
    if (!name.starts_with(kClassWord)) return false;
    name.remove_prefix(kClassWord.size());
    return name.empty() || (name.size() > 1 && name.front() == '_' &&
                            std::all_of(name.begin() + 1, name.end(), is_digit));
}

}  // namespace

Vocabulary fixed_vocabulary() {
    Vocabulary words;
    for (const FixedWord& word : kFixedWords) words.add(word.text);
    return words;
}

CodeWord code_word(const Vocabulary& words, std::uint32_t number) {
    if (number < kFixedWords.size()) return kFixedWords[number].type;
    const std::string_view text = words.term(number);
    if (!begins_identifier(text.front())) return CodeWord::other;
    return is_own(text) ? CodeWord::own : CodeWord::name;
}

std::uint32_t class_word(Vocabulary& words, std::uint32_t pairs) {
    std::string word(kClassWord);
    if (pairs > 0) word += '_' + std::to_string(pairs);
    return words.add(word);
}

namespace {

bool ends_line(char letter) {
    return letter == '\n' || letter == '\r';
}

char lower(char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter | 0x20) : letter;
}

/// The operators by their first letters, longer ones first.
class Operators {
public:
    Operators() {
        for (std::uint32_t number = 0; number < kFixedWords.size(); ++number) {
            const FixedWord& word = kFixedWords[number];
            if (word.type == CodeWord::assignment || word.type == CodeWord::punctuation)
                by_first_[static_cast<unsigned char>(word.text.front())].push_back(number);
        }
        for (auto& numbers : by_first_)
            std::sort(numbers.begin(), numbers.end(), [](std::uint32_t a, std::uint32_t b) {
                return kFixedWords[a].text.size() > kFixedWords[b].text.size();
            });
    }

    /// Number of the longest operator that the text begins with; its first character must be an
    /// ASCII character that begins nothing else, and each of these is an operator.
    std::uint32_t longest(std::string_view text) const {
        const auto& numbers = by_first_[static_cast<unsigned char>(text.front())];
        return *std::find_if(numbers.begin(), numbers.end(), [text](std::uint32_t number) {
            return text.starts_with(kFixedWords[number].text);
        });
    }

private:
    std::array<std::vector<std::uint32_t>, 256> by_first_;
};

class Lexer {
public:
    Lexer(std::string_view text, Stop stop) : text_(text), stop_(stop) {}

    Result<LexedCode> run() {
        if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;  // a byte order mark
        while (going()) token();
        if (stopped_) return Status::cancelled();
        end_line();
        return std::move(code_);
    }

private:
    char peek(std::size_t ahead = 0) const {
        return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
    }
    bool begins(std::string_view word) const { return text_.substr(at_).starts_with(word); }

    /// Whether there is more to read; asked for every letter, so it looks at the stop only rarely.
    bool going() {
        if (at_ >= next_look_) {
            next_look_ = at_ + kLookEvery / 4;
            stopped_ = stopped_ || stop_();
        }
        return at_ < text_.size() && !stopped_;
    }

    void add(std::uint32_t number) {
        line_begins_ = false;
        if (annotation_depth_ > 0) {
            if (number == fixed_word("(")) ++annotation_depth_;
            if (number == fixed_word(")")) --annotation_depth_;
            return;
        }
        code_.tokens.push_back(number | (in_directive_ ? LexedCode::kDirective : 0));
    }

    void end_line() {
        const auto count = static_cast<std::uint32_t>(code_.tokens.size());
        if (count > (code_.line_ends.empty() ? 0 : code_.line_ends.back()))
            code_.line_ends.push_back(count);
        line_begins_ = true;
        in_directive_ = false;
    }

    /// Behind a backslash at a line's end, the line goes on.
    bool skip_splice() {
        if (peek() != '\\' || !ends_line(peek(1))) return false;
        at_ += peek(1) == '\r' && peek(2) == '\n' ? 3 : 2;
        return true;
    }

    void token() {
        const char letter = peek();
        if (ends_line(letter)) {
            ++at_;
            end_line();
        } else if (static_cast<unsigned char>(letter) <= ' ' || letter == '\x7f') {
            ++at_;
        } else if (skip_splice()) {
        } else if (letter == '/' && peek(1) == '/') {
            line_comment();
        } else if (letter == '/' && peek(1) == '*') {
            block_comment();
        } else if (is_digit(letter) || (letter == '.' && is_digit(peek(1)))) {
            number();
        } else if (letter == '"') {
            string();
        } else if (letter == '\'') {
            quoted(fixed_word("CHAR_TOKEN"));
        } else if (begins("$\"") || begins("@\"") || begins("$@\"") || begins("@$\"")) {
            prefixed_string();
        } else if (begins_identifier(letter)) {
            word();
        } else if (letter == '#' && line_begins_) {
            directive();
        } else if (letter == '@' && begins_identifier(peek(1))) {
            annotation();
        } else {
            operation();
        }
    }

    void line_comment() {
        while (going() && !ends_line(peek()))
            if (!skip_splice()) ++at_;
    }

    void block_comment() {
        bool lines = false;
        for (at_ += 2; going() && !begins("*/"); ++at_) lines = lines || ends_line(peek());
        at_ = std::min(at_ + 2, text_.size());
        if (lines && !in_directive_) end_line();
    }

    void number() {
        const bool hex = peek() == '0' && lower(peek(1)) == 'x';
        const bool binary = peek() == '0' && lower(peek(1)) == 'b';
        bool is_float = false, dot = false;
        char last = '\0';
        for (; going(); ++at_) {
            const char letter = peek();
            const char small = lower(letter);
            if (letter == '.' && !dot && peek(1) != '.') {
                dot = is_float = true;
            } else if (letter == '\'' && last != '\'' && in_number(peek(1))) {
                // C++ separates digits so.
            } else if (!in_number(letter)) {
                break;
            } else if (small == (hex ? 'p' : 'e')) {
                is_float = true;
                if (peek(1) == '+' || peek(1) == '-') ++at_;
            }
            last = small;
        }
        is_float = is_float || (!hex && !binary && (last == 'f' || last == 'd' || last == 'm'));
        add(is_float ? fixed_word("FLOAT_TOKEN") : fixed_word("INT_TOKEN"));
    }

    static bool in_number(char letter) {
        return is_digit(letter) || letter == '_' || (lower(letter) >= 'a' && lower(letter) <= 'z');
    }

    /// What its own first letter ends, in the same line unless a backslash leads on.
    void quoted(std::uint32_t kind) {
        const char quote = peek();
        for (++at_; going() && !ends_line(peek()); ++at_) {
            if (peek() == quote) {
                ++at_;
                break;
            }
            if (peek() == '\\') {
                if (skip_splice())
                    --at_;
                else if (!ends_line(peek(1)))
                    ++at_;
            }
        }
        at_ = std::min(at_, text_.size());
        add(kind);
    }

    /// Adds the literal from `begin` to here; behind one of several lines a new one has begun.
    void add_long_string(std::size_t begin) {
        add(fixed_word("STRING_TOKEN"));
        const std::string_view literal = text_.substr(begin, at_ - begin);
        if (literal.find('\n') != std::string_view::npos && !in_directive_) end_line();
    }

    void string() {
        if (!begins("\"\"\"") || no_text_block_ || !text_block())
            quoted(fixed_word("STRING_TOKEN"));
    }

    /// Between three quotation marks each. Without an end it is none, nor is any behind it.
    bool text_block() {
        const std::size_t begin = at_;
        for (at_ += 3; going(); ++at_) {
            if (peek() == '\\') {
                ++at_;
            } else if (begins("\"\"\"")) {
                at_ += 3;
                add_long_string(begin);
                return true;
            }
        }
        at_ = begin;
        no_text_block_ = true;
        return false;
    }

    /// C#'s, with $ and @ before it; with @ it has no escapes and may have several lines.
    void prefixed_string() {
        const std::size_t begin = at_;
        bool verbatim = false;
        for (; peek() != '"'; ++at_) verbatim = verbatim || peek() == '@';
        if (!verbatim) return string();
        for (++at_; going(); ++at_) {
            if (peek() != '"') continue;
            ++at_;
            if (peek() != '"') break;
        }
        at_ = std::min(at_, text_.size());
        add_long_string(begin);
    }

    /// C++'s R"x(...)x"; without an end it goes to that of the text.
    bool raw_string() {
        constexpr std::size_t most = 16;
        const std::size_t begin = at_ + 1;
        const std::size_t open = text_.substr(begin, most + 1).find_first_of("( )\\\"\t\v\f\r\n");
        if (open == std::string_view::npos || text_[begin + open] != '(') return false;
        const std::string_view name = text_.substr(begin, open);
        const std::size_t string_begin = at_;
        for (at_ = begin + open; going(); ++at_) {
            if (peek() != ')' || !text_.substr(at_ + 1).starts_with(name)) continue;
            if (peek(1 + open) != '"') continue;
            at_ += open + 2;
            break;
        }
        at_ = std::min(at_, text_.size());
        add_long_string(string_begin);
        return true;
    }

    std::string_view identifier() {
        const std::size_t begin = at_;
        while (going() && in_identifier(peek())) ++at_;
        return text_.substr(begin, at_ - begin);
    }

    void word() {
        const std::string_view word = identifier();
        const bool wide = word == "L" || word == "u" || word == "U" || word == "u8";
        if (wide && peek() == '"') return string();
        if (wide && peek() == '\'') return quoted(fixed_word("CHAR_TOKEN"));
        const bool raw =
            word == "R" || word == "LR" || word == "uR" || word == "UR" || word == "u8R";
        if (raw && peek() == '"' && raw_string()) return;
        add(number_of(word));
    }

    std::uint32_t number_of(std::string_view word) {
        if (word == "true" || word == "false") return fixed_word("BOOL_TOKEN");
        if (word == "null" || word == "NULL" || word == "nullptr") return fixed_word("NULL_TOKEN");
        return code_.words.add(word);
    }

    void skip_blanks() {
        while (going() && (peek() == ' ' || peek() == '\t')) ++at_;
    }

    /// The # and the word behind it are one token, and so is the name of a header.
    void directive() {
        in_directive_ = true;
        ++at_;
        skip_blanks();
        const std::string_view name = begins_identifier(peek()) ? identifier() : "";
        if (name.empty()) return add(fixed_word("#"));
        add(code_.words.add('#' + std::string(name)));
        if (name != "include" && name != "include_next" && name != "import") return;
        skip_blanks();
        const std::size_t begin = at_;
        if (peek() != '<' && peek() != '"') return;
        const char end = peek() == '<' ? '>' : '"';
        for (++at_; going() && !ends_line(peek()); ++at_) {
            if (peek() != end) continue;
            ++at_;
            return add(code_.words.add(text_.substr(begin, at_ - begin)));
        }
        at_ = begin;
    }

    /// @Name.Name(...) goes; `@interface`, which declares one, stays.
    void annotation() {
        const std::size_t begin = at_++;
        if (identifier() == "interface") {
            at_ = begin + 1;
            return add(fixed_word("@"));
        }
        while (peek() == '.' && begins_identifier(peek(1))) {
            ++at_;
            identifier();
        }
        line_begins_ = false;
        skip_blanks();
        if (peek() != '(') return;
        ++at_;
        ++annotation_depth_;
    }

    void operation() {
        static const Operators operators;
        const std::uint32_t found = operators.longest(text_.substr(at_));
        at_ += kFixedWords[found].text.size();
        add(found);
    }

    const std::string_view text_;
    const Stop stop_;
    LexedCode code_;
    std::size_t at_ = 0;
    std::size_t next_look_ = 0;
    std::size_t annotation_depth_ = 0;  // of parentheses; nothing in them is a token
    bool stopped_ = false;
    bool line_begins_ = true;
    bool in_directive_ = false;
    bool no_text_block_ = false;
};

}  // namespace

Result<LexedCode> lex_code(std::string_view source, Stop stop) {
    return Lexer(source, stop).run();
}

}  // namespace gputext
