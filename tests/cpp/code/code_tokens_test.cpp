// tests/cpp/code/code_tokens_test.cpp - source code as tokens: examples by hand, properties,
// changed seeds

#include "cpp/code/code_tokens.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cpp/code/detail/roles.hpp"
#include "tests/fuzz/code_seeds.hpp"
#include "tests/fuzz/code_target.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext {
namespace {

using testing::code_seeds;
using testing::joined_lines;
using testing::kSanitized;
using testing::RandomStrings;

/// The normalised lines, each with its end.
std::string lines(std::string_view source) {
    const auto code = code_tokens(source);
    EXPECT_TRUE(code.ok());
    return joined_lines(*code);
}

/// The tokens with a blank between them.
std::string tokens(std::string_view source) {
    std::string text = lines(source);
    if (!text.empty()) text.pop_back();
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text;
}

TEST(CodeTokens, OfNothingAreNone) {
    EXPECT_EQ(tokens(""), "");
    EXPECT_EQ(tokens(" \t\n\r\n\f\v"), "");
    EXPECT_EQ(tokens("// only /* this"), "");
    EXPECT_EQ(tokens("/* no end"), "");
    EXPECT_EQ(tokens("\xEF\xBB\xBF;"), ";");
}

TEST(CodeTokens, LeaveCommentsOut) {
    EXPECT_EQ(lines("a /* b */ c // d\ne"), "a c\ne\n");
    EXPECT_EQ(lines("a /* b\n c */ d"), "a\nd\n");
    EXPECT_EQ(tokens("a // b \\\n c\nd"), "a d");
    EXPECT_EQ(tokens("a /*/ b */ c"), "a c");
    EXPECT_EQ(tokens("\"/* no */ // comment\" '/*'"), "STRING_TOKEN CHAR_TOKEN");
}

TEST(CodeTokens, LeaveAnnotationsOut) {
    EXPECT_EQ(tokens("@Override void f();"), "void f ( ) ;");
    EXPECT_EQ(tokens("@a.b.C(x = {\")\", ')'}, y = @D(1)) int f;"), "int VAR_INT ;");
    EXPECT_EQ(tokens("@interface A { }"), "@ interface CLASS { }");
    EXPECT_EQ(tokens("@ x @1 @"), "@ x @ INT_TOKEN @");
}

TEST(CodeTokens, AreOperatorsWhole) {
    EXPECT_EQ(tokens("a+=b-c->d<<=e::f...g"), "VAR_TOKEN += b - c -> VAR_TOKEN <<= e :: f ... g");
    EXPECT_EQ(tokens("a+++b"), "a ++ + b");
    EXPECT_EQ(tokens("x>>>=1;y>>>2;z<=>w"),
              "VAR_TOKEN >>>= INT_TOKEN ; y >>> INT_TOKEN ; VAR_TOKEN <=> w");
    EXPECT_EQ(tokens("a?b:c ?. ?? !~%^&|&&||"), "a ? b : c ?. ?? ! ~ % ^ & | && ||");
    EXPECT_EQ(tokens("?"
                     "?/ ?"
                     "?="),
              "?? / ?"
              "?=");  // no trigraphs
}

TEST(CodeTokens, AreLiteralsTheirKinds) {
    for (const char* const number : {"0", "12", "0x1Fu", "0XdeadL", "0b101", "1'000'000", "1_000",
                                     "077", "3ull", "0x1e", "0xf"})
        EXPECT_EQ(tokens(number), "INT_TOKEN") << number;
    for (const char* const number :
         {"1.", ".5", "1.5e-3", "1e+9", "2f", "0x1p-3", "1.5m", "3.0L", "1d", "1.e5F"})
        EXPECT_EQ(tokens(number), "FLOAT_TOKEN") << number;
    EXPECT_EQ(tokens("1..2"), "INT_TOKEN . FLOAT_TOKEN");
    EXPECT_EQ(tokens("'a' '\\'' L'x' u8'y' ''"),
              "CHAR_TOKEN CHAR_TOKEN CHAR_TOKEN CHAR_TOKEN CHAR_TOKEN");
    EXPECT_EQ(tokens("true false null NULL nullptr"),
              "BOOL_TOKEN BOOL_TOKEN NULL_TOKEN NULL_TOKEN NULL_TOKEN");
    EXPECT_EQ(tokens("TRUE Null"), "TRUE Null");
}

TEST(CodeTokens, AreStringsOneToken) {
    for (const char* const string :
         {"\"\"", "\"a\\\"b\"", "L\"a\"", "u8\"a\"", "R\"(a\"b)\"", "R\"x(a)\"\n)y\")x\"",
          "u8R\"(\\)\"", "\"\"\"\n a \"b\" \\\"\"\" c\"\"\"", "@\"c:\\\"", "@\"a\"\"b\nc\"",
          "$\"{x}\"", "$@\"\\\"", "@$\"\\\"", "\"a\\\nb\"", "\"a\\\r\nb\""})
        EXPECT_EQ(tokens(std::string(string) + ";"), "STRING_TOKEN ;") << string;
    EXPECT_EQ(tokens("\"a\" \"b\""), "STRING_TOKEN STRING_TOKEN");
    EXPECT_EQ(tokens("\"\"\"a\" ;"), "STRING_TOKEN STRING_TOKEN ;");  // no block: it has no end
    EXPECT_EQ(tokens("R \"(\" RR\"(\" R\"\\(\""), "R STRING_TOKEN RR STRING_TOKEN R STRING_TOKEN");
}

TEST(CodeTokens, EndUnendedLiterals) {
    EXPECT_EQ(lines("x(\"a b\n);"), "x ( STRING_TOKEN\n) ;\n");
    EXPECT_EQ(lines("'a b\n);"), "CHAR_TOKEN\n) ;\n");
    EXPECT_EQ(tokens("\"a\\"), "STRING_TOKEN");
    EXPECT_EQ(tokens("R\"x(a)\"\n b"), "STRING_TOKEN");
    EXPECT_EQ(tokens("@\"a\n b"), "STRING_TOKEN");
    EXPECT_EQ(tokens("@A(x\n y"), "");
}

TEST(CodeTokens, KeepDirectives) {
    EXPECT_EQ(lines("#include <stdio.h>\n# include \"a b.h\"\n  #import<x/y>"),
              "#include <stdio.h>\n#include \"a b.h\"\n#import <x/y>\n");
    EXPECT_EQ(lines("#define N 10\n#define ADD(a) \\\n x = 1 + a\nint N;"),
              "#define N INT_TOKEN\n#define ADD ( a ) x = INT_TOKEN + a\nint VAR_INT ;\n");
    EXPECT_EQ(lines("#if N == 3 /* a\nb */ && M\n#else\n#endif"),
              "#if N == INT_TOKEN && M\n#else\n#endif\n");
    EXPECT_EQ(lines("a # b\n# 1 \"x\"\n#"), "a # b\n# INT_TOKEN STRING_TOKEN\n#\n");
    EXPECT_EQ(lines("#include <no end\nx"), "#include < no end\nx\n");
}

TEST(CodeTokens, NameVariablesByModifiersAndType) {
    EXPECT_EQ(tokens("int a; a = 1;"), "int VAR_INT ; VAR_INT = INT_TOKEN ;");
    EXPECT_EQ(tokens("private static final int N = 1;"),
              "private static final int VAR_PRIVATE_STATIC_FINAL_INT = INT_TOKEN ;");
    EXPECT_EQ(tokens("unsigned long long x, y = 1;"),
              "unsigned long long VAR_UNSIGNED_LONG_LONG , VAR_UNSIGNED_LONG_LONG = INT_TOKEN ;");
    EXPECT_EQ(tokens("int *p, **q, r[2][3], &s = r;"),
              "int * VAR_POINTER_INT , * * VAR_POINTER_POINTER_INT , VAR_ARRAY_ARRAY_INT [ "
              "INT_TOKEN ] [ INT_TOKEN ] , & VAR_REFERENCE_INT = VAR_ARRAY_ARRAY_INT ;");
    EXPECT_EQ(tokens("double[] v; int[,] w = x;"),
              "double [ ] VAR_ARRAY_DOUBLE ; int [ , ] VAR_ARRAY_INT = x ;");
    EXPECT_EQ(tokens("const char *s = f(a, b), c;"),
              "const char * VAR_CONST_POINTER_CHAR = f ( a , b ) , VAR_CONST_CHAR ;");
    EXPECT_EQ(
        tokens("int (*f)(int) = g; size_t n = 2; var v = n;"),
        "int ( * VAR_POINTER_INT ) ( int ) = g ; size_t VAR_SIZE_T = INT_TOKEN ; var VAR_VAR = "
        "VAR_SIZE_T ;");
    EXPECT_EQ(tokens("string s(10, 'c'); s;"),
              "CLASS VAR_CLASS ( INT_TOKEN , CHAR_TOKEN ) ; VAR_CLASS ;");
}

TEST(CodeTokens, NameClassesByTheirBrackets) {
    EXPECT_EQ(tokens("Foo x = new Foo();"), "CLASS VAR_CLASS = new CLASS ( ) ;");
    EXPECT_EQ(tokens("List<String> x = new ArrayList<>();"),
              "CLASS_1 VAR_CLASS_1 = new CLASS_1 ( ) ;");
    EXPECT_EQ(tokens("Map<String, List<int[]>> x;"), "CLASS_2 VAR_CLASS_2 ;");
    EXPECT_EQ(tokens("std::vector<std::pair<int,A>> v(3);"),
              "std :: CLASS_2 VAR_CLASS_2 ( INT_TOKEN ) ;");
    EXPECT_EQ(tokens("Map.Entry<K, V> e; Entry f;"),
              "Map . CLASS_1 VAR_CLASS_1 ; CLASS VAR_CLASS ;");
    EXPECT_EQ(tokens("struct node { struct node *next; };"),
              "struct CLASS { struct CLASS * VAR_POINTER_CLASS ; } ;");
    EXPECT_EQ(
        tokens("typedef struct { int x; } P; P p; typedef int T; T t;"),
        "typedef struct { int VAR_INT ; } CLASS ; CLASS VAR_CLASS ; typedef int CLASS ; CLASS "
        "VAR_CLASS ;");
    EXPECT_EQ(tokens("class A<T extends B<T>> extends C implements D, E.F { }"),
              "class CLASS_2 extends CLASS implements CLASS , CLASS . CLASS { }");
    EXPECT_EQ(tokens("class A : public B, C<int> { }; enum class E : int { a };"),
              "class CLASS : public CLASS , CLASS_1 { } ; enum class CLASS : int { a } ;");
    EXPECT_EQ(tokens("function<vector<int>(int, int)> f = g;"), "CLASS_2 VAR_CLASS_2 = g ;");
}

TEST(CodeTokens, KeepBracketsOfFunctions) {
    EXPECT_EQ(tokens("x = max<int>(a, b); y = f<A<B>>(1); A c;"),
              "VAR_TOKEN = max < int > ( a , b ) ; VAR_TOKEN = f < CLASS_1 > ( INT_TOKEN ) ; CLASS "
              "VAR_CLASS ;");
    EXPECT_EQ(tokens("static_cast<int>(x); Collections.<String>none();"),
              "static_cast < int > ( x ) ; Collections . < String > none ( ) ;");
    EXPECT_EQ(
        tokens("template <typename T, int N> T f(T a) { T b; }"),
        "template < typename CLASS , int N > CLASS f ( CLASS VAR_CLASS ) { CLASS VAR_CLASS ; }");
}

TEST(CodeTokens, ReadComparisonsAsSuch) {
    EXPECT_EQ(tokens("if (a < b && c > d) ;"), "if ( VAR_TOKEN < b && VAR_TOKEN > d ) ;");
    EXPECT_EQ(tokens("for (; i < n; i >>= 1) ;"),
              "for ( ; VAR_TOKEN < n ; VAR_TOKEN >>= INT_TOKEN ) ;");
    EXPECT_EQ(tokens("a < b >> 2;"), "VAR_TOKEN < b >> INT_TOKEN ;");
    // As C++ would, were a a template.
    EXPECT_EQ(tokens("f(a < b, c > d);"), "f ( a < b , c > d ) ;");
}

TEST(CodeTokens, NameParameters) {
    EXPECT_EQ(tokens("int f(int a, char *b, Foo &c, int v[]) { return a; }"),
              "int f ( int VAR_INT , char * VAR_POINTER_CHAR , CLASS & VAR_REFERENCE_CLASS , int "
              "VAR_ARRAY_INT [ ] ) { return VAR_INT ; }");
    EXPECT_EQ(tokens("Foo(final int... xs) throws A { }"),
              "Foo ( final int ... VAR_FINAL_ARRAY_INT ) throws CLASS { }");
    EXPECT_EQ(tokens("A::A(int n) : n_(n) { }"), "A :: A ( int VAR_INT ) : n_ ( VAR_INT ) { }");
    EXPECT_EQ(tokens("g((int a, Foo b) -> a);"),
              "g ( ( int VAR_INT , CLASS VAR_CLASS ) -> VAR_INT ) ;");
    EXPECT_EQ(tokens("h = [&](Foo &x) { x; };"),
              "VAR_TOKEN = [ & ] ( CLASS & VAR_REFERENCE_CLASS ) { VAR_REFERENCE_CLASS ; } ;");
    EXPECT_EQ(tokens("int f(int (*cmp)(const void *), int);"),
              "int f ( int ( * VAR_POINTER_INT ) ( const void * ) , int ) ;");
    // Products and conjunctions are no declarations of pointers and references.
    EXPECT_EQ(tokens("f(a * b, c & d); if (a * b) { }"), "f ( a * b , c & d ) ; if ( a * b ) { }");
}

TEST(CodeTokens, NameWhatStatementsDeclare) {
    EXPECT_EQ(tokens("for (int i = 0, j = 1; i * j; ) ;"),
              "for ( int VAR_INT = INT_TOKEN , VAR_INT = INT_TOKEN ; VAR_INT * VAR_INT ; ) ;");
    EXPECT_EQ(tokens("for (Foo x : xs) ; foreach (var y in ys) ;"),
              "for ( CLASS VAR_CLASS : xs ) ; foreach ( var VAR_VAR in ys ) ;");
    EXPECT_EQ(tokens("try (Foo a = b; Bar c = d) { } catch (final Baz e) { }"),
              "try ( CLASS VAR_CLASS = b ; CLASS VAR_CLASS = d ) { } catch ( final CLASS "
              "VAR_FINAL_CLASS ) { }");
    EXPECT_EQ(tokens("if (Foo *p = f()) p->g();"),
              "if ( CLASS * VAR_POINTER_CLASS = f ( ) ) VAR_POINTER_CLASS -> g ( ) ;");
    EXPECT_EQ(
        tokens("case 1: int a; break; default: int b; x: int c; public: int d;"),
        "case INT_TOKEN : int VAR_INT ; break ; default : int VAR_INT ; x : int VAR_INT ; public "
        ": int VAR_INT ;");
    EXPECT_EQ(tokens("return a ? b : c * d; goto end; throw e;"),
              "return a ? b : c * d ; goto end ; throw e ;");
    EXPECT_EQ(tokens("int a[] = {b * c, d}, e; struct s { int f : 3; };"),
              "int VAR_ARRAY_INT [ ] = { b * c , d } , VAR_INT ; struct CLASS { int VAR_INT : "
              "INT_TOKEN ; } ;");
    EXPECT_EQ(tokens("[A] public int X { get; set; } int? y = 1; decimal Z => 2.5m;"),
              "[ A ] public int VAR_PUBLIC_INT { get ; set ; } int ? VAR_INT = INT_TOKEN ; decimal "
              "VAR_DECIMAL => FLOAT_TOKEN ;");
}

TEST(CodeTokens, NameTheSameInAllScopes) {
    // A parameter's name is found first, then the first declaration's.
    EXPECT_EQ(tokens("float x; int f(int x) { long x; }"),
              "float VAR_INT ; int f ( int VAR_INT ) { long VAR_INT ; }");
    EXPECT_EQ(tokens("{ float y; } { int y; }"), "{ float VAR_FLOAT ; } { int VAR_FLOAT ; }");
    // A function of a variable's name stays one, and so does a class where a type is.
    EXPECT_EQ(tokens("int size; size(); this.size = 1;"),
              "int VAR_INT ; size ( ) ; this . VAR_INT = INT_TOKEN ;");
    EXPECT_EQ(tokens("struct node *node; node->x = 1;"),
              "struct CLASS * VAR_POINTER_CLASS ; VAR_POINTER_CLASS -> VAR_TOKEN = INT_TOKEN ;");
}

TEST(CodeTokens, NameWhatIsAssignedToOrCompared) {
    EXPECT_EQ(
        tokens("a.b = c; b(); d == e; f[0] = g; c != 1;"),
        "a . VAR_TOKEN = VAR_TOKEN ; b ( ) ; VAR_TOKEN == e ; f [ INT_TOKEN ] = g ; VAR_TOKEN "
        "!= INT_TOKEN ;");
    EXPECT_EQ(tokens("INT_TOKEN == 1; VAR_INT = 2; CLASS_2 = 3;"),
              "INT_TOKEN == INT_TOKEN ; VAR_INT = INT_TOKEN ; CLASS_2 = INT_TOKEN ;");
}

TEST(CodeTokens, KeepNamesOfAnyLetters) {
    EXPECT_EQ(tokens("na\u00efve(\u540d\u524d, $a, _b);"),
              "na\u00efve ( \u540d\u524d , $a , _b ) ;");
    EXPECT_EQ(tokens("int \u540d; \u540d++;"), "int VAR_INT ; VAR_INT ++ ;");
    EXPECT_EQ(tokens("caf\xe9.\xa4\xa2(\xff)"), "caf\xe9 . \xa4\xa2 ( \xff )");  // other encodings
}

TEST(CodeTokens, ReadAnyByte) {
    for (int first = 0; first < 256; ++first)
        for (int second = 0; second < 256; second += kSanitized ? 5 : 1)
            testing::read_code(std::string{static_cast<char>(first), static_cast<char>(second)});
}

TEST(CodeTokens, EndLinesWhereTheSourceDoes) {
    EXPECT_EQ(lines("a\nb\r\nc\rd\n\n\ne f"), "a\nb\nc\nd\ne f\n");
    EXPECT_EQ(lines("a \\\n b\nc"), "a b\nc\n");
    EXPECT_EQ(lines("Map<A,\n    B> x;\ny;"), "CLASS_1\nVAR_CLASS_1 ;\ny ;\n");
    EXPECT_EQ(lines("f(@\"a\nb\");\ng"), "f ( STRING_TOKEN\n) ;\ng\n");
}

/// What a reader of the seeds could have written otherwise makes no difference.
TEST(CodeTokens, DoNotDependOnBlanksAndComments) {
    const std::string source =
        "int f ( const Foo < A , B < C > > & x , char * y ) { for ( int i = 0 ; i < 10 ; ++ i ) { "
        "x . a [ i ] += y -> b ; } List < String > z = new List < String > ( ) ; return z ; }";
    const std::string expected = tokens(source);
    RandomStrings random;
    for (int round = 0; round < 200; ++round) {
        std::string changed;
        for (const char letter : source) {
            changed += letter;
            if (letter != ' ') continue;
            const char* const blanks[] = {"", "\n", "\t\t", "/* < ( \" */", "// }\n", "\\\n"};
            changed += blanks[random.below(std::size(blanks))];
        }
        ASSERT_EQ(tokens(changed), expected) << changed;
    }
}

TEST(CodeTokens, OfTokensAreTheSame) {
    for (const std::string& seed : code_seeds()) {
        const std::string once = lines(seed);
        EXPECT_EQ(lines(once), once);
    }
}

TEST(CodeTokens, ReadChangedSeeds) {
    RandomStrings random;
    const std::string letters = "ab <>(){}[];:,.*&=\"'@#\\/\n1\xe9?";
    for (const std::string& seed : code_seeds())
        for (int round = 0; round < testing::rounds(kSanitized ? 100 : 1000); ++round)
            testing::read_code(random.edited(seed, 1 + random.below(30), letters));
    for (int round = 0; round < testing::rounds(kSanitized ? 100 : 1000); ++round)
        testing::read_code(random.string(random.below(3000), letters));
}

/// Nothing is looked at again and again, however deeply it is nested and left open.
TEST(CodeTokens, TakeLinearTime) {
    const std::size_t size = kSanitized ? 300000 : 3000000;
    for (const char* const piece : {"(",
                                    "{",
                                    "[",
                                    "a<",
                                    "a<a,",
                                    "f<A<",
                                    "a<a>>",
                                    "@a(",
                                    "int a[",
                                    "\"\"\"",
                                    "R\"x(",
                                    "/*",
                                    "int f(int a,",
                                    "a*b,",
                                    "template <",
                                    "a.",
                                    "a::b ",
                                    "int a,",
                                    "typedef ",
                                    "const ",
                                    "x?",
                                    "enum ",
                                    "class A : ",
                                    "case a:",
                                    "->",
                                    "'",
                                    "#a\\\n",
                                    "int (*a)("}) {
        std::string text;
        while (text.size() < size) text += piece;
        const auto code = code_tokens(text);
        EXPECT_TRUE(code.ok()) << piece;
    }
}

TEST(CodeTokens, DeclareNothingInTooDeepBrackets) {
    const std::string open(kCodeDepth, '{'), close(kCodeDepth, '}');
    EXPECT_EQ(tokens("int a; " + open + "float b; b;" + close + " int c; c").substr(0, 13),
              "int VAR_INT ;");
    const std::string deep = tokens(open + "float b;" + close + "int c; c");
    EXPECT_NE(deep.find("float b ;"), std::string::npos);
    EXPECT_TRUE(deep.ends_with("int VAR_INT ; VAR_INT"));
}

TEST(CodeTokens, CanBeStopped) {
    std::string text;
    while (text.size() < 2000000) text += "int a = b < c ? f(x) : 3;\n";
    // At each of the first looks, whichever step it is in.
    for (int looks = 0; looks < 70; looks += kSanitized ? 23 : 5) {
        int left = looks;
        const Stop stop{[](void* context) { return (*static_cast<int*>(context))-- <= 0; }, &left};
        EXPECT_EQ(code_tokens(text, stop).status().code(), ErrorCode::cancelled);
    }
}

}  // namespace
}  // namespace gputext
