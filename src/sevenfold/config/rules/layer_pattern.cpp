#include "sevenfold/config/rules/layer_pattern.h"

#include <algorithm>

namespace sevenfold::config {
namespace {

constexpr int64_t kMaxLayers = 100'000;
constexpr int kMaxDepth = 50;

class Evaluator {
 public:
  explicit Evaluator(const std::string& text) : text_(text) {}

  std::optional<Value> evaluate() {
    auto value = sum(0);
    skip_blanks();
    return at_ == text_.size() ? value : std::nullopt;
  }

 private:
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  bool take(char c) {
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  std::optional<Value> sum(int depth) {
    auto left = product(depth);
    while (left && take('+')) {
      const auto right = product(depth);
      if (!right || left->kind != right->kind) return std::nullopt;
      if (left->is_list()) {
        left->list.insert(left->list.end(), right->list.begin(), right->list.end());
        if (static_cast<int64_t>(left->list.size()) > kMaxLayers) return std::nullopt;
      } else {
        left = Value::of(left->integer + right->integer);
      }
      if (left->kind == ValueKind::kInt && left->integer > kMaxLayers) return std::nullopt;
    }
    return left;
  }

  std::optional<Value> product(int depth) {
    auto left = atom(depth);
    while (left && take('*')) {
      auto right = atom(depth);
      if (!right) return std::nullopt;
      if (right->is_list()) std::swap(*left, *right);
      if (right->is_list()) return std::nullopt;
      left =
          left->is_list() ? repeat(*left, right->integer) : bounded(left->integer * right->integer);
    }
    return left;
  }

  static std::optional<Value> repeat(const Value& list, int64_t times) {
    if (static_cast<int64_t>(list.list.size()) * times > kMaxLayers) return std::nullopt;
    Value result;
    result.kind = ValueKind::kList;
    for (int64_t i = 0; i < times; ++i)
      result.list.insert(result.list.end(), list.list.begin(), list.list.end());
    return result;
  }

  static std::optional<Value> bounded(int64_t value) {
    return value <= kMaxLayers ? std::optional(Value::of(value)) : std::nullopt;
  }

  std::optional<Value> atom(int depth) {
    if (depth > kMaxDepth) return std::nullopt;
    if (take('(')) {
      auto value = sum(depth + 1);
      return value && take(')') ? value : std::nullopt;
    }
    if (take('[')) return list_items(depth);
    skip_blanks();
    const size_t start = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    if (at_ == start || at_ - start > 6) return std::nullopt;
    return bounded(std::stoll(text_.substr(start, at_ - start)));
  }

  std::optional<Value> list_items(int depth) {
    Value list;
    list.kind = ValueKind::kList;
    while (!take(']')) {
      if (!list.list.empty() && !take(',')) return std::nullopt;
      if (!list.list.empty() && take(']')) return list;  // a trailing comma
      const auto item = sum(depth + 1);
      if (!item || item->is_list()) return std::nullopt;
      list.list.push_back(*item);
    }
    return list;
  }

  const std::string& text_;
  size_t at_ = 0;
};

}  // namespace

std::optional<Value> evaluate_layer_pattern(const std::string& text) {
  std::string inner = text;
  const auto is_quoted = [&](char quote) {
    return inner.size() >= 2 && inner.front() == quote && inner.back() == quote;
  };
  while (is_quoted('"') || is_quoted('\'')) inner = inner.substr(1, inner.size() - 2);
  return Evaluator(inner).evaluate();
}

}  // namespace sevenfold::config
