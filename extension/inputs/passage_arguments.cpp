#include "extension/inputs/passage_arguments.hpp"

#include <cstring>

namespace gputext {
namespace {

PassageUnit unit_argument(const Arguments& given) {
    const char* const unit = given.text("unit");
    if (std::strcmp(unit, "characters") == 0) return PassageUnit::characters;
    if (std::strcmp(unit, "words") == 0) return PassageUnit::words;
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("unit must be 'characters' or 'words', not \"%s\"", unit)));
    pg_unreachable();
}

}  // namespace

PassageForm passage_form_argument(const Arguments& given) {
    return {unit_argument(given), given.flag("fold_case"), given.flag("fold_blanks")};
}

std::uint64_t max_pairs_argument(const Arguments& given) {
    const std::int64_t most = given.big_integer("max_pairs");
    if (most < 1)
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                 errmsg("max_pairs must be at least 1, not %lld", static_cast<long long>(most))));
    return static_cast<std::uint64_t>(most);
}

}  // namespace gputext
