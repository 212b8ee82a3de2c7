#include "sevenfold/config/overrides.h"

#include <gmock/gmock.h>

#include "config/experiment_files.h"

namespace sevenfold {
namespace {

using ::testing::HasSubstr;

TEST(Overrides, AreYamlCoercedByTheDeclaredType) {
  const Config config =
      load_text(small_llama(), {"lr=1e-5", "num_layers=8", "clip_grad=1", "lr_decay_iters=~",
                                "swiglu=True", "seed='7'", "min_lr=1.0e-6"});
  EXPECT_EQ(config.learning_rate.lr, 1e-5);
  EXPECT_EQ(config.learning_rate.min_lr, 1e-6);
  EXPECT_EQ(config.model.num_layers, 8);
  EXPECT_EQ(config.optimizer.clip_grad, 1.0);
  EXPECT_EQ(config.run.seed, 7u);
}

TEST(Overrides, ReachTheSevenfoldBlockAndTheNamesAtTheTop) {
  const Config config = load_text(small_llama(), {"sevenfold.shuffle=false", "sevenfold.ranks=4",
                                                  "exp_name=other", "sevenfold.start=hot"});
  EXPECT_FALSE(config.data.shuffle);
  EXPECT_EQ(config.mesh.dp, 4);
  EXPECT_EQ(config.run.directory, "out/team/me/other");
  EXPECT_EQ(config.run.start, StartKind::kHot);
}

TEST(Overrides, TolerateDashesAndTheLongForm) {
  const Config config = load_text(
      small_llama(), {"--num_layers=2", "-train_iters=9", "modules.pre_trainer.overrides.seed=5"});
  EXPECT_EQ(config.model.num_layers, 2);
  EXPECT_EQ(config.run.train_iters, 9);
  EXPECT_EQ(config.run.seed, 5u);
}

TEST(Overrides, TakeTheLastOfTwo) {
  EXPECT_EQ(load_text(small_llama(), {"seed=1", "seed=2"}).run.seed, 2u);
}

TEST(Overrides, KeepTextThatIsNotYaml) {
  const config::Experiment experiment =
      load_raw(small_llama(), {"moe_layer_freq=[0]*1+[1]*3", "exp_name=a=b"});
  EXPECT_EQ(experiment.parameters.find("moe_layer_freq")->text, "[0]*1+[1]*3");
  EXPECT_EQ(experiment.top.find("exp_name")->text, "a=b");
}

TEST(Overrides, RefuseWordsThatSetNothing) {
  EXPECT_THAT(error_of(small_llama(), {"num_layers"}),
              HasSubstr("override `num_layers` is not of the form key=value"));
  EXPECT_THAT(error_of(small_llama(), {"=3"}),
              HasSubstr("override `=3` is not of the form key=value"));
  EXPECT_THAT(error_of(small_llama(), {"a..b=3"}), HasSubstr("has an empty part in its key"));
  EXPECT_THAT(error_of(small_llama(), {"profile_ranks=[0"}),
              HasSubstr("`[0` is not readable as YAML"));
}

TEST(Overrides, RefuseAPathThroughAPlainValue) {
  EXPECT_THAT(error_of(small_llama(), {"m=1", "m.n=2"}),
              HasSubstr("override m.n=2: a part of this key already holds"));
}

}  // namespace
}  // namespace sevenfold
