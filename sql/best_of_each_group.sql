-- docs/best-of-each-group.md of 100,000 rows: 40,000 groups of one to four

CREATE TABLE products (id bigint PRIMARY KEY, description text, verified boolean, updated date, price numeric, stock integer, tags text[],
    sku bigint GENERATED ALWAYS AS (100001 - id) STORED UNIQUE);
CREATE TABLE orders (id bigint PRIMARY KEY, product_id bigint NOT NULL REFERENCES products);
CREATE TABLE favorites (customer text, product_id bigint REFERENCES products, PRIMARY KEY (customer, product_id));
CREATE TABLE redirects (old_id bigint PRIMARY KEY, kept_id bigint NOT NULL REFERENCES products, merged timestamptz NOT NULL DEFAULT now());
-- A foreign key of two tables below another one, and of a column whose name needs quotes
CREATE TABLE prices (day date NOT NULL, "of product" bigint REFERENCES products) PARTITION BY RANGE (day);
CREATE TABLE prices_2025 PARTITION OF prices FOR VALUES FROM ('2025-01-01') TO ('2026-01-01');
CREATE TABLE prices_2026 PARTITION OF prices FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');

-- What row i is of, and which of its group; in the order of ids the members of a group are far apart.
CREATE TABLE members AS
SELECT row_number() OVER (ORDER BY nth, product)::bigint AS id, product, nth
FROM generate_series(1, 40000) AS product, generate_series(1, 1 + product % 4) AS nth;
INSERT INTO products
SELECT id, md5(product::text) || ' ' || md5((-product)::text) || left('!!!!!', nth), product % 5 = nth, date '2025-01-01' + (product * nth % 7),
       CASE WHEN (product + nth) % 3 > 0 THEN nth END, nth, CASE WHEN product % 6 > 0 THEN ARRAY['t' || nth, 'all'] ELSE '{}' END
FROM members;
INSERT INTO orders SELECT id * 2 + n, id FROM members, generate_series(0, 1) AS n;
INSERT INTO favorites SELECT 'customer ' || product % 3, id FROM members WHERE nth <> 2;
INSERT INTO prices SELECT date '2025-06-01' + id::integer % 400, id FROM members WHERE id % 5 = 0;
CREATE INDEX ON orders (product_id);
CREATE INDEX ON favorites (product_id);
CREATE INDEX ON prices ("of product");
CREATE INDEX ON redirects (kept_id);
ANALYZE;
-- A redirect of earlier, to the third row of a group
INSERT INTO redirects SELECT -1, id FROM members WHERE (product, nth) = (2, 3);

-- A foreign key to another column, whose values are ids of other rows: it refers to rows that stay
CREATE TABLE shelves (sku bigint UNIQUE REFERENCES products (sku));

-- What is to come of it, from the groups that are known
CREATE TABLE wanted AS
SELECT m.id AS old_id, first_value(m.id) OVER best AS kept_id, row_number() OVER best AS rank, p.price, p.stock, p.tags
FROM members AS m JOIN products AS p USING (id) WINDOW best AS (PARTITION BY m.product ORDER BY p.verified DESC NULLS LAST, p.updated DESC NULLS LAST, p.id);
INSERT INTO shelves SELECT sku FROM products JOIN wanted ON id = old_id WHERE rank = 1 AND id % 100 = 0;
CREATE TABLE wanted_favorites AS SELECT DISTINCT customer, kept_id FROM favorites JOIN wanted ON old_id = product_id;
CREATE TABLE wanted_prices AS SELECT day, kept_id FROM prices JOIN wanted ON old_id = "of product";

BEGIN;
LOCK TABLE products IN SHARE ROW EXCLUSIVE MODE;

CREATE TEMPORARY TABLE merged ON COMMIT DROP AS
SELECT g.id AS old_id, first_value(g.id) OVER best AS kept_id, row_number() OVER best AS rank
FROM near_duplicate_groups('SELECT id, description FROM products ORDER BY id', threshold => 0.05) AS g JOIN products AS p USING (id)
WHERE g.group_size > 1
WINDOW best AS (PARTITION BY g.group_id ORDER BY p.verified DESC NULLS LAST, p.updated DESC NULLS LAST, p.id);
ANALYZE merged;

DO $$ BEGIN PERFORM FROM products JOIN merged ON id = old_id WHERE rank > 1 FOR UPDATE OF products; END $$;

UPDATE products AS p SET price = m.price, stock = m.stock, tags = coalesce(t.tags, '{}')
FROM (SELECT kept_id, (array_agg(price ORDER BY rank) FILTER (WHERE price IS NOT NULL))[1] AS price, sum(stock) AS stock
      FROM merged JOIN products ON id = old_id GROUP BY kept_id) AS m
LEFT JOIN (SELECT kept_id, array_agg(DISTINCT tag ORDER BY tag) AS tags
           FROM merged JOIN products ON id = old_id, unnest(tags) AS tag GROUP BY kept_id) AS t USING (kept_id)
WHERE p.id = m.kept_id;

DELETE FROM favorites AS f
USING (SELECT customer, product_id, row_number() OVER (PARTITION BY customer, kept_id ORDER BY rank) AS nth
       FROM favorites JOIN merged ON old_id = product_id) AS double
WHERE double.nth > 1 AND (f.customer, f.product_id) = (double.customer, double.product_id);

DO $$
DECLARE
    reference record;
BEGIN
    FOR reference IN
        SELECT conrelid::regclass AS child, attname AS child_column
        FROM pg_constraint JOIN pg_attribute ON attrelid = conrelid AND attnum = conkey[1]
        WHERE contype = 'f' AND confrelid = 'products'::regclass AND conparentid = 0
              AND confkey = ARRAY[(SELECT attnum FROM pg_attribute WHERE attrelid = 'products'::regclass AND attname = 'id')]
    LOOP
        EXECUTE format('UPDATE %s AS c SET %I = m.kept_id FROM merged AS m WHERE c.%2$I = m.old_id AND m.rank > 1',
                       reference.child, reference.child_column);
    END LOOP;
END $$;

INSERT INTO redirects (old_id, kept_id) SELECT old_id, kept_id FROM merged WHERE rank > 1;
DELETE FROM products USING merged WHERE id = old_id AND rank > 1;
COMMIT;

SELECT count(*) AS products FROM products;
SELECT count(*) AS wrong FROM products AS p FULL JOIN (
    SELECT kept_id, (array_agg(price ORDER BY rank) FILTER (WHERE price IS NOT NULL))[1] AS price, sum(stock) AS stock FROM wanted GROUP BY kept_id) AS w ON w.kept_id = p.id
WHERE (p.price, p.stock) IS DISTINCT FROM (w.price, w.stock);
SELECT count(*) AS wrong FROM (SELECT kept_id, tag FROM wanted, unnest(tags) AS tag GROUP BY 1, 2) AS w
FULL JOIN (SELECT id, tag FROM products, unnest(tags) AS tag) AS p ON (p.id, p.tag) = (w.kept_id, w.tag) WHERE p.id IS NULL OR w.kept_id IS NULL;
SELECT count(*) AS redirects, count(*) FILTER (WHERE w.kept_id IS DISTINCT FROM r.kept_id) AS wrong,
       (SELECT count(*) FROM wanted WHERE rank > 1) AS wanted
FROM redirects AS r LEFT JOIN wanted AS w ON w.old_id = coalesce(nullif(r.old_id, -1), (SELECT id FROM members WHERE (product, nth) = (2, 3)));
SELECT count(*) AS orders, count(*) FILTER (WHERE o.product_id <> w.kept_id) AS wrong FROM orders AS o JOIN wanted AS w ON w.old_id = (o.id - o.id % 2) / 2;
SELECT count(*) AS shelves, count(*) FILTER (WHERE w.rank <> 1) AS wrong FROM shelves JOIN wanted AS w ON w.old_id = 100001 - sku;
SELECT count(*) AS favorites FROM favorites;
(TABLE favorites EXCEPT TABLE wanted_favorites) UNION ALL (TABLE wanted_favorites EXCEPT TABLE favorites);
SELECT count(*) AS prices FROM prices;
(SELECT day, "of product" FROM prices EXCEPT ALL TABLE wanted_prices) UNION ALL (TABLE wanted_prices EXCEPT ALL SELECT day, "of product" FROM prices);
-- Nothing is left to merge: also by the pairs of groups_of, whose ids have gone by now.
SELECT count(*) FROM near_duplicate_groups('SELECT id, description FROM products ORDER BY id', threshold => 0.05) WHERE group_size > 1;
SELECT count(*) AS groups, max(group_size) AS largest
FROM groups_of('SELECT coalesce(a.kept_id, w.old_id), coalesce(b.kept_id, w.kept_id)
                FROM wanted AS w LEFT JOIN redirects AS a ON a.old_id = w.old_id LEFT JOIN redirects AS b ON b.old_id = w.kept_id');

DROP TABLE favorites, orders, redirects, prices, shelves, products, members, wanted, wanted_favorites, wanted_prices;
