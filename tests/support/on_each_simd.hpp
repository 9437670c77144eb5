// tests/support/on_each_simd.hpp - fixture of tests that run once for each instruction set

#pragma once

#include <gtest/gtest.h>

#include <string>

#include "cpp/base/simd.hpp"

namespace gputext::testing {

/// Its tests are skipped for an instruction set that this processor lacks.
class OnEachSimd : public ::testing::TestWithParam<Simd> {
protected:
    void SetUp() override {
        if (!simd_available(GetParam()))
            GTEST_SKIP() << "this processor lacks " << simd_name(GetParam());
    }
};

/// Those that operators on texts have.
inline const auto kEachSimd = ::testing::Values(Simd::portable, Simd::avx2, Simd::avx512);

inline std::string name_of_simd(const ::testing::TestParamInfo<Simd>& simd) {
    return simd_name(simd.param);
}

}  // namespace gputext::testing
