#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace sevenfold {

// A TensorBoard event file: scalars by tag and step. Format: records of TFRecord (length, masked
// CRC-32C of the length, data, masked CRC-32C of the data) that hold Event messages of protocol
// buffers (tensorflow/core/util/event.proto), little endian. Used by one thread of one rank.
class EventFile {
 public:
  // Makes the directory and a new file in it, named by time, host and process as TensorBoard
  // expects. continues_after: the step that the run goes on from, beside the files of its earlier
  // part; TensorBoard then drops their points behind it. 0: a run that starts anew.
  // Throws Error with the path and the system's reason; so does flush().
  explicit EventFile(const std::filesystem::path& directory, int64_t continues_after = 0);

  void add_scalar(std::string_view tag, int64_t step, double value);
  // Hands everything to the system: what a killed run leaves is whole records.
  void flush();
  const std::filesystem::path& path() const { return path_; }

 private:
  void write_record(const std::string& data);

  struct Closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::filesystem::path path_;
  std::unique_ptr<std::FILE, Closer> file_;
};

// CRC-32C (Castagnoli, reflected, polynomial 0x82F63B78), as RFC 3720 defines it.
uint32_t crc32c(std::string_view data);

}  // namespace sevenfold
