#include "cpp/daemon/device.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "cpp/base/status.hpp"
#include "cpp/daemon/fake_device.hpp"

namespace gputext {
namespace {

/// Two operators with the same functions.
struct Twice {
    using Function = Result<int>(int number);
    static Function on_host;
};
Result<int> Twice::on_host(int number) {
    return 2 * number;
}

struct Square {
    using Function = Result<int>(int number);
    static Function on_host;
};
Result<int> Square::on_host(int number) {
    return number * number;
}

/// Takes what cannot be copied, and writes where it is told.
struct Append {
    using Function = Status(std::unique_ptr<int> number, std::string& text);
    static Function on_host;
};
Status Append::on_host(std::unique_ptr<int> number, std::string& text) {
    text += std::to_string(*number);
    return {};
}

TEST(Device, ComputesOnTheHostWhatItHasNoFunctionFor) {
    FakeDevice device(0);
    EXPECT_EQ(device.find<Twice>(), nullptr);
    EXPECT_EQ(*device.compute<Twice>(5), 10);
    EXPECT_EQ(*device.compute<Square>(5), 25);
    std::string text = "a";
    EXPECT_TRUE(device.compute<Append>(std::make_unique<int>(7), text).ok());
    EXPECT_EQ(text, "a7");
}

TEST(Device, CallsTheFunctionOfTheOperatorAlone) {
    FakeDevice device(0);
    device.provide<Square>([](int) -> Result<int> { return Status::out_of_memory(); });
    ASSERT_NE(device.find<Square>(), nullptr);
    EXPECT_EQ(device.compute<Square>(5).status().code(), ErrorCode::out_of_memory);
    EXPECT_EQ(device.find<Twice>(), nullptr);
    EXPECT_EQ(*device.compute<Twice>(5), 10);
    device.provide<Append>([](std::unique_ptr<int> number, std::string& text) {
        text = std::to_string(*number);
        return Status();
    });
    std::string text = "a";
    EXPECT_TRUE(device.compute<Append>(std::make_unique<int>(7), text).ok());
    EXPECT_EQ(text, "7");
    FakeDevice other(1);
    EXPECT_EQ(*other.compute<Square>(5), 25);
}

TEST(Device, CallsWhatWasProvidedLast) {
    FakeDevice device(0);
    for (const int answer : {1, 2}) {
        device.provide<Twice>([answer](int) { return answer; });
        EXPECT_EQ(*device.compute<Twice>(5), answer);
    }
}

}  // namespace
}  // namespace gputext
