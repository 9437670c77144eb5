// tests/fuzz/code_seeds.hpp - seeds of the source code fuzzer

#pragma once

#include <string>
#include <vector>

namespace gputext::testing {

inline std::vector<std::string> code_seeds() {
    return {
        R"code(
#include <stdio.h>
# define MAX(a, b) \
    ((a) > (b) ? (a) : (b))
typedef struct node { struct node *next; int v[10][20]; } node_t;
static unsigned long f(const char *s, size_t n, int (*cmp)(const void *, const void *)) {
    int i, *p = &i, q = 3, arr[3] = {1, 2};
    for (int k = 0, m = n; k < m && k > 0; ++k) total += k;
    switch (i) { case 1: node_t *h = NULL; break; default: return i ? *p : q * 2; }
    printf("%d \"\n", 'a'); /* no end
)code",
        R"code(
template <typename T, int N = 3> class Box : public Base<T> {
public:
    explicit Box(const T &t) : t_(t) {}
private: T t_; };
std::vector<std::pair<int, Foo>> v{1, 2};
auto it = [&](int u, Foo &w) -> int { return u == 3; };
std::function<int(std::vector<int>)> fn = it; string s(10, L'c'); x = static_cast<int>(3.f);
y = R"x(raw )" )x"; z = 0x1p-3 + 1'000'000 + .5e-3L; a <=> b; f(a < b, c > d); x >>= y >>> 2;
)code",
        R"code(
package org.example;
@SuppressWarnings({"unchecked", ")"})
public class Foo<T extends Comparable<T>> extends Base implements Runnable, Map.Entry<A, B> {
    private final Map<String, List<Integer>> names = new HashMap<>();
    public <K> K get(final Object key, int... rest) throws IOException {
        try (Reader r = open(); Writer w = null) { names.forEach((k) -> { k.x = true; }); }
        catch (Exception e) { throw e; }
        String t = """
            a "text" \""" block""";
        return Collections.<String>emptyList();
    }
}
@interface Marker { }
)code",
        R"code(
using X = System.Collections.Generic.List<int>;
namespace A { [Serializable] public sealed class P : Q, IFoo {
    public string Name { get; set; } = $"x{1}";
    public int? Count => _count ?? 0;
    public async Task<int> Run(ref int a, out Foo b, params string[] xs) {
        foreach (var x in xs) { if (x?.Length > 3) s ??= @"a""
b"; }
        Func<int, int> g = (int q) => q + 1; naïve名 = 4; int[,] grid = null;
    } } }
)code",
        "?"
        "?= ? ?( \\\n \\ @ @( ` # ## '\"\n\" ' 1..2 1.e5.f 0b1 \"\"\" a<b<c>>>d",
    };
}

}  // namespace gputext::testing
