// extension/values/shared_array.hpp - arrays of the session that its parallel workers read

#pragma once

#include "extension/base/postgres.hpp"

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "cpp/link/file_descriptor.hpp"
#include "extension/server/parallel_work.hpp"
#include "extension/values/packed_rows.hpp"

namespace gputext {

/// An array in a file of the session, for all processes. None: null, without a file.
template <class T>
struct SharedArray {
    int file;
    std::uint64_t count;
    const T* in_session;

    /// Null where the system does not let another process have the file, and for none.
    const T* open(pid_t session, unsigned process) const {
        if (process == 0 || in_session == nullptr) return in_session;
        return static_cast<const T*>(map_file_of_session(session, file, count * sizeof(T)));
    }
};
using SharedNumbers = SharedArray<std::uint32_t>;

/// Up to two arrays in files, as long as they are read.
class SharedArrays {
public:
    explicit SharedArrays(std::size_t memory_limit)
        : packed_{PackedBytes(memory_limit), PackedBytes(memory_limit)} {}

    template <class T>
    SharedArray<T> share(std::span<const T> array) {
        if (array.empty()) return {-1, 0, nullptr};
        PackedBytes& packed = packed_[used_];
        packed.append(array.data(), array.size_bytes());
        packed.finish();
        files_[used_] = packed.share();
        return {files_[used_++].get(), array.size(), array.data()};
    }
    void release() {
        for (PackedBytes& packed : packed_) packed.release();
        for (FileDescriptor& file : files_) file.reset();
    }

private:
    unsigned used_ = 0;
    PackedBytes packed_[2];
    FileDescriptor files_[2];
};

}  // namespace gputext
