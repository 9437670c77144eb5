#include "cpp/daemon/operator_job.hpp"

#include <type_traits>
#include <variant>

namespace gputext {

std::unique_ptr<OperatorJob> operator_job(const Message& message) {
    return std::visit(
        [](const auto& submit) -> std::unique_ptr<OperatorJob> {
            if constexpr (SubmitsJob<std::remove_cvref_t<decltype(submit)>>)
                return new_job(submit);
            else
                return nullptr;
        },
        message);
}

}  // namespace gputext
