#include "cpp/daemon/server.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>

#include "cpp/link/client.hpp"

namespace {

/// What sendmsg() does on the server's thread.
std::atomic<int> server_error{0};  // in place of sending; 0: none
std::atomic<int> server_calls{0};
thread_local bool on_server = false;

}  // namespace

extern "C" ssize_t sendmsg(int socket, const msghdr* message, int flags) {
    static const auto real =
        reinterpret_cast<ssize_t (*)(int, const msghdr*, int)>(dlsym(RTLD_NEXT, "sendmsg"));
    if (on_server) {
        ++server_calls;
        if ((errno = server_error) != 0) return -1;
    }
    return real(socket, message, flags);
}

namespace gputext {
namespace {

using namespace std::chrono_literals;

class Server : public ::testing::Test {
protected:
    Server() {
        DaemonOptions options;
        options.socket_path =
            ::testing::TempDir() + "gputext_server_test." + std::to_string(getpid());
        path_ = options.socket_path;
        server_ = std::move(*DaemonServer::start(std::move(options)));
        thread_ = std::thread([this] {
            on_server = true;
            const int told[] = {end_};
            server_->run(told);
        });
    }
    ~Server() override {
        eventfd_write(end_, 1);
        thread_.join();
        close(end_);
    }

    std::string path_;
    int end_ = eventfd(0, EFD_CLOEXEC);
    std::unique_ptr<DaemonServer> server_;
    std::thread thread_;
};

/// The socket is writable meanwhile: nothing tells when the system has room again.
TEST_F(Server, SendsLaterWhatTheSystemHasNoRoomFor) {
    for (const int error : {ETOOMANYREFS, ENOBUFS, ENOMEM}) {
        server_error = error;
        server_calls = 0;
        const auto connection = std::move(*DaemonConnection::connect(path_));
        const auto heard = [&] {
            EXPECT_TRUE(connection->receive().ok());
            return connection->greeted();
        };
        const auto end = std::chrono::steady_clock::now() + 60s;
        while (server_calls < 4 && std::chrono::steady_clock::now() < end)
            std::this_thread::sleep_for(1ms);
        EXPECT_FALSE(heard());
        EXPECT_GE(server_calls, 4) << "it has not tried again";
        EXPECT_LE(server_calls, 60) << "it does nothing else";
        server_error = 0;
        while (!heard() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(1ms);
        EXPECT_TRUE(connection->greeted());
    }
}

}  // namespace
}  // namespace gputext
