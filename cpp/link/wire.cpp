#include "cpp/link/wire.hpp"

namespace gputext {

Status broken_reply(const std::string& what) {
    return {ErrorCode::unavailable, "gputextd sent a reply that makes no sense: " + what, kSeeLog};
}

Status broken_reply(const Status& status) {
    return status.code() == ErrorCode::invalid_argument ? broken_reply(status.message()) : status;
}

}  // namespace gputext
