/* Every pair of documents that libfuzzy scores at least `score`, by comparing all pairs.
 * usage: libfuzzy_pairs documents.bin score pairs.tsv
 * Writes id1, id2, score. */
#include <fuzzy.h>

#include "documents.h"

typedef char signature[FUZZY_MAX_RESULT];

static signature* hash_all(const struct documents* all) {
    signature* signatures = calloc(all->count, sizeof *signatures);
    if (signatures == NULL) fail("no memory for", "signatures");
    for (size_t i = 0; i < all->count; i++) {
        if (fuzzy_hash_buf(all->body[i], all->length[i], signatures[i]) != 0) {
            fail("cannot hash", "document");
        }
    }
    return signatures;
}

static size_t write_pairs(const signature* signatures, size_t count, int least, FILE* out) {
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t j = i + 1; j < count; j++) {
            int score = fuzzy_compare(signatures[i], signatures[j]);
            if (score >= least) {
                fprintf(out, "%zu\t%zu\t%d\n", i + 1, j + 1, score);
                found++;
            }
        }
    }
    return found;
}

int main(int argc, char** argv) {
    if (argc != 4) fail("usage: libfuzzy_pairs", "documents.bin score pairs.tsv");
    struct documents all = read_documents(argv[1]);
    FILE* out = fopen(argv[3], "w");
    if (out == NULL) fail("cannot write", argv[3]);

    double start = cpu_seconds();
    signature* signatures = hash_all(&all);
    double hashed = cpu_seconds();
    size_t found = write_pairs(signatures, all.count, atoi(argv[2]), out);
    double seconds = cpu_seconds() - hashed;
    if (fclose(out) != 0) fail("cannot write", argv[3]);

    double pairs = (double)all.count * (double)(all.count - 1) / 2;
    printf(
        "libfuzzy score >= %s: %zu pairs; hash %.2f CPU s, fuzzy_compare %.3g pairs/s (%.2f CPU "
        "s)\n",
        argv[2], found, hashed - start, pairs / seconds, seconds);
    return 0;
}
