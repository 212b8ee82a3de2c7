#include "sevenfold/schedule/csv.h"

#include <algorithm>
#include <charconv>
#include <istream>
#include <optional>
#include <ostream>
#include <string_view>

#include "sevenfold/core/error.h"
#include "sevenfold/schedule/validate.h"

namespace sevenfold {
namespace {

constexpr std::string_view kOverlap = "OVERLAP_F_B";
constexpr std::string_view kAddedByPyTorch[] = {"SEND_F",  "RECV_F",  "SEND_B",     "RECV_B",
                                                "UNSHARD", "RESHARD", "REDUCE_GRAD"};
constexpr int64_t kMaxNumber = 1'000'000;

char letter_of(Op op) {
  switch (op) {
    case Op::kForward:
      return 'F';
    case Op::kBackwardInput:
      return 'I';
    case Op::kBackwardWeight:
      return 'W';
    default:
      return 'B';
  }
}

std::optional<Op> op_of(char letter) {
  for (const Op op : {Op::kForward, Op::kBackwardInput, Op::kBackwardWeight, Op::kBackward})
    if (letter_of(op) == letter) return op;
  return std::nullopt;
}

// Takes the number that `text` begins with.
std::optional<int64_t> take_number(std::string_view& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value < 0 || value > kMaxNumber) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return value;
}

// "3F7"; nothing if it is something else.
std::optional<Row> parse_pass(std::string_view text) {
  const std::optional<int64_t> stage = take_number(text);
  if (!stage || text.empty()) return std::nullopt;
  const std::optional<Op> op = op_of(text.front());
  if (!op) return std::nullopt;
  text.remove_prefix(1);
  const std::optional<int64_t> microbatch = take_number(text);
  if (!microbatch || !text.empty()) return std::nullopt;
  return Row{.op = *op, .stage = *stage, .microbatch = *microbatch};
}

// "(3F7;0B2)OVERLAP_F_B".
std::optional<Row> parse_overlap(std::string_view text) {
  const size_t close = text.find(')');
  const size_t middle = text.find(';');
  if (text.empty() || text.front() != '(' || close == std::string_view::npos || middle > close ||
      text.substr(close + 1) != kOverlap)
    return std::nullopt;
  std::optional<Row> forward = parse_pass(text.substr(1, middle - 1));
  const std::optional<Row> backward = parse_pass(text.substr(middle + 1, close - middle - 1));
  if (!forward || !backward || forward->op != Op::kForward || backward->op != Op::kBackward)
    return std::nullopt;
  forward->op = Op::kForwardBackward;
  forward->backward = {.stage = backward->stage, .microbatch = backward->microbatch};
  return forward;
}

// "3SEND_F7", "3UNSHARD".
bool is_added_by_pytorch(std::string_view text) {
  if (!take_number(text)) return false;
  return std::any_of(std::begin(kAddedByPyTorch), std::end(kAddedByPyTorch),
                     [&](std::string_view word) {
                       if (text.substr(0, word.size()) != word) return false;
                       std::string_view rest = text.substr(word.size());
                       return rest.empty() || (take_number(rest) && rest.empty());
                     });
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::string_view(" \t\r\"").find(text.front()) != std::string_view::npos)
    text.remove_prefix(1);
  while (!text.empty() && std::string_view(" \t\r\"").find(text.back()) != std::string_view::npos)
    text.remove_suffix(1);
  return text;
}

// A cell as a message can show it: short, and in characters that a terminal takes for themselves.
std::string shown(std::string_view cell) {
  constexpr size_t kShown = 40;
  std::string text(cell.substr(0, kShown));
  for (char& c : text)
    if (c < ' ' || c > '~') c = '?';
  return cell.size() > kShown ? text + "..." : text;
}

std::vector<Row> parse_line(const std::string& line, const std::string& name, size_t number) {
  std::vector<Row> rows;
  size_t cell_number = 0;
  for (size_t begin = 0; begin <= line.size();) {
    const size_t end = std::min(line.find(',', begin), line.size());
    const std::string_view cell = trimmed(std::string_view(line).substr(begin, end - begin));
    begin = end + 1;
    ++cell_number;
    if (cell.empty() || cell == "None" || is_added_by_pytorch(cell)) continue;
    std::optional<Row> row = parse_pass(cell);
    if (!row) row = parse_overlap(cell);
    if (!row)
      raise<DataError>(
          "schedule: {}: line {}, cell {}: '{}' is no pass; write stage, F, B, I or W, and micro "
          "batch: "
          "3F7",
          name, number, cell_number, shown(cell));
    rows.push_back(*row);
  }
  return rows;
}

// The placement under which every rank's rows lie where they are; nothing if there is none.
std::optional<Placement> placement_of(const Schedule& schedule) {
  const int64_t ranks = schedule.num_ranks();
  std::vector<Placement> possible = {Placement::kLoop, Placement::kVee};
  if (schedule.num_stages == ranks) possible = {Placement::kLinear};
  for (const Placement placement : possible) {
    if (placement == Placement::kVee && schedule.num_stages != 2 * ranks) continue;
    bool fits = schedule.num_stages % ranks == 0;
    for (int64_t rank = 0; rank < ranks && fits; ++rank)
      for (const Row& row : schedule.rows[static_cast<size_t>(rank)])
        for (const Pass& pass : passes_of(row))
          fits = fits && site_of(placement, ranks, pass.stage, 0).rank == rank;
    if (fits) return placement;
  }
  return std::nullopt;
}

void set_chunks(Schedule& schedule) {
  const auto chunk = [&](int64_t stage) {
    return site_of(schedule.placement, schedule.num_ranks(), stage, 0).chunk;
  };
  for (std::vector<Row>& rows : schedule.rows)
    for (Row& row : rows) {
      row.chunk = chunk(row.stage);
      row.backward.chunk = row.op == Op::kForwardBackward ? chunk(row.backward.stage) : 0;
    }
}

}  // namespace

void write_csv(std::ostream& out, const Schedule& schedule) {
  if (schedule.placement == Placement::kBidirectional)
    raise<ConfigError>(
        "schedule: {} puts every stage on two ranks, which PyTorch's schedule files cannot say; "
        "dualpipev can be written",
        schedule.algorithm);
  for (const std::vector<Row>& rows : schedule.rows) {
    bool first = true;
    for (const Row& row : rows)
      for (const Pass& pass : passes_of(row)) {
        out << (first ? "" : ",") << pass.stage << letter_of(pass.op) << pass.microbatch;
        first = false;
      }
    out << "\n";
  }
}

Schedule read_csv(std::istream& in, const std::string& name) {
  Schedule schedule;
  schedule.algorithm = name;
  int64_t passes = 0;
  int64_t stages = 0;
  int64_t microbatches = 0;
  std::string line;
  for (size_t number = 1; std::getline(in, line); ++number) {
    if (trimmed(line).empty()) continue;
    schedule.rows.push_back(parse_line(line, name, number));
    for (const Row& row : schedule.rows.back()) {
      passes += passes_of(row).count;
      stages = std::max({stages, row.stage + 1, row.backward.stage + 1});
      microbatches = std::max({microbatches, row.microbatch + 1, row.backward.microbatch + 1});
    }
  }
  if (schedule.rows.empty()) raise<DataError>("schedule: {}: holds no rows", name);
  if (stages * microbatches > passes)
    raise<DataError>(
        "schedule: {}: {} passes cannot run {} micro batches through {} stages; every stage has "
        "every micro batch forward and backward, numbered from 0",
        name, passes, microbatches, stages);
  schedule.num_stages = stages;
  schedule.num_microbatches = microbatches;
  const std::optional<Placement> placement = placement_of(schedule);
  if (!placement)
    raise<DataError>(
        "schedule: {}: {} stages on {} ranks lie neither one per rank, nor in loops (rank r: r, "
        "P+r, "
        "...), nor in a V (rank r: r and 2P-1-r)",
        name, stages, schedule.num_ranks());
  schedule.placement = *placement;
  set_chunks(schedule);
  if (const auto fault = find_fault(schedule)) raise<DataError>("schedule: {}: {}", name, *fault);
  return schedule;
}

}  // namespace sevenfold
