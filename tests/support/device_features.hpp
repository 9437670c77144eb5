// tests/support/device_features.hpp - features of words from a device to the host, to compare them

#pragma once

#include <cuda_runtime_api.h>

#include "cpp/base/status.hpp"
#include "cpp/thesaurus/feature_weights.hpp"
#include "kernels/base/cuda_status.hpp"
#include "kernels/thesaurus/detail/feature_rows.hpp"

namespace gputext::testing {

inline Result<WordFeatures> download_features(const gpu::FeatureRows& features,
                                              cudaStream_t stream) {
    WordFeatures rows;
    rows.shape = features.shape;
    rows.begins.resize(std::size_t{features.shape.words} + 1);
    rows.columns.resize(features.stored);
    rows.weights.resize(features.stored);
    const auto copy = [&](auto& to, const auto* from) {
        return cuda_status(cudaMemcpyAsync(to.data(), from, to.size() * sizeof(to[0]),
                                           cudaMemcpyDeviceToHost, stream),
                           "copying features");
    };
    GPUTEXT_TRY(copy(rows.begins, features.begins));
    GPUTEXT_TRY(copy(rows.columns, features.columns));
    GPUTEXT_TRY(copy(rows.weights, features.weights));
    GPUTEXT_TRY(cuda_status(cudaStreamSynchronize(stream), "copying features"));
    return rows;
}

}  // namespace gputext::testing
