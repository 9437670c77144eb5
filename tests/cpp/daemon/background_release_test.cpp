#include "cpp/daemon/background_release.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <thread>
#include <vector>

namespace gputext {
namespace {

/// Objects that tell on which thread they are released, and the first one not before it may be.
class Releases {
public:
    std::shared_ptr<void> slow() {
        return object([this] {
            begun_.set_value();
            may_end_.get_future().wait();
        });
    }
    std::shared_ptr<void> quick() {
        return object([] {});
    }
    void wait_until_begun() { begun_.get_future().wait(); }
    void let_end() { may_end_.set_value(); }

    std::atomic<int> elsewhere{0};
    std::atomic<int> here{0};

private:
    template <class Work>
    std::shared_ptr<void> object(Work work) {
        return {static_cast<void*>(nullptr), [this, work](void*) {
                    work();
                    ++(std::this_thread::get_id() == own_ ? here : elsewhere);
                }};
    }

    std::thread::id own_ = std::this_thread::get_id();
    std::promise<void> begun_, may_end_;
};

TEST(BackgroundRelease, DoesNotHoldItsCallerUp) {
    Releases objects;
    {
        BackgroundRelease release(10);
        release.release(objects.slow());
        objects.wait_until_begun();
        for (int i = 0; i < 5; ++i) release.release(objects.quick());
        EXPECT_EQ(objects.elsewhere + objects.here, 0);
        objects.let_end();
    }
    EXPECT_EQ(objects.elsewhere, 6);
    EXPECT_EQ(objects.here, 0);
}

TEST(BackgroundRelease, HoldsNoMoreThanItMay) {
    Releases objects;
    {
        BackgroundRelease release(2);
        release.release(objects.slow());
        objects.wait_until_begun();
        for (int i = 0; i < 5; ++i) release.release(objects.quick());
        EXPECT_EQ(objects.here, 3);
        objects.let_end();
    }
    EXPECT_EQ(objects.elsewhere, 3);
    EXPECT_EQ(objects.here, 3);
}

TEST(BackgroundRelease, EndsWithoutWork) {
    for (int i = 0; i < 100; ++i) BackgroundRelease release(1);
}

}  // namespace
}  // namespace gputext
