#include "sevenfold/config/yaml/scalar.h"

#include <gmock/gmock.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "config/experiment_files.h"
#include "sevenfold/config/rules/layer_pattern.h"
#include "sevenfold/config/yaml/parse.h"
#include "sevenfold/core/error.h"

namespace sevenfold::config {
namespace {

using nlohmann::json;

struct ScalarCase {
  std::string text;
  json expected;
};

// Types count: 1 is not 1.0, and neither is "1".
void expect_equal(const Value& value, const json& expected, const std::string& text) {
  EXPECT_EQ(to_json(value).dump(), expected.dump()) << "of `" << text << "`";
}

TEST(PlainScalar, FollowsTheRulesOfYaml11) {
  const std::vector<ScalarCase> cases = {{"1.0e-5", 1e-5},
                                         {"1e-5", "1e-5"},
                                         {"1.0e5", "1.0e5"},
                                         {"1.0e+5", 1e5},
                                         {"1.", 1.0},
                                         {".5", 0.5},
                                         {"-.5", "-.5"},
                                         {"-1.5", -1.5},
                                         {"yes", true},
                                         {"No", false},
                                         {"ON", true},
                                         {"off", false},
                                         {"yEs", "yEs"},
                                         {"y", "y"},
                                         {"True", true},
                                         {"tRue", "tRue"},
                                         {"010", 8},
                                         {"08", "08"},
                                         {"0x1F", 31},
                                         {"0b101", 5},
                                         {"1_000", 1000},
                                         {"1:30", 90},
                                         {"1:30.5", 90.5},
                                         {"1:60", "1:60"},
                                         {"-1:30", -90},
                                         {"190:20:30", 685230},
                                         {"~", nullptr},
                                         {"", nullptr},
                                         {"null", nullptr},
                                         {"Null", nullptr},
                                         {"nUll", "nUll"},
                                         {"None", "None"},
                                         {"+7", 7},
                                         {"-0", 0},
                                         {"007", 7},
                                         {"0_7", 7},
                                         {"0.0.0", "0.0.0"},
                                         {"4294967296", 4294967296},
                                         {"2001-01-01", "2001-01-01"},
                                         {"1_0.5_0", 10.5},
                                         {"0o17", "0o17"},
                                         {"-", "-"},
                                         {"1e5", "1e5"},
                                         {"abc", "abc"}};
  for (const ScalarCase& item : cases)
    expect_equal(resolve_plain_scalar(item.text), item.expected, item.text);
}

TEST(PlainScalar, KnowsInfinityAndNotANumber) {
  EXPECT_EQ(resolve_plain_scalar("-.inf").number, -INFINITY);
  EXPECT_EQ(resolve_plain_scalar(".INF").number, INFINITY);
  EXPECT_TRUE(std::isnan(resolve_plain_scalar(".nan").number));
  EXPECT_EQ(resolve_plain_scalar("inf").kind, ValueKind::kString);
}

TEST(PlainScalar, KeepsIntegersBeyond64BitsAsNumbers) {
  expect_equal(resolve_plain_scalar("9223372036854775807"), int64_t{9223372036854775807},
               "the largest");
  EXPECT_EQ(resolve_plain_scalar("9223372036854775808").kind, ValueKind::kFloat);
}

std::string unset_name;

Value interpolated(const std::string& text, const Environment& environment) {
  unset_name.clear();
  return interpolate(Value::of(text), environment,
                     [](const Value&, const std::string& name) { unset_name = name; });
}

TEST(Interpolation, TakesDefaultsAndRetypesTheWholeString) {
  const std::vector<ScalarCase> cases = {{"${A:1}", 1},
                                         {"${A:1e-5}", 1e-5},
                                         {"${A:True}", true},
                                         {"${A:}", ""},
                                         {"${A:null}", "null"},
                                         {"${A:a:b}", "a:b"},
                                         {"x${A:1}", "x1"},
                                         {"${A:1}${B:2}", 12},
                                         {"${A:${B:x}}", "${B:x}"},
                                         {"${A:{x}}", "{x}"},
                                         {"${ A :3}", 3},
                                         {"${:x}", "${:x}"},
                                         {"${A:007}", 7},
                                         {"${A:yes}", "yes"},
                                         {"${A:None}", "None"},
                                         {"${A:+5}", "+5"},
                                         {"${A:1_000}", "1_000"},
                                         {"${A:0x10}", "0x10"},
                                         {"${A:inf}", "inf"},
                                         {"${A:[1,2]}", "[1,2]"},
                                         {"${A: 1}", " 1"},
                                         {"${A:.5}", 0.5},
                                         {"${A:5.}", 5.0},
                                         {"${A:-3}", -3},
                                         {"$A", "$A"},
                                         {"7", "7"},
                                         {"${A", "${A"},
                                         {"${A:FALSE}", false},
                                         {"${P:lite}.yaml", "lite.yaml"},
                                         {"${P:[0]*1+[1]*7}", "[0]*1+[1]*7"},
                                         {"${A:1e}", "1e"},
                                         {"${A:-}", "-"}};
  for (const ScalarCase& item : cases)
    expect_equal(interpolated(item.text, environment_of({})), item.expected, item.text);
}

TEST(Interpolation, PrefersTheEnvironmentEvenWhenItIsEmpty) {
  const Environment environment = environment_of({{"A", "9"}, {"EMPTY", ""}, {"WORD", "w"}});
  expect_equal(interpolated("${A:1}", environment), 9, "a set variable");
  expect_equal(interpolated("${A}", environment), 9, "a set variable without default");
  expect_equal(interpolated("${EMPTY:1}", environment), "", "an empty variable");
  expect_equal(interpolated("${WORD}-${A}", environment), "w-9", "two variables");
  interpolated("${MISSING}", environment);
  EXPECT_EQ(unset_name, "MISSING");
}

Value parse(const std::string& text) {
  return parse_yaml(text, Origin{OriginKind::kFile, "t.yaml", 0});
}

TEST(YamlParse, KeepsQuotedScalarsAsStringsAndTakesTheLastDuplicate) {
  const Value value = parse("a: \"1\"\nb: '010'\nc: 010\na: 2\nd: !!str 5\ne: \"null\"\nf:\n");
  EXPECT_EQ(to_json(value).dump(), R"({"a":2,"b":"010","c":8,"d":"5","e":"null","f":null})");
  EXPECT_EQ(value.find("a")->origin.text(), "t.yaml:4");
}

TEST(YamlParse, FollowsAliasesAndMergeKeys) {
  const Value value =
      parse("base: &b {x: 1, y: 2}\nuse: {<<: *b, y: 3}\nname: &n run\nagain: *n\n");
  EXPECT_EQ(to_json(*value.find("use")).dump(), R"({"x":1,"y":3})");
  EXPECT_EQ(value.find("again")->text, "run");
}

TEST(YamlParse, RefusesAnAliasThatContainsItself) {
  EXPECT_THROW(parse("a: &a [*a]\n"), ConfigError);
}

TEST(YamlText, ReadsBackAsTheSameValues) {
  const Value value = parse(
      "f: 1.0e-05\ng: 2.0\nh: 1.0e+22\ns: '1e-5'\nt: 'yes'\nn: null\nl: [1, [a, {b: .inf}], "
      "{}]\nm: {x: {y: []}}\n'on': 1\n"
      "q: \"line\\n\\\"quoted\\\" \\\\ #\"\n'a b': 0\n");
  const Value again = parse("root:" + to_yaml(value));
  EXPECT_EQ(to_json(*again.find("root")).dump(), to_json(value).dump());
}

TEST(LayerPattern, EvaluatesPythonListArithmetic) {
  const auto text_of = [](const std::string& text) {
    const auto value = evaluate_layer_pattern(text);
    return value ? to_json(*value).dump() : "nothing";
  };
  EXPECT_EQ(text_of("1"), "1");
  EXPECT_EQ(text_of("([0]*1+[1]*3)"), "[0,1,1,1]");
  EXPECT_EQ(text_of("\"([0]*2 + [1])\""), "[0,0,1]");
  EXPECT_EQ(text_of("2*[0, 1]"), "[0,1,0,1]");
  EXPECT_EQ(text_of("(1+2)*2"), "6");
  for (const char* bad :
       {"", "[0", "[0]+1", "__import__('os')", "[1]*1000000", "[0]*[1]", "1;2", "-1"})
    EXPECT_EQ(text_of(bad), "nothing") << bad;
}

}  // namespace
}  // namespace sevenfold::config
