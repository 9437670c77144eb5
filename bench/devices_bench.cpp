// bench/devices_bench.cpp - jobs of gputextd on one device, and on all of them
//
// Arguments: the program gputextd; then jobs, all of them where there are none: knn, within, lof,
// k_means, dbscan, duplicates, signatures, alike, exact, texts, thesaurus, movers, sequences,
// word2vec; then scale=S of their sizes (1), threads=T of gputextd's (as many as there are), fake=N
// for N devices without a GPU. Starts a gputextd of its own. For each job: seconds on the first
// device and on all, of the best of three runs in turn, or of as many as begin within ten seconds,
// from the start on the device to the reply, with the bytes that were copied from the host to
// devices in that run; how many times as fast that is; the devices; whether the answers are the
// same bytes; and the phases of the best runs, on the device that began them. CUDA_VISIBLE_DEVICES
// chooses the GPUs.

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "bench/expect.hpp"
#include "bench/grouped_rows.hpp"
#include "bench/movers_corpus.hpp"
#include "bench/options.hpp"
#include "bench/term_corpus.hpp"
#include "bench/text_documents.hpp"
#include "cpp/base/byte_text.hpp"
#include "cpp/base/words.hpp"
#include "cpp/link/client.hpp"
#include "cpp/link/memory_file.hpp"

using namespace gputext;

namespace {

constexpr int kRuns = 3;
constexpr std::chrono::seconds kMostSeconds{10};  // after which no run begins

void check(const Status& status) {
    if (status.ok()) return;
    std::fprintf(stderr, "%s\n", status.message().c_str());
    std::exit(1);
}

// ---- gputextd ----

class Daemon {
public:
    Daemon(const char* program, unsigned threads, unsigned fake_devices) {
        folder_ = std::filesystem::temp_directory_path() / "gputext-devices-XXXXXX";
        check(mkdtemp(folder_.data()) != nullptr
                  ? Status()
                  : Status(ErrorCode::io_error, "no folder can be made for the socket"));
        socket_ = folder_ + "/socket";
        int ends[2];
        check(pipe(ends) == 0 ? Status() : Status(ErrorCode::io_error, "no pipe"));
        std::vector<std::string> arguments{
            program, "--socket=" + socket_, "--threads=" + std::to_string(threads),
            "--resident-memory=100000000000", "--supervisor-fd=" + std::to_string(ends[0])};
        if (fake_devices > 0) arguments.push_back("--fake-devices=" + std::to_string(fake_devices));
        fcntl(ends[1], F_SETFD, FD_CLOEXEC);
        pid_ = fork();
        if (pid_ == 0) {
            std::vector<char*> pointers;
            for (std::string& argument : arguments) pointers.push_back(argument.data());
            pointers.push_back(nullptr);
            execv(program, pointers.data());
            std::perror(program);
            _exit(127);
        }
        close(ends[0]);
        for (int tries = 0; tries < 3000; ++tries) {
            auto connected = DaemonConnection::connect(socket_);
            if (connected.ok()) {
                connection_ = std::move(*connected);
                return;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        std::fprintf(stderr, "gputextd does not listen\n");
        std::exit(1);
    }
    ~Daemon() {
        kill(pid_, SIGTERM);
        waitpid(pid_, nullptr, 0);
        std::filesystem::remove_all(folder_);
    }
    Daemon(const Daemon&) = delete;

    DaemonConnection& connection() { return *connection_; }

    /// The next event of this kind.
    template <class Event>
    Event next() {
        for (;;) {
            pollfd readable{connection_->fd(), POLLIN, 0};
            poll(&readable, 1, -1);
            for (auto event = bench::expect(connection_->receive()); event;
                 event = bench::expect(connection_->receive())) {
                if (auto* const wanted = std::get_if<Event>(&*event)) return std::move(*wanted);
                if (const auto* const failed = std::get_if<Failed>(&*event)) check(failed->status);
            }
        }
    }

private:
    std::string folder_, socket_;
    pid_t pid_ = -1;
    std::unique_ptr<DaemonConnection> connection_;
};

struct Run {
    double seconds = 1e9;
    std::string devices;
    std::vector<std::uint8_t> answer;
    std::vector<PhaseTime> phases;
    std::uint64_t uploaded = 0;
};

/// Returns the summary of the last answer.
template <class Answer>
auto compare(Daemon& daemon, const char* name, auto request) {
    Run runs[2];
    decltype(Answer::summary) summary;
    const auto begin = std::chrono::steady_clock::now();
    for (int run = 0; run < 2 * kRuns; ++run) {
        if (run > 1 && run % 2 == 0 && std::chrono::steady_clock::now() - begin > kMostSeconds)
            break;
        Run& own = runs[run % 2];
        request.limits.device = run % 2 == 0 ? 0 : -1;
        check(daemon.connection().submit(request));
        const auto answer = daemon.next<Answer>();
        summary = answer.summary;
        const JobReport& report = summary.report;
        if (report.seconds < own.seconds) {
            own.seconds = report.seconds;
            own.phases = report.phases;
            own.uploaded = report.uploaded;
        }
        // Devices that come later may find no part left.
        if (report.device_name.size() > own.devices.size()) own.devices = report.device_name;
        const auto bytes = answer.file.bytes();
        own.answer.assign(bytes.begin(), bytes.end());
    }
    std::printf("%s: %.4f s on one device (%s from the host), %.4f s on %s (%s): %.2f times; %s\n",
                name, runs[0].seconds, byte_text(runs[0].uploaded).c_str(), runs[1].seconds,
                runs[1].devices.c_str(), byte_text(runs[1].uploaded).c_str(),
                runs[0].seconds / runs[1].seconds,
                runs[0].answer == runs[1].answer ? "the same bytes" : "OTHER BYTES");
    std::printf("    %-32s %12s %12s\n", "ms", "one device", "all");
    for (const PhaseTime& phase : runs[0].phases) {
        const auto same = std::ranges::find(runs[1].phases, phase.name, &PhaseTime::name);
        const double on_all = same == runs[1].phases.end() ? 0 : same->seconds;
        std::printf("    %-32s %12.2f %12.2f\n", phase.name.c_str(), 1e3 * phase.seconds,
                    1e3 * on_all);
    }
    for (const PhaseTime& phase : runs[1].phases)
        if (std::ranges::find(runs[0].phases, phase.name, &PhaseTime::name) == runs[0].phases.end())
            std::printf("    %-32s %12s %12.2f\n", phase.name.c_str(), "", 1e3 * phase.seconds);
    std::fflush(stdout);
    return summary;
}

// ---- Input ----

/// Numbers in a sealed file.
template <class T>
class Filed {
public:
    explicit Filed(std::span<const T> numbers) {
        check(file_.append(
            {reinterpret_cast<const std::uint8_t*>(numbers.data()), numbers.size_bytes()}));
        check(file_.seal());
    }
    int descriptor() const { return file_.descriptor(); }
    std::uint64_t bytes() const { return file_.size(); }

private:
    MemoryFile file_;
};

std::vector<float> normal_numbers(std::size_t count, std::uint64_t seed) {
    std::vector<float> numbers(count);
    Execution execution(std::thread::hardware_concurrency());
    constexpr std::size_t step = std::size_t{1} << 20;
    check(execution.parallel_for((count + step - 1) / step, [&](std::size_t task, unsigned) {
        std::mt19937_64 random(seed + task);
        std::normal_distribution<float> normal;
        const std::size_t end = std::min(count, (task + 1) * step);
        for (std::size_t i = task * step; i < end; ++i) numbers[i] = normal(random);
        return Status();
    }));
    return numbers;
}

/// Random rows, perhaps kept by gputextd.
class Rows {
public:
    Rows(std::size_t rows, std::size_t dimensions, std::uint64_t seed)
        : Rows(rows, dimensions, normal_numbers(rows * dimensions, seed)) {}
    Rows(std::size_t rows, std::size_t dimensions, std::vector<float> elements)
        : elements_(std::move(elements)), file_(std::span<const float>(elements_)) {
        files_.vectors = {ElementType::float32, rows, dimensions, elements_.data(), {}, {}};
        files_.elements = file_.descriptor();
    }

    const VectorFiles& files() const { return files_; }

    /// The same as a column of table 1 that gputextd keeps.
    VectorFiles keep(Daemon& daemon) {
        const Vectors& vectors = files_.vectors;
        const auto row_bytes = static_cast<std::uint32_t>(vectors.dimensions * sizeof(float));
        std::vector<ValuePointer> pointers(vectors.rows);
        for (std::uint32_t i = 0; i < vectors.rows; ++i) pointers[i] = {1, row_bytes, i + 1, 10};
        const Filed<ValuePointer> list{std::span<const ValuePointer>(pointers)};
        check(daemon.connection().find_values(
            {1,
             100,
             {1, ValueForm::vector, ElementType::float32, vectors.dimensions, 0},
             static_cast<std::uint32_t>(vectors.rows)},
            list.descriptor()));
        (void)daemon.next<ValuesFound>();
        check(daemon.connection().add_values(file_.bytes(), file_.descriptor()));
        VectorFiles kept = files_;
        kept.resident = daemon.next<AddedValues>().resident;
        return kept;
    }

private:
    std::vector<float> elements_;
    Filed<float> file_;
    VectorFiles files_;
};

// ---- Jobs ----

struct Setting {
    Daemon& daemon;
    double scale;

    std::size_t scaled(double size) const {
        return std::max<std::size_t>(1, static_cast<std::size_t>(size * scale));
    }
};

void measure_knn(const Setting& setting) {
    Rows items(setting.scaled(1e6), 768, 1);
    const Rows queries(setting.scaled(1e5), 768, 1000003), few(16, 768, 2000003);
    KnnRequest request;
    request.queries = queries.files();
    request.items = items.files();
    for (const std::size_t k : {10, 100}) {
        request.parameters.k = k;
        compare<KnnAnswer>(setting.daemon,
                           k == 10 ? "knn, k = 10, from the host" : "knn, k = 100, from the host",
                           request);
    }
    request.items = items.keep(setting.daemon);
    for (const std::size_t k : {10, 100}) {
        request.parameters.k = k;
        compare<KnnAnswer>(setting.daemon, k == 10 ? "knn, k = 10, kept" : "knn, k = 100, kept",
                           request);
    }
    request.queries = few.files();
    compare<KnnAnswer>(setting.daemon, "knn, 16 queries, k = 100, kept", request);
    check(setting.daemon.connection().forget_values(1, 0));
    (void)setting.daemon.next<ForgottenValues>();
}

void measure_within(const Setting& setting) {
    const Rows items(setting.scaled(1e6), 128, 1), queries(setting.scaled(1e5), 128, 1000003);
    KnnRequest request;
    request.queries = queries.files();
    request.items = items.files();
    request.parameters = {.k = KnnParameters::all_items, .radius = 0.65};
    compare<KnnAnswer>(setting.daemon, "within 0.65", request);
}

void measure_lof(const Setting& setting) {
    const Rows items(setting.scaled(5e5), 41, 1);
    OutlierFactorRequest request;
    request.items = items.files();
    compare<ScoresAnswer>(setting.daemon, "local outlier factors", request);
}

void measure_k_means(const Setting& setting) {
    Rows items(setting.scaled(1e6), 768, 1);
    KMeansRequest request;
    request.items = items.files();
    request.parameters.k = std::min<std::size_t>(1000, items.files().vectors.rows);
    request.parameters.iterations = 10;
    compare<KMeansAnswer>(setting.daemon, "k-means, k = 1,000, from the host", request);
    request.items = items.keep(setting.daemon);
    compare<KMeansAnswer>(setting.daemon, "k-means, k = 1,000, kept", request);
    check(setting.daemon.connection().forget_values(1, 0));
    (void)setting.daemon.next<ForgottenValues>();
}

Rows rows_in_groups(std::size_t rows, std::size_t dimensions, std::size_t per_group, float spread) {
    return {rows, dimensions,
            bench::grouped_rows(rows, dimensions, per_group, spread,
                                std::thread::hardware_concurrency())};
}

/// Groups of a thousand, with some 30 neighbors of each row.
void measure_dbscan(const Setting& setting) {
    const Rows rows = rows_in_groups(setting.scaled(1e6), 64, 1000, 0.2f);
    DbscanRequest request;
    request.items = rows.files();
    request.parameters.epsilon = 1.9;
    request.parameters.min_points = 10;
    const DbscanReply reply =
        compare<DbscanAnswer>(setting.daemon, "dbscan, 64 dimensions", request);
    std::printf("    %u clusters of %u rows\n", reply.count, reply.rows);
}

/// Groups of four, as semantic_duplicate_groups asks for them.
void measure_duplicates(const Setting& setting) {
    const Rows rows = rows_in_groups(setting.scaled(5e5), 768, 4, 0.15f);
    DbscanRequest request;
    request.items = rows.files();
    request.parameters = {.epsilon = 0.05, .min_points = 2, .metric = Metric::cosine};
    const DbscanReply reply =
        compare<DbscanAnswer>(setting.daemon, "semantic duplicates, 768 dimensions", request);
    std::printf("    %u groups of more than one of %u rows\n", reply.count, reply.rows);
}

/// Signatures of 40 to 100 of the 64 letters, one in five near the one before, of documents that
/// are so short that they cost little. Of fewer letters, random signatures would have most in
/// common, and nearly all pairs would be verified. With `second` half as many letters are at the
/// next block size. Without them, as no document's signature is, all pairs are candidates there.
void compare_signatures(const Setting& setting, const char* name, std::size_t count, bool second) {
    constexpr std::uint64_t kSize = 24;
    std::mt19937_64 random(1);
    const auto letter = [&] { return kSignatureAlphabet[random() % kSignatureAlphabet.size()]; };
    std::vector<std::optional<Ctph>> signatures(count);
    std::vector<std::uint8_t> bytes(kSize * count);
    std::vector<Extent> extents(count);
    std::string letters;
    std::size_t first = 0;
    for (std::size_t i = 0; i < count; ++i) {
        std::uint8_t* const own = bytes.data() + kSize * i;
        if (i > 0 && random() % 5 == 0) {
            std::copy(own - kSize, own, own);
            own[random() % kSize] = static_cast<std::uint8_t>(letter());
            letters[random() % letters.size()] = letter();
        } else {
            std::generate(own, own + kSize, letter);
            first = 40 + random() % 61;
            letters.resize(second ? first + first / 2 : first);
            std::generate(letters.begin(), letters.end(), letter);
        }
        signatures[i] = Ctph{5, static_cast<std::uint16_t>(first), letters};
        extents[i] = {kSize * i, kSize};
    }
    const Filed<std::uint8_t> file{std::span<const std::uint8_t>(bytes)};
    NearDuplicatesRequest request;
    request.parameters.mode = NearDuplicateMode::ctph;
    request.bytes_file = file.descriptor();
    request.bytes_size = file.bytes();
    request.extents = extents;
    request.signatures = signatures;
    compare<NearDuplicatesAnswer>(setting.daemon, name, request);
}

void measure_signatures(const Setting& setting) {
    compare_signatures(setting, "near-duplicates by signatures", setting.scaled(3e6), true);
}

void measure_alike(const Setting& setting) {
    compare_signatures(setting, "near-duplicates by signatures that are alike", setting.scaled(9e5),
                       false);
}

void measure_exact(const Setting& setting) {
    const std::size_t count = setting.scaled(1.5e5);
    bench::TextDocuments texts(1);
    std::vector<std::uint8_t> bytes;
    std::vector<Extent> extents;
    std::string text;
    for (std::size_t i = 0; i < count; ++i) {
        if (i % 5 != 1)
            text = texts.document(1500 + i * 7919 % 1000);
        else
            text[i % text.size()] = 'x';
        extents.push_back({bytes.size(), text.size()});
        bytes.insert(bytes.end(), text.begin(), text.end());
    }
    const Filed<std::uint8_t> file{std::span<const std::uint8_t>(bytes)};
    NearDuplicatesRequest request;
    request.parameters.mode = NearDuplicateMode::exact;
    request.bytes_file = file.descriptor();
    request.bytes_size = file.bytes();
    request.extents = extents;
    compare<NearDuplicatesAnswer>(setting.daemon, "near-duplicates, exact", request);
}

void measure_texts(const Setting& setting) {
    const bench::TermCorpus corpus(bench::kPubMed.scaled(setting.scale / 2),
                                   std::thread::hardware_concurrency());
    const bench::TermRows questions =
        bench::TermRows::spread(corpus.vectors(), setting.scaled(5e4));
    const Vectors items = corpus.vectors();
    const Filed<std::int32_t> counts{
        {static_cast<const std::int32_t*>(items.elements), items.row_begins.back()}};
    const Filed<std::uint32_t> columns{items.columns};
    TermKnnRequest request;
    request.queries.vectors = questions.vectors();
    request.items = {items, counts.descriptor(), columns.descriptor()};
    request.parameters.k = 20;
    compare<KnnAnswer>(setting.daemon, "texts of PubMed's shape", request);
}

void measure_thesaurus(const Setting& setting) {
    const auto words = static_cast<std::uint32_t>(setting.scaled(1e5));
    std::mt19937_64 random(1);
    std::vector<CountedTriple> triples;
    // Neighbors at six offsets: 600,000 columns.
    for (std::uint32_t word = 0; word < words; ++word)
        for (int i = 0; i < 200; ++i) {
            const double share = static_cast<double>(random() >> 11) * 0x1p-53;
            const int offset = static_cast<int>(random() % 6);
            triples.push_back({1 + random() % 5, word,
                               static_cast<std::uint32_t>(share * share * words),
                               offset < 3 ? offset - 3 : offset - 2});
        }
    std::vector<std::uint32_t> order(words);
    std::iota(order.begin(), order.end(), 0u);
    const Filed<CountedTriple> file{std::span<const CountedTriple>(triples)};
    WordSimilarityRequest request;
    request.shape.words = words;
    request.counted = true;
    request.rows = triples.size();
    request.first = file.descriptor();
    request.order = order;
    compare<KnnAnswer>(setting.daemon, "thesaurus", request);
}

void measure_movers(const Setting& setting) {
    const auto elements = bench::random_vectors(bench::kVocabulary, 100, 1);
    const bench::Pairs pairs = bench::random_pairs(setting.scaled(1e7), 8, 4);
    const Filed<float> vectors{std::span<const float>(elements)};
    const Filed<WordMass> masses{std::span<const WordMass>(pairs.masses)};
    WordMoversRequest request;
    request.vectors = {elements.data(), bench::kVocabulary, 100};
    request.elements = vectors.descriptor();
    request.pairs = pairs.view();
    request.masses = masses.descriptor();
    compare<ScoresAnswer>(setting.daemon, "Word Mover's Distances", request);
}

void measure_sequences(const Setting& setting) {
    const auto words = static_cast<std::uint32_t>(setting.scaled(1e5));
    const auto vectors = bench::random_vectors(words, 100, 0.1f);
    const Filed<float> file{std::span<const float>(vectors)};
    std::mt19937_64 random(1);
    std::vector<std::uint64_t> begins{0};
    std::vector<std::uint32_t> tokens;
    for (std::size_t i = 0; i < setting.scaled(1e5); ++i) {
        for (int k = 0; k < 10; ++k) tokens.push_back(static_cast<std::uint32_t>(random() % words));
        begins.push_back(tokens.size());
    }
    const Filed<std::uint32_t> token_file{std::span<const std::uint32_t>(tokens)};
    SequenceProbabilityRequest request;
    request.model = {{vectors.data(), words, 100}, {vectors.data(), words, 100}};
    request.elements = request.output_elements = file.descriptor();
    request.sequences = {begins, tokens};
    request.tokens = token_file.descriptor();
    compare<SequenceProbabilityAnswer>(setting.daemon, "probabilities of sequences", request);
}

/// Zipf's words, a text of 1,000 each, in two replicas.
void measure_word2vec(const Setting& setting) {
    const std::size_t count = setting.scaled(2e8);
    const std::uint32_t words = 100000;
    std::vector<std::uint32_t> tokens(count), positions(count);
    std::vector<std::uint64_t> counts(words);
    std::mt19937_64 random(1);
    for (std::size_t i = 0; i < count; ++i) {
        const double share = static_cast<double>(random() >> 11) * 0x1p-53;
        tokens[i] = static_cast<std::uint32_t>(std::exp(share * std::log(words + 1.0))) - 1;
        positions[i] = static_cast<std::uint32_t>(i + i / 1000 * 1000);
        ++counts[tokens[i]];
    }
    const Filed<std::uint32_t> token_file{std::span<const std::uint32_t>(tokens)};
    const Filed<std::uint32_t> position_file{std::span<const std::uint32_t>(positions)};
    Word2VecRequest request;
    request.parameters.replicas = 2;
    request.parameters.epochs = 1;
    request.tokens = count;
    request.words = token_file.descriptor();
    request.positions = position_file.descriptor();
    request.counts = counts;
    compare<Word2VecAnswer>(setting.daemon, "word2vec, two replicas", request);
}

constexpr std::pair<const char*, void (*)(const Setting&)> kJobs[] = {
    {"knn", measure_knn},
    {"within", measure_within},
    {"lof", measure_lof},
    {"k_means", measure_k_means},
    {"dbscan", measure_dbscan},
    {"duplicates", measure_duplicates},
    {"signatures", measure_signatures},
    {"alike", measure_alike},
    {"exact", measure_exact},
    {"texts", measure_texts},
    {"thesaurus", measure_thesaurus},
    {"movers", measure_movers},
    {"sequences", measure_sequences},
    {"word2vec", measure_word2vec}};

}  // namespace

int main(int count, char** arguments) {
    if (count < 2) {
        std::fprintf(stderr, "usage: %s GPUTEXTD [JOB...] [scale=S] [threads=T] [fake=N]\n",
                     arguments[0]);
        return 1;
    }
    const bench::Options options(count, arguments);
    const std::set<std::string> wanted(arguments + 2, arguments + count);
    Daemon daemon(arguments[1], options.whole("threads", std::thread::hardware_concurrency()),
                  options.whole("fake", 0u));
    const Setting setting{daemon, options.number("scale", 1)};
    const bool all = std::none_of(std::begin(kJobs), std::end(kJobs),
                                  [&](const auto& job) { return wanted.contains(job.first); });
    for (const auto& [name, measure] : kJobs)
        if (all || wanted.contains(name)) measure(setting);
}
