#include "cpp/records/comparison.hpp"

#include <gtest/gtest.h>

namespace gputext {
namespace {

TEST(Comparison, IsReadAsItIsWritten) {
    const Result<FieldComparison> read = read_comparison(
        " surname : exact, jaro_winkler >= 0.92,jaro>=.8, levenshtein <= 2, osa <= 3,\n"
        "edit_rate <= 0.25, within 31, within 5 percent, day_month_exchanged, overlap >= 2 ");
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(read->field, "surname");
    std::vector<std::string> texts;
    for (const Condition& condition : read->conditions) texts.push_back(text_of(condition));
    EXPECT_EQ(texts, (std::vector<std::string>{
                         "exact", "jaro_winkler >= 0.92", "jaro >= 0.8", "levenshtein <= 2",
                         "osa <= 3", "edit_rate <= 0.25", "within 31", "within 5 percent",
                         "day_month_exchanged", "overlap >= 2"}));
    for (std::size_t i = 0; i < texts.size(); ++i) {
        const Result<Condition> again = read_condition(texts[i]);
        ASSERT_TRUE(again.ok()) << texts[i];
        EXPECT_EQ(*again, read->conditions[i]);
    }
    EXPECT_EQ(read->top_level(), 10);
    EXPECT_EQ(text_of(read->condition(10)), "exact");
    EXPECT_EQ(text_of(read->condition(1)), "overlap >= 2");
}

TEST(Comparison, HasLimitsUpToTheLast) {
    for (const char* text : {"jaro >= 0", "jaro >= 1", "edit_rate <= 1", "overlap >= 1",
                             "levenshtein <= 1000000000", "within 99.999 percent"})
        EXPECT_TRUE(read_condition(text).ok()) << text;
}

TEST(Comparison, HasNamesAsSqlHasThem) {
    EXPECT_EQ(read_comparison("\"First \"\"given\"\" name\": exact")->field,
              "First \"given\" name");
    EXPECT_EQ(read_comparison("stra\xc3\x9f" "e_2: exact")->field, "stra\xc3\x9f" "e_2");
}

TEST(Names, AreReadAsTheyAreWritten) {
    const auto read = [](const char* text) { return *read_names(text); };
    EXPECT_EQ(read("surname"), std::vector<std::string>{"surname"});
    EXPECT_EQ(read(" surname ,\"a, \"\"b\"\"\",  c_1 "),
              (std::vector<std::string>{"surname", "a, \"b\"", "c_1"}));
    const auto message = [](const char* text) { return read_names(text).status().message(); };
    EXPECT_EQ(message(""), "a name is missing in the list of columns \"\"");
    EXPECT_EQ(message("a,"), "a name is missing in the list of columns \"a,\"");
    EXPECT_EQ(message("a b"), "unexpected text after a name in the list of columns \"a b\"");
    EXPECT_EQ(message("\"a"), "a double quote is not closed in the list of columns \"\"a\"");
    EXPECT_NE(read_names("").status().hint(), "");
}

TEST(Comparison, SaysWhatIsWrong) {
    const auto message = [](const char* text) {
        const Result<FieldComparison> read = read_comparison(text);
        if (read.ok()) return std::string("ok");
        EXPECT_EQ(read.status().code(), ErrorCode::invalid_argument);
        EXPECT_FALSE(read.status().hint().empty()) << text;
        return read.status().message();
    };
    EXPECT_EQ(message(""), "the name of a field is missing in the comparison \"\"");
    EXPECT_EQ(message("name"),
              "a colon after the name of the field is missing in the comparison \"name\"");
    EXPECT_EQ(message("\"name: exact"),
              "a double quote is not closed in the comparison \"\"name: exact\"");
    EXPECT_EQ(message("name:"), "a condition is missing in \"name:\"");
    EXPECT_EQ(message("name: exact,"), "a condition is missing in \"name: exact,\"");
    EXPECT_EQ(message("name: soundex"), "unknown condition \"soundex\" in \"name: soundex\"");
    EXPECT_EQ(message("name: jaro <= 0.9"), "after \"jaro\" comes \">=\", in \"name: jaro <= 0.9\"");
    EXPECT_EQ(message("name: jaro >= x"), "a number is missing in \"name: jaro >= x\"");
    EXPECT_EQ(message("name: jaro >= 1.5"),
              "the number in \"jaro >= 1.5\" must be between 0 and 1");
    EXPECT_EQ(message("name: overlap >= 0"),
              "the number in \"overlap >= 0\" must be between 1 and 1e+09");
    EXPECT_EQ(message("name: within inf"), "a number is missing in \"name: within inf\"");
    EXPECT_EQ(message("name: exact exact"),
              "unexpected text after a condition in the comparison \"name: exact exact\"");
    EXPECT_FALSE(read_condition("exact, exact").ok());
}

TEST(Comparison, IsCheckedForTheKindOfItsValues) {
    const auto message = [](const char* text, FieldKind kind) {
        const Result<FieldComparison> read = read_comparison(text);
        EXPECT_TRUE(read.ok());
        return check_comparison(*read, kind).message();
    };
    EXPECT_EQ(message("a: exact, jaro >= 0.9, jaro >= 0.8", FieldKind::text), "");
    EXPECT_EQ(message("a: exact, within 1, within 1 percent", FieldKind::number), "");
    EXPECT_EQ(message("a: exact, overlap >= 2, overlap >= 1", FieldKind::set), "");
    EXPECT_EQ(message("a: exact", FieldKind::other), "");
    EXPECT_EQ(message("a: exact, day_month_exchanged, within 31", FieldKind::date), "");
    EXPECT_EQ(message("a: day_month_exchanged", FieldKind::number),
              "the condition \"day_month_exchanged\" of field \"a\" cannot compare its values, "
              "which are numbers");
    EXPECT_EQ(message("a: within 1", FieldKind::text),
              "the condition \"within 1\" of field \"a\" cannot compare its values, which are "
              "texts");
    // Such as '19840312'
    for (const char* const text : {"a: within 1", "a: within 1 percent", "a: day_month_exchanged"})
        EXPECT_NE(check_comparison(*read_comparison(text), FieldKind::text)
                      .hint()
                      .find("born::date"),
                  std::string::npos);
    EXPECT_EQ(message("a: levenshtein <= 1", FieldKind::number),
              "the condition \"levenshtein <= 1\" of field \"a\" cannot compare its values, which "
              "are numbers");
    EXPECT_EQ(message("a: overlap >= 2, exact, overlap >= 1", FieldKind::set), "");
    EXPECT_EQ(message("a: within 1, exact", FieldKind::number),
              "the condition \"exact\" of field \"a\" never decides, as \"within 1\" stands before "
              "it");
    EXPECT_EQ(message("a: jaro >= 0.8, osa <= 1, jaro >= 0.9", FieldKind::text),
              "the condition \"jaro >= 0.9\" of field \"a\" never decides, as \"jaro >= 0.8\" "
              "stands before it");
    EXPECT_EQ(message("a: exact, exact", FieldKind::text),
              "the condition \"exact\" of field \"a\" never decides, as \"exact\" stands before "
              "it");
    std::string many = "a: exact";
    for (int i = 0; i < 15; ++i) many += ", levenshtein <= " + std::to_string(i + 1);
    EXPECT_EQ(message(many.c_str(), FieldKind::text),
              "there are 16 conditions of field \"a\", more than 15");
}

}  // namespace
}  // namespace gputext
