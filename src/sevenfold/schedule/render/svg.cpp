#include "sevenfold/schedule/render/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "sevenfold/schedule/render/words.h"

namespace sevenfold {
namespace {

constexpr double kWidth = 1600;
constexpr double kLeft = 86;        // lane labels
constexpr double kRight = 150;      // figures of each rank
constexpr double kTop = 92;         // title
constexpr double kLane = 34;        // bar of a rank
constexpr double kMemory = 16;      // its memory below
constexpr double kPitch = 62;       // from lane to lane
constexpr double kBottom = 84;      // axis and legend
constexpr double kTextWidth = 6.6;  // of a digit in a bar

struct Rgb {
  int red, green, blue;
};

// Forward, B, W, BW: told apart by people who do not see red and green alike, and in print.
constexpr Rgb kColors[] = {{58, 110, 180}, {64, 160, 160}, {226, 149, 60}, {92, 148, 92}};
constexpr const char* kLegend[] = {"forward", "backward, input (B)", "backward, weight (W)",
                                   "backward, both (BW)"};

// Later chunks are lighter.
std::string fill_of(const Schedule& schedule, const Pass& pass) {
  const Rgb& color = kColors[static_cast<size_t>(pass.op)];
  const auto chunks = static_cast<double>(schedule.num_chunks());
  const double light = chunks > 1 ? 0.55 * static_cast<double>(pass.chunk) / (chunks - 1) : 0;
  const auto mix = [&](int value) {
    return static_cast<int>(std::lround(value + (255 - value) * light));
  };
  return fmt::format("#{:02x}{:02x}{:02x}", mix(color.red), mix(color.green), mix(color.blue));
}

// The name of a schedule file may hold anything.
std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text)
    result += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
  return result;
}

class Canvas {
 public:
  Canvas(const Schedule& schedule, const Simulation& simulation, const ScheduleCosts& costs)
      : schedule_(schedule),
        simulation_(simulation),
        costs_(costs),
        stages_(stage_costs(costs, schedule.num_ranks(), schedule.num_stages)),
        height_(kTop + kPitch * static_cast<double>(schedule.num_ranks()) + kBottom) {
    for (const auto& spans : simulation.spans)
      if (!spans.empty()) last_ = std::max(last_, spans.back().end);
    scale_ = (kWidth - kLeft - kRight) / std::max(last_, 1e-300);
  }

  std::string document() {
    add("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" width=\"{}\" "
        "height=\"{}\" "
        "font-family=\"Helvetica, Arial, sans-serif\">\n",
        kWidth, height_, kWidth, height_);
    add("<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n");
    title();
    axis();
    for (size_t rank = 0; rank < schedule_.rows.size(); ++rank) lane(rank);
    legend();
    add("</svg>\n");
    return std::move(text_);
  }

 private:
  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    text_ += fmt::format(format, std::forward<Args>(args)...);
  }

  double x(double time) const { return kLeft + time * scale_; }
  static double lane_top(size_t rank) { return kTop + kPitch * static_cast<double>(rank); }

  std::string times() const {
    if (!costs_.stages.empty())
      return fmt::format("stages of their own times, link {:g}", costs_.link);
    return fmt::format("F {:g}, B {:g}, W {:g}, link {:g}", costs_.share.forward,
                       costs_.share.backward_input, costs_.share.backward_weight, costs_.link);
  }

  void title() {
    const double peak = simulation_.max_peak_activation();
    add("<text x=\"{}\" y=\"36\" font-size=\"24\" font-weight=\"bold\" "
        "fill=\"#222222\">{}</text>\n",
        kLeft, escaped(schedule_.algorithm));
    add("<text x=\"{}\" y=\"62\" font-size=\"15\" fill=\"#555555\">{}, {}, {} per rank{}; "
        "{}</text>\n",
        kLeft, counted(schedule_.num_ranks(), "rank", "ranks"),
        counted(schedule_.num_microbatches, "micro batch", "micro batches"),
        counted(schedule_.num_chunks(), "chunk", "chunks"),
        schedule_.num_copies() == 2 ? ", two copies of the weights" : "", times());
    add("<text x=\"{}\" y=\"36\" font-size=\"17\" fill=\"#222222\" text-anchor=\"end\">time {:g}, "
        "bubble "
        "{:.1f}%, peak {:g} micro batch{}</text>\n",
        kWidth - 20, simulation_.makespan, 100 * simulation_.bubble_rate(), peak,
        peak == 1 ? "" : "es");
    add("<text x=\"{}\" y=\"60\" font-size=\"13\" fill=\"#777777\" text-anchor=\"end\">longest "
        "rank {:g}, "
        "bubble {:.1f}%</text>\n",
        kWidth - 20, simulation_.longest, 100 * simulation_.bubble_rate_longest());
  }

  void axis() {
    const double rough = last_ / 12;
    const double power = std::pow(10.0, std::floor(std::log10(std::max(rough, 1e-300))));
    double step = power;
    for (const double factor : {2.0, 5.0, 10.0})
      if (step < rough) step = factor * power;
    const double bottom = kTop + kPitch * static_cast<double>(schedule_.num_ranks());
    for (int64_t tick = 0; static_cast<double>(tick) * step <= last_ * (1 + 1e-9); ++tick) {
      const double time = static_cast<double>(tick) * step;
      add("<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\" stroke=\"#e4e4e4\"/>\n",
          x(time), kTop - 6, bottom);
      add("<text x=\"{:.1f}\" y=\"{}\" font-size=\"12\" fill=\"#777777\" "
          "text-anchor=\"middle\">{:g}"
          "</text>\n",
          x(time), bottom + 14, time);
    }
  }

  void bar(const Pass& pass, double left, double width, double top, double height) {
    add("<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\" "
        "stroke=\"#ffffff\" stroke-width=\"{}\"><title>{}</title></rect>\n",
        left, top, width, height, fill_of(schedule_, pass), width > 6 ? 1 : 0.3, describe(pass));
    const std::string label = std::to_string(pass.microbatch);
    if (width < kTextWidth * static_cast<double>(label.size()) + 2) return;
    has_numbers_ = true;
    add("<text x=\"{:.2f}\" y=\"{:.2f}\" font-size=\"11\" text-anchor=\"middle\" "
        "fill=\"{}\">{}</text>\n",
        left + width / 2, top + height / 2 + 4,
        pass.chunk == 0 && pass.op != Op::kBackwardWeight ? "#ffffff" : "#222222", label);
  }

  void lane(size_t rank) {
    const double top = lane_top(rank);
    add("<text x=\"{}\" y=\"{}\" font-size=\"15\" fill=\"#222222\" text-anchor=\"end\">rank "
        "{}</text>\n",
        kLeft - 10, top + kLane / 2 + 5, rank);
    add("<rect x=\"{}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\" fill=\"#f2f2f2\"/>\n", kLeft, top,
        last_ * scale_, kLane);
    for (size_t i = 0; i < schedule_.rows[rank].size(); ++i) {
      const RowSpan& span = simulation_.spans[rank][i];
      const Passes passes = passes_of(schedule_.rows[rank][i]);
      const double height =
          kLane / passes.count;  // an overlapped cell: forward above, backward below
      double below = top;
      for (const Pass& pass : passes) {
        bar(pass, x(span.start), (span.end - span.start) * scale_, below, height);
        below += height;
      }
    }
    memory(rank);
    const double idle = last_ > 0 ? 1 - simulation_.busy[rank] / simulation_.makespan : 0;
    add("<text x=\"{}\" y=\"{}\" font-size=\"13\" fill=\"#222222\">idle {:.1f}%</text>\n",
        kWidth - kRight + 14, top + kLane / 2 + 5, 100 * idle);
    add("<text x=\"{}\" y=\"{}\" font-size=\"12\" fill=\"#777777\">peak {:g}</text>\n",
        kWidth - kRight + 14, top + kLane + 14, simulation_.peak_activation[rank]);
  }

  // Activations over time, the lane's height being the largest peak of all ranks.
  void memory(size_t rank) {
    const double base = lane_top(rank) + kLane + 3 + kMemory;
    const double unit = kMemory / std::max(simulation_.max_peak_activation(), 1e-300);
    std::string path = fmt::format("M{:.2f} {:.2f}", x(0), base);
    double held = 0;
    const auto step = [&](double time, double change) {
      path += fmt::format("H{:.2f}", x(time));
      held += change;
      path += fmt::format("V{:.2f}", base - std::max(held, 0.0) * unit);
    };
    for (size_t i = 0; i < schedule_.rows[rank].size(); ++i) {
      const RowSpan& span = simulation_.spans[rank][i];
      for (const Pass& pass : passes_of(schedule_.rows[rank][i])) {
        const double activation = stages_[static_cast<size_t>(pass.stage)].activation;
        if (pass.op == Op::kForward)
          step(span.start, activation);
        else
          step(span.end, -activation * (pass.op == Op::kBackwardInput    ? 1 - costs_.weight_memory
                                        : pass.op == Op::kBackwardWeight ? costs_.weight_memory
                                                                         : 1));
      }
    }
    add("<path d=\"{}V{:.2f}Z\" fill=\"#c9bfe0\" stroke=\"#8070a8\" stroke-width=\"0.7\"/>\n", path,
        base);
  }

  void legend() {
    const double y = height_ - 34;
    double left = kLeft;
    bool used[4] = {false, false, false, false};
    for (const auto& rows : schedule_.rows)
      for (const Row& row : rows)
        for (const Pass& pass : passes_of(row)) used[static_cast<size_t>(pass.op)] = true;
    for (size_t i = 0; i < 4; ++i) {
      if (!used[i]) continue;
      const Pass pass = {.op = static_cast<Op>(i)};
      add("<rect x=\"{}\" y=\"{}\" width=\"18\" height=\"14\" fill=\"{}\"/>\n", left, y,
          fill_of(schedule_, pass));
      add("<text x=\"{}\" y=\"{}\" font-size=\"13\" fill=\"#444444\">{}</text>\n", left + 24,
          y + 12, kLegend[i]);
      left += 190;
    }
    add("<rect x=\"{}\" y=\"{}\" width=\"18\" height=\"14\" fill=\"#c9bfe0\" "
        "stroke=\"#8070a8\"/>\n",
        left, y);
    add("<text x=\"{}\" y=\"{}\" font-size=\"13\" fill=\"#444444\">activations held</text>\n",
        left + 24, y + 12);
    std::vector<std::string> notes;
    if (has_numbers_) notes.emplace_back("numbers: micro batch");
    if (schedule_.num_copies() == 2)
      notes.emplace_back("lighter: from the other end");
    else if (schedule_.num_chunks() > 1)
      notes.emplace_back("lighter: later chunk of the rank");
    add("<text x=\"{}\" y=\"{}\" font-size=\"13\" fill=\"#444444\">{}</text>\n", left + 190, y + 12,
        fmt::join(notes, "; "));
  }

  const Schedule& schedule_;
  const Simulation& simulation_;
  const ScheduleCosts& costs_;
  std::vector<PassCosts> stages_;
  double height_;
  double last_ = 0;
  double scale_ = 1;
  bool has_numbers_ = false;  // in at least one bar
  std::string text_;
};

}  // namespace

std::string draw_svg(const Schedule& schedule, const Simulation& simulation,
                     const ScheduleCosts& costs) {
  return Canvas(schedule, simulation, costs).document();
}

}  // namespace sevenfold
