// bench/options.hpp - arguments of the form name=value

#pragma once

#include <cstdlib>
#include <map>
#include <string>

namespace gputext::bench {

/// Options that follow the program's first argument.
class Options {
public:
    Options(int count, char** arguments) {
        for (int i = 2; i < count; ++i) {
            const std::string argument = arguments[i];
            const auto equals = argument.find('=');
            if (equals == std::string::npos) continue;
            values_[argument.substr(0, equals)] = argument.substr(equals + 1);
        }
    }
    std::string text(const std::string& name, const std::string& otherwise = {}) const {
        const auto found = values_.find(name);
        return found == values_.end() ? otherwise : found->second;
    }
    double number(const std::string& name, double otherwise) const {
        const auto found = values_.find(name);
        return found == values_.end() ? otherwise : std::atof(found->second.c_str());
    }
    template <class Integer>
    Integer whole(const std::string& name, Integer otherwise) const {
        return static_cast<Integer>(number(name, static_cast<double>(otherwise)));
    }

private:
    std::map<std::string, std::string> values_;
};

}  // namespace gputext::bench
