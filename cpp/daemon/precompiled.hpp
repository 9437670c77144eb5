// cpp/daemon/precompiled.hpp - what most files of gputextd include, compiled once
//
// CMake puts this before every file of cpp/daemon and cpp/resident, and compilers do not warn of what is in it: it has no header that files
// elsewhere do not include without it. Each file includes what it needs all the same.

#pragma once

#include "cpp/base/precompiled.hpp"
#include "cpp/link/protocol.hpp"
