#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "sevenfold/config/config.h"
#include "sevenfold/dataset/gpt_dataset.h"
#include "support/fixtures.h"

namespace sevenfold::testing {

// An experiment on one of the project's test models and data sets, written as a Primus file and
// loaded from it.
struct Experiment {
  Config config;
  std::unique_ptr<SampleSource> data;
};

// Overrides of M0 (field cases: 43,616 parameters, SGD, fp64, hot start, no shuffle); keys are
// Megatron's.
nlohmann::json m0_overrides();

// data_set: "D1", "D3" or "D4". ranks: world size. `overrides` replaces keys of m0_overrides().
Experiment m0_experiment(const TemporaryDirectory& directory, const std::string& data_set,
                         int64_t ranks, const nlohmann::json& overrides = nlohmann::json::object(),
                         const nlohmann::json& sevenfold = nlohmann::json::object());

// G0 (goldens: a GPT of 55,136 parameters), with dropout of this rate in all places.
Experiment g0_experiment(const TemporaryDirectory& directory, const std::string& data_set,
                         int64_t ranks, double dropout,
                         const nlohmann::json& overrides = nlohmann::json::object());

// Writes the file only; returns its path.
std::string write_experiment(const TemporaryDirectory& directory, const nlohmann::json& overrides,
                             const nlohmann::json& sevenfold);

void write_data_set(const std::string& name, const std::string& prefix);

}  // namespace sevenfold::testing
