/* Reads a corpus's documents.bin: for each document a little-endian uint32 length and its bytes. */
#ifndef GPUTEXT_BENCH_PEERS_DOCUMENTS_H
#define GPUTEXT_BENCH_PEERS_DOCUMENTS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct documents {
    unsigned char* file;
    const unsigned char** body;
    uint32_t* length;
    size_t count;
    size_t bytes;
};

static inline void fail(const char* what, const char* path) {
    fprintf(stderr, "%s: %s\n", what, path);
    exit(1);
}

static inline unsigned char* read_file(const char* path, size_t* size) {
    FILE* file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) fail("cannot read", path);
    *size = (size_t)ftell(file);
    rewind(file);
    unsigned char* data = malloc(*size + 1);
    if (data == NULL || fread(data, 1, *size, file) != *size) fail("cannot read", path);
    fclose(file);
    return data;
}

static inline struct documents read_documents(const char* path) {
    size_t size;
    struct documents all = {.file = read_file(path, &size)};
    /* Every document takes at least its length's four bytes. */
    all.body = calloc(size / 4 + 1, sizeof *all.body);
    all.length = calloc(size / 4 + 1, sizeof *all.length);
    if (all.body == NULL || all.length == NULL) fail("no memory for", path);
    for (size_t at = 0; at < size; at += all.length[all.count - 1]) {
        if (size - at < 4) fail("truncated", path);
        uint32_t length;
        memcpy(&length, all.file + at, 4);
        at += 4;
        if (size - at < length) fail("truncated", path);
        all.body[all.count] = all.file + at;
        all.length[all.count++] = length;
        all.bytes += length;
    }
    return all;
}

/* CPU time, so that other work on the machine does not count. */
static inline double cpu_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif
