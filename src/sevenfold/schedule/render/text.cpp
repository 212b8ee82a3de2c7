#include "sevenfold/schedule/render/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <vector>

namespace sevenfold {
namespace {

std::string pass_label(const Schedule& schedule, const Pass& pass) {
  std::string label = op_name(pass.op);
  if (pass.op == Op::kBackward) label = "B";
  const int64_t chunks = schedule.num_chunks();
  if (chunks == 2 && pass.chunk == 1)
    label[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(label[0])));
  label += std::to_string(pass.microbatch);
  if (chunks > 2) label += "'" + std::to_string(pass.chunk);
  return label;
}

std::string row_label(const Schedule& schedule, const Row& row) {
  std::string label;
  for (const Pass& pass : passes_of(row))
    label += (label.empty() ? "" : "+") + pass_label(schedule, pass);
  return label;
}

// Columns per unit of time: every row shows its label and a space, unless passes or links so much
// longer than the shortest pass would make the drawing endless.
double columns_per_time(const Schedule& schedule, const Simulation& simulation, double last) {
  constexpr size_t kColumnsPerRow = 32;
  double scale = 0;
  size_t most_rows = 0;
  for (size_t rank = 0; rank < schedule.rows.size(); ++rank) {
    most_rows = std::max(most_rows, schedule.rows[rank].size());
    for (size_t i = 0; i < schedule.rows[rank].size(); ++i) {
      const RowSpan& span = simulation.spans[rank][i];
      const auto wanted =
          static_cast<double>(row_label(schedule, schedule.rows[rank][i]).size() + 1);
      if (span.end > span.start) scale = std::max(scale, wanted / (span.end - span.start));
    }
  }
  const auto ranks = static_cast<size_t>(schedule.num_ranks());
  return std::min(scale, static_cast<double>(kColumnsPerRow * (most_rows + ranks)) / last);
}

size_t column(double time, double scale) {
  return static_cast<size_t>(std::lround(time * scale));
}

std::string rank_line(const Schedule& schedule, const Simulation& simulation, size_t rank,
                      double scale, size_t columns) {
  std::string line(columns, '.');
  for (size_t i = 0; i < schedule.rows[rank].size(); ++i) {
    const RowSpan& span = simulation.spans[rank][i];
    const size_t begin = column(span.start, scale);
    const size_t end = std::min(column(span.end, scale), columns);
    if (end <= begin) continue;
    std::string cell = row_label(schedule, schedule.rows[rank][i]);
    cell.resize(end - begin, '-');
    if (cell.size() > 1) cell.back() = ' ';
    line.replace(begin, end - begin, cell);
  }
  return line;
}

// Ticks at round times, a dozen or so per `width` columns.
std::string time_line(double scale, size_t columns, size_t width) {
  const double rough = static_cast<double>(width) / scale / 12;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = power;
  for (const double factor : {2.0, 5.0, 10.0})
    if (step < rough) step = factor * power;
  std::string line(columns, ' ');
  for (double time = 0; column(time, scale) < columns; time += step) {
    const std::string label = fmt::format("{:g}", time);
    const size_t at = column(time, scale);
    for (size_t i = 0; i < label.size() && at + i < columns; ++i) line[at + i] = label[i];
  }
  return line;
}

}  // namespace

std::string draw_text(const Schedule& schedule, const Simulation& simulation, size_t width) {
  double last = 0;
  for (const auto& spans : simulation.spans)
    if (!spans.empty()) last = std::max(last, spans.back().end);
  const double scale = columns_per_time(schedule, simulation, last);
  const size_t columns = column(last, scale);
  const size_t label_width = fmt::format("rank {} ", schedule.rows.size() - 1).size();
  const size_t band = std::max<size_t>(width > label_width ? width - label_width : 0, 20);
  std::vector<std::string> lines = {time_line(scale, columns, band)};
  for (size_t rank = 0; rank < schedule.rows.size(); ++rank)
    lines.push_back(rank_line(schedule, simulation, rank, scale, columns));
  std::string text;
  for (size_t begin = 0; begin < columns; begin += band) {
    if (begin > 0) text += "\n";
    for (size_t i = 0; i < lines.size(); ++i) {
      const std::string label = i == 0 ? "time" : fmt::format("rank {}", i - 1);
      std::string line = fmt::format("{:<{}}{}", label, label_width, lines[i].substr(begin, band));
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + "\n";
    }
  }
  return text;
}

}  // namespace sevenfold
