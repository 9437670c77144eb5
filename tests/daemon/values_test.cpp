// gputextd as a process of its own, and the values that it keeps between jobs.

#include <signal.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <string>

#include "cpp/daemon/listening_socket.hpp"
#include "cpp/knn/knn.hpp"
#include "cpp/link/client.hpp"
#include "tests/support/answer_rows.hpp"
#include "tests/support/daemon_process.hpp"
#include "tests/support/packed.hpp"
#include "tests/support/resident_value_files.hpp"

namespace gputext {
namespace {

using namespace testing;

constexpr std::uint64_t kDimensions = 8;
constexpr std::uint64_t kSize = kDimensions * sizeof(std::int32_t);
const ValueKind kVectors{7, ValueForm::vector, ElementType::int32, kDimensions};
const ValueKind kDocuments{7, ValueForm::document, ElementType::float32, 0};

class GputextdValues : public ::testing::Test {
protected:
    void start(DaemonProcess::Arguments arguments = {"--fake-devices=1"}) {
        arguments.insert(arguments.end(), {"--resident-memory=10000000", "--allow-faults"});
        daemon_.emplace(socket_, std::move(arguments));
    }
    std::unique_ptr<DaemonConnection> connect() { return connect_to(socket_); }

    static Status ask(DaemonConnection& connection, const ResidentValueList& values,
                      const ValueKind& kind = kVectors, std::uint64_t run = 1) {
        return connection.find_values({run, 100, kind, static_cast<std::uint32_t>(values.size())},
                                      pointer_file(values).get());
    }

    /// The rows that are missing.
    static Result<std::vector<std::uint32_t>> find(DaemonConnection& connection,
                                                   const ResidentValueList& values,
                                                   const ValueKind& kind = kVectors) {
        GPUTEXT_TRY(ask(connection, values, kind));
        const auto found = next<ValuesFound>(connection);
        if (!found.ok()) return found.status();
        EXPECT_EQ(found->reply.values, values.size());
        return found->missing();
    }

    static Result<std::uint64_t> keep(DaemonConnection& connection, const ResidentValueList& values,
                                      std::span<const std::uint32_t> rows,
                                      std::uint64_t pages = 0) {
        const auto bytes = bytes_of_rows(values, rows);
        const ValueFiles files(bytes, pages);
        GPUTEXT_TRY(connection.add_values(bytes.size(), files.parts()));
        const auto kept = next<AddedValues>(connection);
        if (!kept.ok()) return kept.status();
        return kept->resident;
    }

    static Result<ValuesTaken> take(DaemonConnection& connection, bool early = false) {
        GPUTEXT_TRY(connection.take_values({early, false}));
        return next<ValuesTaken>(connection);
    }
    static Result<ResidentTaken> take_resident(DaemonConnection& connection,
                                               std::uint64_t resident) {
        GPUTEXT_TRY(connection.take_resident(resident));
        return next<ResidentTaken>(connection);
    }
    static Status await(DaemonConnection& connection, std::uint64_t resident) {
        GPUTEXT_TRY(connection.await_values(resident));
        return next<AwaitedValues>(connection).status();
    }
    /// Until the question has come; whoever lets the values come does so later.
    static void begin_to_await(DaemonConnection& connection, std::uint64_t resident) {
        ASSERT_TRUE(connection.await_values(resident).ok());
        ASSERT_TRUE(connection.ask_counters().ok());
        ASSERT_TRUE(next<CounterValues>(connection).ok());
    }
    /// Has gputextd keep two chunks, and asks for their values in another order.
    static ResidentValueList find_in_two(DaemonConnection& connection) {
        const auto first = some_values(3, 1, 900, kSize), second = some_values(3, 901, 100, kSize);
        EXPECT_TRUE(read(connection, first).ok() && read(connection, second).ok());
        ResidentValueList both = second;
        both.insert(both.end(), first.begin(), first.end());
        const auto missing = find(connection, both);
        EXPECT_TRUE(missing.ok() && missing->empty());
        return both;
    }

    /// Finds, keeps and takes, and checks the bytes.
    static Result<ValuesTaken> read(DaemonConnection& connection, const ResidentValueList& values,
                                    const ValueKind& kind = kVectors) {
        const auto missing = find(connection, values, kind);
        if (!missing.ok()) return missing.status();
        if (!missing->empty()) {
            const auto kept = keep(connection, values, *missing, 1);
            if (!kept.ok()) return kept.status();
        }
        auto taken = take(connection);
        if (!taken.ok()) return taken;
        const auto file = taken->map();
        EXPECT_TRUE(file.ok());
        const auto bytes = file.ok() ? file->bytes() : std::span<const std::uint8_t>();
        EXPECT_EQ(ByteList(bytes.begin(), bytes.end()), bytes_of_all(values));
        return taken;
    }

    static std::vector<ResidentTable> tables(DaemonConnection& connection) {
        EXPECT_TRUE(connection.ask_resident_tables().ok());
        const auto kept = next<ResidentTableList>(connection);
        EXPECT_TRUE(kept.ok()) << kept.status().message();
        if (!kept.ok()) return {};
        EXPECT_EQ(kept->reply.limit, 10000000u);
        const auto list = kept->tables();
        return {list.begin(), list.end()};
    }

    /// Whether gputextd still answers others.
    void expect_answers() {
        const auto connection = connect();
        ASSERT_NE(connection, nullptr);
        const auto taken = read(*connection, some_values(99, 1, 10, kSize));
        EXPECT_TRUE(taken.ok()) << taken.status().message();
    }

    Folder folder_;
    std::string socket_ = folder_ / "socket";
    const ResidentValueList values_ = some_values(3, 1, 1000, kSize);
    std::optional<DaemonProcess> daemon_;
};

class Descriptors {
public:
    explicit Descriptors(const ValuesTaken& taken) {
        for (const FileDescriptor& file : taken.files) descriptors_.push_back(file.get());
        part_bytes_ = taken.reply.parts.part_bytes;
    }
    FileParts parts() const { return {descriptors_, part_bytes_}; }

private:
    std::vector<int> descriptors_;
    std::uint64_t part_bytes_;
};

TEST_F(GputextdValues, GivesOneSessionWhatAnotherOneHasRead) {
    start();
    const auto first = connect(), second = connect();
    const auto missing = find(*first, values_);
    ASSERT_TRUE(missing.ok()) << missing.status().message();
    EXPECT_EQ(missing->size(), values_.size());
    const auto kept = keep(*first, values_, *missing, 2);
    ASSERT_TRUE(kept.ok()) << kept.status().message();
    EXPECT_NE(*kept, 0u);

    const auto found = find(*second, values_);
    ASSERT_TRUE(found.ok());
    EXPECT_TRUE(found->empty());
    const auto taken = take(*second);
    ASSERT_TRUE(taken.ok()) << taken.status().message();
    EXPECT_EQ(taken->reply.resident, *kept);
    EXPECT_EQ(taken->reply.bytes, 1000 * kSize);
    EXPECT_EQ(taken->files.size(), (1000 * kSize - 1) / (2 * page_size()) + 1);

    // Some are missing in the middle.
    ResidentValueList more(values_.begin(), values_.begin() + 900);
    more.insert(more.begin() + 500, {3, 5000, 20, 5000, kSize});
    const auto one_missing = find(*second, more);
    ASSERT_TRUE(one_missing.ok());
    EXPECT_EQ(*one_missing, std::vector<std::uint32_t>{500});
    const auto all = read(*first, more);
    ASSERT_TRUE(all.ok());
    EXPECT_NE(all->reply.resident, 0u);
    EXPECT_NE(all->reply.resident, *kept);
}

TEST_F(GputextdValues, AreKeptWithoutDevices) {
    start({});
    for (int times = 0; times < 2; ++times) {
        const auto connection = connect();
        const auto taken = read(*connection, values_);
        ASSERT_TRUE(taken.ok()) << taken.status().message();
        EXPECT_NE(taken->reply.resident, 0u);
        EXPECT_EQ(tables(*connection).at(0).values, 1000u);
    }
}

TEST_F(GputextdValues, AreNotKeptUnlessAskedFor) {
    daemon_.emplace(socket_, DaemonProcess::Arguments{"--fake-devices=1"});
    const auto connection = connect();
    for (int times = 0; times < 2; ++times) {
        const auto missing = find(*connection, values_);
        ASSERT_TRUE(missing.ok());
        EXPECT_EQ(missing->size(), 1000u);
        const auto kept = keep(*connection, values_, *missing);
        ASSERT_TRUE(kept.ok());
        EXPECT_EQ(*kept, 0u);
    }
}

TEST_F(GputextdValues, AreListedAndForgotten) {
    start();
    const auto connection = connect();
    EXPECT_TRUE(tables(*connection).empty());
    ASSERT_TRUE(read(*connection, values_).ok());
    ASSERT_TRUE(read(*connection, some_values(4, 1, 100, 77), kDocuments).ok());
    ASSERT_TRUE(read(*connection, values_).ok());
    const auto list = tables(*connection);
    ASSERT_EQ(list.size(), 2u);
    EXPECT_EQ(list[0].table, 3u);
    EXPECT_EQ(list[0].bytes, 1000 * kSize);
    EXPECT_EQ(list[0].hits, 1000u);
    EXPECT_EQ(list[0].misses, 1000u);
    EXPECT_EQ(list[1].table, 4u);
    EXPECT_EQ(list[1].bytes, 7700u);

    const std::size_t before = open_descriptors(daemon_->pid());
    ASSERT_TRUE(connection->forget_values(7, 3).ok());
    const auto forgotten = next<ForgottenValues>(*connection);
    ASSERT_TRUE(forgotten.ok());
    EXPECT_EQ(forgotten->values, 1000u);
    EXPECT_TRUE(soon([&] { return open_descriptors(daemon_->pid()) < before; }));
    EXPECT_EQ(tables(*connection).size(), 1u);
    EXPECT_EQ(find(*connection, values_)->size(), 1000u);
}

TEST_F(GputextdValues, AreForgottenInAnotherRunOfTheServer) {
    start();
    const auto connection = connect();
    ASSERT_TRUE(read(*connection, values_).ok());
    ASSERT_TRUE(ask(*connection, values_, kVectors, 2).ok());
    const auto found = next<ValuesFound>(*connection);
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(found->reply.missing, 1000u);
    EXPECT_TRUE(tables(*connection).empty());
}

// ---- Jobs ----

TEST_F(GputextdValues, AnswerAJobAsTheFilesThatItComesWith) {
    start();
    const auto connection = connect();
    const auto taken = read(*connection, values_);
    const auto other = read(*connection, some_values(5, 1, 1000, kSize));
    ASSERT_TRUE(taken.ok() && other.ok());
    const Descriptors files(*taken);
    const auto mapped = taken->map();
    ASSERT_TRUE(mapped.ok());
    KnnRequest request;
    request.parameters.k = 5;
    request.items.vectors = {ElementType::int32, 1000, kDimensions, mapped->bytes().data(), {}, {}};
    request.items.elements = files.parts();
    request.queries.vectors = request.items.vectors;
    request.queries.vectors.rows = 50;
    Execution execution(2);
    const auto expected =
        knn(request.parameters, request.queries.vectors, request.items.vectors, {}, execution);
    ASSERT_TRUE(expected.ok());
    // As it is, without a name, by one that nothing has, and by the one of another chunk.
    for (const std::uint64_t resident :
         {taken->reply.resident, std::uint64_t{0}, std::uint64_t{1}, other->reply.resident}) {
        request.items.resident = resident;
        ASSERT_TRUE(connection->submit(request).ok());
        const auto answer = next<KnnAnswer>(*connection);
        ASSERT_TRUE(answer.ok()) << answer.status().message();
        const auto neighbors = answer->read();
        ASSERT_TRUE(neighbors.ok());
        EXPECT_EQ(neighbors->items, expected->items);
        EXPECT_EQ(neighbors->distances, expected->distances);
    }
    // The mapping stays for the next one.
    EXPECT_EQ(read(*connection, values_)->reply.resident, taken->reply.resident);
}

/// A search for the first 50 vectors among all of the taken ones.
KnnRequest search_among(const Descriptors& files, const ByteList& bytes, std::uint64_t resident) {
    KnnRequest request;
    request.parameters.k = 5;
    request.items.vectors = {
        ElementType::int32, bytes.size() / kSize, kDimensions, nullptr, {}, {}};
    request.items.elements = files.parts();
    request.items.resident = resident;
    request.queries.vectors = {ElementType::int32, 50, kDimensions, bytes.data(), {}, {}};
    return request;
}

TEST_F(GputextdValues, AnswerAJobThatComesBeforeTheyAreThere) {
    start();
    const auto connection = connect(), other = connect();
    const ResidentValueList values = find_in_two(*connection);
    ASSERT_TRUE(connection->inject_fault("fill_values:hold").ok());
    const auto taken = take(*connection, true);
    ASSERT_TRUE(taken.ok()) << taken.status().message();
    EXPECT_FALSE(taken->reply.filled);
    EXPECT_NE(taken->reply.resident, 0u);
    EXPECT_FALSE(taken->map().ok());
    const ByteList bytes = bytes_of_all(values);
    const Descriptors files(*taken);
    const KnnRequest request = search_among(files, bytes, taken->reply.resident);
    ASSERT_TRUE(connection->submit(request).ok());
    lift_faults(*other);
    const auto answer = next<KnnAnswer>(*connection);
    ASSERT_TRUE(answer.ok()) << answer.status().message();
    const auto neighbors = answer->read();
    ASSERT_TRUE(neighbors.ok());
    Vectors items = request.items.vectors;
    items.elements = bytes.data();
    Execution execution(2);
    const auto expected = knn(request.parameters, request.queries.vectors, items, {}, execution);
    ASSERT_TRUE(expected.ok());
    EXPECT_EQ(neighbors->items, expected->items);
    EXPECT_EQ(neighbors->distances, expected->distances);
    const auto mapped = taken->map();
    ASSERT_TRUE(mapped.ok()) << "they are there now";
    EXPECT_EQ(ByteList(mapped->bytes().begin(), mapped->bytes().end()), bytes);
    EXPECT_EQ(read(*other, values)->reply.resident, taken->reply.resident);
}

TEST_F(GputextdValues, AreAwaited) {
    start();
    const auto connection = connect(), waiting = connect();
    const ResidentValueList values = find_in_two(*connection);
    ASSERT_TRUE(connection->inject_fault("fill_values:hold").ok());
    const auto taken = take(*connection, true);
    ASSERT_TRUE(taken.ok());
    EXPECT_FALSE(taken->map().ok());
    begin_to_await(*waiting, taken->reply.resident);
    lift_faults(*connection);
    EXPECT_TRUE(next<AwaitedValues>(*waiting).ok());
    EXPECT_TRUE(taken->map().ok());
    EXPECT_TRUE(await(*waiting, 12345).ok()) << "there is nothing to wait for";

    // Without being asked for early they come when they are there.
    ResidentValueList backwards(values.rbegin(), values.rend());
    ASSERT_TRUE(find(*connection, backwards)->empty());
    ASSERT_TRUE(connection->inject_fault("fill_values:slow:20").ok());
    const auto filled = take(*connection);
    ASSERT_TRUE(filled.ok());
    EXPECT_TRUE(filled->reply.filled);
    EXPECT_TRUE(filled->map().ok());
}

TEST_F(GputextdValues, AreReadAgainWhenTheyNeverCome) {
    start();
    const auto connection = connect(), waiting = connect();
    const ResidentValueList values = find_in_two(*connection);
    // A chunk whose filling has failed is given up as soon as gputextd is idle, and then there is
    // nothing to wait for: the filling fails after the question has come.
    ASSERT_TRUE(connection->inject_fault("fill_values:hold").ok());
    ASSERT_TRUE(connection->inject_fault("fill_values:out_of_memory").ok());
    const auto taken = take(*connection, true);
    ASSERT_TRUE(taken.ok());
    begin_to_await(*waiting, taken->reply.resident);
    lift_faults(*connection);
    // Seldom the thread that answers such questions comes to this one when the chunk is given up.
    const ErrorCode answer = next<AwaitedValues>(*waiting).status().code();
    EXPECT_TRUE(answer == ErrorCode::unavailable || answer == ErrorCode::ok);
    const ByteList bytes = bytes_of_all(values);
    const Descriptors files(*taken);
    // While it is known there, and when it is not any more.
    for (int i = 0; i < 2; ++i) {
        ASSERT_TRUE(connection->submit(search_among(files, bytes, taken->reply.resident)).ok());
        EXPECT_EQ(next<KnnAnswer>(*connection).status().code(), ErrorCode::unavailable);
        EXPECT_EQ(find(*waiting, values)->size(), values.size());
    }
    EXPECT_FALSE(taken->map().ok());
    EXPECT_TRUE(read(*waiting, values).ok());
}

TEST_F(GputextdValues, AreWaitedForUntilTheSessionCloses) {
    start();
    auto connection = connect();
    const ResidentValueList values = find_in_two(*connection);
    ASSERT_TRUE(connection->inject_fault("fill_values:hang").ok());
    const auto taken = take(*connection, true);
    ASSERT_TRUE(taken.ok());
    auto waiting = connect();
    ASSERT_TRUE(waiting->ask_counters().ok());
    ASSERT_TRUE(next<CounterValues>(*waiting).ok());
    ASSERT_TRUE(waiting->await_values(taken->reply.resident).ok());
    EXPECT_FALSE(readable(*waiting, milliseconds(50)));
    waiting.reset();
    const ByteList bytes = bytes_of_all(values);
    const Descriptors files(*taken);
    ASSERT_TRUE(connection->submit(search_among(files, bytes, taken->reply.resident)).ok());
    EXPECT_FALSE(readable(*connection, milliseconds(50)));
    connection.reset();
    expect_answers();
    daemon_->send_signal(SIGTERM);
    EXPECT_EQ(daemon_->exit_code(), 0) << "the copying ends with gputextd";
}

TEST_F(GputextdValues, AnswerAJobOnDocuments) {
    start();
    const auto connection = connect();
    auto values = some_values(4, 1, 200, 0);
    std::vector<Extent> extents;
    std::uint64_t at = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i].size = 50 + i % 10;
        values[i].content = i % 20;
        extents.push_back({at, static_cast<std::uint32_t>(values[i].size)});
        at += values[i].size;
    }
    const auto taken = read(*connection, values, kDocuments);
    ASSERT_TRUE(taken.ok());
    const Descriptors files(*taken);
    NearDuplicatesRequest request;
    request.parameters = {0.1, NearDuplicateMode::exact};
    request.bytes_file = files.parts();
    request.bytes_size = at;
    request.extents = extents;
    std::vector<std::vector<Row>> answers;
    for (const std::uint64_t resident : {std::uint64_t{0}, taken->reply.resident}) {
        request.resident = resident;
        ASSERT_TRUE(connection->submit(request).ok());
        const auto answer = next<NearDuplicatesAnswer>(*connection);
        ASSERT_TRUE(answer.ok()) << answer.status().message();
        const auto pairs = answer->read();
        ASSERT_TRUE(pairs.ok());
        answers.push_back(rows(*pairs));
        EXPECT_FALSE(answers.back().empty());
    }
    EXPECT_EQ(answers[0], answers[1]);
}

// ---- What goes wrong ----

TEST_F(GputextdValues, SayWhatDoesNotFitTheRequest) {
    start();
    const auto connection = connect();
    const auto status_of = [&](Result<ValuesTaken> taken) { return taken.status().code(); };
    EXPECT_EQ(status_of(take(*connection)), ErrorCode::invalid_argument);
    EXPECT_EQ(keep(*connection, values_, std::vector<std::uint32_t>{1}).status().code(),
              ErrorCode::invalid_argument);
    ASSERT_TRUE(find(*connection, values_).ok());
    EXPECT_EQ(status_of(take(*connection)), ErrorCode::invalid_argument);
    EXPECT_EQ(keep(*connection, values_, std::vector<std::uint32_t>{1}).status().code(),
              ErrorCode::invalid_argument);
    EXPECT_EQ(find(*connection, some_values(3, 1, 10, kSize + 1)).status().code(),
              ErrorCode::invalid_argument);
    const Failed failed = [&] {
        EXPECT_TRUE(connection->take_values().ok());
        return std::get<Failed>(*next_event(*connection));
    }();
    EXPECT_FALSE(failed.of_job);
    EXPECT_TRUE(read(*connection, values_).ok()) << "the connection is as good as before";
}

TEST_F(GputextdValues, AreAskedForOneAtATime) {
    start();
    const auto connection = connect();
    ASSERT_TRUE(connection->inject_fault("find_values:hold").ok());
    ASSERT_TRUE(ask(*connection, values_).ok());
    EXPECT_EQ(connection->take_values().code(), ErrorCode::invalid_argument);
    EXPECT_EQ(connection->submit(KnnRequest()).code(), ErrorCode::invalid_argument);
    // Questions are answered meanwhile.
    ASSERT_TRUE(connection->ask_counters().ok());
    EXPECT_TRUE(next<CounterValues>(*connection).ok());
    lift_faults(*connection);
    EXPECT_TRUE(next<ValuesFound>(*connection).ok());

    // The server does not take two from a client that sends them.
    const auto hello = encode(Hello{1, "0"});
    const auto pointers = pointer_file(values_);
    const int files[] = {pointers.get()};
    const auto request = encode(FindValues{1, 100, kVectors, 1000});
    for (const Message& second : {Message(TakeValues()), Message(AskResidentTables())}) {
        RawClient client(socket_);
        ASSERT_EQ(client.send(hello), Sent::all);
        ASSERT_EQ(client.send(encode(InjectFault{"find_values:hang"})), Sent::all);
        ASSERT_EQ(client.send(request, files), Sent::all);
        ASSERT_EQ(client.send(encode(second)), Sent::all);
        const auto messages = client.messages_until_close();
        ASSERT_TRUE(messages.has_value());
        const auto* const error = std::get_if<ErrorReply>(&messages->back());
        ASSERT_NE(error, nullptr);
        EXPECT_NE(error->message.find("before the last one was answered"), std::string::npos);
    }
    expect_answers();
}

TEST_F(GputextdValues, ComeByTheirNameToo) {
    start();
    const auto first = connect(), second = connect();
    const auto read_first = read(*first, values_);
    ASSERT_TRUE(read_first.ok());
    const std::uint64_t resident = read_first->reply.resident;
    ASSERT_NE(resident, 0u);
    const auto taken = take_resident(*second, resident);
    ASSERT_TRUE(taken.ok()) << taken.status().message();
    EXPECT_TRUE(taken->reply.there);
    std::vector<int> descriptors;
    for (const FileDescriptor& file : taken->files) descriptors.push_back(file.get());
    const auto mapped = MappedFile::map({descriptors, taken->reply.parts.part_bytes},
                                        taken->reply.bytes, Trust::sealed);
    ASSERT_TRUE(mapped.ok()) << mapped.status().message();
    EXPECT_EQ(ByteList(mapped->bytes().begin(), mapped->bytes().end()), bytes_of_all(values_));

    // What it does not keep it does not give, and goes on.
    const auto other = take_resident(*second, resident + 1);
    ASSERT_TRUE(other.ok()) << other.status().message();
    EXPECT_FALSE(other->reply.there);
    EXPECT_TRUE(other->files.empty());
    ASSERT_TRUE(first->forget_values(7, 0).ok());
    ASSERT_TRUE(next<ForgottenValues>(*first).ok());
    const auto forgotten = take_resident(*second, resident);
    ASSERT_TRUE(forgotten.ok());
    EXPECT_FALSE(forgotten->reply.there);
    // A fault that strikes whoever takes values strikes here.
    ASSERT_TRUE(second->inject_fault("take_values:out_of_memory").ok());
    EXPECT_FALSE(take_resident(*second, resident).ok());
    expect_answers();
}

TEST_F(GputextdValues, AreForgottenWhenTheSessionCloses) {
    start();
    for (const std::string point : {"find_values", "add_values", "take_values"}) {
        SCOPED_TRACE(point);
        auto connection = connect();
        const auto values = some_values(50, 1, 2000, kSize);
        const auto missing = find(*connection, values);
        ASSERT_TRUE(missing.ok());
        ASSERT_TRUE(connection->inject_fault(point + ":hang").ok());
        const auto bytes = bytes_of_all(values);
        const ValueFiles files(bytes, 1);
        if (point == "find_values") {
            ASSERT_TRUE(ask(*connection, values).ok());
        } else if (point == "add_values") {
            ASSERT_TRUE(connection->add_values(bytes.size(), files.parts()).ok());
        } else {
            ASSERT_TRUE(connection->take_values().ok());
        }
        // Another one waits behind it, and one of those who wait goes.
        auto waiting = connect();
        const auto last = connect();
        ASSERT_TRUE(ask(*waiting, values_).ok());
        ASSERT_TRUE(last->ask_counters().ok());
        ASSERT_TRUE(next<CounterValues>(*last).ok());
        ASSERT_TRUE(ask(*last, values_).ok());
        EXPECT_FALSE(readable(*last, milliseconds(50)));
        waiting.reset();
        connection.reset();
        EXPECT_TRUE(next<ValuesFound>(*last).ok());
    }
    const auto connection = connect();
    EXPECT_TRUE(tables(*connection).empty());
    // Nothing of them is left open.
    const std::size_t before = open_descriptors(daemon_->pid());
    for (int i = 0; i < 5; ++i) {
        auto other = connect();
        ASSERT_TRUE(read(*other, some_values(60, 1, 2000, kSize)).ok());
        ASSERT_TRUE(other->forget_values(7, 0).ok());
        ASSERT_TRUE(next<ForgottenValues>(*other).ok());
    }
    EXPECT_TRUE(soon([&] { return open_descriptors(daemon_->pid()) <= before; }));
}

TEST_F(GputextdValues, EndWithGputextd) {
    for (const std::string point : {"find_values", "add_values", "take_values"})
        for (const std::string kind : {"crash", "no_reply", "wrong_magic", "wrong_length"}) {
            SCOPED_TRACE(point + ":" + kind);
            start();
            const auto connection = connect();
            ASSERT_TRUE(connection->inject_fault(point + ":" + kind).ok());
            EXPECT_EQ(read(*connection, values_).status().code(), ErrorCode::unavailable);
            if (kind == "crash")
                EXPECT_EQ(daemon_->ending_signal(), SIGSEGV);
            else
                expect_answers();
        }
}

TEST_F(GputextdValues, MustComeInTheirFiles) {
    start();
    for (const std::string kind : {"short_file", "unsealed_file", "no_file", "too_many_files"}) {
        SCOPED_TRACE(kind);
        // A reply about some that are missing, and one with all of them.
        auto connection = connect();
        ASSERT_TRUE(read(*connection, values_).ok());
        auto values = values_;
        values.push_back({3, 4000, 10, 4000, kSize});
        ASSERT_TRUE(connection->inject_fault("find_values:" + kind).ok());
        EXPECT_EQ(find(*connection, values).status().code(), ErrorCode::unavailable);
        connection = connect();
        ASSERT_TRUE(find(*connection, values_).ok());
        ASSERT_TRUE(connection->inject_fault("take_values:" + kind).ok());
        const auto taken = take(*connection);
        EXPECT_EQ(taken.ok() ? taken->map().status().code() : taken.status().code(),
                  ErrorCode::unavailable);
    }
    auto connection = connect();
    ASSERT_TRUE(connection->inject_fault("find_values:out_of_memory").ok());
    EXPECT_EQ(find(*connection, values_).status().code(), ErrorCode::out_of_memory);
    EXPECT_TRUE(find(*connection, values_).ok());
}

/// What a client hears of a server that answers like this.
class FalseServer {
public:
    explicit FalseServer(const std::string& path) : listening_(ListeningSocket::open(path)) {
        EXPECT_TRUE(listening_.ok());
        client_ = connect_to(path);
        socket_ = FileDescriptor(accept((*listening_)->descriptor(), nullptr, nullptr));
        say(Hello{1, "0"});
    }

    void say(const Message& message, std::span<const int> files = {}) {
        EXPECT_EQ(send_packet(socket_.get(), encode(message), files), Sent::all);
    }
    DaemonConnection& client() { return *client_; }

private:
    Result<std::unique_ptr<ListeningSocket>> listening_;
    std::unique_ptr<DaemonConnection> client_;
    FileDescriptor socket_;
};

TEST_F(GputextdValues, MustAnswerWhatWasAsked) {
    const auto three = some_values(3, 1, 3, kSize);
    const auto refused = [&](const Message& answer, bool asked) {
        FalseServer server(folder_ / "false");
        if (asked) {
            EXPECT_TRUE(ask(server.client(), three).ok());
        }
        server.say(answer);
        return next_event(server.client()).status().code() == ErrorCode::unavailable;
    };
    EXPECT_FALSE(refused(FoundValues{3, 3}, true));
    EXPECT_TRUE(refused(FoundValues{3, 3}, false));
    EXPECT_TRUE(refused(FoundValues{4, 4}, true));
    EXPECT_TRUE(refused(AddedValues{5}, true));
    EXPECT_TRUE(refused(ForgottenValues{5}, true));
    EXPECT_TRUE(refused(ResidentTables{0, 0, 0}, true));
    EXPECT_TRUE(refused(AskResidentTables(), true));

    // After an error the next request may come.
    FalseServer server(folder_ / "false");
    ASSERT_TRUE(ask(server.client(), three).ok());
    server.say(error_reply(FindValues::type, {ErrorCode::io_error, "no descriptors"}));
    EXPECT_EQ(next<ValuesFound>(server.client()).status().message(), "no descriptors");
    ASSERT_TRUE(ask(server.client(), three).ok());
    server.say(FoundValues{3, 0});
    EXPECT_TRUE(next<ValuesFound>(server.client()).ok());
}

TEST_F(GputextdValues, MustBeTermsOfAllRows) {
    for (const std::uint64_t values : {3, 2, 4}) {
        FalseServer server(folder_ / "false");
        auto three = some_values(3, 1, 3, 0);
        ASSERT_TRUE(
            ask(server.client(), three, {7, ValueForm::counted_terms, ElementType::float32, 0, 1})
                .ok());
        server.say(FoundValues{3, 0});
        ASSERT_TRUE(next<ValuesFound>(server.client()).ok());
        ASSERT_TRUE(server.client().take_terms().ok());
        const auto list = sealed_file(ByteList(values * sizeof(TermPlace)));
        const int files[] = {list.get()};
        server.say(TakenTerms{0, values}, files);
        const auto taken = next<TermsTaken>(server.client());
        EXPECT_EQ(taken.ok(), values == 3);
        if (taken.ok()) {
            EXPECT_EQ(taken->map().status().code(), ErrorCode::unavailable) << "they have no chunk";
        }
    }
}

TEST_F(GputextdValues, DoNotKeepGputextdFromEnding) {
    for (const std::string kind : {"hang", "stuck"}) {
        start();
        const auto connection = connect();
        ASSERT_TRUE(connection->inject_fault("find_values:" + kind).ok());
        ASSERT_TRUE(ask(*connection, values_).ok());
        ASSERT_TRUE(connection->ask_counters().ok());
        ASSERT_TRUE(next<CounterValues>(*connection).ok());
        daemon_->send_signal(SIGTERM);
        EXPECT_EQ(next<ValuesFound>(*connection).status().message(), "gputextd is shutting down");
        EXPECT_EQ(daemon_->exit_code(), 0);
    }
}

}  // namespace
}  // namespace gputext
