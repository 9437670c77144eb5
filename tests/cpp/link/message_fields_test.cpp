// Every field of every message arrives: each one is given a value that it does not have by default,
// is written and read, and compared by itself. Messages and their fields are found by themselves,
// so that a field which an operator does not send is found without a word here.

#include <gtest/gtest.h>

#include <cstdint>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include "cpp/link/protocol.hpp"
#include "tests/support/struct_fields.hpp"

namespace gputext {

template <>
struct testing::Parts<TrainingParameters> {
    static auto of(auto& parameters) {
        static_assert(field_count<TrainingParameters>() == 1 + 3);
        using Base =
            std::conditional_t<std::is_const_v<std::remove_reference_t<decltype(parameters)>>,
                               const TrainerParameters, TrainerParameters>;
        return std::tie(static_cast<Base&>(parameters), parameters.far_count,
                        parameters.farthest_from, parameters.average_every);
    }
};

namespace {

/// Gives each value another one than it has.
struct Change {
    template <class T>
    void operator()(T& value) {
        ++number_;
        if constexpr (std::is_same_v<T, bool>)
            value = !value;
        else if constexpr (std::is_enum_v<T>)
            value = static_cast<T>(value == T{} ? 1 : 0);
        else if constexpr (std::is_same_v<T, std::string>)
            value = "text " + std::to_string(number_);
        else
            value = static_cast<T>(value == static_cast<T>(number_) ? number_ + 1 : number_);
    }
    void resize(auto& vector) requires requires { vector.resize(2); }
    { vector.resize(2); }

private:
    int number_ = 0;
};

/// What gputextd chooses for itself, and messages do not say.
void leave_to_the_server(auto& message) {
    if constexpr (requires { message.parameters.simd; })
        message.parameters.simd = std::remove_cvref_t<decltype(message.parameters)>{}.simd;
    if constexpr (requires { message.parameters.answer_limit; })
        message.parameters.answer_limit = SIZE_MAX;
    if constexpr (requires { message.parameters.first; }) {
        message.parameters.first = 0;
        message.parameters.end = UINT32_MAX;
    }
}

std::vector<std::string> values_of(const auto& message) {
    std::vector<std::string> values;
    testing::visit_values(message, [&](const auto& value) {
        std::ostringstream text;
        if constexpr (std::is_enum_v<std::remove_cvref_t<decltype(value)>>)
            text << static_cast<std::uint32_t>(value);
        else
            text << value;
        values.push_back(text.str());
    });
    return values;
}

template <class T>
class MessageFields : public ::testing::Test {};

template <class List>
struct TestTypes;
template <class... Messages>
struct TestTypes<TypeList<Messages...>> {
    using type = ::testing::Types<Messages...>;
};
TYPED_TEST_SUITE(MessageFields, TestTypes<Messages>::type);

TYPED_TEST(MessageFields, AllArrive) {
    TypeParam sent;
    testing::visit_values(sent, Change());
    leave_to_the_server(sent);
    std::vector<std::uint8_t> bytes;
    Writer writer(bytes);
    writer(sent);
    TypeParam received;
    Reader reader(bytes);
    reader(received);
    EXPECT_TRUE(reader.complete());
    EXPECT_EQ(values_of(received), values_of(sent));
}

TEST(StructFields, AreFound) {
    EXPECT_EQ(testing::field_count<AskDevices>(), 0u);
    EXPECT_EQ(testing::field_count<SubmitNearDuplicates>(), 9u);
    ErrorReply error;
    testing::visit_values(error, Change());
    EXPECT_EQ(values_of(error), (std::vector<std::string>{"0", "text 2", "text 3", "4"}));
    DeviceList devices;
    testing::visit_values(devices, Change());
    EXPECT_EQ(values_of(devices), (std::vector<std::string>{"text 1", "2", "text 3", "text 4", "5",
                                                            "text 6", "text 7"}));
}

}  // namespace
}  // namespace gputext
