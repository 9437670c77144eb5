#include "cpp/code/detail/brackets.hpp"

#include <algorithm>
#include <vector>

#include "cpp/base/stoppable.hpp"

namespace gputext {
namespace {

/// How many brackets a token closes.
std::size_t closes(std::uint32_t number) {
    switch (number) {
        case fixed_word(">"):
            return 1;
        case fixed_word(">>"):
            return 2;
        case fixed_word(">>>"):
            return 3;
        default:
            return 0;
    }
}

/// Whether it joins types within brackets.
bool joins_types(std::uint32_t number) {
    switch (number) {
        case fixed_word(","):
        case fixed_word("."):
        case fixed_word("::"):
        case fixed_word("?"):
        case fixed_word("&"):
        case fixed_word("*"):
        case fixed_word("["):
        case fixed_word("]"):
        case fixed_word("..."):
        case fixed_word("extends"):
        case fixed_word("super"):
        case fixed_word("struct"):
        case fixed_word("class"):
        case fixed_word("typename"):
        case fixed_word("enum"):
        case fixed_word("INT_TOKEN"):
        case fixed_word("BOOL_TOKEN"):
            return true;
        default:
            return false;
    }
}

/// Whether an operator or bracket can stand behind a type with brackets.
bool follows_type(std::uint32_t number) {
    switch (number) {
        case fixed_word("("):
        case fixed_word(")"):
        case fixed_word("["):
        case fixed_word("]"):
        case fixed_word("{"):
        case fixed_word("}"):
        case fixed_word(":"):
        case fixed_word("::"):
        case fixed_word(";"):
        case fixed_word(","):
        case fixed_word("."):
        case fixed_word("?"):
        case fixed_word("&"):
        case fixed_word("*"):
        case fixed_word("..."):
        case fixed_word(">"):
        case fixed_word(">>"):
        case fixed_word(">>>"):
            return true;
        default:
            return false;
    }
}

class Marker {
public:
    Marker(LexedCode& code, std::span<const CodeWord> types) : code_(code), types_(types) {}

    Status run(Stop stop) {
        for (std::size_t at = 0; at < code_.tokens.size(); ++at) {
            if (at % (kLookEvery / 16) == 0 && stop()) return Status::cancelled();
            step(at);
        }
        return {};
    }

private:
    struct Open {
        std::uint32_t at;
        bool parenthesis;
    };

    std::uint32_t number(std::size_t at) const { return code_.tokens[at] & LexedCode::kNumber; }
    CodeWord type(std::size_t at) const { return types_[number(at)]; }
    bool is_directive(std::size_t at) const {
        return (code_.tokens[at] & LexedCode::kDirective) != 0;
    }

    void step(std::size_t at) {
        if (is_directive(at)) return open_.clear();
        const std::uint32_t token = number(at);
        if (token == fixed_word("<"))
            open(at);
        else if (closes(token) > 0)
            close(at);
        else if (!open_.empty())
            inside(at);
    }

    /// Whether brackets around types may stand behind a token.
    bool can_precede(std::size_t at) const {
        if (is_directive(at)) return false;
        if (is_name(type(at)) || type(at) == CodeWord::modifier) return true;
        switch (number(at)) {
            case fixed_word("template"):
            case fixed_word("const_cast"):
            case fixed_word("dynamic_cast"):
            case fixed_word("reinterpret_cast"):
            case fixed_word("static_cast"):
            case fixed_word("."):
                return true;
            default:
                return false;
        }
    }

    void open(std::size_t at) {
        if (at == 0 || !can_precede(at - 1)) return open_.clear();
        open_.push_back({static_cast<std::uint32_t>(at), false});
    }

    void close(std::size_t at) {
        const std::size_t count = closes(number(at));
        bool fits = open_.size() >= count && can_follow(at + 1);
        for (std::size_t i = 0; fits && i < count; ++i)
            fits = !open_[open_.size() - 1 - i].parenthesis;
        if (!fits) return open_.clear();
        for (std::size_t i = 0; i < count; ++i) {
            code_.tokens[open_.back().at] |= LexedCode::kBracket;
            open_.pop_back();
        }
        code_.tokens[at] |= LexedCode::kBracket;
    }

    bool can_follow(std::size_t at) const {
        if (at == code_.tokens.size() || is_directive(at)) return true;
        const CodeWord word = type(at);
        return is_name(word) || word == CodeWord::keyword || word == CodeWord::modifier ||
               word == CodeWord::primitive || follows_type(number(at));
    }

    void inside(std::size_t at) {
        const std::uint32_t token = number(at);
        const CodeWord word = type(at);
        if (token == fixed_word("(")) {
            // Parameters of a function type, as in function<int(int)>.
            const CodeWord before = type(at - 1);
            if (!is_name(before) && before != CodeWord::primitive && closes(number(at - 1)) == 0)
                return open_.clear();
            open_.push_back({static_cast<std::uint32_t>(at), true});
        } else if (token == fixed_word(")")) {
            if (!open_.back().parenthesis) return open_.clear();
            open_.pop_back();
        } else if (token == fixed_word("=")) {
            // A default of a template's parameter.
            if (number(open_.front().at - 1) != fixed_word("template")) open_.clear();
        } else if (!is_name(word) && word != CodeWord::primitive && word != CodeWord::modifier &&
                   !joins_types(token)) {
            open_.clear();
        }
    }

    LexedCode& code_;
    const std::span<const CodeWord> types_;
    std::vector<Open> open_;
};

}  // namespace

Status mark_type_brackets(LexedCode& code, std::span<const CodeWord> types, Stop stop) {
    return Marker(code, types).run(stop);
}

BracketPair bracket_pair(std::span<const std::uint32_t> tokens, std::size_t open) {
    BracketPair pair{open, 0, 0};
    std::size_t depth = 0;
    do {
        const std::uint32_t token = tokens[pair.end];
        if ((token & LexedCode::kBracket) != 0) {
            const std::size_t closed = closes(token & LexedCode::kNumber);
            if (closed == 0) {
                ++depth;
                ++pair.pairs;
            } else {
                pair.others = closed - std::min(depth, closed);
                depth -= std::min(depth, closed);
            }
        }
        ++pair.end;
    } while (depth > 0 && pair.end < tokens.size());
    return pair;
}

}  // namespace gputext
