#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace sevenfold::testing {

// A fresh directory, removed with everything in it.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // Path of `name` inside, as a string.
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

void write_text(const std::string& path, const std::string& text);
std::string read_text(const std::string& path);

using Documents = std::vector<std::vector<int64_t>>;

// Writes PREFIX.bin and PREFIX.idx byte by byte, apart from the writer under test. dtype_code 8:
// u16, 4: i32.
void write_indexed(const std::string& prefix, const Documents& documents, uint8_t dtype_code = 8);

// The project's test data; end of document is 0, other ids are 1..100 where nothing else is said.
void write_d1(const std::string& prefix);  // 64 ragged documents of 3..66 tokens and an end
void write_d2(const std::string& prefix);  // lengths 5, 0, 3, 0, 0, 7, 1: empty documents
// 9 documents of 32 tokens; with eod_mask_loss and S = 32 the 8 samples train 32,1,16,4,32,2,8,31
// labels.
void write_d3(const std::string& prefix);
void write_d4(const std::string& prefix);  // as D3, two samples wholly masked: 32,0,16,4,0,2,8,31
void write_d5(const std::string& prefix);  // i32, offsets past 2^32 bytes; sparse, 4.8 GB apparent
void write_d6(
    const std::string& prefix);  // u16, 3e9 zero tokens in 3 documents; sparse, 6 GB apparent
void write_d7(const std::string& prefix);  // u16: 0, 1, 32767, 32768, 65534, 65535

}  // namespace sevenfold::testing
