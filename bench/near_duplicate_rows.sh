# shellcheck shell=bash
# Rows that benchmarks of near-duplicates share, in a database "bench" of the server that PGHOST and the like
# lead to. For "source".

sql() { psql -X -q -A -t -v ON_ERROR_STOP=1 -d bench "$@"; }

# seconds STATEMENT [SETTING...]: of one run
seconds() {
    local settings=() setting
    for setting in "${@:2}"; do settings+=(-c "SET $setting"); done
    sql "${settings[@]}" -c '\timing on' -c "$1" | awk '/^Time: / { printf "%.2f", $2 / 1000 }'
}

# load_rows DOCUMENTS COUNT: makes the database anew, and in it the table docs of so many documents that
# "bench/run varied_documents", or GENERATOR, makes
load_rows() {
    sql -d postgres -c 'SET client_min_messages = warning' -c 'DROP DATABASE IF EXISTS bench' -c "CREATE DATABASE bench TEMPLATE template0 ENCODING 'UTF8'"
    sql -c 'CREATE EXTENSION gputext' -c 'CREATE TABLE docs (id bigint, body text)'
    ${GENERATOR-"$(dirname "${BASH_SOURCE[0]}")/run" varied_documents} "$1" "$2" 2>/dev/null | sql -c 'COPY docs FROM STDIN'
    sql -c 'ALTER TABLE docs ADD PRIMARY KEY (id)' -c 'VACUUM (ANALYZE, FREEZE) docs'
    sql -c 'CHECKPOINT' >/dev/null
}

# load_copies COUNT: the table asked, edited copies of ten thousand of COUNT documents, or of all if there are fewer:
# 7 characters in place of 29, an edit rate of 0.01 of 2,000 characters
load_copies() {
    sql -c 'SET client_min_messages = warning' -c 'DROP TABLE IF EXISTS asked' -c 'CREATE TABLE asked (n serial, of bigint, body text)' \
        -c "INSERT INTO asked (of, body) SELECT id, substr(body, 1, 200) || 'edited ' || substr(body, 230) FROM docs WHERE id % greatest(1, $1 / 10000) = 0" -c 'VACUUM ANALYZE asked'
}
