#include "extension/base/postgres.hpp"

#include "extension/base/owned.hpp"
#include "extension/base/sql_function.hpp"
#include "extension/inputs/arguments.hpp"
#include "extension/inputs/reused_text.hpp"
#include "extension/inputs/set_call.hpp"
#include "extension/inputs/term_arguments.hpp"
#include "extension/inputs/token_query.hpp"
#include "extension/server/settings.hpp"
#include "extension/texts/text_words.hpp"

namespace gputext {
namespace {

/// The words of a call until its last row; dies with the call's memory context.
struct CountedWords {
    CountedWords(Oid config, std::size_t memory_limit) : words(config, memory_limit) {}

    TextWords words;
    ChosenWords chosen;
};

Datum answer(FunctionCallInfo fcinfo) {
    const Arguments given(fcinfo);
    const char* const docs = given.text("docs");
    const Oid config = config_argument(given);
    SetCall set(fcinfo, "word_frequencies");
    auto* const counted = make_owned<CountedWords>(set.context(), config, host_memory_limit());
    read_tokens(docs, counted->words);
    set.times().lap("reading rows");
    counted->words.choose(1, SIZE_MAX, counted->chosen);
    ReusedText name;
    bool nulls[2] = {};
    for (std::size_t i = 0; i < counted->chosen.numbers.size(); ++i) {
        if (i % 1024 == 0) CHECK_FOR_INTERRUPTS();
        const std::uint32_t number = counted->chosen.numbers[i];
        Datum values[2] = {name.of(counted->words.vocabulary().term(number)),
                           Int64GetDatum(static_cast<int64>(counted->chosen.counts[i]))};
        set.put(values, nulls);
    }
    counted->words.release();
    set.end();
    PG_RETURN_NULL();
}

}  // namespace
}  // namespace gputext

using namespace gputext;

extern "C" {
SQL_FUNCTION(gputext_word_frequencies) {
    return answer(fcinfo);
}
}
