/* Rate of libfuzzy's fuzzy_hash_buf on a corpus, one core.
 * usage: libfuzzy_hash documents.bin */
#include <fuzzy.h>

#include "documents.h"

int main(int argc, char** argv) {
    if (argc != 2) fail("usage: libfuzzy_hash", "documents.bin");
    struct documents all = read_documents(argv[1]);
    char signature[FUZZY_MAX_RESULT];

    double start = cpu_seconds();
    for (size_t i = 0; i < all.count; i++) {
        if (fuzzy_hash_buf(all.body[i], all.length[i], signature) != 0)
            fail("cannot hash", argv[1]);
    }
    double seconds = cpu_seconds() - start;

    printf(
        "libfuzzy fuzzy_hash_buf: %.1f MB/s, %.0f documents/s (%zu documents, %zu bytes, %.2f CPU "
        "s)\n",
        (double)all.bytes / seconds / 1e6, (double)all.count / seconds, all.count, all.bytes,
        seconds);
    return 0;
}
