#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <vector>

#include "sevenfold/dist/timeline.h"

namespace sevenfold {

// trace.json in the trace event format of Chrome, which ui.perfetto.dev opens: a process per rank,
// its work as nested slices of one row, and collectives in flight as asynchronous slices. After
// every write the file is one whole JSON document, so that a run which is stopped or killed between
// writes leaves a trace that opens. Used by one thread.
class TraceFile {
 public:
  // Replaces the file and names a row for each rank. Times are counted from here. Throws Error with
  // the path and the system's reason; so does write().
  TraceFile(std::filesystem::path path, int64_t num_ranks);

  // Handed to the system at once.
  void write(int64_t rank, const std::vector<TimeSpan>& spans);

 private:
  void append(const std::string& events);

  struct Closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::filesystem::path path_;
  std::unique_ptr<std::FILE, Closer> file_;
  double start_s_;
  int64_t num_collectives_ = 0;  // ids of asynchronous slices
  bool has_events_ = false;
};

}  // namespace sevenfold
