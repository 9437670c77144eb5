-- Source code as tokens that say what names are, and as lines of them
\pset format unaligned
\pset tuples_only on

-- The example of docs/code-tokens.md
SELECT array_to_string(code_tokens($$total += f(x, 0x1F); // sum$$), ' ');
SELECT unnest(code_lines($$
#include <stdio.h>

/* The sum of the first numbers. */
static long sum(const int *numbers, int count)
{
    long total = 0;
    for (int i = 0; i < count; ++i)
        total += numbers[i];   // no overflow
    printf("%ld\n", total);
    return total;
}
$$));
SELECT unnest(code_lines($$
@SuppressWarnings("unchecked")
public class Shapes<T extends Shape> extends Figures {
    private final Map<String, List<T>> byName = new HashMap<>();

    public T find(final String name, int... sizes) throws MissingException {
        for (T shape : byName.get(name))
            if (shape.width == sizes[0] && shape.valid != false)
                return shape;
        return null;
    }
}
$$));

-- Other authors of the same
SELECT code_lines(a) = code_lines(b) AS alike, edit_distance(a, b)
FROM (VALUES ($$int largest(int a, int b) { return a > b ? a : b; } // Ann$$,
              $$int largest(int x,int y){return x>y?x:y;}$$)) AS p(a, b);

-- Literals and operators of all kinds
SELECT code_tokens($$'a' L'\'' "b\"c" u8"d" R"x(e)")x" @"f""g" $"{h}" 1 1.5 2f 0xF 1'000 true null NULL nullptr$$);
SELECT code_tokens($$a+++b<<=c>>>2->d::e...f=>g?.h ?? i<=>j&&!k$$);
SELECT code_tokens($$#define MAX(a, b) ((a) > (b) ? (a) : (b))
# include "max.h"
#if MAX == 3$$);

-- What never ends, is left open, or is no code at all
SELECT code_tokens('"no end'), code_tokens('/* no end'), code_tokens('f(@A(x'), code_tokens('R"x(no end');
SELECT code_tokens('}}))]] <<< >>> "'''), code_tokens(E'\\'), code_tokens('@ # $ `');
SELECT code_tokens('¿Qué tal? ' || chr(8364) || '5'), code_lines('int größe = 名前;');
SELECT code_tokens(''), code_lines(''), code_lines(E' \n\t// nothing\n'), code_tokens(NULL) IS NULL, code_lines(NULL) IS NULL;
SELECT cardinality(code_tokens(repeat('(', 1000000))), cardinality(code_tokens(repeat('a<b<', 300000))),
       cardinality(code_lines(repeat(E'int a = f(b);\n', 100000)));

-- Read again, lines stay what they are.
SELECT bool_and(code_lines(array_to_string(code_lines(source), E'\n')) = code_lines(source))
FROM (VALUES ($$int main(int argc, char **argv) { List<Map<A, B>> x = y(z); if (a < b) c >>= 1; }$$),
             ($$public int Count => _count ?? 0;$$)) AS sources(source);

-- The array is one as any other: built by hand, it can be stored, compared, indexed and taken apart.
CREATE TABLE programs (id int, source text, lines text[] GENERATED ALWAYS AS (code_lines(source)) STORED);
INSERT INTO programs (id, source)
SELECT i, 'int f' || i || E'(int a) {\n' || repeat(E'    a = a * 3;\n', i * 100) || '}' FROM generate_series(0, 3) AS i;
CREATE INDEX ON programs USING gin (lines);
SELECT id, cardinality(lines), array_lower(lines, 1), lines[1], lines[2], lines[cardinality(lines)],
       lines = string_to_array(array_to_string(lines, '|'), '|') AS equal, array_position(lines, '}') AS last
FROM programs ORDER BY id;
SELECT count(*) FROM programs WHERE lines @> ARRAY['VAR_INT = VAR_INT * INT_TOKEN ;'];

-- Larger than an array may be
DO $$
BEGIN
    PERFORM code_tokens('const const const const const const const const unsigned long long int a; ' || repeat('a ', 14000000));
EXCEPTION WHEN program_limit_exceeded THEN
    RAISE NOTICE '%', SQLERRM;
END $$;
-- Cancelled in the middle
SET statement_timeout = '200ms';
DO $$
BEGIN
    PERFORM code_tokens(repeat('int a = b < c ? f(x) : 3; ', 3000000));
EXCEPTION WHEN query_canceled THEN
    RAISE NOTICE 'cancelled';
END $$;
RESET statement_timeout;

DROP TABLE programs;
