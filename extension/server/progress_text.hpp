// extension/server/progress_text.hpp - the words of a line about a running operator, for the client

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>

namespace gputext {

/// "12 s", "7 min" or "3 h".
inline void format_duration(char (&text)[32], double seconds) {
    if (seconds < 100)
        std::snprintf(text, sizeof text, "%.0f s", std::max(1.0, seconds));
    else if (seconds < 100 * 60)
        std::snprintf(text, sizeof text, "%.0f min", seconds / 60);
    else
        std::snprintf(text, sizeof text, "%.0f h", seconds / 3600);
}

/// How far a phase is, and how long it takes if it goes on as in these seconds: ", 25 %, about 30 s
/// left", or ", 12 so far" where nobody knows the total (0).
inline void format_progress(char (&text)[96], std::uint64_t done, std::uint64_t total,
                            double elapsed) {
    text[0] = '\0';
    if (total == 0) {
        if (done > 0)
            std::snprintf(text, sizeof text, ", %llu so far",
                          static_cast<unsigned long long>(done));
        return;
    }
    const double part = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
    const int written = std::snprintf(text, sizeof text, ", %.0f %%", 100 * part);
    if (part == 0 || elapsed <= 0) return;
    char left[32];
    format_duration(left, elapsed * (1 - part) / part);
    std::snprintf(text + written, sizeof text - static_cast<std::size_t>(written),
                  ", about %s left", left);
}

/// ", epoch 3, loss 0.250"; nothing for what is not trained (epoch 0). A loss of NaN is not known.
inline void format_training(char (&text)[64], std::uint32_t epoch, double loss) {
    text[0] = '\0';
    if (epoch == 0) return;
    const int written = std::snprintf(text, sizeof text, ", epoch %u", epoch);
    if (!std::isnan(loss))
        std::snprintf(text + written, sizeof text - static_cast<std::size_t>(written),
                      ", loss %.3f", loss);
}

}  // namespace gputext
