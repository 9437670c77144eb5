// cpp/base/precompiled.hpp - the headers of the standard library that most files include, compiled
// once
//
// The builds put this before every file of cpp/ and, through extension/base/precompiled.hpp, of
// extension/. Each file includes what it needs all the same.

#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>
