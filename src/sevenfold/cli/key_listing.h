#pragma once

#include <string>

namespace sevenfold::cli {

// Every key of both vocabularies with type, default, status, meaning and rule.
std::string key_listing_text();      // one line each, in columns
std::string key_listing_json();      // one document
std::string key_listing_markdown();  // docs/configuration_keys.md
}  // namespace sevenfold::cli
