#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sevenfold {

struct InputFile {
  std::string path;
  int64_t num_bytes = 0;
};

struct InputFiles {
  std::vector<InputFile> files;
  // What wildcards matched besides text, with the reason: "PATH (directory)", "PATH (binary)".
  std::vector<std::string> skipped;

  int64_t num_bytes() const;
};

// The text files that a list of globs names: the globs in the order given, the matches of each in
// byte order, so the same list gives the same documents everywhere.
// - An entry that starts with `!` takes paths out again, wherever it stands ("!*.dat": also matched
//   against the file's name alone).
// - A file reached twice (two globs, a symbolic or hard link) counts once, under its first path.
// - Directories and binary files (a zero byte in the first 8 KiB; of a .gz file, of what is
//   compressed) matched by a wildcard are skipped and listed; named without a wildcard they are
//   errors.
// Throws ConfigError: nothing matches, unreadable file, no text file left; DataError: damaged .gz.
InputFiles find_input_files(const std::vector<std::string>& globs);

}  // namespace sevenfold
