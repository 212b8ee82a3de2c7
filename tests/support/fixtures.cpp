#include "support/fixtures.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <numeric>
#include <span>
#include <stdexcept>

namespace sevenfold::testing {
namespace {

template <typename T>
void put(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

void write_head(const std::string& prefix, uint8_t dtype_code, const std::vector<int64_t>& lengths,
                int64_t token_bytes) {
  std::string head("MMIDIDX\0\0", 9);
  put(head, uint64_t{1});
  put(head, dtype_code);
  put(head, uint64_t{lengths.size()});
  put(head, uint64_t{lengths.size() + 1});
  for (const int64_t length : lengths) put(head, static_cast<int32_t>(length));
  int64_t position = 0;
  for (const int64_t length : lengths) {
    put(head, position);
    position += length * token_bytes;
  }
  for (size_t document = 0; document <= lengths.size(); ++document)
    put(head, static_cast<int64_t>(document));
  write_text(prefix + ".idx", head);
}

// Ids 1..100, a different progression in every document.
int64_t token(int64_t document, int64_t position) {
  return 1 + (7 * document + 3 * position + document * position) % 100;
}

std::vector<int64_t> document_of(int64_t document, int64_t num_tokens) {
  std::vector<int64_t> tokens(static_cast<size_t>(num_tokens));
  for (int64_t p = 0; p < num_tokens; ++p) tokens[static_cast<size_t>(p)] = token(document, p);
  return tokens;
}

// Documents of 32 tokens: so many ids, then end-of-document.
void write_padded(const std::string& prefix, std::span<const int64_t> num_ids) {
  Documents documents;
  for (const int64_t count : num_ids) {
    documents.push_back(document_of(static_cast<int64_t>(documents.size()), count));
    documents.back().resize(32, 0);
  }
  write_indexed(prefix, documents);
}

// A file of zeros that takes no room on disk, with `tail` at its end.
void write_sparse(const std::string& path, int64_t num_bytes, const std::string& tail) {
  write_text(path, "");
  std::filesystem::resize_file(path, static_cast<uintmax_t>(num_bytes));
  std::ofstream(path, std::ios::binary | std::ios::app) << tail;
}

}  // namespace

TemporaryDirectory::TemporaryDirectory() {
  std::string name = (std::filesystem::temp_directory_path() / "sevenfold-test-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make " + name);
  path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void write_text(const std::string& path, const std::string& text) {
  // A file that is emptied and rewritten is flushed to disk by some file systems, 4 ms each time.
  std::filesystem::remove(path);
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_indexed(const std::string& prefix, const Documents& documents, uint8_t dtype_code) {
  std::string tokens;
  std::vector<int64_t> lengths;
  for (const auto& document : documents) {
    lengths.push_back(static_cast<int64_t>(document.size()));
    for (const int64_t id : document) {
      if (dtype_code == 8) {
        put(tokens, static_cast<uint16_t>(id));
      } else {
        put(tokens, static_cast<int32_t>(id));
      }
    }
  }
  write_text(prefix + ".bin", tokens);
  write_head(prefix, dtype_code, lengths, dtype_code == 8 ? 2 : 4);
}

void write_d1(const std::string& prefix) {
  Documents documents;
  for (int64_t d = 0; d < 64; ++d) {
    documents.push_back(document_of(d, 3 + d * 37 % 64));
    documents.back().push_back(0);
  }
  write_indexed(prefix, documents);
}

void write_d2(const std::string& prefix) {
  Documents documents;
  int64_t next = 1;
  for (const size_t length : {5, 0, 3, 0, 0, 7, 1}) {
    documents.emplace_back(length);
    std::iota(documents.back().begin(), documents.back().end(), next);
    next += static_cast<int64_t>(length);
  }
  write_indexed(prefix, documents);
}

void write_d3(const std::string& prefix) {
  write_padded(prefix, std::vector<int64_t>{32, 1, 16, 4, 32, 2, 8, 31, 5});
}

void write_d4(const std::string& prefix) {
  write_padded(prefix, std::vector<int64_t>{32, 0, 16, 4, 0, 2, 8, 31, 5});
}

void write_d5(const std::string& prefix) {
  constexpr int64_t kFirst = 1'200'000'000;
  std::string tail;
  for (const int32_t id : {11, 22, 33, 44}) put(tail, id);
  write_sparse(prefix + ".bin", kFirst * 4, tail);
  write_head(prefix, 4, {kFirst, 4}, 4);
}

void write_d6(const std::string& prefix) {
  constexpr int64_t kEach = 1'000'000'000;
  write_sparse(prefix + ".bin", 3 * kEach * 2, "");
  write_head(prefix, 8, {kEach, kEach, kEach}, 2);
}

void write_d7(const std::string& prefix) {
  write_indexed(prefix, {{0, 1, 32767, 32768, 65534, 65535}});
}

}  // namespace sevenfold::testing
