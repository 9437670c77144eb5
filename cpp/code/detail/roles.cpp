#include "cpp/code/detail/roles.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "cpp/base/stoppable.hpp"
#include "cpp/code/detail/brackets.hpp"

namespace gputext {
namespace {

/// More words than these of a kind say nothing more about a declaration, and keep it short.
constexpr int kMostWords = 8;
/// Tokens between the brackets of an array's size that are looked at.
constexpr std::size_t kMostOfSize = 64;

constexpr std::size_t kNowhere = SIZE_MAX;

/// Where a declaration may stand, which says what may follow the declared name.
enum class Place {
    statement,
    parameter,
    head,      // of for, catch, try, using
    condition  // of if, while, switch
};

/// What stands in a pair of brackets.
enum class Inside {
    statements,
    parameters,
    maybe_parameters,  // known at the closing parenthesis
    head,
    condition,
    other
};

struct Frame {
    std::uint32_t bracket;  // the number of the opening one
    Inside inside;
    bool begins = false;                    // the next token begins a statement
    bool is_case = false;                   // a : begins a statement
    bool is_typedef = false;                // the last name of the statement is a class
    bool declares = false;                  // behind a , another name is declared
    std::uint32_t modifiers = 0, type = 0;  // of what is declared: words
    std::size_t pending = 0;  // maybe_parameters: where its parameters begin among all pending
    std::size_t open = 0;
};

/// The first few words of a kind.
struct SomeWords {
    std::array<std::uint32_t, kMostWords> words{};
    int count = 0;

    void add(std::uint32_t word) {
        if (count < kMostWords) words[count++] = word;
    }
};

/// What stands before the declared names, and where the first of them is to stand.
struct Specifiers {
    SomeWords modifiers, primitives;
    std::size_t class_at = kNowhere;  // of a class
    std::uint32_t pairs = 0;          // of brackets behind the class
    int arrays = 0;
    bool is_typedef = false, elaborated = false;
    std::size_t end = 0;
};

/// A declared name.
struct Declarator {
    std::size_t name_at;
    std::size_t end;  // the place behind the name
    int arrays = 0, pointers = 0, references = 0;
    bool wrapped = false;      // in parentheses
    bool is_function = false;  // a parenthesis with parameters follows
};

/// A parameter of what may be a list of parameters.
struct Pending {
    std::uint32_t name_at, new_name;
    std::uint32_t class_at;
    bool indirect;  // with * or &: an expression may look so
};

class Scanner {
public:
    Scanner(LexedCode& code, std::span<const CodeWord> types)
        : code_(code), types_(types), size_(code.tokens.size()) {
        roles_.parameters.assign(types.size(), CodeRoles::kNone);
        roles_.variables.assign(types.size(), CodeRoles::kNone);
        roles_.classes.assign(types.size(), false);
        roles_.assigned.assign(types.size(), false);
        frames_.push_back({fixed_word("{"), Inside::statements, true});
    }

    Status run(Stop stop) {
        std::size_t next_look = 0;
        for (std::size_t at = 0; at < size_;) {
            if (at >= next_look) {
                next_look = at + kLookEvery / 64;
                if (stop()) return Status::cancelled();
            }
            at = step(at);
        }
        return {};
    }

    CodeRoles take() { return std::move(roles_); }

private:
    /// Not the number of any word.
    static constexpr std::uint32_t kNothing = LexedCode::kNumber;

    /// The word at a place; kNothing beyond the end and for directives, so that nothing goes on
    /// there.
    std::uint32_t number(std::size_t at) const {
        if (at >= size_ || (code_.tokens[at] & LexedCode::kDirective) != 0) return kNothing;
        return code_.tokens[at] & LexedCode::kNumber;
    }
    CodeWord type(std::size_t at) const {
        const std::uint32_t word = number(at);
        return word == kNothing ? CodeWord::other : types_[word];
    }
    bool is_name(std::size_t at) const { return gputext::is_name(type(at)); }
    bool opens_brackets(std::size_t at) const {
        return number(at) == fixed_word("<") && (code_.tokens[at] & LexedCode::kBracket) != 0;
    }
    std::uint32_t before(std::size_t at) const { return at == 0 ? kNothing : number(at - 1); }
    Frame& frame() { return frames_.back(); }

    /// Looks at the token there and gives the place of the next to look at.
    std::size_t step(std::size_t at) {
        if (number(at) == kNothing) return at + 1;
        if (frame().begins && is_inside_statements()) {
            frame().begins = false;
            if (const std::size_t end = statement(at); end != at) return end;
        }
        switch (type(at)) {
            case CodeWord::assignment:
                return assignment(at);
            case CodeWord::keyword:
                return keyword(at);
            case CodeWord::punctuation:
                return punctuation(at);
            default:
                return at + 1;
        }
    }

    bool is_inside_statements() {
        return frame().inside == Inside::statements || frame().inside == Inside::head;
    }

    // Names are given.

    std::uint32_t add_word(const std::string& word) { return code_.words.add(word); }

    void mark_class(std::size_t at) {
        if (type(at) == CodeWord::soft_primitive || type(at) == CodeWord::soft_modifier) return;
        code_.tokens[at] |= LexedCode::kType;
        roles_.classes[number(at)] = true;
    }

    static std::string upper(std::string_view text) {
        std::string word(text);
        for (char& letter : word)
            if (letter >= 'a' && letter <= 'z') letter = static_cast<char>(letter - 'a' + 'A');
        return word;
    }

    /// VAR_STATIC and the like.
    std::uint32_t modifiers_word(const Specifiers& all) {
        std::string word(kVariableWord);
        for (int i = 0; i < all.modifiers.count; ++i)
            word += '_' + upper(code_.words.term(all.modifiers.words[i]));
        return add_word(word);
    }

    /// UNSIGNED_INT, CLASS_1 and the like.
    std::uint32_t type_word(const Specifiers& all) {
        if (all.class_at != kNowhere)
            return type(all.class_at) == CodeWord::own && all.pairs == 0
                       ? number(all.class_at)
                       : class_word(code_.words, all.pairs);
        std::string word;
        for (int i = 0; i < all.primitives.count; ++i)
            word += (i == 0 ? "" : "_") + upper(code_.words.term(all.primitives.words[i]));
        return add_word(word);
    }

    std::uint32_t new_name(std::uint32_t modifiers, std::uint32_t type,
                           const Declarator& declarator, int arrays) {
        std::string name(code_.words.term(modifiers));
        const auto add = [&name](const char* word, int times) {
            for (int i = 0; i < std::min(times, kMostWords); ++i) name += word;
        };
        add("_ARRAY", arrays + declarator.arrays);
        add("_POINTER", declarator.pointers);
        add("_REFERENCE", declarator.references);
        name += '_';
        name += code_.words.term(type);
        return add_word(name);
    }

    // Declarations are read. Each of these looks at tokens from a place on and changes nothing.

    /// Whether what may be a modifier is one here: a type and a name follow.
    bool is_modifier(std::size_t at) const {
        if (type(at) == CodeWord::modifier) return true;
        if (type(at) != CodeWord::soft_modifier) return false;
        if (type(at + 1) == CodeWord::primitive || type(at + 1) == CodeWord::modifier) return true;
        if (!is_name(at + 1)) return false;
        return is_name(at + 2) || opens_brackets(at + 2) || number(at + 2) == fixed_word(".") ||
               number(at + 2) == fixed_word("::") || number(at + 2) == fixed_word("*") ||
               number(at + 2) == fixed_word("&") || type(at + 2) == CodeWord::primitive ||
               (number(at + 2) == fixed_word("[") && number(at + 3) == fixed_word("]"));
    }

    /// The last name of A.B::C with what is in brackets behind it, and its end.
    struct Qualified {
        std::size_t last_at;
        std::size_t end;
        std::uint32_t pairs;
    };
    Qualified qualified(std::size_t at) const {
        for (;;) {
            Qualified name{at, at + 1, 0};
            if (opens_brackets(at + 1)) {
                const BracketPair pair = bracket_pair(code_.tokens, at + 1);
                name.end = pair.end;
                name.pairs = pair.pairs;
            }
            const std::uint32_t joint = number(name.end);
            if ((joint != fixed_word(".") && joint != fixed_word("::")) || !is_name(name.end + 1))
                return name;
            at = name.end + 1;
        }
    }

    std::optional<Specifiers> specifiers(std::size_t at) const {
        Specifiers found;
        for (;; ++at) {
            const CodeWord word = type(at);
            const bool typed = found.class_at != kNowhere || found.primitives.count > 0;
            if (number(at) == fixed_word("typedef")) {
                found.is_typedef = true;
            } else if (is_modifier(at)) {
                found.modifiers.add(number(at));
            } else if (opens_brackets(at) && !typed) {
                at = bracket_pair(code_.tokens, at).end - 1;  // of a generic method
            } else if ((word == CodeWord::primitive && found.class_at == kNowhere) ||
                       (word == CodeWord::soft_primitive && !typed)) {
                found.primitives.add(number(at));
            } else if (!typed && is_elaborated(at) && is_name(at + 1)) {
                found.elaborated = true;
            } else if (!typed && is_name(at)) {
                const Qualified name = qualified(at);
                found.class_at = name.last_at;
                found.pairs = name.pairs;
                at = name.end - 1;
            } else {
                if (!typed) return std::nullopt;
                break;
            }
        }
        for (; number(at) == fixed_word("["); ++at, ++found.arrays) {
            while (number(at + 1) == fixed_word(",")) ++at;
            if (number(at + 1) != fixed_word("]")) return std::nullopt;
            ++at;
        }
        if (number(at) == fixed_word("?")) ++at;  // of C#, may be null
        found.end = at;
        return found;
    }

    bool is_elaborated(std::size_t at) const {
        switch (number(at)) {
            case fixed_word("struct"):
            case fixed_word("class"):
            case fixed_word("union"):
            case fixed_word("enum"):
            case fixed_word("typename"):
                return true;
            default:
                return false;
        }
    }

    /// * & ... and the name; also (*name), a pointer to a function or an array.
    std::optional<Declarator> declarator(std::size_t at) const {
        Declarator found{};
        const bool inner = number(at) == fixed_word("(") && number(at + 1) == fixed_word("*");
        if (inner) ++at;
        for (;; ++at) {
            const std::uint32_t word = number(at);
            if (word == fixed_word("*"))
                ++found.pointers;
            else if (word == fixed_word("&") || word == fixed_word("&&"))
                ++found.references;
            else if (word == fixed_word("..."))
                ++found.arrays;
            else if (type(at) != CodeWord::modifier)
                break;
        }
        while (is_name(at) && number(at + 1) == fixed_word("::") && is_name(at + 2)) at += 2;
        if (!is_name(at)) return std::nullopt;
        found.name_at = at;
        found.end = at + 1;
        if (inner) {
            found.wrapped = true;
            if (number(at + 1) != fixed_word(")")) return std::nullopt;
            if (number(at + 2) != fixed_word("(") && number(at + 2) != fixed_word("["))
                return std::nullopt;
            found.end = at + 2;
            return found;
        }
        found.is_function = number(found.end) == fixed_word("(") && !has_value(found.end + 1);
        for (at = found.end; number(at) == fixed_word("[");) {
            ++found.arrays;
            at = end_of_size(at);
        }
        return found;
    }

    /// Whether a literal stands there, so that the parenthesis before it has no parameters.
    bool has_value(std::size_t at) const { return type(at) == CodeWord::kind; }

    /// Place behind the ] of an array's size, or of the first token that is not looked at.
    std::size_t end_of_size(std::size_t at) const {
        int depth = 0;
        for (std::size_t place = at; place < at + kMostOfSize; ++place) {
            if (number(place) == fixed_word("[")) ++depth;
            if (number(place) == fixed_word("]") && --depth == 0) return place + 1;
        }
        return at + kMostOfSize;
    }

    /// Whether a declaration can go on so behind its name.
    bool can_follow(const Declarator& name, Place place, const Specifiers& all) const {
        const std::size_t at = name.end;
        switch (number(at)) {
            case fixed_word("="):
                return true;
            case fixed_word(","):
                return place != Place::condition;
            case fixed_word("["):
                return place != Place::condition;
            case fixed_word(")"):
                return place == Place::parameter || place == Place::head;
            case fixed_word(";"):
                return place == Place::statement || place == Place::head;
            case fixed_word(":"):
                return place == Place::head ||
                       (place == Place::statement && number(at + 1) == fixed_word("INT_TOKEN"));
            case fixed_word("{"):
            case fixed_word("=>"):
                return place == Place::statement && !all.elaborated;
            case fixed_word("("):
                return place == Place::statement || name.wrapped;
            default:
                // C# iterates so; `in` is a name in the other languages.
                return place == Place::head && is_name(at) && code_.words.term(number(at)) == "in";
        }
    }

    // What is read is kept.

    /// The place behind the first name that a declaration here declares, or `at` if there is none.
    std::size_t declaration(std::size_t at, Place place) {
        const auto all = specifiers(at);
        if (!all) return at;
        const auto first = declarator(all->end);
        if (!first || !can_follow(*first, place, *all)) return at;
        if (all->class_at != kNowhere) mark_class(all->class_at);
        if (all->is_typedef) {
            mark_class(first->name_at);
        } else if (first->is_function) {
            parameters_at_ = first->end;
        } else {
            frame().declares = true;
            frame().modifiers = modifiers_word(*all);
            frame().type = type_word(*all);
            declare(*first, all->arrays);
        }
        return first->end;
    }

    /// By what stands before the names of this statement.
    void declare(const Declarator& name, int arrays) {
        if (number(name.end) == fixed_word("(")) code_.tokens[name.name_at] |= LexedCode::kVariable;
        const std::uint32_t word = number(name.name_at);
        if (roles_.variables[word] == CodeRoles::kNone)
            roles_.variables[word] = new_name(frame().modifiers, frame().type, name, arrays);
    }

    /// Another name of the declaration, behind a comma.
    std::size_t next_declarator(std::size_t at) {
        const auto next = declarator(at);
        if (!next || next->is_function) return at;
        switch (number(next->end)) {
            case fixed_word("="):
            case fixed_word(","):
            case fixed_word(";"):
            case fixed_word("["):
            case fixed_word("{"):
            case fixed_word("("):
            case fixed_word(":"):
                declare(*next, 0);
                return next->end;
            default:
                return at;
        }
    }

    std::size_t parameter(std::size_t at) {
        const auto all = specifiers(at);
        if (!all) return at;
        const auto name = declarator(all->end);
        if (!name || !can_follow(*name, Place::parameter, *all)) return at;
        const bool indirect = name->pointers + name->references > 0;
        pending_.push_back({static_cast<std::uint32_t>(name->name_at),
                            new_name(modifiers_word(*all), type_word(*all), *name, all->arrays),
                            static_cast<std::uint32_t>(all->class_at), indirect});
        if (frame().inside == Inside::parameters) keep_parameters(frame().pending, true);
        return name->end;
    }

    /// Takes the pending declarations from a place on as parameters, or drops them.
    void keep_parameters(std::size_t from, bool indirect_too) {
        for (std::size_t i = from; i < pending_.size(); ++i) {
            const Pending& parameter = pending_[i];
            if (parameter.indirect && !indirect_too) continue;
            if (parameter.class_at != static_cast<std::uint32_t>(kNowhere))
                mark_class(parameter.class_at);
            std::uint32_t& name = roles_.parameters[number(parameter.name_at)];
            if (name == CodeRoles::kNone) name = parameter.new_name;
        }
        pending_.resize(from);
    }

    // Tokens are gone through.

    /// At the begin of a statement: the place behind what was read, or `at`.
    std::size_t statement(std::size_t at) {
        if ((is_name(at) || type(at) == CodeWord::modifier) &&
            number(at + 1) == fixed_word(":")) {  // a label, or public:
            frame().begins = true;
            return at + 2;
        }
        const Place place = frame().inside == Inside::head ? Place::head : Place::statement;
        return declaration(at, place);
    }

    std::size_t assignment(std::size_t at) {
        if (opens_brackets(at)) return before(at) == fixed_word("template") ? at + 1 : generic(at);
        if ((code_.tokens[at] & LexedCode::kBracket) != 0)
            frame().begins = true;  // the end of template <...>
        else if (at > 0 && is_name(at - 1) && type(at - 1) != CodeWord::soft_primitive)
            roles_.assigned[number(at - 1)] = true;
        return at + 1;
    }

    /// Brackets around types: what stands before them is a class, but for a function's name.
    std::size_t generic(std::size_t at) {
        const std::size_t end = bracket_pair(code_.tokens, at).end;
        if (at > 0 && is_name(at - 1) && number(end) != fixed_word("(")) mark_class(at - 1);
        return end;
    }

    std::size_t keyword(std::size_t at) {
        switch (number(at)) {
            case fixed_word("class"):
            case fixed_word("struct"):
            case fixed_word("union"):
            case fixed_word("enum"):
            case fixed_word("interface"):
            case fixed_word("typename"):
                return class_header(at);
            case fixed_word("extends"):
            case fixed_word("implements"):
            case fixed_word("throws"):
                return classes(at + 1);
            case fixed_word("new"):
            case fixed_word("instanceof"):
                if (is_name(at + 1)) mark_class(qualified(at + 1).last_at);
                return at + 1;
            case fixed_word("case"):
            case fixed_word("default"):
                frame().is_case = true;
                return at + 1;
            case fixed_word("typedef"):
                frame().is_typedef = true;
                return at + 1;
            case fixed_word("using"):
                if (is_name(at + 1) && number(at + 2) == fixed_word("=")) mark_class(at + 1);
                return at + 1;
            default:
                return at + 1;
        }
    }

    std::size_t class_header(std::size_t at) {
        ++at;
        if (number(at) == fixed_word("class")) ++at;  // enum class
        if (!is_name(at)) return at;
        mark_class(at);
        const Qualified name = qualified(at);
        return number(name.end) == fixed_word(":") ? classes(name.end + 1) : at + 1;
    }

    /// All names up to a bracket or the end of the statement, but for what is in < and >.
    std::size_t classes(std::size_t at) {
        while (is_name(at) || type(at) == CodeWord::modifier || number(at) == fixed_word(",") ||
               number(at) == fixed_word(".") || number(at) == fixed_word("::") ||
               number(at) == fixed_word("extends") || number(at) == fixed_word("implements") ||
               opens_brackets(at)) {
            if (is_name(at)) mark_class(at);
            at = opens_brackets(at) ? bracket_pair(code_.tokens, at).end : at + 1;
        }
        return at;
    }

    std::size_t punctuation(std::size_t at) {
        switch (number(at)) {
            case fixed_word(";"):
                end_statement(at);
                return at + 1;
            case fixed_word(","):
                return comma(at);
            case fixed_word(":"):
                if (frame().is_case) frame().begins = true;
                frame().is_case = false;
                return at + 1;
            case fixed_word("{"):
                return open_brace(at);
            case fixed_word("("):
                return open_parenthesis(at);
            case fixed_word("["):
                push({fixed_word("["), Inside::other, before_attribute(at)});
                return at + 1;
            case fixed_word("}"):
                close_brace(at);
                return at + 1;
            case fixed_word(")"):
                close_parenthesis(at);
                return at + 1;
            case fixed_word("]"):
                close_square();
                return at + 1;
            default:
                return at + 1;
        }
    }

    void end_statement(std::size_t at) {
        if (frame().is_typedef && at > 0 && is_name(at - 1)) mark_class(at - 1);
        frame().is_typedef = frame().declares = frame().is_case = false;
        // Behind the first ; of for there are expressions; behind that of try, another resource.
        frame().begins =
            frame().inside == Inside::statements ||
            (frame().inside == Inside::head && before(frame().open) == fixed_word("try"));
    }

    std::size_t comma(std::size_t at) {
        if (frame().inside == Inside::parameters || frame().inside == Inside::maybe_parameters)
            return parameter(at + 1);
        return frame().declares ? next_declarator(at + 1) : at + 1;
    }

    /// Beyond the depth that is looked into, brackets are only counted.
    void push(const Frame& opened) {
        if (frames_.size() >= kCodeDepth || hidden_depth_ > 0)
            ++hidden_depth_;
        else
            frames_.push_back(opened);
    }

    std::size_t open_brace(std::size_t at) {
        bool values = false;  // of an array or a structure
        switch (before(at)) {
            case fixed_word("="):
            case fixed_word(","):
            case fixed_word("("):
            case fixed_word("["):
            case fixed_word("]"):
            case fixed_word("return"):
                values = true;
                break;
            case fixed_word("{"):
                values = frame().inside == Inside::other;
                break;
            default:
                break;
        }
        push({fixed_word("{"), values ? Inside::other : Inside::statements, !values});
        return at + 1;
    }

    /// Whether the [ is that of an attribute in front of a statement.
    bool before_attribute(std::size_t at) const {
        switch (before(at)) {
            case fixed_word("{"):
            case fixed_word("}"):
            case fixed_word("]"):
            case fixed_word(";"):
                return frames_.back().inside == Inside::statements;
            default:
                return at == 0;
        }
    }

    void close_square() {
        if (hidden_depth_ > 0) {
            --hidden_depth_;
        } else if (frame().bracket == fixed_word("[")) {
            const bool attribute = frame().begins;
            frames_.pop_back();
            if (attribute) frame().begins = true;
        }
    }

    /// With what was left open in it. The outermost frame stays.
    void close_brace(std::size_t at) {
        if (hidden_depth_ > 0) {
            --hidden_depth_;
            return;
        }
        std::size_t brace = frames_.size() - 1;
        while (brace > 0 && frames_[brace].bracket != fixed_word("{")) --brace;
        if (brace == 0) return;
        const bool statements = frames_[brace].inside == Inside::statements;
        for (; frames_.size() > brace; frames_.pop_back())
            if (frame().inside == Inside::maybe_parameters) pending_.resize(frame().pending);
        const bool goes_on = frame().declares && goes_on_behind_brace(at + 1);
        if (statements && !goes_on && frame().inside == Inside::statements) {
            frame().begins = true;
            frame().declares = false;
        }
    }

    /// Behind a function or an object that a name is declared as.
    bool goes_on_behind_brace(std::size_t at) const {
        switch (number(at)) {
            case fixed_word(","):
            case fixed_word(";"):
            case fixed_word("("):
            case fixed_word(")"):
            case fixed_word("."):
            case fixed_word("="):
                return true;
            default:
                return false;
        }
    }

    std::size_t open_parenthesis(std::size_t at) {
        Frame opened{fixed_word("("), Inside::other};
        opened.open = at;
        opened.pending = pending_.size();
        switch (before(at)) {
            case fixed_word("for"):
            case fixed_word("foreach"):
            case fixed_word("catch"):
            case fixed_word("try"):
            case fixed_word("using"):
                opened.inside = Inside::head;
                opened.begins = true;
                break;
            case fixed_word("if"):
            case fixed_word("while"):
            case fixed_word("switch"):
                opened.inside = Inside::condition;
                break;
            default:
                if (at == parameters_at_)
                    opened.inside = Inside::parameters;
                else if (at == 0 || type(at - 1) != CodeWord::keyword)
                    opened.inside = Inside::maybe_parameters;
        }
        push(opened);
        if (hidden_depth_ > 0) return at + 1;
        if (opened.inside == Inside::condition) return declaration(at + 1, Place::condition);
        if (opened.inside == Inside::parameters || opened.inside == Inside::maybe_parameters)
            return parameter(at + 1);
        return at + 1;
    }

    void close_parenthesis(std::size_t at) {
        if (hidden_depth_ > 0) {
            --hidden_depth_;
            return;
        }
        if (frame().bracket != fixed_word("(")) return;
        const Frame closed = frame();
        frames_.pop_back();
        if (closed.inside != Inside::maybe_parameters) return;
        switch (number(at + 1)) {
            case fixed_word("{"):
            case fixed_word("throws"):
            case fixed_word("const"):
            case fixed_word("noexcept"):
                keep_parameters(closed.pending, true);
                break;
            case fixed_word("->"):
            case fixed_word("=>"):
                keep_parameters(closed.pending, before(closed.open) == fixed_word("]"));
                break;
            case fixed_word(":"):
                keep_parameters(closed.pending, initialises(closed.open));
                break;
            default:
                pending_.resize(closed.pending);
        }
    }

    /// Whether a : behind the parentheses opened here is that of a constructor.
    bool initialises(std::size_t open) const {
        if (open == 0 || !is_name(open - 1)) return false;
        switch (before(open - 1)) {
            case fixed_word("::"):
            case fixed_word(";"):
            case fixed_word("{"):
            case fixed_word("}"):
            case fixed_word(":"):
            case fixed_word("explicit"):
            case fixed_word("public"):
                return true;
            default:
                return false;
        }
    }

    LexedCode& code_;
    const std::span<const CodeWord> types_;
    const std::size_t size_;
    CodeRoles roles_;
    std::vector<Frame> frames_;
    std::size_t hidden_depth_ = 0;
    std::vector<Pending> pending_;
    std::size_t parameters_at_ = kNowhere;  // of the function declared last: its (
};

}  // namespace

Result<CodeRoles> find_code_roles(LexedCode& code, std::span<const CodeWord> types, Stop stop) {
    Scanner scanner(code, types);
    GPUTEXT_TRY(scanner.run(stop));
    return scanner.take();
}

}  // namespace gputext
