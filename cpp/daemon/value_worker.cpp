#include "cpp/daemon/value_worker.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "cpp/base/exception_status.hpp"
#include "cpp/base/helper_threads.hpp"
#include "cpp/link/memory_file.hpp"

namespace gputext {
namespace {

constexpr std::size_t kMostUnreleased = 64;  // chunks that wait to be unmapped

/// Adds a sealed file with the array to the reply.
template <class T>
Status add_file(std::span<const T> array, Packet& reply) {
    MemoryFile file;
    GPUTEXT_TRY(
        file.append({reinterpret_cast<const std::uint8_t*>(array.data()), array.size_bytes()}));
    GPUTEXT_TRY(file.seal());
    reply.descriptors.push_back(file.release_descriptor());
    return {};
}

/// Answers each kind of message.
class Answering {
public:
    Answering(ValueTask& task, ResidentValues& values) : task_(task), values_(values) {}

    Status operator()(const FindValues& message) const {
        ValueRequest& request = *task_.request;
        GPUTEXT_TRY(
            values_.find(message, task_.files.front().get(), request, task_.execution.stop()));
        const FoundValues found{message.values, request.missing};
        if (found.files() > 0) {
            const auto rows = ResidentValues::missing(request);
            GPUTEXT_TRY(add_file(std::span(rows), task_.reply));
        }
        return reply(found);
    }
    Status operator()(const AddValues& message) const {
        const auto added = values_.add(*task_.request, message, std::move(task_.files));
        if (!added.ok()) return added.status();
        return reply(AddedValues{*added});
    }
    Status operator()(const TakeValues& message) const {
        const auto taken =
            values_.take(*task_.request, message, task_.execution, begin_filling());
        if (!taken.ok()) return taken.status();
        auto files = taken->chunk->duplicate_files();
        if (!files.ok()) return files.status();
        task_.reply.descriptors = std::move(*files);
        return reply(TakenValues{taken->chunk->bytes().size(), taken->chunk->shape(),
                                 taken->resident, taken->chunk->filling().filled()});
    }
    Status operator()(const TakeResident& message) const {
        const auto chunk = values_.take_resident(message.resident);
        if (!chunk.ok()) return chunk.status();
        if (*chunk == nullptr) return reply(TakenResident{});
        auto files = (*chunk)->duplicate_files();
        if (!files.ok()) return files.status();
        task_.reply.descriptors = std::move(*files);
        return reply(TakenResident{true, (*chunk)->bytes().size(), (*chunk)->shape()});
    }
    Status operator()(const AwaitValues& message) const {
        GPUTEXT_TRY(values_.await(message.resident, task_.execution.stop()));
        return reply(AwaitedValues{});
    }
    Status operator()(const AddTerms& message) const {
        const auto added = values_.add_terms(*task_.request, message, std::move(task_.files));
        if (!added.ok()) return added.status();
        return reply(AddedValues{*added});
    }
    Status operator()(const TakeTerms&) const {
        auto terms = values_.take_terms(*task_.request);
        if (!terms.ok()) return terms.status();
        ResidentValues::TakenChunks& taken = *terms;
        std::vector<FileDescriptor>& files = task_.reply.descriptors;
        files.push_back(std::move(taken.list));
        for (const auto& chunk : taken.chunks) {
            auto own = chunk->duplicate_files();
            if (!own.ok()) return own.status();
            for (FileDescriptor& file : *own) files.push_back(std::move(file));
        }
        return reply(TakenTerms{static_cast<std::uint32_t>(taken.chunks.size()), taken.values});
    }
    Status operator()(const AskResidentTables&) const {
        const auto tables = values_.tables();
        if (!tables.empty()) GPUTEXT_TRY(add_file(std::span(tables), task_.reply));
        return reply(ResidentTables{static_cast<std::uint32_t>(tables.size()), values_.bytes(),
                                    values_.limit()});
    }
    Status operator()(const ForgetValues& message) const {
        return reply(ForgottenValues{values_.forget(message.database, message.table)});
    }
    template <class Other>
    Status operator()(const Other&) const {
        return {ErrorCode::internal_error, "a message that is not about values"};
    }

private:
    /// The faults that strike while values are copied.
    ResidentValues::BeginFilling begin_filling() const {
        std::vector<Fault> faults;
        for (const Fault& fault : task_.faults)
            if (fault.point == FaultPoint::fill_values) faults.push_back(fault);
        if (faults.empty()) return {};
        return [faults](Execution& execution) mutable -> Status {
            for (Fault& fault : faults)
                GPUTEXT_TRY(suffer(fault, FaultPoint::fill_values, execution));
            return {};
        };
    }
    Status reply(const Message& message) const {
        task_.reply.bytes = encode(message);
        return {};
    }

    ValueTask& task_;
    ResidentValues& values_;
};

}  // namespace

bool asks_for_values(const Message& message) {
    return asks_for_values(type_of(message));
}

std::uint16_t type_of(const Message& message) {
    return std::visit([](const auto& alternative) { return alternative.type; }, message);
}

bool suffers(const Message& message, const Fault& fault) {
    switch (fault.point) {
        case FaultPoint::find_values:
            return std::holds_alternative<FindValues>(message);
        case FaultPoint::add_values:
            return std::holds_alternative<AddValues>(message) ||
                   std::holds_alternative<AddTerms>(message);
        case FaultPoint::take_values:
            return std::holds_alternative<TakeValues>(message) ||
                   std::holds_alternative<TakeResident>(message) ||
                   std::holds_alternative<TakeTerms>(message);
        case FaultPoint::fill_values:
            return std::holds_alternative<TakeValues>(message);
        default:
            return false;
    }
}

void run_task(ValueTask& task, ResidentValues& values) noexcept {
    const std::uint16_t type = type_of(task.message);
    const Status status = status_or_exception([&]() -> Status {
        for (Fault& fault : task.faults)
            if (fault.point != FaultPoint::fill_values)
                GPUTEXT_TRY(suffer(fault, fault.point, task.execution));
        return std::visit(Answering(task, values), task.message);
    });
    task.files.clear();
    const Status replied = status_or_exception([&]() -> Status {
        if (!status.ok()) task.reply = {encode(error_reply(type, status)), {}};
        for (const Fault& fault : task.faults)
            if (fault.point != FaultPoint::fill_values) break_reply(fault, task.reply);
        return {};
    });
    if (!replied.ok()) task.reply = {};
}

ValueWorker::ValueWorker(ResidentLimits limits, std::shared_ptr<ResidentRanges> ranges, Ended ended)
    : ended_(std::move(ended)),
      values_(limits, std::move(ranges)),
      chunks_(values_.chunks()),
      release_(kMostUnreleased),
      thread_(start_thread_without_signals([this] { work(); })) {}

ValueWorker::~ValueWorker() {
    stop(std::chrono::milliseconds(0));
    thread_.join();
}

void ValueWorker::submit(std::shared_ptr<ValueTask> task) {
    {
        const std::lock_guard lock(mutex_);
        waiting_.push_back(std::move(task));
    }
    changed_.notify_all();
}

bool ValueWorker::cancel(const std::shared_ptr<ValueTask>& task) {
    task->execution.request_stop();
    const std::lock_guard lock(mutex_);
    return std::erase(waiting_, task) != 0;
}

bool ValueWorker::stop(std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex_);
    stopping_ = true;
    waiting_.clear();
    if (running_ != nullptr) running_->execution.request_stop();
    values_.stop_filling();
    changed_.notify_all();
    return changed_.wait_for(lock, patience, [this] { return ended_all_; });
}

void ValueWorker::work() {
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
        if (stopping_) break;
        running_ = std::move(waiting_.front());
        waiting_.pop_front();
        std::shared_ptr<ValueTask> task = running_;
        lock.unlock();
        run_task(*task, values_);
        lock.lock();
        running_ = nullptr;
        lock.unlock();
        ended_(std::move(task));
        values_.settle();
        for (auto& chunk : values_.given_up())
            release_.release(std::const_pointer_cast<ResidentChunk>(std::move(chunk)));
        lock.lock();
    }
    ended_all_ = true;
    changed_.notify_all();
}

}  // namespace gputext
