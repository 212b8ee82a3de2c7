#include "sevenfold/core/random.h"

#include <bit>
#include <cmath>

namespace sevenfold {
namespace {

// Natural logarithm of a positive normal number: exponent and mantissa in [sqrt(1/2), sqrt(2)),
// then the series of 2 artanh((m-1)/(m+1)), whose ratio is below 0.0295: 14 terms leave less than
// one ulp.
double natural_log(double x) {
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  int exponent = static_cast<int>(bits >> 52) - 1023;
  double mantissa = std::bit_cast<double>((bits & 0x000fffffffffffffu) | 0x3ff0000000000000u);
  if (mantissa > 1.4142135623730951) {
    mantissa *= 0.5;
    exponent += 1;
  }
  const double t = (mantissa - 1.0) / (mantissa + 1.0);
  const double square = t * t;
  double series = 0.0;
  for (int k = 27; k >= 1; k -= 2) series = series * square + 1.0 / k;
  return 2.0 * t * series + exponent * 0.6931471805599453;
}

template <int N>
double polynomial(const double (&coefficients)[N], double x) {
  double value = coefficients[N - 1];
  for (int i = N - 2; i >= 0; --i) value = value * x + coefficients[i];
  return value;
}

}  // namespace

double inverse_normal(double p) {
  // Coefficients of the rational approximations of AS 241: central region, then two tails.
  static constexpr double kA[] = {
      3.3871328727963666080, 133.14166789178437745, 1971.5909503065514427, 13731.693765509461125,
      45921.953931549871457, 67265.770927008700853, 33430.575583588128105, 2509.0809287301226727};
  static constexpr double kB[] = {1.0,
                                  42.313330701600911252,
                                  687.18700749205790830,
                                  5394.1960214247511077,
                                  21213.794301586595867,
                                  39307.895800092710610,
                                  28729.085735721942674,
                                  5226.4952788528545610};
  static constexpr double kC[] = {1.42343711074968357734,   4.63033784615654529590,
                                  5.76949722146069140550,   3.64784832476320460504,
                                  1.27045825245236838258,   0.241780725177450611770,
                                  0.0227238449892691845833, 7.74545014278341407640e-4};
  static constexpr double kD[] = {1.0,
                                  2.05319162663775882187,
                                  1.67638483018380384940,
                                  0.689767334985100004550,
                                  0.148103976427480074590,
                                  0.0151986665636164571966,
                                  5.47593808499534494600e-4,
                                  1.05075007164441684324e-9};
  static constexpr double kE[] = {6.65790464350110377720,    5.46378491116411436990,
                                  1.78482653991729133580,    0.296560571828504891230,
                                  0.0265321895265761230930,  1.24266094738807843860e-3,
                                  2.71155556874348757815e-5, 2.01033439929228813265e-7};
  static constexpr double kF[] = {1.0,
                                  0.599832206555887937690,
                                  0.136929880922735805310,
                                  0.0148753612908506148525,
                                  7.86869131145613259100e-4,
                                  1.84631831751005468180e-5,
                                  1.42151175831644588870e-7,
                                  2.04426310338993978564e-15};
  const double q = p - 0.5;
  if (std::fabs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * polynomial(kA, r) / polynomial(kB, r);
  }
  double r = std::sqrt(-natural_log(q < 0.0 ? p : 1.0 - p));
  double z = 0.0;
  if (r <= 5.0) {
    r -= 1.6;
    z = polynomial(kC, r) / polynomial(kD, r);
  } else {
    r -= 5.0;
    z = polynomial(kE, r) / polynomial(kF, r);
  }
  return q < 0.0 ? -z : z;
}

double ElementStream::normal(uint64_t index) const {
  // The middle of one of 2^52 equal cells of (0, 1): never 0 or 1, symmetric about 1/2.
  const double p = (static_cast<double>(bits(index) >> 12) + 0.5) * 0x1p-52;
  return inverse_normal(p);
}

}  // namespace sevenfold
