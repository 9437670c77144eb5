// extension/server/threaded_work.hpp - runs a function of cpp/ on the session's threads

#pragma once

#include "extension/base/postgres.hpp"

#include <type_traits>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"

namespace gputext {

using ThreadedFunction = Status (*)(const void* work, Execution& execution);
void run_threaded(ThreadedFunction function, const void* work);

/// Calls work(execution) on a thread of its own, with as many threads as the session may compute
/// on, and waits for it, showing meanwhile how far it is. It calls nothing of PostgreSQL. Raises
/// its failure as an error; after a cancel, nothing runs any more when that is raised.
template <class Work>
void run_threaded(const Work& work) {
    static_assert(std::is_trivially_destructible_v<Work>, "an error jumps over its destructor");
    run_threaded([](const void* given,
                    Execution& execution) { return (*static_cast<const Work*>(given))(execution); },
                 &work);
}

}  // namespace gputext
